//! The formats, one file each, and how they are told apart.

pub(crate) mod blkparse;
pub mod blktrace;
mod lines;
mod msr;
pub mod validate;

pub(crate) use lines::{LineFormat, Lines};

use blkparse::Blkparse;
use blktrace::Blktrace;
pub use blktrace::pairing::Stage;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::input::{Head, Input};
use crate::reader::ReadOptions;

/// Whose order the requests of a file are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Of arrival, by the format's own rule: time going backwards is an error.
    Arrival,
    /// Of completion, or any: the reader sorts, and counts what it moved.
    Any,
}

/// A format that traces are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// MSR Cambridge (SNIA IOTTA 387, 388).
    Msr,
    /// Linux' block trace, binary.
    Blktrace,
    /// The same as blkparse's text.
    Blkparse,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 3] = [Format::Msr, Format::Blktrace, Format::Blkparse];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Blktrace => "blktrace",
            Format::Blkparse => "blkparse",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::Blktrace => "Linux block trace, binary: blktrace or the kernel's blk tracer",
            Format::Blkparse => "Linux block trace, text of blkparse in its default format",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Msr | Format::Blktrace | Format::Blkparse => Order::Any,
        }
    }

    /// The head of a file is of this format, and all of it.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Msr => msr::fits(head),
            Format::Blktrace => blktrace::fits(head),
            Format::Blkparse => blkparse::fits(head),
        }
    }
}

/// A file, or several that belong together, being read.
pub(crate) enum Parser {
    /// One request a line.
    Lines(Lines),
    /// Linux' block trace.
    Blktrace(Blktrace),
    /// Its text.
    Blkparse(Blkparse),
}

impl Parser {
    /// Begins to read `inputs`, in their order, and says in `out` what is known from the start.
    pub(crate) fn open(
        format: Format,
        inputs: Vec<Input>,
        options: &ReadOptions,
        out: &mut Collector,
    ) -> Result<Parser, TraceError> {
        Ok(match format {
            Format::Msr => {
                msr::describe(out);
                Parser::Lines(Lines::new(inputs, LineFormat::Msr))
            }
            Format::Blktrace => Parser::Blktrace(Blktrace::new(inputs, options.at, out)),
            Format::Blkparse => Parser::Blkparse(Blkparse::new(inputs, options.at, out)),
        })
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
            Parser::Blktrace(blktrace) => blktrace.read(out),
            Parser::Blkparse(blkparse) => blkparse.read(out),
        }
    }
}
