//! Loop devices: a file of the mount as a block device that everybody takes for real, by the program `losetup`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::LiveError;
use crate::device::Export;

/// How long a detached device may take to let go of its file, in looks: udev may still be reading it.
const LOOKS: usize = 100;
const LOOK: Duration = Duration::from_millis(20);

/// Makes a block device of `file`, which is `export` mounted by FUSE: /dev/loopN, past the page cache.
///
/// # Errors
/// No `losetup`, no right to use it, no free loop device.
pub fn attach_loop(file: &Path, export: &Export) -> Result<PathBuf, LiveError> {
    let sector = format!("--sector-size={}", export.block_bytes);
    let file = file.as_os_str();
    let device = losetup(&["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), sector.as_ref(), file])?;
    let device = PathBuf::from(device.trim());
    // The kernel takes every loop device for flash: schedulers and file systems would treat a disk as such.
    let attribute = sysfs(&device, "queue/rotational");
    let rotational = if export.is_rotational { "1" } else { "0" };
    if let Err(error) = fs::write(&attribute, rotational) {
        detach_loop(&device)?;
        return Err(LiveError::io(attribute.display().to_string())(error));
    }
    Ok(device)
}

/// Detaches a loop device from its file, before the file's mount is stopped.
///
/// # Errors
/// No right to do it; a device that is in use, which is detached as soon as it is not.
pub fn detach_loop(device: &Path) -> Result<(), LiveError> {
    losetup(&["--detach".as_ref(), device.as_os_str()])?;
    for _ in 0..LOOKS {
        if !sysfs(device, "loop/backing_file").exists() {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    let name = device.display();
    Err(LiveError::Asked(format!("{name}: in use, and detached once it is not: unmount the file system on it")))
}

/// Loop devices whose file is, or was, in `directory`.
///
/// # Errors
/// A machine that does not tell of its devices.
pub fn loops_on(directory: &Path) -> Result<Vec<PathBuf>, LiveError> {
    // What a server left that is gone cannot be resolved any more, but named.
    let resolved = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let directory = resolved.map_err(LiveError::io(directory.display().to_string()))?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block").map_err(LiveError::io("/sys/block"))? {
        let name = entry.map_err(LiveError::io("/sys/block"))?.file_name();
        let device = Path::new("/dev").join(name);
        // Most block devices are no loops, and most loops have no file.
        let file = fs::read_to_string(sysfs(&device, "loop/backing_file"));
        if file.is_ok_and(|file| Path::new(file.trim_end()).starts_with(&directory)) {
            found.push(device);
        }
    }
    Ok(found)
}

fn sysfs(device: &Path, attribute: &str) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join(attribute)
}

/// What `losetup` says.
fn losetup(arguments: &[&std::ffi::OsStr]) -> Result<String, LiveError> {
    let output = match Command::new("losetup").args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LiveError::Asked("no losetup: install it (package util-linux or mount)".to_owned()));
        }
        Err(error) => return Err(LiveError::io("losetup")(error)),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let root = if rustix::process::geteuid().is_root() { "" } else { " (loop devices are for root)" };
        return Err(LiveError::Asked(format!("{}{root}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
