//! The directory itself: mounted, served, unmounted, and everything that can be in the way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use fuser::{Config, MountOption, Session, SessionUnmounter};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::filesystem::Disks;
use super::losetup;
use super::reply::{Replies, Word};
use crate::LiveError;
use crate::courier::Courier;
use crate::device::Device;

/// Threads that receive what the kernel asks.
const RECEIVERS: usize = 2;
/// How long a session may take to hear of its end, in looks.
const LOOKS: usize = 200;
const LOOK: Duration = Duration::from_millis(10);
/// How long a directory may stay busy: the kernel closes the file of a loop device a little after it is detached.
const BUSY_LOOKS: usize = 20;

/// How a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// Nobody used it.
    Cleanly,
    /// Somebody still had a file open, a loop device for example: what he asks from now on fails with an I/O error.
    InUse,
    /// Somebody had unmounted it from outside.
    Before,
}

/// A directory that exports a device, a file for each LUN.
#[derive(Debug)]
pub struct Mount {
    directory: PathBuf,
    was_created: bool,
    files: Vec<PathBuf>,
    unmounter: SessionUnmounter,
    /// `None` once it has ended.
    running: Option<(JoinHandle<io::Result<()>>, Courier<Word>)>,
}

impl Mount {
    /// Mounts `device` at `directory`, which is empty, or created and removed again. Files are named as the exports; a
    /// single one is `disk`.
    ///
    /// # Errors
    /// A directory that is not empty or still holds what a server left that is gone; a name that is none for a file; a
    /// machine without FUSE, or one that does not let this user mount.
    pub fn start(device: &Arc<Device>, directory: &Path) -> Result<Mount, LiveError> {
        let names = file_names(device)?;
        let was_created = prepare(directory)?;
        let mounted = mount(device, directory, &names);
        if mounted.is_err() && was_created {
            // What is wrong is said; an empty directory that cannot be removed is not.
            let _ = fs::remove_dir(directory);
        }
        let (directory, mut session, courier) = mounted?;
        let unmounter = session.unmount_callable();
        let submitter = device.submitter.clone();
        let runner = thread::Builder::new().name("headstack-fuse".to_owned()).spawn(move || {
            // The threads that receive are started by this one, and inherit its class.
            submitter.keep_up();
            session.run()
        });
        let runner = runner.map_err(LiveError::io("a thread of the mount"))?;
        let files = names.iter().map(|name| directory.join(name)).collect();
        Ok(Mount { directory, was_created, files, unmounter, running: Some((runner, courier)) })
    }

    /// The files, in order of the exports.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Nothing is served any more: somebody unmounted the directory from outside, and nobody uses it.
    pub fn is_unmounted(&self) -> bool {
        self.running.as_ref().is_none_or(|(runner, _)| runner.is_finished())
    }

    /// Unmounts the directory, whoever uses it: whatever is under way there fails. File systems should be unmounted and
    /// loop devices detached before.
    ///
    /// # Errors
    /// A directory that cannot be unmounted.
    pub fn stop(mut self) -> Result<Unmounted, LiveError> {
        self.end()
    }

    fn end(&mut self) -> Result<Unmounted, LiveError> {
        let Some((runner, courier)) = self.running.take() else {
            return Ok(Unmounted::Before);
        };
        let mut ended = if runner.is_finished() { Unmounted::Before } else { self.unmount()? };
        // Where an unprivileged user unmounts what others use, or somebody did from outside, it ends with its last user.
        let finished = (0..LOOKS).any(|look| {
            if look > 0 && !runner.is_finished() {
                thread::sleep(LOOK);
            }
            runner.is_finished()
        });
        if finished {
            let served = runner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            courier.stop();
            // The kernel has an unmount that meets a read of the next request end the connection by this error.
            match served {
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                served => served.map_err(LiveError::io(self.directory.display().to_string()))?,
            }
        } else {
            ended = Unmounted::InUse;
        }
        // A connection that was broken off leaves the directory behind, which nobody can enter.
        if is_dead(&self.directory) {
            unmount(&self.directory, UnmountFlags::DETACH).map_err(|error| self.cannot_unmount(error))?;
        }
        if self.was_created {
            fs::remove_dir(&self.directory).map_err(LiveError::io(self.directory.display().to_string()))?;
        }
        Ok(ended)
    }

    fn unmount(&mut self) -> Result<Unmounted, LiveError> {
        let Err(error) = self.unmounter.unmount() else {
            return Ok(Unmounted::Cleanly);
        };
        match Errno::from_io_error(&error) {
            // Detached from outside, with somebody still inside.
            Some(Errno::INVAL) => Ok(Unmounted::InUse),
            Some(Errno::BUSY) => {
                let freed = |_| {
                    thread::sleep(LOOK);
                    unmount(&self.directory, UnmountFlags::empty()).is_ok()
                };
                if (0..BUSY_LOOKS).any(freed) {
                    return Ok(Unmounted::Cleanly);
                }
                // Force does not unmount what is busy, but it ends the connection: nobody waits for answers any more.
                if unmount(&self.directory, UnmountFlags::FORCE).is_err() {
                    unmount(&self.directory, UnmountFlags::DETACH).map_err(|error| self.cannot_unmount(error))?;
                }
                Ok(Unmounted::InUse)
            }
            _ => Err(LiveError::io(format!("{}: unmounting", self.directory.display()))(error)),
        }
    }

    fn cannot_unmount(&self, error: Errno) -> LiveError {
        LiveError::io(format!("{}: unmounting", self.directory.display()))(error.into())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Who wants to hear of it stops it.
        let _ = self.end();
    }
}

fn mount(
    device: &Arc<Device>,
    directory: &Path,
    names: &[String],
) -> Result<(PathBuf, Session<Disks>, Courier<Word>), LiveError> {
    let directory = directory.canonicalize().map_err(LiveError::io(directory.display().to_string()))?;
    let courier = Courier::start(device.submitter.clone())?;
    let disks = Disks {
        device: Arc::clone(device),
        names: names.to_vec(),
        replies: Replies::new(courier.bag()),
        since: SystemTime::now(),
    };
    let mut config = Config::default();
    let (name, kind) = ("headstack".to_owned(), "headstack".to_owned());
    config.mount_options = vec![MountOption::FSName(name), MountOption::Subtype(kind), MountOption::DefaultPermissions];
    config.n_threads = Some(RECEIVERS);
    config.clone_fd = true;
    match Session::new(disks, &directory, &config) {
        Ok(session) => Ok((directory, session, courier)),
        Err(error) => {
            courier.stop();
            Err(cannot_mount(&directory, error))
        }
    }
}

/// What to do where mounting was refused.
fn cannot_mount(directory: &Path, error: io::Error) -> LiveError {
    let directory = directory.display();
    if !Path::new("/dev/fuse").exists() {
        return LiveError::Asked(format!(
            "{directory}: no /dev/fuse: load the module (`modprobe fuse`), or give the container this device"
        ));
    }
    if error.kind() == io::ErrorKind::NotFound && !rustix::process::geteuid().is_root() {
        return LiveError::Asked(format!(
            "{directory}: only root mounts without fusermount3: be root, or install it (package fuse3)"
        ));
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return LiveError::Asked(format!("{directory}: this user may not mount here ({error}): be root"));
    }
    LiveError::io(format!("{directory}: mounting"))(error)
}

/// Names of the files: those of the exports, which have to be such.
fn file_names(device: &Device) -> Result<Vec<String>, LiveError> {
    if device.exports.len() == 1 {
        return Ok(vec!["disk".to_owned()]);
    }
    let mut names: Vec<String> = Vec::new();
    for export in &device.exports {
        let name = &export.name;
        if matches!(name.as_str(), "" | "." | "..") || name.contains('/') || names.contains(name) {
            return Err(LiveError::Asked(format!(
                "export \"{name}\": a file needs a name of its own, without slashes"
            )));
        }
        names.push(name.clone());
    }
    Ok(names)
}

/// An empty directory that nothing hangs on; true if it was created.
fn prepare(directory: &Path) -> Result<bool, LiveError> {
    let name = directory.display();
    let dangling = losetup::loops_on(directory)?;
    if let Some(device) = dangling.first() {
        let device = device.display();
        let umount = if is_dead(directory) { format!(", then `umount {name}`") } else { String::new() };
        return Err(LiveError::Asked(format!(
            "{name}: {device} still hangs on a file that a server had here: `losetup --detach {device}`{umount}"
        )));
    }
    if is_dead(directory) {
        return Err(LiveError::Asked(format!("{name}: mounted by a server that is gone: `umount {name}`")));
    }
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(LiveError::Asked(format!("{name}: not empty, or another server is mounted there")));
            }
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(directory).map_err(LiveError::io(name.to_string()))?;
            Ok(true)
        }
        Err(error) => Err(LiveError::io(name.to_string())(error)),
    }
}

/// Unmounts what a server has left at `directory` that is gone; does nothing where none has.
///
/// # Errors
/// A directory that cannot be unmounted.
pub fn clear(directory: &Path) -> Result<(), LiveError> {
    if !is_dead(directory) {
        return Ok(());
    }
    let unmounting = || LiveError::io(format!("{}: unmounting", directory.display()));
    match unmount(directory, UnmountFlags::DETACH) {
        // Who is not root asks the program that has mounted it.
        Err(Errno::PERM) => {
            let ended = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(directory).status();
            let ended = ended.map_err(unmounting())?;
            if ended.success() { Ok(()) } else { Err(unmounting()(io::Error::other(ended.to_string()))) }
        }
        unmounted => unmounted.map_err(|error| unmounting()(error.into())),
    }
}

/// A server was mounted there, and is no more.
fn is_dead(directory: &Path) -> bool {
    fs::read_dir(directory).is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NOTCONN))
}
