//! blkparse's text: an event a line, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::Losses;
use crate::meta::{Clock, Meta, ResponseSpan};
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

const SECTOR_BYTES: u64 = 512;
/// EIO: what a failed request completes with, of which a trace knows no more.
const ERROR: i32 = -5;

/// Writes a trace as blkparse would, had the requests run on this machine.
///
/// Times count from the first request, unless they count from the start of the recording already. A device without
/// `major,minor` becomes `0,` and its place.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Events to come, of requests that were queued or issued.
    pending: BinaryHeap<Reverse<Pending>>,
    /// Arrival that is time 0.
    zero_ns: Option<u64>,
    requests: u64,
    lines: u64,
    losses: Losses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Queue,
    Issue,
    Complete,
}

/// An event, in the order in which events are written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    at_ns: u64,
    request: u64,
    action: Action,
    line: Line,
}

/// What the lines of a request have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    device: (u32, u32),
    pid: u32,
    name: String,
    rwbs: String,
    sector: u64,
    sectors: u64,
    /// Bytes of a pass-through command.
    command_bytes: Option<u32>,
    is_error: bool,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, pending: BinaryHeap::new(), zero_ns: None, requests: 0, lines: 0, losses: Losses::new() }
    }

    /// Writes the next requests, which come in order of arrival.
    ///
    /// # Errors
    /// Of writing.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        for record in records {
            self.request(record, meta)?;
        }
        Ok(())
    }

    /// Writes the events that are left, and says what was lost.
    ///
    /// # Errors
    /// Of writing.
    pub fn finish(mut self) -> io::Result<Losses> {
        self.write_until(u64::MAX)?;
        self.out.flush()?;
        Ok(self.losses)
    }

    fn request(&mut self, record: &Record, meta: &Meta) -> io::Result<()> {
        if self.zero_ns.is_none() {
            self.zero_ns = Some(if meta.clock == Clock::Recording { 0 } else { record.arrival_ns });
            self.lose("dates", meta.clock == Clock::Unix || meta.zero_unix_ns.is_some());
        }
        let arrival_ns = record.arrival_ns.saturating_sub(self.zero_ns.unwrap_or(0));
        self.write_until(arrival_ns)?;
        let line = self.line(record, meta);
        // Pass-through commands are never queued as the requests of file systems are.
        let is_queued = meta.response != Some(ResponseSpan::IssueToCompletion) && line.command_bytes.is_none();
        let has_wait = record.wait_ns != NOT_RECORDED;
        let has_response = record.response_ns != NOT_RECORDED;
        let is_issued = is_queued && has_wait && !(has_response && record.wait_ns > record.response_ns);
        self.lose("waits", has_wait && !is_issued);
        self.lose("errors", line.is_error && !has_response);
        let request = self.requests;
        self.requests += 1;
        let mut push = |after_ns: u64, action, line| {
            let at_ns = arrival_ns.saturating_add(after_ns);
            self.pending.push(Reverse(Pending { at_ns, request, action, line }));
        };
        if has_response {
            push(record.response_ns, Action::Complete, line.clone());
        }
        if is_issued {
            push(record.wait_ns, Action::Issue, line.clone());
        }
        let first = if is_queued { Action::Queue } else { Action::Issue };
        push(0, first, line);
        Ok(())
    }

    fn lose(&mut self, what: &'static str, is_lost: bool) {
        if is_lost {
            *self.losses.entry(what).or_default() += 1;
        }
    }

    fn line(&mut self, record: &Record, meta: &Meta) -> Line {
        let device_name = meta.devices.get(record.device as usize).map_or("", |device| device.name.as_str());
        let device = numbers(device_name);
        self.lose("device names", device.is_none());
        let process = (record.process as usize).checked_sub(1).and_then(|index| meta.processes.get(index));
        let name = process.map_or("", |process| process.name.as_str());
        let is_pass_through = record.operation == Operation::Other && record.flags.contains(Flags::PASS_THROUGH);
        let has_address = !is_pass_through && record.operation != Operation::Flush && record.length_bytes > 0;
        let end_bytes = record.end_bytes().next_multiple_of(SECTOR_BYTES);
        let sector = if has_address { record.offset_bytes / SECTOR_BYTES } else { 0 };
        let sectors = if has_address { end_bytes / SECTOR_BYTES - sector } else { 0 };
        let is_whole = (record.offset_bytes | u64::from(record.length_bytes)).is_multiple_of(SECTOR_BYTES);
        let may_be_empty = matches!(record.operation, Operation::Flush | Operation::Other);
        self.lose("addresses", !has_address && record.offset_bytes > 0);
        self.lose("lengths", record.operation == Operation::Flush && record.length_bytes > 0);
        self.lose("parts of sectors", has_address && !is_whole);
        self.lose("requests of no bytes", record.length_bytes == 0 && !may_be_empty);
        self.lose("unknown operations", record.operation == Operation::Unknown);
        self.lose("pass-through flags", record.flags.contains(Flags::PASS_THROUGH) && !is_pass_through);
        self.lose("process names", name.contains(['\n', '\r']));
        Line {
            device: device.unwrap_or((0, record.device)),
            pid: process.map_or(0, |process| process.pid),
            name: if name.is_empty() { "(null)".to_owned() } else { name.replace(['\n', '\r'], " ") },
            rwbs: letters(record),
            sector,
            sectors,
            command_bytes: is_pass_through.then_some(record.length_bytes),
            is_error: record.flags.contains(Flags::ERROR),
        }
    }

    /// Writes what happens up to then.
    fn write_until(&mut self, until_ns: u64) -> io::Result<()> {
        while self.pending.peek().is_some_and(|Reverse(pending)| pending.at_ns <= until_ns) {
            let Some(Reverse(Pending { at_ns, action, line, .. })) = self.pending.pop() else { break };
            self.lines += 1;
            let (major, minor) = line.device;
            let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            let letter = match action {
                Action::Queue => 'Q',
                Action::Issue => 'D',
                Action::Complete => 'C',
            };
            let (number, pid, rwbs) = (self.lines, line.pid, &line.rwbs);
            write!(self.out, "{major:>3},{minor:<3} {:>2} {number:>8} {seconds:>5}.{ns:09} {pid:>5} ", 0)?;
            write!(self.out, "{letter:>2} {rwbs:>3} ")?;
            match (line.command_bytes, action) {
                (Some(bytes), Action::Issue) => write!(self.out, "{bytes} ")?,
                (Some(_), _) => {}
                (None, Action::Complete) if line.sectors == 0 => write!(self.out, "{} ", line.sector)?,
                (None, _) if line.sectors == 0 => {}
                (None, _) => write!(self.out, "{} + {} ", line.sector, line.sectors)?,
            }
            match action {
                Action::Complete => writeln!(self.out, "[{}]", if line.is_error { ERROR } else { 0 })?,
                _ => writeln!(self.out, "[{}]", line.name)?,
            }
        }
        Ok(())
    }
}

/// Of `major,minor`.
fn numbers(device: &str) -> Option<(u32, u32)> {
    let (major, minor) = device.split_once(',')?;
    let number = |text: &str, end: u32| text.parse().ok().filter(|&number| number < end);
    Some((number(major, 1 << 12)?, number(minor, 1 << 20)?))
}

/// What a request is, in blkparse's letters. `N` moves no data that the text could name a direction of.
fn letters(record: &Record) -> String {
    let has = |flag| record.flags.contains(flag);
    let mut letters = String::new();
    if record.operation == Operation::Flush || has(Flags::PRE_FLUSH) {
        letters.push('F');
    }
    letters.push(match record.operation {
        Operation::Read => 'R',
        Operation::Write => 'W',
        Operation::Trim => 'D',
        Operation::Flush | Operation::Other | Operation::Unknown => 'N',
    });
    let carried = [(Flags::FUA, 'F'), (Flags::READ_AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::METADATA, 'M')];
    letters.extend(carried.into_iter().filter(|&(flag, _)| has(flag)).map(|(_, letter)| letter));
    letters
}
