//! MQSim: `time device lba sectors type`, five whole numbers separated by blanks.
//!
//! Times are nanoseconds unless the trace's simulation uses us or ps. Sectors are of 512 bytes. The type is 1 for a
//! read and 0 for a write.

use rustc_hash::FxHashSet;

use super::Part;
use super::first_lines::{first_lines, most_lines};
use crate::collect::Collector;
use crate::error::{Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::text::{length_bytes, offset_bytes, whole, words};
use crate::time::{NS_PER_S, TimeUnit};

/// Upper limit of a device's rate: a PCIe 5 SSD of 2025 does 3.3 million reads per second.
const REQUESTS_PER_S_MAX: u64 = 4_000_000;
/// Number of requests whose rate is conclusive.
const REQUESTS_MIN: u64 = 20;

/// Whether lines have five whole numbers; a point in the first would be DiskSim's.
pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, is_like) && !first_lines(head).any(|line| words::<1>(line).0[0].contains(&b'.'))
}

fn is_like(line: &[u8]) -> bool {
    let (word, count) = words::<5>(line);
    count == 5 && word.iter().all(|text| whole(text).is_some()) && matches!(word[4], b"0" | b"1")
}

/// Device, address and length of a line, the latter two in the same unit.
pub(crate) fn place(line: &[u8]) -> Option<(u64, u64, u64)> {
    let (word, _) = words::<5>(line);
    is_like(line).then(|| Some((whole(word[1])?, whole(word[2])?, whole(word[3])?)))?
}

/// The unit of times: the given one, or ns.
///
/// # Errors
/// When no unit is given and requests would arrive faster than a device can serve them.
pub(crate) fn unit(input: &Input, unit_option: Option<TimeUnit>) -> Result<TimeUnit, TraceError> {
    if let Some(unit) = unit_option {
        return Ok(unit);
    }
    let lines = input.head().lines().filter(|line| is_like(line));
    let stated = |line| Some((whole(words::<5>(line).0[0])?, whole(words::<5>(line).0[1])?));
    let (mut count, mut least, mut greatest) = (0u64, u64::MAX, 0);
    let mut devices: FxHashSet<u64> = FxHashSet::default();
    for (time, device) in lines.filter_map(stated) {
        count += 1;
        (least, greatest) = (least.min(time), greatest.max(time));
        devices.insert(device);
    }
    let span_ns = u128::from(greatest.saturating_sub(least));
    let could_be = u128::from(REQUESTS_PER_S_MAX) * devices.len() as u128 * span_ns / u128::from(NS_PER_S);
    if count < REQUESTS_MIN || u128::from(count) <= could_be.max(1) {
        return Ok(TimeUnit::Nanoseconds);
    }
    let message = format!(
        "its first {count} requests arrive within {span_ns} units of time, too fast for ns; add --unit us, ms or s"
    );
    Err(TraceError::of_file(&input.name, message))
}

pub(crate) fn describe(unit: TimeUnit, out: &mut Collector) {
    out.meta.clock = Clock::Recording;
    out.meta.resolution_ns = unit.step_ns(0);
    if unit == TimeUnit::Nanoseconds {
        out.meta.note("times are treated as ns");
    }
}

pub(crate) fn parse(line: &[u8], unit: TimeUnit, sector_bytes: u32, part: &mut Part) -> Result<Record, Problem> {
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
    let offset = offset_bytes("lba", lba, sector_bytes)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("sectors", sectors, sector_bytes)?);
    record.device = part.devices.of_number("device", device)?;
    Ok(record)
}
