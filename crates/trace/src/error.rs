//! [`TraceError`]: an error of a trace, on one line.

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
    /// A line of text, from 1.
    Line(u64),
    /// A binary record, from 1.
    Record(u64),
    /// A byte, from 0.
    Byte(u64),
    /// The output file, with the kernel's error number: the trace itself is correct.
    Output(i32),
}

/// A trace that cannot be accepted: position, field, and allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file as named by the user.
    pub file: String,
    /// Position in the file.
    pub place: Place,
    /// Name of the column; empty for the whole line.
    pub field: &'static str,
    /// The fault and the allowed values, on one line.
    pub message: String,
}

impl TraceError {
    /// An error of a whole file.
    pub fn of_file(file: impl Into<String>, message: impl fmt::Display) -> TraceError {
        TraceError { file: file.into(), place: Place::File, field: "", message: message.to_string() }
    }

    /// An error of writing `path`.
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
    /// `FILE:LINE: FIELD: MESSAGE`, or `FILE: record N: …`.
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

/// A field's name and its fault; the reader adds file and line.
pub(crate) type Problem = (&'static str, String);

/// Returns `must be ALLOWED, not FOUND`, with the value shortened to a readable length.
#[cold]
pub(crate) fn refused(field: &'static str, found: &[u8], allowed: &str) -> Problem {
    let text = String::from_utf8_lossy(found);
    let text: String = text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    (field, format!("must be {allowed}, not `{text}`"))
}
