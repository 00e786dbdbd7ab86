//! The formats, one file each, and how they are told apart.

mod lines;
mod msr;
pub mod validate;

pub(crate) use lines::{LineFormat, Lines};

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
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 1] = [Format::Msr];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Msr => Order::Any,
        }
    }

    /// The head of a file is of this format, and all of it.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Msr => msr::fits(head),
        }
    }
}

/// A file, or several that belong together, being read.
pub(crate) enum Parser {
    /// One request a line.
    Lines(Lines),
}

impl Parser {
    /// Begins to read `inputs`, in their order, and says in `out` what is known from the start.
    pub(crate) fn open(
        format: Format,
        inputs: Vec<Input>,
        _options: &ReadOptions,
        out: &mut Collector,
    ) -> Result<Parser, TraceError> {
        Ok(match format {
            Format::Msr => {
                msr::describe(out);
                Parser::Lines(Lines::new(inputs, LineFormat::Msr))
            }
        })
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
        }
    }
}
