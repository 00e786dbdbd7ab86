//! What can be wrong with a trace, on one line.

use std::fmt;
#[cfg(feature = "files")]
use std::{io, path::Path};

#[cfg(feature = "files")]
use headstack_files::FileError;

/// Where in a file.
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
    /// The file that is written, and the number of the kernel's refusal: nothing is wrong with the trace.
    Output(i32),
}

/// A trace that cannot be accepted: where, which field, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file as the user named it.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// The column's name; empty where the whole line is meant.
    pub field: &'static str,
    /// What is wrong and what is allowed, on one line.
    pub message: String,
}

impl TraceError {
    /// An error of a whole file.
    pub fn of_file(file: impl Into<String>, message: impl fmt::Display) -> TraceError {
        TraceError { file: file.into(), place: Place::File, field: "", message: message.to_string() }
    }

    /// What kept `path` from being written.
    #[cfg(feature = "files")]
    pub(crate) fn of_output(path: &Path, error: &io::Error) -> TraceError {
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

/// A field's name, and what is wrong with it; the reader adds file and line.
pub(crate) type Problem = (&'static str, String);

/// `must be ALLOWED, not FOUND`, with what was found cut to a readable length.
#[cold]
pub(crate) fn refused(field: &'static str, found: &[u8], allowed: &str) -> Problem {
    let text = String::from_utf8_lossy(found);
    let text: String = text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    (field, format!("must be {allowed}, not `{text}`"))
}
