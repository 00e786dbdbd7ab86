//! [`CrashedDevice`]: exports possible states of a recorded device after a crash, one after another, over NBD or FUSE.
//!
//! The device answers at once, without a clock. Its contents are looked up on each read: no state is ever copied.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockWriteGuard};

use headstack_crash::states::CrashState;
use headstack_crash::{CrashError, Overlay};
use headstack_sim::{Constant, Model};
use headstack_workload::Span;

use crate::LiveError;
use crate::contents::Contents;
use crate::device::{Device, Export};
use crate::fuse::Mount;
use crate::nbd::{Endpoint, Security, Server};
use crate::pacer::{Session, SessionOptions};

/// A device after a power failure, as clients see it.
#[derive(Debug)]
pub struct CrashedDevice {
    overlay: Arc<RwLock<Overlay>>,
    place: PathBuf,
    /// `None` after the end.
    running: Option<(Session, Attachment)>,
}

#[derive(Debug)]
enum Attachment {
    Nbd(Server),
    Fuse(Mount),
}

impl CrashedDevice {
    /// Exports over NBD at a socket.
    ///
    /// # Errors
    /// When the socket is not available.
    pub fn over_nbd(overlay: Overlay, socket: &Path) -> Result<CrashedDevice, LiveError> {
        let block_bytes = overlay.block_bytes();
        CrashedDevice::start(overlay, block_bytes, |device| {
            let server = Server::start(device, &[Endpoint::Unix(socket.to_owned())], Security::None)?;
            Ok((socket.to_owned(), Attachment::Nbd(server)))
        })
    }

    /// Exports as a file in a directory, which must be empty or is created.
    ///
    /// # Errors
    /// When the machine has no FUSE, or this user may not mount.
    pub fn over_fuse(overlay: Overlay, directory: &Path) -> Result<CrashedDevice, LiveError> {
        // A file can be read and written at any byte offset.
        CrashedDevice::start(overlay, 1, |device| {
            let mount = Mount::start(device, directory)?;
            Ok((mount.files()[0].clone(), Attachment::Fuse(mount)))
        })
    }

    fn start(
        overlay: Overlay,
        block_bytes: u32,
        serve: impl FnOnce(&Arc<Device>) -> Result<(PathBuf, Attachment), LiveError>,
    ) -> Result<CrashedDevice, LiveError> {
        let capacity_bytes = overlay.capacity_bytes();
        let model = Model::Constant(Constant { latency_ns: 0, capacity_bytes });
        let options = SessionOptions { realtime: false, ..SessionOptions::default() };
        let session = Session::start(&model, options, None)?;
        let export = Export {
            name: "disk".to_owned(),
            description: "a device after a crash".to_owned(),
            span: Span { start_bytes: 0, length_bytes: capacity_bytes },
            block_bytes,
            is_rotational: false,
        };
        let overlay = Arc::new(RwLock::new(overlay));
        let device = Device::of(&session, vec![export], Contents::AfterCrash(Arc::clone(&overlay)));
        match serve(&device) {
            Ok((place, way)) => Ok(CrashedDevice { overlay, place, running: Some((session, way)) }),
            Err(error) => {
                session.stop();
                Err(error)
            }
        }
    }

    /// The socket, or the file.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Changes to another state. Clients of the previous state are disconnected.
    ///
    /// # Errors
    /// When the recording has no such moment; the file system's error.
    pub fn take(&self, state: &CrashState) -> Result<(), CrashError> {
        if let Some((_, Attachment::Nbd(server))) = &self.running {
            server.cut_connections();
        }
        self.overlay().take(state)
    }

    /// Discards all later writes; returns false if there were none.
    ///
    /// # Errors
    /// The file system's error.
    pub fn restore(&self) -> Result<bool, CrashError> {
        self.overlay().restore()
    }

    fn overlay(&self) -> RwLockWriteGuard<'_, Overlay> {
        self.overlay.write().expect("the lock is not poisoned")
    }
}

impl Drop for CrashedDevice {
    fn drop(&mut self) {
        let Some((session, way)) = self.running.take() else { return };
        match way {
            Attachment::Nbd(server) => server.stop(),
            // Leftovers are cleared by the owner of the directory.
            Attachment::Fuse(mount) => drop(mount),
        }
        session.stop();
    }
}
