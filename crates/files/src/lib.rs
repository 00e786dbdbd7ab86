//! Output files of commands ([`AtomicFile`], [`Outputs`]). An output appears complete or not at all, and links are
//! followed to their destination. Pipes, terminals and similar files are written directly; block devices are never
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

/// An error about an output that cannot be written, with the reason on one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FileError {
    /// Path as given.
    pub path: String,
    /// Reason why the file cannot be written.
    pub message: String,
    /// Error number (errno); `None` if no system call failed.
    pub number: Option<i32>,
}

impl FileError {
    /// Returns the error for a file that was refused before any system call.
    fn refused(path: &Path, message: impl Into<String>) -> FileError {
        FileError { path: path.display().to_string(), message: message.into(), number: None }
    }

    /// Returns the error for a file on which a system call failed.
    pub fn of(path: &Path, error: &io::Error) -> FileError {
        FileError { path: path.display().to_string(), message: words(error), number: error.raw_os_error() }
    }
}

/// Returns the system's message for an error, without its number.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}
