//! SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, with that header.
//!
//! Requests of virtual desktops, captured at the monitor port of a switch. Dates and response times are seconds with
//! nine digits, of which the last three are always 0. A request whose response was not seen has a blank kind or
//! response. Lines are in order of completion.

use super::Part;
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::{Clock, ResponseSpan};
use crate::record::{NOT_RECORDED, Operation, Record};
use crate::text::{fields, length_bytes, offset_bytes};
use crate::time::{Calendar, TimeUnit};

const HEADER: [&[u8]; 6] = [b"Timestamp", b"Response", b"IOType", b"LUN", b"Offset", b"Size"];

pub(crate) fn fits(head: Head<'_>) -> bool {
    head.lines().find(|line| !line.trim_ascii().is_empty()).is_some_and(|line| fields::<6>(line, b',') == (HEADER, 6))
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Unix;
    out.meta.resolution_ns = 1_000;
    out.meta.response = Some(ResponseSpan::OnTheWire);
    out.meta.note("traces of this kind miss some seconds at each full hour, and less than 0.1 % of the packets");
}

pub(crate) fn parse(line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
    let (field, count) = fields::<6>(line, b',');
    if count != 6 {
        return Err(("", format!("{count} columns; expected the six of `Timestamp,Response,IOType,LUN,Offset,Size`")));
    }
    // Concatenated files of an archive include their headers.
    if field == HEADER {
        return Ok(None);
    }
    let [time, response, kind, lun, offset, size] = field;
    let calendar = Calendar::Unix(TimeUnit::Seconds);
    let arrival_ns = calendar.date_ns(time).ok_or_else(|| calendar.refused("Timestamp", time))?;
    let operation = match kind {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        b"" => Operation::Unknown,
        _ => return Err(refused("IOType", kind, "R, W or blank")),
    };
    let mut record =
        Record::new(arrival_ns, operation, offset_bytes("Offset", offset, 1)?, length_bytes("Size", size, 1)?);
    record.response_ns = match response {
        b"" => NOT_RECORDED,
        _ => TimeUnit::Seconds.ns(response).ok_or_else(|| refused("Response", response, "seconds, or blank"))?,
    };
    record.device = part.devices.of_number("LUN", lun)?;
    if operation == Operation::Unknown {
        part.count("requests of unknown kind");
    }
    if record.response_ns == NOT_RECORDED {
        part.count("requests without a response time");
    }
    Ok(Some(record))
}
