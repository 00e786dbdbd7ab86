//! Tencent cloud block storage traces of 2018: `Timestamp,Offset,Size,IOType,VolumeID`. The published files have no
//! header, but copies may have one.
//!
//! Dates are whole seconds since 1970, shared by tens of thousands of requests, and out of order. Offset and size count
//! 512-byte sectors. The type is 0 for a read and 1 for a write, unlike in most formats.

use super::first_lines::{most_lines, names_columns};
use super::{Part, WHOLE_SECONDS};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::text::{fields, length_bytes, offset_bytes, whole};
use crate::time::{Calendar, TimeUnit};

const SECTOR_BYTES: u32 = 512;

/// Header columns of copies, in lower case, reduced to letters and digits.
pub(crate) const NAMES: [&[&str]; 5] = [
    &["timestamp", "time", "ts", "timestamps"],
    &["offset", "lba", "off", "sector"],
    &["size", "length", "len", "iosize", "sectors"],
    &["type", "iotype", "optype", "op", "operation", "opcode", "rw"],
    &["deviceid", "device", "dev", "diskid", "disk", "volumeid", "volume"],
];

pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, |line| {
        if names_columns(line, &NAMES) {
            return true;
        }
        let (field, count) = fields::<5>(line, b',');
        let are_numbers = field.into_iter().all(|text| whole(text).is_some());
        count == 5 && matches!(field[3], b"0" | b"1") && are_numbers
    })
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Unix;
    out.meta.resolution_ns = 1_000_000_000;
    out.meta.note(WHOLE_SECONDS);
}

pub(crate) fn parse(line: &[u8], part: &mut Part) -> Result<Record, Problem> {
    let (field, count) = fields::<5>(line, b',');
    if count != 5 {
        return Err(("", format!("{count} columns; expected `timestamp,offset,size,0|1,volume`")));
    }
    let [time, offset, size, kind, volume] = field;
    let calendar = Calendar::Unix(TimeUnit::Seconds);
    let whole_s = whole(time).and_then(|_| calendar.date_ns(time));
    let arrival_ns = whole_s.ok_or_else(|| calendar.refused("timestamp", time))?;
    let operation = match kind {
        b"0" => Operation::Read,
        b"1" => Operation::Write,
        _ => return Err(refused("type", kind, "0 (read) or 1 (write)")),
    };
    let offset = offset_bytes("offset", offset, SECTOR_BYTES)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("size", size, SECTOR_BYTES)?);
    record.device = part.devices.of_number("volume", volume)?;
    Ok(record)
}
