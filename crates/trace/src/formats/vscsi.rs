//! CloudPhysics vscsi: requests to a virtual machine's disk, one SCSI command per record. Little-endian, no header.
//!
//! Version 1, 32 bytes: sn u32, length u32, scatter-gather elements u32, opcode u16, version u16, block u64, time u64.
//! Version 2, 40 bytes: opcode u16, version u16, sn u32, length u32, scatter-gather elements u32, block u64, time u64,
//! response u64. The version is in the upper byte of its field. Lengths are bytes, blocks are of 512 bytes, times are
//! microseconds since an unknown moment. `sn` wraps and has gaps, so it does not reveal losses.

use super::numbers::{little_endian, offset_bytes};
use super::scsi;
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::{Head, Input};
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::time::TIME_NS_END;

const BLOCK_BYTES: u32 = 512;
const NS_PER_US: u64 = 1_000;
/// Number of records that must fit for detection.
const RECORDS_MIN: usize = 2;
/// Number of records that are examined.
const RECORDS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    V1,
    V2,
}

impl Layout {
    fn record_bytes(self) -> usize {
        match self {
            Layout::V1 => 32,
            Layout::V2 => 40,
        }
    }

    /// The upper byte of the version field.
    fn version(self) -> u64 {
        match self {
            Layout::V1 => 1,
            Layout::V2 => 2,
        }
    }
}

struct Fields {
    opcode: u64,
    version: u64,
    length_bytes: u32,
    block: u64,
    time_us: u64,
}

fn fields(record: &[u8], layout: Layout) -> Fields {
    let (opcode, length) = match layout {
        Layout::V1 => (12, 4),
        Layout::V2 => (0, 8),
    };
    Fields {
        opcode: little_endian::<2>(record, opcode),
        version: little_endian::<2>(record, opcode + 2),
        length_bytes: little_endian::<4>(record, length) as u32,
        block: little_endian::<8>(record, 16),
        time_us: little_endian::<8>(record, 24),
    }
}

/// Number of the first records that fit `layout`, and number examined.
fn fitting(head: Head<'_>, layout: Layout) -> (usize, usize) {
    let records = head.bytes.chunks_exact(layout.record_bytes()).take(RECORDS_MAX);
    records.fold((0, 0), |(fitting, all), record| {
        let field = fields(record, layout);
        let fits = field.version >> 8 == layout.version() && field.opcode <= u64::from(u8::MAX);
        (fitting + usize::from(fits), all + 1)
    })
}

pub(crate) fn fits(head: Head<'_>) -> bool {
    [Layout::V1, Layout::V2].into_iter().any(|layout| {
        let (fitting, all) = fitting(head, layout);
        let mut records = head.bytes.chunks_exact(layout.record_bytes()).take(RECORDS_MAX);
        // Other binary files may have matching bytes in a column, but no reads and writes.
        fitting == all
            && all >= RECORDS_MIN
            && records.any(|record| {
                let operation = u8::try_from(fields(record, layout).opcode).map(scsi::operation);
                matches!(operation, Ok(Operation::Read | Operation::Write))
            })
    })
}

/// A parser of a file.
#[derive(Debug)]
pub(crate) struct Vscsi {
    layout: Layout,
    device: u32,
}

impl Vscsi {
    pub(crate) fn new(out: &mut Collector) -> Vscsi {
        out.meta.clock = Clock::Boot;
        out.meta.resolution_ns = NS_PER_US;
        Vscsi { layout: Layout::V1, device: 0 }
    }

    pub(crate) fn begin(&mut self, input: &Input, out: &mut Collector) -> Result<(), TraceError> {
        let share = |layout| {
            let (fitting, all) = fitting(input.head(), layout);
            if all == 0 { 0.0 } else { fitting as f64 / all as f64 }
        };
        let (v1, v2) = (share(Layout::V1), share(Layout::V2));
        if v1 == 0.0 && v2 == 0.0 {
            return Err(TraceError::of_file(&input.name, "no record has the version 1 or 2 of vscsi"));
        }
        self.layout = if v2 > v1 { Layout::V2 } else { Layout::V1 };
        if self.layout == Layout::V2 {
            out.meta.note("response times are omitted, since the format does not define their unit");
        }
        self.device = out.device(&input.label);
        out.meta.devices[self.device as usize].sector_bytes = Some(BLOCK_BYTES);
        Ok(())
    }

    pub(crate) fn record_bytes(&self) -> usize {
        self.layout.record_bytes()
    }

    #[inline]
    pub(crate) fn parse(&self, record: &[u8], out: &mut Collector) -> Result<Record, Problem> {
        let field = fields(record, self.layout);
        let Fields { opcode, version, length_bytes, block, time_us } = field;
        if version >> 8 != self.layout.version() {
            return Err(("version", format!("must be {} << 8, not {version:#x}", self.layout.version())));
        }
        let opcode = u8::try_from(opcode)
            .map_err(|_| ("opcode", format!("must be one of SCSI's, at most 0xff, not {opcode:#x}")))?;
        let arrival_ns = time_us.checked_mul(NS_PER_US).filter(|&ns| ns < TIME_NS_END);
        let arrival_ns = arrival_ns.ok_or_else(|| ("time", format!("must be below 2^63 ns, not {time_us} us")))?;
        let offset = offset_bytes(block, BLOCK_BYTES, length_bytes)
            .ok_or_else(|| ("block", format!("must end below 2^63 bytes, not be {block} of 512 bytes")))?;
        let operation = scsi::operation(opcode);
        if scsi::is_write_same(opcode) {
            out.meta.count(scsi::WRITE_SAME, 1);
            out.meta.note(scsi::WRITE_SAME_NOTE);
        } else if operation == Operation::Trim {
            out.meta.note(scsi::UNMAP_NOTE);
        }
        let mut record = Record::new(arrival_ns, operation, offset, length_bytes);
        record.device = self.device;
        Ok(record)
    }
}
