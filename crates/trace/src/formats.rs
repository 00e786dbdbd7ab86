//! The formats, one file each, and how they are told apart.

mod alibaba;
mod biosnoop;
mod cloudphysics;
mod csv;
pub(crate) mod disksim;
mod hfplayer;
mod lines;
mod mqsim;
mod msr;
mod scsi;
mod spc;
mod systor;
mod tencent;
pub mod validate;

pub use csv::CsvColumns;
pub(crate) use lines::{Lines, Part};

use crate::collect::Collector;
use crate::error::TraceError;
use crate::input::{Head, Input};
use crate::reader::ReadOptions;
use crate::time::TimeUnit;

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
    /// SYSTOR '17 (SNIA IOTTA 4928, 4964).
    Systor,
    /// SPC traces (UMass Financial and WebSearch).
    Spc,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// Tencent's cloud block storage, 2018.
    Tencent,
    /// CloudPhysics as CSV.
    CloudPhysics,
    /// What bcc's biosnoop prints.
    Biosnoop,
    /// DiskSim's ascii trace.
    DiskSim,
    /// MQSim's trace.
    MqSim,
    /// hfplayer's CSV of NetApp controller dumps.
    Hfplayer,
    /// Any CSV whose columns somebody declares; never told by content.
    Csv,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 11] = [
        Format::Msr,
        Format::Systor,
        Format::Spc,
        Format::Alibaba,
        Format::Tencent,
        Format::CloudPhysics,
        Format::Biosnoop,
        Format::DiskSim,
        Format::MqSim,
        Format::Hfplayer,
        Format::Csv,
    ];

    /// Its name in options and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Systor => "systor",
            Format::Spc => "spc",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::CloudPhysics => "cloudphysics",
            Format::Biosnoop => "biosnoop",
            Format::DiskSim => "disksim",
            Format::MqSim => "mqsim",
            Format::Hfplayer => "hfplayer",
            Format::Csv => "csv",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Msr => "MSR Cambridge CSV (SNIA IOTTA 387, 388)",
            Format::Systor => "SYSTOR '17 CSV (SNIA IOTTA 4928, 4964)",
            Format::Spc => "SPC trace, specification 1.0.1 (UMass)",
            Format::Alibaba => "Alibaba block traces 2020",
            Format::Tencent => "Tencent CBS 2018",
            Format::CloudPhysics => "CloudPhysics CSV",
            Format::Biosnoop => "bcc's biosnoop",
            Format::DiskSim => "DiskSim ascii",
            Format::MqSim => "MQSim",
            Format::Hfplayer => "hfplayer CSV (NetApp)",
            Format::Csv => "CSV with declared columns",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The order of its requests.
    pub fn order(self) -> Order {
        match self {
            Format::Spc | Format::DiskSim => Order::Arrival,
            Format::Msr
            | Format::Systor
            | Format::Alibaba
            | Format::Tencent
            | Format::CloudPhysics
            | Format::Biosnoop
            | Format::MqSim
            | Format::Hfplayer
            | Format::Csv => Order::Any,
        }
    }

    /// The head of a file is of this format, and of no other: all of it, or most of its lines, so that reading it names
    /// those that are wrong.
    pub fn fits(self, head: Head<'_>) -> bool {
        match self {
            Format::Msr => msr::fits(head),
            Format::Systor => systor::fits(head),
            Format::Spc => spc::fits(head),
            Format::Alibaba => alibaba::fits(head),
            Format::Tencent => tencent::fits(head),
            Format::CloudPhysics => cloudphysics::fits(head),
            Format::Biosnoop => biosnoop::fits(head),
            Format::DiskSim => disksim::fits(head),
            Format::MqSim => mqsim::fits(head),
            Format::Hfplayer => hfplayer::fits(head),
            Format::Csv => false,
        }
    }
}

/// A file, or several that belong together, being read.
pub(crate) enum Parser {
    /// One request a line.
    Lines(Box<Lines>),
}

impl Parser {
    /// Begins to read `inputs`, in their order, and says in `out` what is known from the start.
    pub(crate) fn open(
        format: Format,
        inputs: Vec<Input>,
        options: &ReadOptions,
        out: &mut Collector,
    ) -> Result<Parser, TraceError> {
        Ok(Parser::Lines(Box::new(Lines::open(format, inputs, options, out)?)))
    }

    /// Reads on, some ten thousand requests at a time; false at the end.
    pub(crate) fn read(&mut self, out: &mut Collector) -> Result<bool, TraceError> {
        match self {
            Parser::Lines(lines) => lines.read(out),
        }
    }
}

/// What is said of traces whose times are whole seconds.
const WHOLE_SECONDS: &str = "times are whole seconds: what happens within one is not recorded";

/// The lines of text that formats are told by: some hundred, without blank ones.
fn first_lines(head: Head<'_>) -> impl Iterator<Item = &[u8]> {
    head.lines().filter(|line| !line.trim_ascii().is_empty()).take(300)
}

/// More than half of the first lines are so. All would be too much to ask: no bad line would then ever be named.
fn most_lines(head: Head<'_>, mut is_like: impl FnMut(&[u8]) -> bool) -> bool {
    let (mut lines, mut alike) = (0, 0);
    for line in first_lines(head) {
        lines += 1;
        alike += usize::from(is_like(line));
    }
    2 * alike > lines
}

/// The step of times with as many digits behind their point as those of the first lines have at most.
fn finest_step_ns<'a>(head: Head<'a>, unit: TimeUnit, time: impl Fn(&'a [u8]) -> &'a [u8]) -> u64 {
    let digits = first_lines(head).map(|line| {
        let time = time(line).trim_ascii();
        if unit.ns(time).is_some() { time.iter().rev().position(|&byte| byte == b'.').unwrap_or(0) } else { 0 }
    });
    unit.step_ns(digits.max().unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests;
