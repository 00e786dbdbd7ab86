//! Linux binary block trace, version 7: the output of blktrace for one CPU, for use with blkparse, btt, btreplay and
//! fio.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::Losses;
use super::events::{Action, ERROR, Event, Events, SECTOR_BYTES, Subject};
use crate::formats::blktrace::events::category;
use crate::meta::{Clock, Meta};
use crate::record::{Flags, Operation, Record};

const MAGIC: u32 = 0x6561_7407;
/// Category bits for the stage of an event and for file system requests.
const QUEUE: u64 = 1 << 4;
const ISSUE: u64 = 1 << 6;
const COMPLETE: u64 = 1 << 7;
const FILE_SYSTEM: u64 = 1 << 8;
/// Event values of notification records.
const NOTE_PROCESS: u64 = 0;
const NOTE_WALL_CLOCK: u64 = 1;
/// Length of a process name in the kernel, including the terminating 0.
const NAME_BYTES: usize = 16;

/// Writes a trace as blktrace would record it if the requests had run on one CPU of this machine.
///
/// A trace with dates counts from its first request, and a notification records the date; other times are unchanged. A
/// device whose name is not `major,minor` becomes `0,` and its index.
#[derive(Debug)]
pub(super) struct Writer<W: Write> {
    out: W,
    events: Events,
    /// Arrival that is written as time 0, in ns.
    zero_ns: Option<u64>,
    /// Number of records written; blkparse reports gaps in the numbering.
    sequence: u32,
    /// Latest name of each process.
    names: FxHashMap<u32, String>,
}

/// Fields of a record other than its sequence number and magic number.
struct Raw<'a> {
    at_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    error: i16,
    pdu: &'a [u8],
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`, which should be buffered.
    pub(super) fn new(out: W) -> Writer<W> {
        Writer { out, events: Events::default(), zero_ns: None, sequence: 0, names: FxHashMap::default() }
    }

    /// Writes the next requests, in order of arrival.
    pub(super) fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        for record in records {
            if self.zero_ns.is_none() {
                self.begin(record, meta)?;
            }
            let arrival_ns = record.arrival_ns.saturating_sub(self.zero_ns.unwrap_or(0));
            self.write_until(arrival_ns)?;
            self.events.add(record, arrival_ns, meta);
        }
        Ok(())
    }

    /// Writes the remaining events and returns the losses.
    pub(super) fn finish(mut self) -> io::Result<Losses> {
        self.write_until(u64::MAX)?;
        self.out.flush()?;
        Ok(self.events.losses)
    }

    /// Writes the time of day at time 0, if the trace has dates.
    fn begin(&mut self, first: &Record, meta: &Meta) -> io::Result<()> {
        let zero_ns = if meta.clock == Clock::Unix { first.arrival_ns } else { 0 };
        self.zero_ns = Some(zero_ns);
        let date_ns = if meta.clock == Clock::Unix { Some(zero_ns) } else { meta.zero_unix_ns };
        let Some(date_ns) = date_ns else { return Ok(()) };
        let (seconds, ns) = (date_ns / 1_000_000_000, (date_ns % 1_000_000_000) as u32);
        let Ok(seconds) = u32::try_from(seconds) else {
            self.events.lose("dates", true);
            return Ok(());
        };
        let pdu = [seconds.to_le_bytes(), ns.to_le_bytes()].concat();
        self.note(0, NOTE_WALL_CLOCK, 0, 0, &pdu)
    }

    /// Writes the events up to a time.
    fn write_until(&mut self, until_ns: u64) -> io::Result<()> {
        while let Some(Event { at_ns, action, subject, .. }) = self.events.next_until(until_ns) {
            let device = subject.device.0 << 20 | subject.device.1;
            self.name(at_ns, device, &subject)?;
            let bytes = match subject.command_bytes {
                Some(bytes) => bytes,
                None => u32::try_from(subject.sectors * SECTOR_BYTES).unwrap_or_else(|_| {
                    self.events.lose("bytes beyond 4 GiB", action != Action::Complete);
                    u32::MAX - (SECTOR_BYTES as u32 - 1)
                }),
            };
            let (number, stage) = match action {
                Action::Queue => (1, QUEUE),
                Action::Get => (4, QUEUE),
                Action::Insert => (12, QUEUE),
                Action::Issue => (7, ISSUE),
                Action::Complete => (8, COMPLETE),
            };
            let by = if subject.command_bytes.is_some() { 0 } else { FILE_SYSTEM };
            let error = if action == Action::Complete && subject.is_error() { ERROR } else { 0 };
            // Completions occur in an interrupt, so their process is arbitrary.
            let pid = if action == Action::Complete { 0 } else { subject.pid };
            let action = (categories(&subject, action) | stage | by) << 16 | number;
            self.record(&Raw { at_ns, sector: subject.sector, bytes, action, pid, device, error, pdu: &[] })?;
        }
        Ok(())
    }

    /// Writes the name of a process if it is new.
    fn name(&mut self, at_ns: u64, device: u32, subject: &Subject) -> io::Result<()> {
        if subject.name.is_empty() || self.names.get(&subject.pid).is_some_and(|known| *known == subject.name) {
            return Ok(());
        }
        self.names.insert(subject.pid, subject.name.clone());
        let mut end = subject.name.len().min(NAME_BYTES - 1);
        while !subject.name.is_char_boundary(end) {
            end -= 1;
        }
        self.events.lose("process names", end < subject.name.len());
        let mut pdu = [0; NAME_BYTES];
        pdu[..end].copy_from_slice(&subject.name.as_bytes()[..end]);
        self.note(at_ns, NOTE_PROCESS, subject.pid, device, &pdu)
    }

    fn note(&mut self, at_ns: u64, what: u64, pid: u32, device: u32, pdu: &[u8]) -> io::Result<()> {
        let action = category::NOTIFY << 16 | what;
        self.record(&Raw { at_ns, sector: 0, bytes: 0, action, pid, device, error: 0, pdu })
    }

    fn record(&mut self, raw: &Raw<'_>) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut record = [0; 48];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            record[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&self.sequence.to_le_bytes());
        put(&raw.at_ns.to_le_bytes());
        put(&raw.sector.to_le_bytes());
        put(&raw.bytes.to_le_bytes());
        put(&(raw.action as u32).to_le_bytes());
        put(&raw.pid.to_le_bytes());
        put(&raw.device.to_le_bytes());
        // All events are on CPU 0.
        put(&0u32.to_le_bytes());
        put(&raw.error.to_le_bytes());
        put(&(raw.pdu.len() as u16).to_le_bytes());
        self.out.write_all(&record)?;
        self.out.write_all(raw.pdu)
    }
}

/// Returns the category bits of a request. The kernel queues a flush as an empty write and issues it as an empty read.
fn categories(subject: &Subject, action: Action) -> u64 {
    use category::{DISCARD, FLUSH, FUA, METADATA, PASS_THROUGH, READ, READ_AHEAD, SYNC, WRITE};
    let kind = match subject.operation {
        Operation::Read => READ,
        Operation::Write => WRITE,
        Operation::Trim => WRITE | DISCARD,
        Operation::Flush if action == Action::Queue => WRITE | FLUSH,
        Operation::Flush => READ | FLUSH,
        // blkparse prints N for these: not known to move data.
        Operation::Other | Operation::Unknown => 0,
    };
    let carried = [
        (Flags::SYNC, SYNC),
        (Flags::FUA, FUA),
        (Flags::READ_AHEAD, READ_AHEAD),
        (Flags::METADATA, METADATA),
        (Flags::PRE_FLUSH, FLUSH),
    ];
    let command = if subject.command_bytes.is_some() { PASS_THROUGH | READ } else { 0 };
    let bits = carried.into_iter().filter(|&(flag, _)| subject.flags.contains(flag)).map(|(_, bit)| bit);
    bits.fold(kind | command, |categories, bit| categories | bit)
}
