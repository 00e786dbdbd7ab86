//! Output files of commands ([`AtomicFile`], [`Outputs`]): they appear complete or not at all, at the destination of
//! links, and only where files belong. Pipes, terminals and the like are written directly; block devices are not
//! written.

mod atomic_file;
mod inputs;
mod outputs;
mod place;

pub use atomic_file::{AtomicFile, Draft};
pub use inputs::note_input;
pub use outputs::Outputs;
pub use place::{Place, is_among_devices};

use std::io;
use std::path::Path;

/// An output that cannot be written, with the reason on one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FileError {
    /// Path as given.
    pub path: String,
    /// Why it cannot be written.
    pub message: String,
    /// Error number of the kernel; `None` if no system call failed.
    pub number: Option<i32>,
}

impl FileError {
    /// The error of a file that was refused before any system call.
    fn refused(path: &Path, message: impl Into<String>) -> FileError {
        FileError { path: path.display().to_string(), message: message.into(), number: None }
    }

    /// The error of a file for which a system call failed.
    pub fn of(path: &Path, error: &io::Error) -> FileError {
        FileError { path: path.display().to_string(), message: words(error), number: error.raw_os_error() }
    }
}

/// The kernel's message for an error, without its number.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}
