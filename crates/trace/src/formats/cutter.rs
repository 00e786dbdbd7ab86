//! Text of one or several inputs, cut into chunks of whole lines.

use std::io::Read;

use crate::error::{Place, Problem, TraceError};
use crate::input::Input;

/// Bytes that are parsed at a time: some ten thousand lines, whose records stay in a core's cache.
#[cfg(not(test))]
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Small, so that the tests' files are of several chunks.
#[cfg(test)]
pub(super) const CHUNK_BYTES: usize = 2 * LINE_BYTES_MAX;
/// No line of any format is longer.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// Reads inputs, one after the other.
pub(super) struct Cutter {
    inputs: Vec<Input>,
    /// The input that is read.
    current: usize,
    is_begun: bool,
    /// The beginning of a line whose end was not yet read.
    carried: Vec<u8>,
}

/// Some whole lines of an input. Its memory is used again for later ones.
#[derive(Default)]
pub(super) struct Text {
    /// Longer than what is used of it, so that it is cleared once only.
    bytes: Vec<u8>,
    used: usize,
    /// The number of the input, from 0.
    pub(super) input: usize,
    /// Nothing of its input is before it.
    pub(super) is_first: bool,
    /// Nothing of its input is behind it.
    pub(super) is_last: bool,
    /// There is no line end in it, and it is longer than a line may be.
    is_endless: bool,
}

impl Cutter {
    pub(super) fn new(inputs: Vec<Input>) -> Cutter {
        Cutter { inputs, current: 0, is_begun: false, carried: Vec::new() }
    }

    /// An input by its number.
    pub(super) fn input(&self, number: usize) -> &Input {
        &self.inputs[number]
    }

    /// Puts the next lines into `text`; false behind the last input.
    ///
    /// # Errors
    /// Inputs that cannot be read.
    pub(super) fn fill(&mut self, text: &mut Text) -> Result<bool, TraceError> {
        let Some(input) = self.inputs.get_mut(self.current) else { return Ok(false) };
        if text.bytes.is_empty() {
            // Zeroed by the kernel where it is touched, which of a small file is not far.
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
    /// The lines, without their ends.
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

    /// What comes behind line `line` of `file` is text.
    ///
    /// # Errors
    /// A line that does not end, which no skipping of bad lines helps.
    pub(super) fn check(&self, file: &str, line: u64) -> Result<(), TraceError> {
        if !self.is_endless {
            return Ok(());
        }
        let message = format!("a line is longer than {} KiB: this is not a trace", LINE_BYTES_MAX >> 10);
        Err(TraceError { file: file.to_owned(), place: Place::Line(line + 1), field: "", message })
    }
}

/// Refuses a line that is too long for any format.
#[inline]
pub(super) fn check_length(line: &[u8]) -> Result<(), Problem> {
    if line.len() > LINE_BYTES_MAX {
        return Err(("", format!("the line is longer than {} KiB", LINE_BYTES_MAX >> 10)));
    }
    Ok(())
}
