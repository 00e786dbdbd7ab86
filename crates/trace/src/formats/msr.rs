//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, no header.
//!
//! Times are Windows' file times, 100 ns since 1601-01-01 UTC, and so are response times. Offsets are bytes of the logical
//! disk. A disk is known by host and number.

use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::{Clock, ResponseSpan};
use crate::record::{Operation, Record};
use crate::text::{fields, whole};

/// 1970-01-01 in 100 ns since 1601-01-01.
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;
const NS_PER_TICK: u64 = 100;
const COLUMNS: &str = "`timestamp,host,disk,Read|Write,offset,size,response`";

pub(crate) fn fits(head: Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.is_empty()).take(3).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let (field, count) = fields::<7>(line, b',');
            count == 7 && field[0].len() == 18 && (field[3] == b"Read" || field[3] == b"Write")
        })
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Unix;
    out.meta.resolution_ns = NS_PER_TICK;
    out.meta.response = Some(ResponseSpan::AtTheHost);
}

#[inline]
pub(crate) fn parse(line: &[u8], out: &mut Collector) -> Result<Record, Problem> {
    let (field, count) = fields::<7>(line, b',');
    if count != 7 {
        return Err(("", format!("{count} columns; expected the seven of {COLUMNS}")));
    }
    let [ticks, host, disk, kind, offset, size, response] = field;
    let operation = match kind {
        b"Read" => Operation::Read,
        b"Write" => Operation::Write,
        _ => return Err(refused("type", kind, "Read or Write")),
    };
    let since_1970 = whole(ticks).and_then(|ticks| ticks.checked_sub(UNIX_EPOCH_TICKS)?.checked_mul(NS_PER_TICK));
    let arrival_ns = since_1970.ok_or_else(|| refused("timestamp", ticks, "100 ns since 1601, of a day after 1970"))?;
    let offset_bytes = whole(offset).filter(|&bytes| bytes < 1 << 63);
    let offset_bytes = offset_bytes.ok_or_else(|| refused("offset", offset, "bytes below 2^63"))?;
    let length = whole(size).and_then(|bytes| u32::try_from(bytes).ok());
    let mut record = Record::new(
        arrival_ns,
        operation,
        offset_bytes,
        length.ok_or_else(|| refused("size", size, "bytes below 2^32"))?,
    );
    let response = whole(response)
        .and_then(|ticks| ticks.checked_mul(NS_PER_TICK))
        .ok_or_else(|| refused("response", response, "100 ns"))?;
    record.response_ns = response;
    let _ = disk;
    record.device = out.device(std::str::from_utf8(host).map_err(|_| refused("host", host, "text"))?);
    Ok(record)
}
