//! [`Recording`]: files that belong together, read by one parser and sorted by arrival.

use std::path::Path;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::formats::{Format, Order, Parser, ReadOptions};
use crate::input::Input;
use crate::meta::{Meta, Origin};
use crate::record::Record;
use crate::sort::Sorter;

/// Result of reading more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Records in order of arrival, none earlier than previous records.
    Batch,
    /// A new run follows, which begins before the end of the previous records.
    NewRun,
    /// The end of the recording.
    End,
}

/// Files that belong together, read by one parser.
pub(crate) struct Recording {
    /// Name of the first file, as given by the user.
    pub(crate) name: String,
    parser: Parser,
    out: Collector,
    sorter: Option<Sorter>,
    counts_moved: bool,
}

impl Recording {
    pub(crate) fn open(format: Format, inputs: Vec<Input>, options: &ReadOptions) -> Result<Recording, TraceError> {
        let mut out = Collector::new(options.skip_bad);
        let origin = |input: &Input| Origin { file: file_name(input), format: format.name().to_owned() };
        let origins: Vec<Origin> = inputs.iter().map(origin).collect();
        let name = inputs[0].name.clone();
        let parser = Parser::open(format, inputs, options, &mut out)?;
        if out.meta.origin.is_empty() {
            out.meta.origin = origins;
        }
        let sorter = (format.order() != Order::Arrival).then(Sorter::default);
        Ok(Recording { name, parser, out, sorter, counts_moved: format.order() == Order::Any })
    }

    /// Fills `batch`, which must be empty.
    pub(crate) fn next(&mut self, batch: &mut Vec<Record>) -> Result<Next, TraceError> {
        let Some(sorter) = &mut self.sorter else {
            while self.out.records.is_empty() {
                if !self.parser.read(&mut self.out)? {
                    return Ok(Next::End);
                }
            }
            std::mem::swap(batch, &mut self.out.records);
            return Ok(Next::Batch);
        };
        loop {
            if sorter.begins_new_run() {
                return Ok(Next::NewRun);
            }
            let more = self.parser.read(&mut self.out)?;
            sorter.take(&mut self.out.records, batch, !more);
            if !batch.is_empty() {
                return Ok(Next::Batch);
            }
            if !more && !sorter.has_late() {
                if self.counts_moved {
                    self.out.meta.count("out of order", std::mem::take(&mut sorter.moved));
                }
                return Ok(Next::End);
            }
        }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.out.meta
    }
}

fn file_name(input: &Input) -> String {
    Path::new(&input.name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
