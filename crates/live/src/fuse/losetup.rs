//! Loop devices by the program `losetup`: they make a file of the mount a block device that any program accepts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::LiveError;
use crate::device::Export;

/// Number of checks for a detached device to release its file: udev may still be reading it.
const LOOKS: usize = 100;
const LOOK: Duration = Duration::from_millis(20);

/// Creates a block device of `file`, which is `export` mounted by FUSE: /dev/loopN, bypassing the page cache.
///
/// # Errors
/// When there is no `losetup`, no permission to use it, or no free loop device.
pub fn attach_loop(file: &Path, export: &Export) -> Result<PathBuf, LiveError> {
    let sector = format!("--sector-size={}", export.block_bytes);
    let file = file.as_os_str();
    let device = losetup(&["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), sector.as_ref(), file])?;
    let device = PathBuf::from(device.trim());
    // The kernel treats every loop device as flash: schedulers and file systems would then treat an HDD as such.
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
/// When permission is missing, or the device is in use; then it is detached as soon as it is free.
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

/// Lists loop devices whose file is, or was, in `directory`.
///
/// # Errors
/// When the machine does not list its devices.
pub fn loops_on(directory: &Path) -> Result<Vec<PathBuf>, LiveError> {
    // Paths left by a dead server cannot be resolved any more, only compared.
    let resolved = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let directory = resolved.map_err(LiveError::io(directory.display().to_string()))?;
    let mut loops = Vec::new();
    for entry in fs::read_dir("/sys/block").map_err(LiveError::io("/sys/block"))? {
        let name = entry.map_err(LiveError::io("/sys/block"))?.file_name();
        let device = Path::new("/dev").join(name);
        // Most block devices are no loop devices, and most loop devices have no file.
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
