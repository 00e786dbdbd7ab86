//! [`Lines`]: formats with one request per line. The text is divided into chunks at line ends, which are parsed in
//! parallel and returned in order.
//!
//! The output depends only on the lines, not on the number of cores or the chunk boundaries.

mod format;
mod part;

use std::collections::VecDeque;

use rayon::prelude::*;

use super::cutter::{Cutter, Text, check_length};
use super::{Format, Order};
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::formats::ReadOptions;
use crate::input::Input;
use crate::record::{NOT_RECORDED, Record};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;

use format::LineFormat;
pub(crate) use part::Part;

/// Reads the lines of several inputs, one after another.
pub(crate) struct Lines {
    cutter: Cutter,
    /// Error while cutting chunks, reported after the lines before it are parsed.
    failure: Option<TraceError>,
    /// Format of each input, with the information in its header.
    formats: Vec<LineFormat>,
    names: Vec<String>,
    order: Order,
    skip_bad: bool,
    /// Chunks that are cut but not yet parsed.
    cut: Vec<Chunk>,
    /// Chunks that are parsed but not yet returned.
    parsed: VecDeque<Chunk>,
    /// Returned chunks, whose memory is reused.
    spare: Vec<Chunk>,
    /// Index of the current input, and the number of its lines returned so far.
    at: (usize, u64),
    /// Arrival of the last returned request, in ns.
    last_ns: Option<u64>,
    /// Number of the next request without a time.
    numbered: u64,
}

/// Whole lines of an input, and their requests.
#[derive(Default)]
struct Chunk {
    text: Text,
    part: Part,
}

impl Lines {
    /// Opens `inputs` in this format, and stores metadata known from the start in `out`.
    ///
    /// # Errors
    /// Returns an error if a header is invalid or an option does not apply to the format.
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
            cutter: Cutter::new(inputs),
            failure: None,
            order: format.order(),
            skip_bad: options.skip_bad,
            cut: Vec::new(),
            parsed: VecDeque::new(),
            spare: Vec::new(),
            at: (0, 0),
            last_ns: None,
            numbered: 0,
        })
    }

    /// Returns the requests of a chunk in `out`; returns false at the end.
    ///
    /// # Errors
    /// Returns an error for the first invalid line, unless bad lines are skipped, or if an input cannot be read.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        if self.parsed.is_empty() {
            self.parse_on();
        }
        let Some(mut chunk) = self.parsed.pop_front() else {
            return self.failure.take().map_or(Ok(false), Err);
        };
        if self.at.0 != chunk.text.input {
            self.at = (chunk.text.input, 0);
        }
        let file = &self.names[chunk.text.input];
        chunk.text.check(file, self.at.1)?;
        if self.order == Order::Arrival {
            let first_ns = chunk.part.records.first().map(|record| record.arrival_ns);
            if first_ns.is_some_and(|first_ns| Some(first_ns) < self.last_ns) {
                // The chunk was parsed without knowing the last arrival of its predecessor.
                chunk.parse(&self.formats, self.order, self.skip_bad, self.last_ns);
            }
            self.last_ns = chunk.part.records.last().map(|record| record.arrival_ns).or(self.last_ns);
        }
        if self.formats[chunk.text.input].is_untimed() {
            for record in &mut chunk.part.records {
                record.arrival_ns = self.numbered;
                self.numbered += 1;
            }
        }
        let lines = chunk.part.lines;
        chunk.part.hand_over(file, self.at.1, out)?;
        self.at.1 += lines;
        self.spare.push(chunk);
        Ok(true)
    }

    /// Parses the chunks that are cut, and cuts the next ones in parallel.
    fn parse_on(&mut self) {
        let wanted = 2 * rayon::current_num_threads();
        if self.cut.is_empty() {
            self.cut_on(wanted);
        }
        let mut chunks = std::mem::take(&mut self.cut);
        let formats = std::mem::take(&mut self.formats);
        let (order, skip_bad) = (self.order, self.skip_bad);
        rayon::join(
            || self.cut_on(wanted),
            || chunks.par_iter_mut().for_each(|chunk| chunk.parse(&formats, order, skip_bad, None)),
        );
        self.formats = formats;
        self.parsed.extend(chunks);
    }

    /// Cuts at most `wanted` chunks; fewer near the end.
    fn cut_on(&mut self, wanted: usize) {
        while self.cut.len() < wanted && self.failure.is_none() {
            let mut chunk = self.spare.pop().unwrap_or_default();
            match self.cutter.fill(&mut chunk.text) {
                Ok(true) => self.cut.push(chunk),
                Ok(false) => {
                    self.spare.push(chunk);
                    return;
                }
                Err(error) => self.failure = Some(error),
            }
        }
    }
}

impl Chunk {
    /// Parses the lines. In a format in order of arrival, no request may arrive before `last_ns`.
    fn parse(&mut self, formats: &[LineFormat], order: Order, skip_bad: bool, mut last_ns: Option<u64>) {
        let part = &mut self.part;
        part.clear();
        let format = &formats[self.text.input];
        let leading = if self.text.is_first { format.leading_lines() } else { 0 };
        for line in self.text.lines() {
            part.lines += 1;
            if part.lines <= leading || line.trim_ascii().is_empty() {
                continue;
            }
            let problem = match check_length(line).and_then(|()| format.parse(line, part)) {
                Ok(None) => continue,
                Ok(Some(record)) => match check(&record, order, last_ns) {
                    Ok(()) => {
                        last_ns = Some(record.arrival_ns);
                        part.records.push(record);
                        continue;
                    }
                    Err(problem) => problem,
                },
                Err(_) if format.is_header(line) => continue,
                Err(problem) => problem,
            };
            part.reject(problem);
            if !skip_bad {
                return;
            }
        }
    }
}

/// Checks a request for errors that apply to all formats.
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

#[cfg(test)]
mod tests;
