//! What is wrong, on one line.

use std::io;
use std::path::Path;

use headstack_files::FileError;

/// What is wrong with a recording or what is to be made of it, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct CrashError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub message: String,
    /// The number of the kernel's refusal; nothing where it was not asked.
    pub number: Option<i32>,
}

impl CrashError {
    /// A file that says something impossible.
    pub(crate) fn of(file: &Path, message: impl Into<String>) -> CrashError {
        CrashError { file: file.display().to_string(), message: message.into(), number: None }
    }

    /// A file that the kernel refuses.
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

/// What is written cannot be.
pub(crate) fn refused(error: FileError) -> CrashError {
    CrashError { file: error.path, message: error.message, number: error.number }
}
