//! Formats of one request a line: chunks are cut at line ends, parsed in parallel, and handed over in their order.
//!
//! What comes out depends on the lines alone, never on the number of cores or on where chunks end.

mod format;
mod part;

use std::collections::VecDeque;
use std::io::Read;

use rayon::prelude::*;

use super::{Format, Order};
use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::input::Input;
use crate::reader::ReadOptions;
use crate::record::{NOT_RECORDED, Record};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;

use format::LineFormat;
pub(crate) use part::Part;

/// Bytes that are parsed at a time: some ten thousand lines, whose records stay in a core's cache.
#[cfg(not(test))]
const CHUNK_BYTES: usize = 1 << 20;
/// Small, so that the tests' files are of several chunks.
#[cfg(test)]
const CHUNK_BYTES: usize = 2 * LINE_BYTES_MAX;
/// No line of any format is longer.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Lines of several inputs, one after the other.
pub(crate) struct Lines {
    cutter: Cutter,
    /// The format of each input, with what its header says.
    formats: Vec<LineFormat>,
    names: Vec<String>,
    order: Order,
    skip_bad: bool,
    /// Cut, and not yet parsed.
    cut: Vec<Chunk>,
    /// Parsed, and not yet handed over.
    parsed: VecDeque<Chunk>,
    /// Handed over: their memory is used again.
    spare: Vec<Chunk>,
    /// The input whose lines are counted, and how many of them were handed over.
    at: (usize, u64),
    /// The arrival of the last request that was handed over.
    last_ns: Option<u64>,
}

/// Some whole lines of an input, and what they yield.
#[derive(Default)]
struct Chunk {
    /// Longer than what is used of it, so that it is cleared once only.
    text: Vec<u8>,
    used: usize,
    input: usize,
    /// Nothing of its input is before it.
    is_first: bool,
    /// There is no line end in it, and it is longer than a line may be.
    is_endless: bool,
    part: Part,
}

/// Reads inputs and cuts them into chunks.
struct Cutter {
    inputs: Vec<Input>,
    /// The input that is read.
    current: usize,
    is_begun: bool,
    /// The beginning of a line whose end was not yet read.
    carried: Vec<u8>,
    /// What went wrong, to be said when the lines before it are parsed.
    failure: Option<TraceError>,
}

impl Lines {
    /// Begins to read `inputs`, which are of that format, and says in `out` what is known from the start.
    ///
    /// # Errors
    /// Headers that cannot be accepted, and options that the format has no use for.
    pub(crate) fn open(
        format: Format,
        inputs: Vec<Input>,
        options: &ReadOptions,
        out: &mut Collector,
    ) -> Result<Lines, TraceError> {
        let formats = inputs.iter().map(|input| LineFormat::open(format, input, options));
        let formats = formats.collect::<Result<Vec<_>, _>>()?;
        for (format, input) in formats.iter().zip(&inputs) {
            format.describe(input.head(), out);
        }
        Ok(Lines {
            formats,
            names: inputs.iter().map(|input| input.name.clone()).collect(),
            cutter: Cutter { inputs, current: 0, is_begun: false, carried: Vec::new(), failure: None },
            order: format.order(),
            skip_bad: options.skip_bad,
            cut: Vec::new(),
            parsed: VecDeque::new(),
            spare: Vec::new(),
            at: (0, 0),
            last_ns: None,
        })
    }

    /// Hands over the requests of a chunk; false at the end.
    ///
    /// # Errors
    /// The first line that cannot be accepted, unless these are to be skipped; inputs that cannot be read.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        if self.parsed.is_empty() {
            self.parse_on();
        }
        let Some(mut chunk) = self.parsed.pop_front() else {
            return self.cutter.failure.take().map_or(Ok(false), Err);
        };
        if self.at.0 != chunk.input {
            self.at = (chunk.input, 0);
        }
        let file = &self.names[chunk.input];
        if chunk.is_endless {
            let message = format!("a line is longer than {} KiB: this is no trace", LINE_BYTES_MAX >> 10);
            return Err(TraceError { file: file.clone(), place: Place::Line(self.at.1 + 1), field: "", message });
        }
        if self.order == Order::Arrival {
            let first_ns = chunk.part.records.first().map(|record| record.arrival_ns);
            if first_ns.is_some_and(|first_ns| Some(first_ns) < self.last_ns) {
                // The chunk was parsed without knowing what came before it.
                chunk.parse(&self.formats, self.order, self.skip_bad, self.last_ns);
            }
            self.last_ns = chunk.part.records.last().map(|record| record.arrival_ns).or(self.last_ns);
        }
        let lines = chunk.part.lines;
        chunk.part.hand_over(file, self.at.1, out)?;
        self.at.1 += lines;
        self.spare.push(chunk);
        Ok(true)
    }

    /// Parses the chunks that are cut, and cuts the next ones meanwhile.
    fn parse_on(&mut self) {
        let wanted = 2 * rayon::current_num_threads();
        if self.cut.is_empty() {
            self.cutter.cut(wanted, &mut self.spare, &mut self.cut);
        }
        let mut chunks = std::mem::take(&mut self.cut);
        let (formats, order, skip_bad) = (&self.formats, self.order, self.skip_bad);
        let (cutter, spare, cut) = (&mut self.cutter, &mut self.spare, &mut self.cut);
        rayon::join(
            || cutter.cut(wanted, spare, cut),
            || chunks.par_iter_mut().for_each(|chunk| chunk.parse(formats, order, skip_bad, None)),
        );
        self.parsed.extend(chunks);
    }
}

impl Chunk {
    /// Parses the lines; those of a format in order of arrival must not be before `last_ns`.
    fn parse(&mut self, formats: &[LineFormat], order: Order, skip_bad: bool, mut last_ns: Option<u64>) {
        let part = &mut self.part;
        part.clear();
        let format = &formats[self.input];
        let leading = if self.is_first { format.leading_lines() } else { 0 };
        let text = &self.text[..self.used];
        let mut start = 0;
        while start < text.len() {
            let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |length| start + length);
            let line = text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end]);
            start = end + 1;
            part.lines += 1;
            if part.lines <= leading || line.trim_ascii().is_empty() {
                continue;
            }
            let record = if line.len() > LINE_BYTES_MAX {
                Err(("", format!("the line is longer than {} KiB", LINE_BYTES_MAX >> 10)))
            } else {
                format.parse(line, part)
            };
            let problem = match record {
                Ok(None) => continue,
                Ok(Some(record)) => match check(&record, order, last_ns) {
                    Ok(()) => {
                        last_ns = Some(record.arrival_ns);
                        part.records.push(record);
                        continue;
                    }
                    Err(problem) => problem,
                },
                Err(problem) => problem,
            };
            part.reject(problem);
            if !skip_bad {
                return;
            }
        }
    }
}

/// What holds for the requests of all formats.
#[inline]
fn check(record: &Record, order: Order, last_ns: Option<u64>) -> Result<(), Problem> {
    if record.offset_bytes >= BYTES_END - u64::from(record.length_bytes) {
        return Err(("offset", "must end below 2^63 bytes".to_owned()));
    }
    let is_time = |ns: u64| ns < TIME_NS_END || ns == NOT_RECORDED;
    if record.arrival_ns >= TIME_NS_END || !is_time(record.response_ns) || !is_time(record.wait_ns) {
        return Err(("time", "must be below 2^63 ns".to_owned()));
    }
    if order == Order::Arrival
        && let Some(last_ns) = last_ns
        && record.arrival_ns < last_ns
    {
        let arrival_ns = record.arrival_ns;
        return Err(("time", format!("must not go back, from {last_ns} ns to {arrival_ns} ns")));
    }
    Ok(())
}

impl Cutter {
    /// Cuts at most `wanted` chunks; fewer at the end, none behind it.
    fn cut(&mut self, wanted: usize, spare: &mut Vec<Chunk>, chunks: &mut Vec<Chunk>) {
        while chunks.len() < wanted && self.failure.is_none() && self.current < self.inputs.len() {
            let mut chunk = spare.pop().unwrap_or_default();
            match self.fill(&mut chunk) {
                Ok(()) => chunks.push(chunk),
                Err(error) => self.failure = Some(error),
            }
        }
    }

    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), TraceError> {
        let input = &mut self.inputs[self.current];
        if chunk.text.is_empty() {
            chunk.text.resize(CHUNK_BYTES, 0);
        }
        (chunk.input, chunk.is_first, chunk.is_endless) = (self.current, !self.is_begun, false);
        self.is_begun = true;
        chunk.text[..self.carried.len()].copy_from_slice(&self.carried);
        let mut filled = self.carried.len();
        self.carried.clear();
        while filled < CHUNK_BYTES {
            match input.read(&mut chunk.text[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(input.error(&error)),
            }
        }
        chunk.used = filled;
        if filled < CHUNK_BYTES {
            (self.current, self.is_begun) = (self.current + 1, false);
            return Ok(());
        }
        match memchr::memrchr(b'\n', &chunk.text) {
            Some(last) => {
                self.carried.extend_from_slice(&chunk.text[last + 1..]);
                chunk.used = last + 1;
            }
            None => chunk.is_endless = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
