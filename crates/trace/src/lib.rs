//! Readers of recorded traces, one module a format.

pub mod validate;

use std::fmt;

/// A trace that cannot be accepted: where, which field, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file as the user named it.
    pub file: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// The column's name; empty where the whole line is meant.
    pub field: &'static str,
    /// What is wrong and what is allowed, on one line.
    pub message: String,
}

impl fmt::Display for TraceError {
    /// `FILE:LINE: FIELD: MESSAGE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}
