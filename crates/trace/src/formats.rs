//! The formats, one file each, and how they are told apart.

pub mod blktrace;
mod lines;
mod msr;
pub mod validate;

pub(crate) use lines::{LineFormat, Lines};

use blktrace::Blktrace;
pub use blktrace::pairing::Stage;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::input::{Head, Input};
use crate::reader::ReadOptions;
use crate::store::{self, Stored};

/// Whose order the requests of a file are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Of arrival, by the format's own rule: time going backwards is an error.
    Arrival,
    /// Of completion, by the way it is recorded: the reader sorts.
    Completion,
    /// Not said: the reader sorts, and counts what it moved.
    Any,
}

/// A format that traces are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// headstack's own stored form.
    Parquet,
    /// MSR Cambridge (SNIA IOTTA 387, 388).
    Msr,
    /// Linux' block trace, binary.
    Blktrace,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] = &[Format::Parquet, Format::Msr, Format::Blktrace];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Msr => "msr",
            Format::Blktrace => "blktrace",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Parquet => "headstack's stored form",
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::Blktrace => "Linux block trace, binary: blktrace or the kernel's blk tracer",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Parquet => Order::Arrival,
            Format::Msr => Order::Any,
            Format::Blktrace => Order::Completion,
        }
    }

    /// Several files are one recording, such as one a CPU.
    pub fn files_belong_together(self) -> bool {
        self == Format::Blktrace
    }

    /// The head of a file is of this format, and all of it.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Parquet => store::fits(head),
            Format::Msr => msr::fits(head),
            Format::Blktrace => blktrace::fits(head),
        }
    }
}

/// A file, or several that belong together, being read.
pub(crate) enum Parser {
    /// One request a line.
    Lines(Lines),
    /// The stored form.
    Stored(Stored),
    /// Linux' block trace.
    Blktrace(Blktrace),
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
            Format::Parquet => Parser::Stored(Stored::open(&inputs[0], out)?),
            Format::Msr => {
                msr::describe(out);
                Parser::Lines(Lines::new(inputs, LineFormat::Msr))
            }
            Format::Blktrace => Parser::Blktrace(Blktrace::new(inputs, options.at, out)),
        })
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
            Parser::Stored(stored) => stored.read(out),
            Parser::Blktrace(blktrace) => blktrace.read(out),
        }
    }

    /// Requests in all, where that is known before they are read.
    pub(crate) fn requests_known(&self) -> Option<u64> {
        match self {
            Parser::Stored(stored) => Some(stored.requests()),
            Parser::Lines(_) | Parser::Blktrace(_) => None,
        }
    }
}
