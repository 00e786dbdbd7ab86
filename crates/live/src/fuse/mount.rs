//! [`Mount`]: mounts, serves and unmounts the directory, and reports any obstacles.

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
use super::reply::{Replies, ReplyPayload};
use crate::LiveError;
use crate::copy_thread::CopyThread;
use crate::device::Device;

/// Threads that receive the kernel's requests.
const RECEIVERS: usize = 2;
/// Number of checks for a session to notice its end.
const LOOKS: usize = 200;
const LOOK: Duration = Duration::from_millis(10);
/// Number of checks for a busy directory: the kernel closes the file of a loop device a little after it is detached.
const BUSY_LOOKS: usize = 20;

/// How a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// It was not in use.
    Cleanly,
    /// A file was still open, for example by a loop device: later requests to it fail with an I/O error.
    InUse,
    /// It had been unmounted from outside.
    Before,
}

/// A directory that exports a device, with a file for each LUN.
#[derive(Debug)]
pub struct Mount {
    directory: PathBuf,
    was_created: bool,
    files: Vec<PathBuf>,
    unmounter: SessionUnmounter,
    /// `None` after the end.
    running: Option<(JoinHandle<io::Result<()>>, CopyThread<ReplyPayload>)>,
}

impl Mount {
    /// Mounts `device` at `directory`, which must be empty, or is created and later removed. Files have the names of
    /// the exports; a single one is `disk`.
    ///
    /// # Errors
    /// When the directory is not empty or still contains the mount of a dead server; when an export's name is no valid
    /// file name; when the machine has no FUSE, or this user may not mount.
    pub fn start(device: &Arc<Device>, directory: &Path) -> Result<Mount, LiveError> {
        let names = file_names(device)?;
        let was_created = prepare(directory)?;
        let mounted = mount(device, directory, &names);
        if mounted.is_err() && was_created {
            // The original error is reported; an empty directory that cannot be removed is not.
            let _ = fs::remove_dir(directory);
        }
        let (directory, mut session, copy_thread) = mounted?;
        let unmounter = session.unmount_callable();
        let submitter = device.submitter.clone();
        let runner = thread::Builder::new().name("headstack-fuse".to_owned()).spawn(move || {
            // The receiving threads are started by this one, and inherit its scheduling class.
            submitter.keep_up();
            session.run()
        });
        let runner = runner.map_err(LiveError::io("a thread of the mount"))?;
        let files = names.iter().map(|name| directory.join(name)).collect();
        Ok(Mount { directory, was_created, files, unmounter, running: Some((runner, copy_thread)) })
    }

    /// The files, in the order of the exports.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether it is no longer served: the directory was unmounted from outside and is not in use.
    pub fn is_unmounted(&self) -> bool {
        self.running.as_ref().is_none_or(|(runner, _)| runner.is_finished())
    }

    /// Unmounts the directory even if it is in use: requests under way fail. Unmount file systems and detach loop
    /// devices before.
    ///
    /// # Errors
    /// When the directory cannot be unmounted.
    pub fn stop(mut self) -> Result<Unmounted, LiveError> {
        self.end()
    }

    fn end(&mut self) -> Result<Unmounted, LiveError> {
        let Some((runner, copy_thread)) = self.running.take() else {
            return Ok(Unmounted::Before);
        };
        let mut ended = if runner.is_finished() { Unmounted::Before } else { self.unmount()? };
        // If an unprivileged user unmounts a directory in use, or it was unmounted from outside, it ends with its last
        // user.
        let finished = (0..LOOKS).any(|look| {
            if look > 0 && !runner.is_finished() {
                thread::sleep(LOOK);
            }
            runner.is_finished()
        });
        if finished {
            let served = runner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            copy_thread.stop();
            // If an unmount meets a read of the next request, the kernel ends the connection with this error.
            match served {
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                served => served.map_err(LiveError::io(self.directory.display().to_string()))?,
            }
        } else {
            ended = Unmounted::InUse;
        }
        // An aborted connection leaves the directory behind as a dead mount.
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
            // Detached from outside while in use.
            Some(Errno::INVAL) => Ok(Unmounted::InUse),
            Some(Errno::BUSY) => {
                let freed = |_| {
                    thread::sleep(LOOK);
                    unmount(&self.directory, UnmountFlags::empty()).is_ok()
                };
                if (0..BUSY_LOOKS).any(freed) {
                    return Ok(Unmounted::Cleanly);
                }
                // Force does not unmount a busy directory, but it ends the connection, so that no one waits for
                // answers.
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
        // Callers that need the outcome call `stop`.
        let _ = self.end();
    }
}

fn mount(
    device: &Arc<Device>,
    directory: &Path,
    names: &[String],
) -> Result<(PathBuf, Session<Disks>, CopyThread<ReplyPayload>), LiveError> {
    let directory = directory.canonicalize().map_err(LiveError::io(directory.display().to_string()))?;
    let copy_thread = CopyThread::start(device.submitter.clone())?;
    let disks = Disks {
        device: Arc::clone(device),
        names: names.to_vec(),
        replies: Replies::new(copy_thread.copy_queue()),
        since: SystemTime::now(),
    };
    let mut config = Config::default();
    let (name, kind) = ("headstack".to_owned(), "headstack".to_owned());
    config.mount_options = vec![MountOption::FSName(name), MountOption::Subtype(kind), MountOption::DefaultPermissions];
    config.n_threads = Some(RECEIVERS);
    config.clone_fd = true;
    match Session::new(disks, &directory, &config) {
        Ok(session) => Ok((directory, session, copy_thread)),
        Err(error) => {
            copy_thread.stop();
            Err(cannot_mount(&directory, error))
        }
    }
}

/// Advice for when mounting was refused.
fn cannot_mount(directory: &Path, error: io::Error) -> LiveError {
    let directory = directory.display();
    if !Path::new("/dev/fuse").exists() {
        return LiveError::Invalid(format!(
            "{directory}: /dev/fuse not found; load the module (`modprobe fuse`), or add the device to the container"
        ));
    }
    if error.kind() == io::ErrorKind::NotFound && !rustix::process::geteuid().is_root() {
        return LiveError::Invalid(format!(
            "{directory}: fusermount3 not found; install it (package fuse3), or run as root"
        ));
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return LiveError::Invalid(format!("{directory}: this user may not mount here ({error}); run as root"));
    }
    LiveError::io(format!("{directory}: mounting"))(error)
}

/// Names of the files: those of the exports, which must be valid file names.
fn file_names(device: &Device) -> Result<Vec<String>, LiveError> {
    if device.exports.len() == 1 {
        return Ok(vec!["disk".to_owned()]);
    }
    let mut names: Vec<String> = Vec::new();
    for export in &device.exports {
        let name = &export.name;
        if matches!(name.as_str(), "" | "." | "..") || name.contains('/') || names.contains(name) {
            return Err(LiveError::Invalid(format!(
                "export \"{name}\": each file needs a distinct name without slashes"
            )));
        }
        names.push(name.clone());
    }
    Ok(names)
}

/// Prepares an empty directory without a mount; returns true if it was created.
fn prepare(directory: &Path) -> Result<bool, LiveError> {
    let name = directory.display();
    let dangling = losetup::loops_on(directory)?;
    if let Some(device) = dangling.first() {
        let device = device.display();
        let umount = if is_dead(directory) { format!(", then `umount {name}`") } else { String::new() };
        return Err(LiveError::Invalid(format!(
            "{name}: {device} still uses a file of an earlier server here; run `losetup --detach {device}`{umount}"
        )));
    }
    if is_dead(directory) {
        return Err(LiveError::Invalid(format!(
            "{name}: mounted by a server that no longer runs; run `umount {name}`"
        )));
    }
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(LiveError::Invalid(format!("{name}: not empty, or in use by another server")));
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

/// Unmounts the mount of a dead server at `directory`; does nothing if there is none.
///
/// # Errors
/// When the directory cannot be unmounted.
pub fn clear(directory: &Path) -> Result<(), LiveError> {
    if !is_dead(directory) {
        return Ok(());
    }
    let unmounting = || LiveError::io(format!("{}: unmounting", directory.display()));
    match unmount(directory, UnmountFlags::DETACH) {
        // Without root, the program that mounted it must unmount it.
        Err(Errno::PERM) => {
            let ended = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(directory).status();
            let ended = ended.map_err(unmounting())?;
            if ended.success() { Ok(()) } else { Err(unmounting()(io::Error::other(ended.to_string()))) }
        }
        unmounted => unmounted.map_err(|error| unmounting()(error.into())),
    }
}

/// Whether the mount of a dead server is there.
fn is_dead(directory: &Path) -> bool {
    fs::read_dir(directory).is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NOTCONN))
}
