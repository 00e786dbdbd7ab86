//! Windows event trace of disks as printed by xperf (Microsoft Enterprise and Production, SNIA IOTTA). The file has
//! `BeginHeader`, a line with the column names of each kind of event, `EndHeader`, and then one event per line.
//!
//! `DiskRead` and `DiskWrite` are written on completion, so the request arrived ElapsedTime earlier. Times are in µs
//! from the start; offset and size are in hexadecimal bytes. Other events declared in the header are skipped.

use rustc_hash::FxHashSet;

use super::Part;
use super::first_lines::plain;
use crate::collect::Collector;
use crate::error::{Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::{Clock, ResponseSpan};
use crate::record::{Operation, Record};
use crate::text::{BYTES_END, fields, hexadecimal, whole};
use crate::time::TIME_NS_END;

/// Maximum number of columns of a disk event.
const COLUMNS_MAX: usize = 24;
const NS_PER_US: u64 = 1_000;
/// Lines about the whole file, which are not declared in the header.
const OF_THE_FILE: [&[u8]; 2] = [b"FirstReliable", b"OS Version"];

/// Column names of the used fields.
const NAMES: [&str; 6] = ["timestamp", "processnamepid", "byteoffset", "iosize", "elapsedtime", "disknum"];

pub(crate) fn fits(head: Head<'_>) -> bool {
    head.lines().find(|line| !line.trim_ascii().is_empty()).is_some_and(|line| line.trim_ascii() == b"BeginHeader")
}

/// Column positions declared in the header.
#[derive(Debug)]
pub(crate) struct Layout {
    events: FxHashSet<Vec<u8>>,
    /// Minimum number of columns, and the positions of the columns in `NAMES`, for reads and for writes.
    columns: [(usize, [usize; 6]); 2],
    leading_lines: u64,
}

impl Layout {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns an error if the file has no header, or its header does not declare reads and writes.
    pub(crate) fn open(input: &Input) -> Result<Layout, TraceError> {
        let lines = input.head().lines().zip(1..);
        let header = lines.take_while(|(line, _)| line.trim_ascii() != b"EndHeader");
        let (mut events, mut columns, mut leading_lines) = (FxHashSet::default(), [None; 2], 1);
        for (line, number) in header {
            leading_lines = number + 1;
            let (found, count) = fields::<COLUMNS_MAX>(line, b',');
            events.insert(found[0].to_owned());
            let kind = match found[0] {
                b"DiskRead" => 0,
                b"DiskWrite" => 1,
                _ => continue,
            };
            let names: Vec<String> = found[..count.min(COLUMNS_MAX)].iter().map(|name| plain(name)).collect();
            let place = |name: &str| names.iter().position(|other| other == name);
            let places: Option<Vec<usize>> = NAMES.iter().map(|name| place(name)).collect();
            columns[kind] = places.and_then(|places| Some((names.len(), places.try_into().ok()?)));
        }
        match columns {
            [Some(reads), Some(writes)] => Ok(Layout { events, columns: [reads, writes], leading_lines }),
            _ => Err(TraceError::of_file(
                &input.name,
                "its header must declare DiskRead and DiskWrite with TimeStamp, Process Name ( PID), ByteOffset, IOSize, \
                 ElapsedTime and DiskNum",
            )),
        }
    }

    pub(crate) fn describe(&self, out: &mut Collector) {
        out.meta.clock = Clock::Recording;
        out.meta.resolution_ns = NS_PER_US;
        out.meta.response = Some(ResponseSpan::AtTheHost);
    }

    pub(crate) fn leading_lines(&self) -> u64 {
        self.leading_lines
    }

    /// Parses a line; `None` for other events.
    pub(crate) fn parse(&self, line: &[u8], part: &mut Part) -> Result<Option<Record>, Problem> {
        let (field, count) = fields::<COLUMNS_MAX>(line, b',');
        let ((least, columns), operation) = match field[0] {
            b"DiskRead" => (self.columns[0], Operation::Read),
            b"DiskWrite" => (self.columns[1], Operation::Write),
            event if self.events.contains(event) || OF_THE_FILE.iter().any(|start| event.starts_with(start)) => {
                part.count("lines of other events");
                return Ok(None);
            }
            event => return Err(refused("event", event, "an event declared in the header")),
        };
        // The last column is a file name, which may contain commas.
        if count < least {
            return Err(("", format!("{count} columns; expected {least}, as in the header")));
        }
        let [time, process, offset, size, elapsed, disk] = columns.map(|column| field[column]);
        let us = |name, text| {
            let ns = whole(text).and_then(|us| us.checked_mul(NS_PER_US)).filter(|&ns| ns < TIME_NS_END);
            ns.ok_or_else(|| refused(name, text, "whole us, below 2^63 ns"))
        };
        let (done_ns, response_ns) = (us("TimeStamp", time)?, us("ElapsedTime", elapsed)?);
        let arrival_ns = done_ns.checked_sub(response_ns);
        let arrival_ns = arrival_ns.ok_or_else(|| refused("ElapsedTime", elapsed, "at most the TimeStamp"))?;
        let length = hexadecimal(size).and_then(|size| u32::try_from(size).ok());
        let length = length.ok_or_else(|| refused("IOSize", size, "hexadecimal bytes below 2^32"))?;
        let start = hexadecimal(offset).filter(|&offset| offset < BYTES_END - u64::from(length));
        let start = start.ok_or_else(|| refused("ByteOffset", offset, "hexadecimal bytes below 2^63"))?;
        let mut record = Record::new(arrival_ns, operation, start, length);
        record.response_ns = response_ns;
        record.device = part.devices.of_number("DiskNum", disk)?;
        record.process = process_of(process, part)?;
        Ok(Some(record))
    }
}

/// Parses a process such as `name.exe (1234)`; returns 0 if there is none.
fn process_of(text: &[u8], part: &mut Part) -> Result<u32, Problem> {
    let Some(open) = text.iter().rposition(|&byte| byte == b'(') else { return Ok(0) };
    let pid = text[open + 1..].strip_suffix(b")").unwrap_or_default().trim_ascii();
    if whole(pid).is_none_or(|pid| pid > u64::from(u32::MAX)) {
        return Err(refused("Process Name ( PID)", text, "a name, and a number in parentheses"));
    }
    Ok(1 + part.processes.of_pair("Process Name ( PID)", pid, b' ', text[..open].trim_ascii())?)
}
