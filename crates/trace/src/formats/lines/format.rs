//! Which format lines are of, with what its header says.

use super::super::first_lines::names_columns;
use super::super::{Format, alibaba, biosnoop, cloudphysics, csv, disksim, etw, mqsim, msr, spc, systor, tencent};
use super::Part;
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::formats::ReadOptions;
use crate::input::{Head, Input};
use crate::record::Record;
use crate::time::TimeUnit;

/// A format of one request a line, ready to parse.
#[derive(Debug)]
pub(super) enum LineFormat {
    Msr,
    Systor,
    Spc { sector_bytes: u32 },
    Alibaba,
    Tencent,
    CloudPhysics,
    Biosnoop(biosnoop::Layout),
    DiskSim,
    Etw(etw::Layout),
    MqSim { unit: TimeUnit },
    Csv(Box<csv::Layout>),
}

impl LineFormat {
    /// What parses `input`.
    pub(super) fn open(format: Format, input: &Input, options: &ReadOptions) -> Result<LineFormat, TraceError> {
        let useless = |option: &str, why: &str| {
            Err(TraceError::of_file(&input.name, format!("the format {} takes no {option}: {why}", format.name())))
        };
        if options.sector_bytes.is_some() && !matches!(format, Format::Spc | Format::Table(_)) {
            return useless("sector size", "the format or its columns say it");
        }
        if options.time_unit.is_some() && format != Format::MqSim {
            return useless("time unit", "the format or its columns say it");
        }
        if options.csv.is_some() && format != Format::Csv {
            return useless("columns", "they are its own");
        }
        Ok(match format {
            Format::Msr => LineFormat::Msr,
            Format::Systor => LineFormat::Systor,
            Format::Spc => LineFormat::Spc { sector_bytes: spc::sector_bytes(input, options.sector_bytes)? },
            Format::Alibaba => LineFormat::Alibaba,
            Format::Tencent => LineFormat::Tencent,
            Format::CloudPhysics => LineFormat::CloudPhysics,
            Format::Biosnoop => LineFormat::Biosnoop(biosnoop::Layout::open(input)?),
            Format::DiskSim => LineFormat::DiskSim,
            Format::Etw => LineFormat::Etw(etw::Layout::open(input)?),
            Format::MqSim => LineFormat::MqSim { unit: options.time_unit.unwrap_or(TimeUnit::Nanoseconds) },
            Format::Csv => LineFormat::Csv(Box::new(csv::Layout::open(input, options.csv.as_ref(), None)?)),
            Format::Table(table) => {
                LineFormat::Csv(Box::new(csv::Layout::open(input, Some(table.columns()), options.sector_bytes)?))
            }
            _ => unreachable!("{format:?} has a parser of its own"),
        })
    }

    /// Says in `out` what holds for all requests of a file with that head.
    pub(super) fn describe(&self, head: Head<'_>, out: &mut Collector) {
        match self {
            LineFormat::Msr => msr::describe(out),
            LineFormat::Systor => systor::describe(out),
            LineFormat::Spc { sector_bytes } => spc::describe(*sector_bytes, head, out),
            LineFormat::Alibaba => alibaba::describe(out),
            LineFormat::Tencent => tencent::describe(out),
            LineFormat::CloudPhysics => cloudphysics::describe(out),
            LineFormat::Biosnoop(layout) => layout.describe(out),
            LineFormat::DiskSim => disksim::describe(head, out),
            LineFormat::Etw(layout) => layout.describe(out),
            LineFormat::MqSim { unit } => mqsim::describe(*unit, out),
            LineFormat::Csv(layout) => layout.describe(out),
        }
    }

    /// A line that names the columns: the data sets have none, but copies of them do, one at the top or one a joined file.
    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        match self {
            LineFormat::Msr => names_columns(line, &msr::NAMES),
            LineFormat::Alibaba => names_columns(line, &alibaba::NAMES),
            LineFormat::Tencent => names_columns(line, &tencent::NAMES),
            LineFormat::Csv(layout) => layout.is_header(line),
            _ => false,
        }
    }

    /// Lines at the top of a file that are no requests, as somebody says.
    pub(super) fn leading_lines(&self) -> u64 {
        match self {
            LineFormat::Csv(layout) => layout.leading_lines(),
            LineFormat::Etw(layout) => layout.leading_lines(),
            _ => 0,
        }
    }

    /// Requests have no times, and are numbered in the order of their lines.
    pub(super) fn is_untimed(&self) -> bool {
        match self {
            LineFormat::Csv(layout) => layout.is_untimed(),
            _ => false,
        }
    }

    /// The request of a line; nothing for a line that is none, such as a header.
    #[inline]
    pub(super) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        match self {
            LineFormat::Msr => msr::parse(line, part).map(Some),
            LineFormat::Systor => systor::parse(line, part),
            LineFormat::Spc { sector_bytes } => spc::parse(line, *sector_bytes, part).map(Some),
            LineFormat::Alibaba => alibaba::parse(line, part).map(Some),
            LineFormat::Tencent => tencent::parse(line, part).map(Some),
            LineFormat::CloudPhysics => cloudphysics::parse(line, part),
            LineFormat::Biosnoop(layout) => layout.parse(line, part),
            LineFormat::DiskSim => disksim::parse(line, part).map(Some),
            LineFormat::Etw(layout) => layout.parse(line, part),
            LineFormat::MqSim { unit } => mqsim::parse(line, *unit, part).map(Some),
            LineFormat::Csv(layout) => layout.parse(line, part),
        }
    }
}
