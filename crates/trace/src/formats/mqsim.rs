//! MQSim: `time device lba sectors type`, five whole numbers separated by blanks.
//!
//! Times are nanoseconds unless the simulation that belongs to the trace says us or ps. Sectors are of 512 bytes. The type
//! is 1 for a read and 0 for a write.

use super::Part;
use super::first_lines::{first_lines, most_lines};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::text::{length_bytes, offset_bytes, whole, words};
use crate::time::TimeUnit;

const SECTOR_BYTES: u32 = 512;

/// Has five whole numbers, and no point in the first: that would be DiskSim's.
pub(crate) fn fits(head: Head<'_>) -> bool {
    let is_like = |line: &[u8]| {
        let (word, count) = words::<5>(line);
        count == 5 && word.iter().all(|text| whole(text).is_some()) && matches!(word[4], b"0" | b"1")
    };
    most_lines(head, is_like) && !first_lines(head).any(|line| words::<1>(line).0[0].contains(&b'.'))
}

pub(crate) fn describe(unit: TimeUnit, out: &mut Collector) {
    out.meta.clock = Clock::Recording;
    out.meta.resolution_ns = unit.step_ns(0);
    if unit == TimeUnit::Nanoseconds {
        out.meta.note("times are taken for ns");
    }
}

pub(crate) fn parse(line: &[u8], unit: TimeUnit, part: &mut Part) -> Result<Record, Problem> {
    let (word, count) = words::<5>(line);
    if count != 5 {
        return Err(("", format!("{count} columns; expected the five of `time device lba sectors type`")));
    }
    let [time, device, lba, sectors, kind] = word;
    let arrival_ns = whole(time).and_then(|_| unit.ns(time));
    let arrival_ns = arrival_ns
        .ok_or_else(|| refused("time", time, &format!("a whole number of {}, below 2^63 ns", unit.name())))?;
    let operation = match kind {
        b"1" => Operation::Read,
        b"0" => Operation::Write,
        _ => return Err(refused("type", kind, "1 (read) or 0 (write)")),
    };
    let offset = offset_bytes("lba", lba, SECTOR_BYTES)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("sectors", sectors, SECTOR_BYTES)?);
    record.device = part.devices.of_number("device", device)?;
    Ok(record)
}
