//! The formats, one file each, and how they are told apart.

mod binary;
pub(crate) mod iolog;
mod lines;
mod msr;
mod oracle_general;
mod srt;
pub mod validate;
mod vscsi;

use binary::{Binary, BinaryFormat};
pub(crate) use lines::{LineFormat, Lines};

use std::path::Path;

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
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::Msr, Format::Iolog, Format::Srt, Format::Vscsi, Format::OracleGeneral, Format::Validate];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Iolog => "iolog",
            Format::Srt => "srt",
            Format::Vscsi => "vscsi",
            Format::OracleGeneral => "oracle-general",
            Format::Validate => "validate",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::Iolog => "fio iolog, versions 2 and 3",
            Format::Srt => "HP SRT (cello)",
            Format::Vscsi => "CloudPhysics vscsi, versions 1 and 2",
            Format::OracleGeneral => "libCacheSim oracleGeneral and oracleGeneralOpNS",
            Format::Validate => "DiskSim validate: one drive, one request at a time",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Msr | Format::Srt | Format::Vscsi => Order::Any,
            Format::Iolog | Format::OracleGeneral | Format::Validate => Order::Arrival,
        }
    }

    /// The head of a file is of this format, and all of it.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Msr => msr::fits(head),
            Format::Iolog => iolog::fits(head),
            Format::Srt => srt::fits(head),
            Format::Vscsi => vscsi::fits(head),
            Format::OracleGeneral => oracle_general::fits(head),
            Format::Validate => validate::fits(head),
        }
    }
}

/// A file, or several that belong together, being read.
pub(crate) enum Parser {
    /// One request a line.
    Lines(Lines),
    /// One request a binary record.
    Binary(Binary),
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
            Format::Iolog => Parser::Lines(Lines::new(inputs, LineFormat::Iolog(iolog::Iolog::default()))),
            Format::Srt => Parser::Binary(Binary::new(inputs, BinaryFormat::Srt(srt::Srt::new(out)))),
            Format::Vscsi => Parser::Binary(Binary::new(inputs, BinaryFormat::Vscsi(vscsi::Vscsi::new(out)))),
            Format::OracleGeneral => {
                let oracle = oracle_general::OracleGeneral::new(out);
                Parser::Binary(Binary::new(inputs, BinaryFormat::OracleGeneral(oracle)))
            }
            Format::Validate => Parser::Lines(Lines::new(inputs, LineFormat::Validate(validate::Validate::new(out)))),
        })
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
            Parser::Binary(binary) => binary.read(out),
        }
    }
}

/// The device that a file is the trace of, where its format names none: it is called by the file, and by its folder too
/// where files of other folders are called the same.
fn device_of_file(file: &str, out: &mut Collector) -> u32 {
    let name = Path::new(file).file_name().map_or_else(|| file.into(), |name| name.to_string_lossy());
    let is_taken = out.meta.devices.iter().any(|device| device.name == name);
    out.device(if is_taken { file } else { &name })
}
