//! Formats of consecutive binary records ([`BinaryFormat`]).

use std::io::Read;

use super::{lcs, oracle_general, srt, vscsi};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::input::Input;
use crate::record::Record;

/// Number of bytes parsed at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// The format, with the state of the current file.
#[derive(Debug)]
pub(crate) enum BinaryFormat {
    Srt(srt::Srt),
    Vscsi(vscsi::Vscsi),
    OracleGeneral(oracle_general::OracleGeneral),
    Lcs(lcs::Lcs),
}

impl BinaryFormat {
    /// Reads the data before the records of a file, such as a header.
    fn begin(&mut self, input: &mut Input, out: &mut Collector) -> Result<(), TraceError> {
        match self {
            BinaryFormat::Srt(srt) => srt.begin(input, out),
            BinaryFormat::Vscsi(vscsi) => vscsi.begin(input, out),
            BinaryFormat::OracleGeneral(oracle) => oracle.begin(input, out),
            BinaryFormat::Lcs(lcs) => lcs.begin(input, out),
        }
    }

    /// Returns the length of the record at the start of `bytes`; `None` if more bytes are needed.
    #[inline]
    fn record_bytes(&self, bytes: &[u8]) -> Result<Option<usize>, Problem> {
        match self {
            BinaryFormat::Srt(_) => srt::record_bytes(bytes),
            BinaryFormat::Vscsi(vscsi) => Ok(Some(vscsi.record_bytes())),
            BinaryFormat::OracleGeneral(oracle) => Ok(Some(oracle.record_bytes())),
            BinaryFormat::Lcs(lcs) => Ok(Some(lcs.record_bytes())),
        }
    }

    /// Parses a record; `None` if it contains no request.
    #[inline]
    fn parse(&mut self, record: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        match self {
            BinaryFormat::Srt(srt) => srt.parse(record, out),
            BinaryFormat::Vscsi(vscsi) => vscsi.parse(record, out).map(Some),
            BinaryFormat::OracleGeneral(oracle) => oracle.parse(record).map(Some),
            BinaryFormat::Lcs(lcs) => lcs.parse(record).map(Some),
        }
    }
}

/// Reads the records of several inputs, one after another.
pub(crate) struct Binary {
    inputs: std::vec::IntoIter<Input>,
    current: Option<Input>,
    has_begun: bool,
    format: BinaryFormat,
    chunk: Vec<u8>,
    /// Number of records parsed in the current input.
    record: u64,
}

impl Binary {
    pub(crate) fn new(inputs: Vec<Input>, format: BinaryFormat) -> Binary {
        let mut inputs = inputs.into_iter();
        let current = inputs.next();
        Binary { inputs, current, has_begun: false, format, chunk: Vec::new(), record: 0 }
    }

    /// Reads a chunk; returns false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        let Some(input) = &mut self.current else {
            return Ok(false);
        };
        if !self.has_begun {
            self.format.begin(input, out)?;
            self.has_begun = true;
        }
        // The remainder of the previous chunk is shorter than a record, and so shorter than a chunk.
        let wanted = (CHUNK_BYTES - self.chunk.len()) as u64;
        let read = input.by_ref().take(wanted).read_to_end(&mut self.chunk);
        let read = read.map_err(|error| input.error(&error))?;
        let is_last = (read as u64) < wanted;
        let mut rest = &self.chunk[..];
        let mut is_lost = false;
        while !rest.is_empty() {
            let bytes = match self.format.record_bytes(rest) {
                Ok(Some(bytes)) if bytes <= rest.len() => bytes,
                Ok(_) => break,
                Err(problem) => {
                    // The start of the next record is unknown, so reading of this file ends.
                    out.reject(&input.name, Place::Record(self.record + 1), problem)?;
                    is_lost = true;
                    break;
                }
            };
            self.record += 1;
            match self.format.parse(&rest[..bytes], out) {
                Ok(Some(record)) => out.records.push(record),
                Ok(None) => {}
                Err(problem) => out.reject(&input.name, Place::Record(self.record), problem)?,
            }
            rest = &rest[bytes..];
        }
        let left = rest.len();
        if is_last && left > 0 && !is_lost {
            let problem = ("", format!("the record is truncated after {left} bytes"));
            out.reject(&input.name, Place::Record(self.record + 1), problem)?;
        }
        if is_last || is_lost {
            self.current = self.inputs.next();
            (self.has_begun, self.record) = (false, 0);
            self.chunk.clear();
        } else {
            self.chunk.drain(..self.chunk.len() - left);
        }
        Ok(true)
    }
}
