//! [`refused`] and [`open_failure`]: errors of targets that cannot be opened.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::object::Object;
use crate::LoadError;

/// Returns the error for a path that does not exist, or for a dangling link.
pub(super) fn missing(path: &str) -> LoadError {
    match fs::read_link(path) {
        Ok(leads) => refused(path, format!("is a link to {}, which does not exist", leads.display())),
        Err(_) => refused(path, "not found; to create it, add --create SIZE"),
    }
}

/// Returns the error for a refused target, with the destination if the path is a link.
pub(super) fn refused(path: &str, message: impl Into<String>) -> LoadError {
    // The reason for the refusal is the destination of the link, so the message names it.
    let leads = fs::canonicalize(path).ok().filter(|leads| fs::read_link(path).is_ok() && leads != Path::new(path));
    let target = leads.map_or_else(|| path.to_owned(), |leads| format!("{path} ({})", leads.display()));
    LoadError::Target { target, message: message.into() }
}

/// Returns the error for a target that the kernel does not open, reworded where the kernel's message is unclear.
pub(super) fn open_failure(path: &str, error: io::Error, write: bool) -> LoadError {
    let verb = if write { "written" } else { "read" };
    let message = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            format!("may not be {verb} by this user ({error}); block devices require root or the group disk")
        }
        Some(libc::ENXIO | libc::ENODEV) => format!("has no device, or its device was removed ({error})"),
        Some(libc::ENOMEDIUM) => "has no medium".to_owned(),
        Some(libc::EROFS) => "is read-only: the device, or the file system it is on".to_owned(),
        Some(libc::ENOSPC) => "no space left: the file system is full".to_owned(),
        Some(libc::EDQUOT) => "no space left: this user's quota is exceeded".to_owned(),
        Some(libc::EFBIG) => "is larger than the limit of its file system or this user".to_owned(),
        Some(libc::ETXTBSY) => "is a running program, or used as swap".to_owned(),
        Some(libc::EINVAL) => "cannot be opened for direct I/O on this file system; use buffered I/O".to_owned(),
        _ => return LoadError::Io { target: path.to_owned(), action: "open", source: error },
    };
    refused(path, message)
}

/// Returns an error unless `file` is the file that `metadata` describes, since the path may lead to another file by
/// now.
pub(super) fn check_same(path: &str, file: &File, metadata: &fs::Metadata) -> Result<(), LoadError> {
    let opened_metadata = file.metadata().map_err(|error| open_failure(path, error, false))?;
    if Object::of(&opened_metadata) == Object::of(metadata) {
        return Ok(());
    }
    Err(refused(path, "was replaced by another file while it was opened"))
}
