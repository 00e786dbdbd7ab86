//! MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The published files have no
//! header, but copies may have one.
//!
//! Times are Windows file times (100 ns since 1601-01-01 UTC), and response times are in units of 100 ns. Offsets are
//! in bytes of the logical disk. A disk is identified by host and number. A blank response time means not recorded.

use super::Part;
use super::first_lines::{most_lines, names_columns};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::{Clock, ResponseSpan};
use crate::record::{Operation, Record};
use crate::text::{fields, length_bytes, offset_bytes, whole};
use crate::time::{Calendar, NS_PER_TICK, TIME_NS_END};

const COLUMNS: &str = "`timestamp,host,disk,Read|Write,offset,size,response`";

/// Header columns of copies, in lower case, reduced to letters and digits.
pub(crate) const NAMES: [&[&str]; 7] = [
    &["timestamp", "time", "ts", "timestamps"],
    &["hostname", "host", "server", "servername"],
    &["disknumber", "diskid", "disknum", "disk", "volume", "volumeid"],
    &["type", "iotype", "optype", "op", "operation", "opcode", "rw"],
    &["offset", "byteoffset", "off"],
    &["size", "length", "len", "iosize", "requestsize", "bytes"],
    &["responsetime", "response", "resp", "latency"],
];

pub(crate) fn fits(head: Head<'_>) -> bool {
    most_lines(head, |line| {
        if names_columns(line, &NAMES) {
            return true;
        }
        let (field, count) = fields::<7>(line, b',');
        count == 7 && whole(field[0]).is_some() && matches!(field[3], b"Read" | b"Write")
    })
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Unix;
    out.meta.resolution_ns = NS_PER_TICK;
    out.meta.response = Some(ResponseSpan::AtTheHost);
}

#[inline]
pub(crate) fn parse(line: &[u8], part: &mut Part) -> Result<Record, Problem> {
    let (field, count) = fields::<7>(line, b',');
    if count != 7 {
        return Err(("", format!("{count} columns; expected {COLUMNS}")));
    }
    let [ticks, host, disk, kind, offset, size, response] = field;
    let calendar = Calendar::FileTime;
    let arrival_ns = calendar.date_ns(ticks).ok_or_else(|| calendar.refused("timestamp", ticks))?;
    let operation = match kind {
        b"Read" => Operation::Read,
        b"Write" => Operation::Write,
        _ => return Err(refused("type", kind, "Read or Write")),
    };
    let offset = offset_bytes("offset", offset, 1)?;
    let mut record = Record::new(arrival_ns, operation, offset, length_bytes("size", size, 1)?);
    if response.is_empty() {
        part.count("requests without a response time");
    } else {
        let response_ns =
            whole(response).and_then(|ticks| ticks.checked_mul(NS_PER_TICK)).filter(|&ns| ns < TIME_NS_END);
        record.response_ns =
            response_ns.ok_or_else(|| refused("response", response, "a whole number of 100 ns, or blank"))?;
    }
    if host.is_empty() {
        return Err(refused("host", host, "a name"));
    }
    if whole(disk).is_none() {
        return Err(refused("disk", disk, "a number"));
    }
    record.device = part.devices.of_pair("host", host, b'.', disk)?;
    Ok(record)
}
