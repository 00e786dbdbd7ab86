//! [`Cutter`]: divides the text of one or several inputs into chunks of whole lines.

use std::io::Read;

use crate::error::{Place, Problem, TraceError};
use crate::input::Input;

/// Number of bytes parsed at a time: about 10,000 lines, whose records fit a core's cache.
#[cfg(not(test))]
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Small, so that the test files have several chunks.
#[cfg(test)]
pub(super) const CHUNK_BYTES: usize = 2 * LINE_BYTES_MAX;
/// Maximum length of a line in any format, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// Reads inputs one after another.
pub(super) struct Cutter {
    inputs: Vec<Input>,
    /// Index of the current input.
    current: usize,
    is_begun: bool,
    /// Start of an incomplete line.
    carried: Vec<u8>,
}

/// Several whole lines of an input. The memory is reused for later lines.
#[derive(Default)]
pub(super) struct Text {
    /// Buffer, longer than the used part, so that it is cleared only once.
    bytes: Vec<u8>,
    used: usize,
    /// Index of the input.
    pub(super) input: usize,
    /// Whether this is the start of the input.
    pub(super) is_first: bool,
    /// Whether this is the end of the input.
    pub(super) is_last: bool,
    /// Whether the text has no line end and is longer than the longest line.
    is_endless: bool,
}

impl Cutter {
    pub(super) fn new(inputs: Vec<Input>) -> Cutter {
        Cutter { inputs, current: 0, is_begun: false, carried: Vec::new() }
    }

    /// Returns the input with this index.
    pub(super) fn input(&self, number: usize) -> &Input {
        &self.inputs[number]
    }

    /// Reads the next lines into `text`; returns false after the last input.
    ///
    /// # Errors
    /// Returns an error if an input cannot be read.
    pub(super) fn fill(&mut self, text: &mut Text) -> Result<bool, TraceError> {
        let Some(input) = self.inputs.get_mut(self.current) else { return Ok(false) };
        if text.bytes.is_empty() {
            // The kernel zeroes pages when they are first touched, and a small file touches only a few.
            text.bytes = vec![0; CHUNK_BYTES];
        }
        (text.input, text.is_first, text.is_last, text.is_endless) = (self.current, !self.is_begun, false, false);
        self.is_begun = true;
        text.bytes[..self.carried.len()].copy_from_slice(&self.carried);
        let mut filled = self.carried.len();
        self.carried.clear();
        while filled < CHUNK_BYTES {
            match input.read(&mut text.bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(input.error(&error)),
            }
        }
        text.used = filled;
        if filled < CHUNK_BYTES {
            (self.current, self.is_begun, text.is_last) = (self.current + 1, false, true);
            return Ok(true);
        }
        match memchr::memrchr(b'\n', &text.bytes) {
            Some(last) => {
                self.carried.extend_from_slice(&text.bytes[last + 1..]);
                text.used = last + 1;
            }
            None => text.is_endless = true,
        }
        Ok(true)
    }
}

impl Text {
    /// Returns the lines without their line ends.
    #[inline]
    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..self.used];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            Some(line.strip_suffix(b"\r").unwrap_or(line))
        })
    }

    /// Checks that the data after line `line` of `file` are text.
    ///
    /// # Errors
    /// Returns an error if a line does not end; such a line cannot be skipped.
    pub(super) fn check(&self, file: &str, line: u64) -> Result<(), TraceError> {
        if !self.is_endless {
            return Ok(());
        }
        let message = format!("a line is longer than {} KiB: this is not a trace", LINE_BYTES_MAX >> 10);
        Err(TraceError { file: file.to_owned(), place: Place::Line(line + 1), field: "", message })
    }
}

/// Returns an error if a line is too long for any format.
#[inline]
pub(super) fn check_length(line: &[u8]) -> Result<(), Problem> {
    if line.len() > LINE_BYTES_MAX {
        return Err(("", format!("the line is longer than {} KiB", LINE_BYTES_MAX >> 10)));
    }
    Ok(())
}
