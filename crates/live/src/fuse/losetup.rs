//! Loop devices, set up by the program `losetup`: they turn a file of the mount into a block device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::LiveError;
use crate::device::Export;

/// Maximum number of checks whether a detached device has released its file: udev may still be reading it.
const LOOKS: usize = 100;
const LOOK: Duration = Duration::from_millis(20);

/// Creates the block device /dev/loopN for `file`, the FUSE file of `export`, bypassing the page cache.
///
/// # Errors
/// Returns an error if there is no `losetup`, no permission to use it, or no free loop device.
pub fn attach_loop(file: &Path, export: &Export) -> Result<PathBuf, LiveError> {
    let sector = format!("--sector-size={}", export.block_bytes);
    let file = file.as_os_str();
    let device = losetup(&["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), sector.as_ref(), file])?;
    let device = PathBuf::from(device.trim());
    // The kernel treats every loop device as flash, and so would schedulers and file systems even if it is an HDD.
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
/// Returns an error if the user lacks permission or the device is in use; a device in use is detached once it is free.
pub fn detach_loop(device: &Path) -> Result<(), LiveError> {
    losetup(&["--detach".as_ref(), device.as_os_str()])?;
    for _ in 0..LOOKS {
        if !sysfs(device, "loop/backing_file").exists() {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    let name = device.display();
    Err(LiveError::Invalid(format!("{name}: still in use; unmount its file system to detach it")))
}

/// Returns the loop devices whose file is, or was, in `directory`.
///
/// # Errors
/// Returns an error if the machine's block devices cannot be listed.
pub fn loops_on(directory: &Path) -> Result<Vec<PathBuf>, LiveError> {
    // Paths left by a dead server can no longer be resolved, only compared.
    let resolved = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let directory = resolved.map_err(LiveError::io(directory.display().to_string()))?;
    let mut loops = Vec::new();
    for entry in fs::read_dir("/sys/block").map_err(LiveError::io("/sys/block"))? {
        let name = entry.map_err(LiveError::io("/sys/block"))?.file_name();
        let device = Path::new("/dev").join(name);
        // Most block devices are not loop devices, and most loop devices have no file.
        let file = fs::read_to_string(sysfs(&device, "loop/backing_file"));
        if file.is_ok_and(|file| Path::new(file.trim_end()).starts_with(&directory)) {
            loops.push(device);
        }
    }
    Ok(loops)
}

fn sysfs(device: &Path, attribute: &str) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join(attribute)
}

/// Runs `losetup` and returns its output.
fn losetup(arguments: &[&std::ffi::OsStr]) -> Result<String, LiveError> {
    let output = match Command::new("losetup").args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LiveError::Invalid("losetup not found; install it (package util-linux or mount)".to_owned()));
        }
        Err(error) => return Err(LiveError::io("losetup")(error)),
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let root = if rustix::process::geteuid().is_root() { "" } else { " (loop devices require root)" };
        return Err(LiveError::Invalid(format!("{}{root}", stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
