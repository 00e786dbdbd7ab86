//! DiskSim ASCII traces: `time_ms device block blocks flags`, separated by spaces or tabs.
//!
//! Times are in ms from the start and never decrease; DiskSim itself stops if they do. Blocks have 512 bytes. Flags are
//! hexadecimal, without `0x`.

use super::Part;
use super::first_lines::{finest_step_ns, first_lines, most_lines};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::{Flags, Operation, Record};
use crate::text::{hexadecimal, length_bytes, offset_bytes, whole, words};
use crate::time::TimeUnit;

/// Block size in bytes.
pub(crate) const BLOCK_BYTES: u32 = 512;
/// Flag of a read.
pub(crate) const READ: u64 = 0x1;
/// Flag of a synchronous request, which a process waits for.
pub(crate) const SYNCHRONOUS: u64 = 0x80;
/// All flags: read, time-critical, time-limited, synchronous, asynchronous, local, sequential.
const KNOWN: u64 = READ | 0x2 | 0x4 | SYNCHRONOUS | 0x100 | 0x2000_0000 | 0x4000_0000;

/// Returns whether lines have five words, the first a decimal number. Only the decimal point distinguishes milliseconds
/// from MQSim's nanoseconds.
pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, is_like) && first_lines(head).any(|line| is_like(line) && words::<1>(line).0[0].contains(&b'.'))
}

fn is_like(line: &[u8]) -> bool {
    let (word, count) = words::<5>(line);
    let are_numbers = word[1..4].iter().all(|text| whole(text).is_some()) && hexadecimal(word[4]).is_some();
    count == 5 && TimeUnit::Milliseconds.ns(word[0]).is_some() && are_numbers
}

/// Returns the device, address and length of a line; address and length are in the same unit.
pub(crate) fn place(line: &[u8]) -> Option<(u64, u64, u64)> {
    let (word, _) = words::<5>(line);
    is_like(line).then(|| Some((whole(word[1])?, whole(word[2])?, whole(word[3])?)))?
}

pub(crate) fn describe(head: Head<'_>, out: &mut Collector) {
    out.meta.clock = Clock::Recording;
    out.meta.resolution_ns = finest_step_ns(head, TimeUnit::Milliseconds, |line| words::<1>(line).0[0]);
}

pub(crate) fn parse(line: &[u8], block_bytes: u32, part: &mut Part) -> Result<Record, Problem> {
    let (word, count) = words::<5>(line);
    if count != 5 {
        return Err(("", format!("{count} columns; expected `time_ms device block blocks flags`")));
    }
    let [time, device, block, blocks, flags] = word;
    let arrival_ns = TimeUnit::Milliseconds.ns(time).ok_or_else(|| refused("time", time, "milliseconds"))?;
    let bits = hexadecimal(flags).filter(|bits| bits & !KNOWN == 0);
    let bits = bits.ok_or_else(|| refused("flags", flags, "hexadecimal DiskSim flags such as 1 or 81"))?;
    let operation = if bits & READ != 0 { Operation::Read } else { Operation::Write };
    let offset = offset_bytes("block", block, block_bytes)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("blocks", blocks, block_bytes)?);
    if bits & SYNCHRONOUS != 0 {
        record.flags = Flags::SYNC;
    }
    record.device = part.devices.of_number("device", device)?;
    Ok(record)
}
