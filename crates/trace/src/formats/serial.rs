//! Text whose lines mean nothing without those before them.

use std::io::Read;

use super::{iolog, validate};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::input::Input;
use crate::record::Record;

/// Bytes that are parsed at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// No line of any format is longer.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Which of them, with what is known of the file that is being read.
#[derive(Debug)]
pub(crate) enum SerialFormat {
    Iolog(iolog::Iolog),
    Validate(validate::Validate),
}

impl SerialFormat {
    /// A file begins.
    fn begin(&mut self, input: &Input, out: &mut Collector) {
        match self {
            SerialFormat::Iolog(iolog) => *iolog = iolog::Iolog::default(),
            SerialFormat::Validate(validate) => validate.begin(input, out),
        }
    }

    /// The request of a line; nothing for a line that is none, such as a header.
    #[inline]
    fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        match self {
            SerialFormat::Iolog(iolog) => iolog.parse(line, out),
            SerialFormat::Validate(validate) => validate.parse(line).map(Some),
        }
    }
}

/// Lines of several inputs, one after the other.
pub(crate) struct Serial {
    inputs: std::vec::IntoIter<Input>,
    current: Option<Input>,
    format: SerialFormat,
    chunk: Vec<u8>,
    /// Lines of the current input that were parsed.
    line: u64,
    has_begun: bool,
}

impl Serial {
    pub(crate) fn new(inputs: Vec<Input>, format: SerialFormat) -> Serial {
        let mut inputs = inputs.into_iter();
        let current = inputs.next();
        Serial {
            inputs,
            current,
            format,
            chunk: Vec::with_capacity(CHUNK_BYTES + LINE_BYTES_MAX),
            line: 0,
            has_begun: false,
        }
    }

    /// Reads a chunk; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        let Some(input) = &mut self.current else {
            return Ok(false);
        };
        if !self.has_begun {
            self.format.begin(input, out);
            self.has_begun = true;
        }
        let wanted = (CHUNK_BYTES - self.chunk.len().min(CHUNK_BYTES)) as u64;
        let read = input.by_ref().take(wanted).read_to_end(&mut self.chunk);
        let read = read.map_err(|error| input.error(&error))?;
        let is_last = (read as u64) < wanted;
        let end = if is_last {
            self.chunk.len()
        } else {
            self.chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
        };
        if end == 0 && !is_last {
            return Err(TraceError {
                file: input.name.clone(),
                place: Place::Line(self.line + 1),
                field: "",
                message: "the line does not end: this is no text".to_owned(),
            });
        }
        let text = self.chunk[..end].strip_suffix(b"\n").unwrap_or(&self.chunk[..end]);
        if !text.is_empty() {
            for line in text.split(|&byte| byte == b'\n') {
                self.line += 1;
                let line = line.trim_ascii();
                if line.is_empty() {
                    continue;
                }
                match self.format.parse(line, out) {
                    Ok(Some(record)) => out.records.push(record),
                    Ok(None) => {}
                    Err(problem) => out.reject(&input.name, Place::Line(self.line), problem)?,
                }
            }
        }
        self.chunk.drain(..end);
        if is_last {
            self.current = self.inputs.next();
            (self.line, self.has_begun) = (0, false);
        }
        Ok(true)
    }
}
