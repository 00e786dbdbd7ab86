//! [`LineFormat`]: a format of lines, with the information in its header.

use super::super::first_lines::names_columns;
use super::super::{
    Format, alibaba, biosnoop, cloudphysics, csv, disksim, etw, mqsim, msr, spc, systor, tencent, units,
};
use super::Part;
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::formats::ReadOptions;
use crate::input::{Head, Input};
use crate::record::Record;
use crate::time::TimeUnit;

/// A format with one request per line, ready to parse.
#[derive(Debug)]
pub(super) enum LineFormat {
    Msr,
    Systor,
    Spc(spc::Block),
    Alibaba,
    Tencent,
    CloudPhysics,
    Biosnoop(biosnoop::Layout),
    DiskSim { sector_bytes: u32 },
    Etw(etw::Layout),
    MqSim { unit: TimeUnit, sector_bytes: u32 },
    Csv(Box<csv::Layout>),
}

impl LineFormat {
    /// Returns the parser of `input`.
    pub(super) fn open(format: Format, input: &Input, options: &ReadOptions) -> Result<LineFormat, TraceError> {
        Ok(match format {
            Format::Msr => LineFormat::Msr,
            Format::Systor => LineFormat::Systor,
            Format::Spc => LineFormat::Spc(spc::Block::of(input, options.sector_bytes)?),
            Format::Alibaba => LineFormat::Alibaba,
            Format::Tencent => LineFormat::Tencent,
            Format::CloudPhysics => LineFormat::CloudPhysics,
            Format::Biosnoop => LineFormat::Biosnoop(biosnoop::Layout::open(input)?),
            Format::DiskSim => {
                let sector_bytes = units::sector_bytes(input, options.sector_bytes, disksim::place)?;
                LineFormat::DiskSim { sector_bytes }
            }
            Format::Etw => LineFormat::Etw(etw::Layout::open(input)?),
            Format::MqSim => {
                let sector_bytes = units::sector_bytes(input, options.sector_bytes, mqsim::place)?;
                LineFormat::MqSim { unit: mqsim::unit(input, options.time_unit)?, sector_bytes }
            }
            Format::Csv => LineFormat::Csv(Box::new(csv::Layout::open(input, options.csv.as_ref(), None)?)),
            Format::Table(table) => {
                LineFormat::Csv(Box::new(csv::Layout::open(input, Some(table.columns()), options.sector_bytes)?))
            }
            _ => unreachable!("{format:?} has a parser of its own"),
        })
    }

    /// Stores the metadata of all requests in a file with this head in `out`.
    pub(super) fn describe(&self, head: Head<'_>, out: &mut Collector) {
        match self {
            LineFormat::Msr => msr::describe(out),
            LineFormat::Systor => systor::describe(out),
            LineFormat::Spc(block) => spc::describe(*block, head, out),
            LineFormat::Alibaba => alibaba::describe(out),
            LineFormat::Tencent => tencent::describe(out),
            LineFormat::CloudPhysics => cloudphysics::describe(out),
            LineFormat::Biosnoop(layout) => layout.describe(out),
            LineFormat::DiskSim { .. } => disksim::describe(head, out),
            LineFormat::Etw(layout) => layout.describe(out),
            LineFormat::MqSim { unit, .. } => mqsim::describe(*unit, out),
            LineFormat::Csv(layout) => layout.describe(out),
        }
    }

    /// Returns whether a line is a header. The published files have none, but copies have one at the top or one per
    /// concatenated file.
    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        match self {
            LineFormat::Msr => names_columns(line, &msr::NAMES),
            LineFormat::Alibaba => names_columns(line, &alibaba::NAMES),
            LineFormat::Tencent => names_columns(line, &tencent::NAMES),
            LineFormat::Csv(layout) => layout.is_header(line),
            _ => false,
        }
    }

    /// Returns the declared number of lines to skip at the top of a file.
    pub(super) fn leading_lines(&self) -> u64 {
        match self {
            LineFormat::Csv(layout) => layout.leading_lines(),
            LineFormat::Etw(layout) => layout.leading_lines(),
            _ => 0,
        }
    }

    /// Returns whether requests have no times and are numbered in line order.
    pub(super) fn is_untimed(&self) -> bool {
        match self {
            LineFormat::Csv(layout) => layout.is_untimed(),
            _ => false,
        }
    }

    /// Parses a line; `None` if it contains no request, such as a header.
    #[inline]
    pub(super) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        match self {
            LineFormat::Msr => msr::parse(line, part).map(Some),
            LineFormat::Systor => systor::parse(line, part),
            LineFormat::Spc(block) => spc::parse(line, *block, part).map(Some),
            LineFormat::Alibaba => alibaba::parse(line, part).map(Some),
            LineFormat::Tencent => tencent::parse(line, part).map(Some),
            LineFormat::CloudPhysics => cloudphysics::parse(line, part),
            LineFormat::Biosnoop(layout) => layout.parse(line, part),
            LineFormat::DiskSim { sector_bytes } => disksim::parse(line, *sector_bytes, part).map(Some),
            LineFormat::Etw(layout) => layout.parse(line, part),
            LineFormat::MqSim { unit, sector_bytes } => mqsim::parse(line, *unit, *sector_bytes, part).map(Some),
            LineFormat::Csv(layout) => layout.parse(line, part),
        }
    }
}
