//! [`TraceError`]: an error in a trace, reported on one line.

use std::fmt;
#[cfg(feature = "files")]
use std::{io, path::Path};

#[cfg(feature = "files")]
use headstack_files::FileError;

/// Position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// Line number in a text file, from 1.
    Line(u64),
    /// Record number in a binary file, from 1.
    Record(u64),
    /// Byte offset, from 0.
    Byte(u64),
    /// The output file, with the operating system's error number. The trace itself is correct.
    Output(i32),
}

/// An error in a trace: where it is, which field is wrong, and which values are allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// File name as given by the user.
    pub file: String,
    /// Position in the file.
    pub place: Place,
    /// Name of the column; empty if the error concerns the whole line.
    pub field: &'static str,
    /// Description of the error and the allowed values, on one line.
    pub message: String,
}

impl TraceError {
    /// Creates an error that concerns the whole file.
    pub fn of_file(file: impl Into<String>, message: impl fmt::Display) -> TraceError {
        TraceError { file: file.into(), place: Place::File, field: "", message: message.to_string() }
    }

    /// Creates an error for a failure to write `path`.
    #[cfg(feature = "files")]
    pub(crate) fn for_output(path: &Path, error: &io::Error) -> TraceError {
        FileError::of(path, error).into()
    }
}

#[cfg(feature = "files")]
impl From<FileError> for TraceError {
    fn from(error: FileError) -> TraceError {
        let FileError { path, message, number } = error;
        TraceError { file: path, place: number.map_or(Place::File, Place::Output), field: "", message }
    }
}

impl fmt::Display for TraceError {
    /// Writes `FILE:LINE: FIELD: MESSAGE` or `FILE: record N: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File | Place::Output(_) => write!(f, "{}: ", self.file)?,
            Place::Line(line) => write!(f, "{}:{line}: ", self.file)?,
            Place::Record(record) => write!(f, "{}: record {record}: ", self.file)?,
            Place::Byte(byte) => write!(f, "{}: byte {byte}: ", self.file)?,
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// Name of a field and what is wrong with it; the reader adds file and line.
pub(crate) type Problem = (&'static str, String);

/// Returns the message `must be ALLOWED, not FOUND`, with the value shortened to a readable length.
#[cold]
pub(crate) fn refused(field: &'static str, found: &[u8], allowed: &str) -> Problem {
    let text = String::from_utf8_lossy(found);
    let text: String = text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    (field, format!("must be {allowed}, not `{text}`"))
}
