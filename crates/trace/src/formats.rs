//! The formats, one file each, and how they are told apart.

mod binary;
mod blkparse;
pub mod blktrace;
pub(crate) mod iolog;
mod lines;
mod msr;
mod oracle_general;
mod srt;
pub mod validate;
mod vscsi;

use binary::{Binary, BinaryFormat};
pub(crate) use lines::{LineFormat, Lines};

use blkparse::Blkparse;
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
    /// fio's iolog, versions 2 and 3.
    Iolog,
    /// HP's SRT (cello).
    Srt,
    /// CloudPhysics vscsi, versions 1 and 2.
    Vscsi,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// DiskSim's `validate`.
    Validate,
    /// The same as blkparse's text.
    Blkparse,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 9] = [
        Format::Parquet,
        Format::Blktrace,
        Format::Blkparse,
        Format::Iolog,
        Format::Msr,
        Format::OracleGeneral,
        Format::Srt,
        Format::Validate,
        Format::Vscsi,
    ];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Msr => "msr",
            Format::Blktrace => "blktrace",
            Format::Iolog => "iolog",
            Format::Srt => "srt",
            Format::Vscsi => "vscsi",
            Format::OracleGeneral => "oracle-general",
            Format::Validate => "validate",
            Format::Blkparse => "blkparse",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Parquet => "headstack's stored form",
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::Blktrace => "Linux block trace, binary: blktrace or the kernel's blk tracer",
            Format::Iolog => "fio iolog, versions 2 and 3",
            Format::Srt => "HP SRT (cello)",
            Format::Vscsi => "CloudPhysics vscsi, versions 1 and 2",
            Format::OracleGeneral => "libCacheSim oracleGeneral and oracleGeneralOpNS",
            Format::Validate => "DiskSim validate: one drive, one request at a time",
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
            Format::Blktrace | Format::Blkparse => Order::Completion,
            Format::Msr | Format::Srt | Format::Vscsi => Order::Any,
            Format::Parquet | Format::Iolog | Format::OracleGeneral | Format::Validate => Order::Arrival,
        }
    }

    /// Several files are one recording, such as one a CPU or one a day.
    pub fn files_belong_together(self) -> bool {
        matches!(self, Format::Blktrace | Format::Srt)
    }

    /// The head of a file is of this format, and all of it.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Parquet => store::fits(head),
            Format::Msr => msr::fits(head),
            Format::Blktrace => blktrace::fits(head),
            Format::Iolog => iolog::fits(head),
            Format::Srt => srt::fits(head),
            Format::Vscsi => vscsi::fits(head),
            Format::OracleGeneral => oracle_general::fits(head),
            Format::Validate => validate::fits(head),
            Format::Blkparse => blkparse::fits(head),
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
    /// One request a binary record.
    Binary(Binary),
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
            Format::Parquet => Parser::Stored(Stored::open(&inputs[0], out)?),
            Format::Msr => {
                msr::describe(out);
                Parser::Lines(Lines::new(inputs, LineFormat::Msr))
            }
            Format::Blktrace => Parser::Blktrace(Blktrace::new(inputs, options.at, out)),
            Format::Iolog => Parser::Lines(Lines::new(inputs, LineFormat::Iolog(iolog::Iolog::default()))),
            Format::Srt => Parser::Binary(Binary::new(inputs, BinaryFormat::Srt(srt::Srt::new(out)))),
            Format::Vscsi => Parser::Binary(Binary::new(inputs, BinaryFormat::Vscsi(vscsi::Vscsi::new(out)))),
            Format::OracleGeneral => {
                let oracle = oracle_general::OracleGeneral::new(out);
                Parser::Binary(Binary::new(inputs, BinaryFormat::OracleGeneral(oracle)))
            }
            Format::Validate => Parser::Lines(Lines::new(inputs, LineFormat::Validate(validate::Validate::new(out)))),
            Format::Blkparse => Parser::Blkparse(Blkparse::new(inputs, options.at, out)),
        })
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
            Parser::Stored(stored) => stored.read(out),
            Parser::Blktrace(blktrace) => blktrace.read(out),
            Parser::Binary(binary) => binary.read(out),
            Parser::Blkparse(blkparse) => blkparse.read(out),
        }
    }

    /// Requests in all, where that is known before they are read.
    pub(crate) fn requests_known(&self) -> Option<u64> {
        match self {
            Parser::Stored(stored) => Some(stored.requests()),
            _ => None,
        }
    }
}
