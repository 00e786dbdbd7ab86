//! States that a crash may leave of a recorded device, one after the other, over NBD or FUSE.
//!
//! The device answers at once, and has no clock to ask. What it holds is looked up when it is read: no state is ever copied.

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

/// A device that power failed on, as clients find it.
#[derive(Debug)]
pub struct CrashedDevice {
    overlay: Arc<RwLock<Overlay>>,
    place: PathBuf,
    /// `None` once it has ended.
    running: Option<(Session, Way)>,
}

#[derive(Debug)]
enum Way {
    Nbd(Server),
    Fuse(Mount),
}

impl CrashedDevice {
    /// Over NBD, at a socket.
    ///
    /// # Errors
    /// A socket that cannot be had.
    pub fn over_nbd(overlay: Overlay, socket: &Path) -> Result<CrashedDevice, LiveError> {
        let block_bytes = overlay.block_bytes();
        CrashedDevice::start(overlay, block_bytes, |device| {
            let server = Server::start(device, &[Endpoint::Unix(socket.to_owned())], Security::None)?;
            Ok((socket.to_owned(), Way::Nbd(server)))
        })
    }

    /// As a file in a directory that is empty, or made for it.
    ///
    /// # Errors
    /// A machine without FUSE, or one that does not let this user mount.
    pub fn over_fuse(overlay: Overlay, directory: &Path) -> Result<CrashedDevice, LiveError> {
        // A file is read and written from any byte on.
        CrashedDevice::start(overlay, 1, |device| {
            let mount = Mount::start(device, directory)?;
            Ok((mount.files()[0].clone(), Way::Fuse(mount)))
        })
    }

    fn start(
        overlay: Overlay,
        block_bytes: u32,
        serve: impl FnOnce(&Arc<Device>) -> Result<(PathBuf, Way), LiveError>,
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

    /// Goes to a state. Who was connected to the one before is not any more.
    ///
    /// # Errors
    /// The recording has no such moment; what the file system says.
    pub fn take(&self, state: &CrashState) -> Result<(), CrashError> {
        if let Some((_, Way::Nbd(server))) = &self.running {
            server.cut_connections();
        }
        self.overlay().take(state)
    }

    /// Throws away what was written since; false where nothing was.
    ///
    /// # Errors
    /// What the file system says.
    pub fn restore(&self) -> Result<bool, CrashError> {
        self.overlay().restore()
    }

    fn overlay(&self) -> RwLockWriteGuard<'_, Overlay> {
        self.overlay.write().expect("nobody panics with it")
    }
}

impl Drop for CrashedDevice {
    fn drop(&mut self) {
        let Some((session, way)) = self.running.take() else { return };
        match way {
            Way::Nbd(server) => server.stop(),
            // What it leaves behind is cleared by whoever has the directory.
            Way::Fuse(mount) => drop(mount),
        }
        session.stop();
    }
}
