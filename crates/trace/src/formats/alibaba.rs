//! Alibaba block traces of 2020: `device_id,opcode,offset,length,timestamp`. The published files have no header, but
//! copies may have one.
//!
//! Offsets and lengths are in bytes. The time is when the server received the request, in µs since 1970. A file
//! contains the requests of 1,000 virtual disks, in unspecified order.

use super::Part;
use super::first_lines::{most_lines, names_columns};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::{Operation, Record};
use crate::text::{fields, length_bytes, offset_bytes, whole};
use crate::time::{Calendar, TimeUnit};

/// Header columns of copies, in lower case, reduced to letters and digits.
pub(crate) const NAMES: [&[&str]; 5] = [
    &["deviceid", "device", "dev", "diskid", "disk", "volumeid", "volume"],
    &["type", "iotype", "optype", "op", "operation", "opcode", "rw"],
    &["offset", "byteoffset", "off"],
    &["size", "length", "len", "iosize", "requestsize", "bytes"],
    &["timestamp", "time", "ts", "timestamps"],
];

pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, |line| {
        if names_columns(line, &NAMES) {
            return true;
        }
        let (field, count) = fields::<5>(line, b',');
        let are_numbers = [0, 2, 3, 4].into_iter().all(|column| whole(field[column]).is_some());
        count == 5 && matches!(field[1], b"R" | b"W") && are_numbers
    })
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Unix;
    out.meta.resolution_ns = 1_000;
}

pub(crate) fn parse(line: &[u8], part: &mut Part) -> Result<Record, Problem> {
    let (field, count) = fields::<5>(line, b',');
    if count != 5 {
        return Err(("", format!("{count} columns; expected `device,R|W,offset,length,timestamp`")));
    }
    let [device, opcode, offset, length, time] = field;
    let calendar = Calendar::Unix(TimeUnit::Microseconds);
    let whole_us = whole(time).and_then(|_| calendar.date_ns(time));
    let arrival_ns = whole_us.ok_or_else(|| calendar.refused("timestamp", time))?;
    let operation = match opcode {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        _ => return Err(refused("opcode", opcode, "R or W")),
    };
    let offset = offset_bytes("offset", offset, 1)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("length", length, 1)?);
    record.device = part.devices.of_number("device", device)?;
    Ok(record)
}
