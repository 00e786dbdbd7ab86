//! CloudPhysics traces as CSV, with the header `version,time,op,size,lbn`.
//!
//! Times are whole seconds since an unknown time. The operation is the SCSI opcode in hexadecimal, the size is in
//! bytes, and the address counts 512-byte sectors. A file is one virtual disk.

use super::{Part, WHOLE_SECONDS, scsi};
use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::meta::Clock;
use crate::record::Record;
use crate::text::{fields, hexadecimal, length_bytes, offset_bytes, whole};
use crate::time::TimeUnit;

const HEADER: [&[u8]; 5] = [b"version", b"time", b"op", b"size", b"lbn"];
const SECTOR_BYTES: u32 = 512;

pub(crate) fn fits(head: Head<'_>) -> bool {
    head.lines().find(|line| !line.trim_ascii().is_empty()).is_some_and(|line| fields::<5>(line, b',') == (HEADER, 5))
}

pub(crate) fn describe(out: &mut Collector) {
    out.meta.clock = Clock::Boot;
    out.meta.resolution_ns = 1_000_000_000;
    out.meta.note(WHOLE_SECONDS);
}

pub(crate) fn parse(line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
    let (field, count) = fields::<5>(line, b',');
    if count != 5 {
        return Err(("", format!("{count} columns; expected `version,time,op,size,lbn`")));
    }
    if field == HEADER {
        return Ok(None);
    }
    let [version, time, op, size, lbn] = field;
    if !matches!(version, b"1" | b"2") {
        return Err(refused("version", version, "1 or 2"));
    }
    let arrival_ns = whole(time).and_then(|_| TimeUnit::Seconds.ns(time));
    let arrival_ns = arrival_ns.ok_or_else(|| refused("time", time, "whole seconds below 2^63 ns"))?;
    let opcode = hexadecimal(op).and_then(|code| u8::try_from(code).ok());
    let opcode = opcode.ok_or_else(|| refused("op", op, "a SCSI opcode from 0 to ff"))?;
    let offset = offset_bytes("lbn", lbn, SECTOR_BYTES)?;
    let mut record = Record::new(arrival_ns, scsi::operation(opcode), offset, length_bytes("size", size, 1)?);
    if scsi::is_write_same(opcode) {
        part.count(scsi::WRITE_SAME);
    }
    record.device = part.devices.of("device", b"")?;
    Ok(Some(record))
}
