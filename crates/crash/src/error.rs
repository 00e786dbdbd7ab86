//! [`CrashError`]: an error whose message is one line.

use std::io;
use std::path::Path;

use headstack_files::FileError;

/// An error of a recording or of its output, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct CrashError {
    /// The affected file.
    pub file: String,
    /// The reason.
    pub message: String,
    /// Error number of the failed system call; `None` if no system call failed.
    pub number: Option<i32>,
}

impl CrashError {
    /// Creates the error of a file with invalid contents.
    pub(crate) fn of(file: &Path, message: impl Into<String>) -> CrashError {
        CrashError { file: file.display().to_string(), message: message.into(), number: None }
    }

    /// Returns a function that creates the error of a file for which a system call failed.
    pub(crate) fn io(file: &Path) -> impl Fn(io::Error) -> CrashError + use<> {
        let file = file.display().to_string();
        move |error| CrashError {
            file: file.clone(),
            message: headstack_files::words(&error),
            number: error.raw_os_error(),
        }
    }
}

impl From<CrashError> for io::Error {
    fn from(error: CrashError) -> io::Error {
        error.number.map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
    }
}

/// Creates the error of a file that cannot be written.
pub(crate) fn refused(error: FileError) -> CrashError {
    CrashError { file: error.path, message: error.message, number: error.number }
}
