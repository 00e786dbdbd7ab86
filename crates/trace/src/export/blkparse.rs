//! Output in blkparse's text format: one event per line, in order of time.

use std::io::{self, Write};

use super::Losses;
use super::events::{Action, ERROR, Event, Events, Subject};
use crate::meta::{Clock, Meta};
use crate::record::{Flags, Operation, Record};

/// Writes a trace as blkparse would print it if the requests had run on this machine.
///
/// Times count from the first request, unless they already count from the start of the recording. A device whose name
/// is not `major,minor` becomes `0,` and its index.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    events: Events,
    /// Arrival that is written as time 0, in ns.
    zero_ns: Option<u64>,
    lines: u64,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`, which should be buffered.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, events: Events::default(), zero_ns: None, lines: 0 }
    }

    /// Writes the next requests, in order of arrival.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        for record in records {
            if self.zero_ns.is_none() {
                self.zero_ns = Some(if meta.clock == Clock::Recording { 0 } else { record.arrival_ns });
                self.events.lose("dates", meta.clock == Clock::Unix || meta.zero_unix_ns.is_some());
            }
            let arrival_ns = record.arrival_ns.saturating_sub(self.zero_ns.unwrap_or(0));
            self.write_until(arrival_ns)?;
            let process = (record.process as usize).checked_sub(1).and_then(|index| meta.processes.get(index));
            self.events.lose("process names", process.is_some_and(|process| process.name.contains(['\n', '\r'])));
            self.events.add(record, arrival_ns, meta);
        }
        Ok(())
    }

    /// Writes the remaining events and returns the losses.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self) -> io::Result<Losses> {
        self.write_until(u64::MAX)?;
        self.out.flush()?;
        Ok(self.events.losses)
    }

    /// Writes the events up to a time.
    fn write_until(&mut self, until_ns: u64) -> io::Result<()> {
        while let Some(Event { at_ns, action, subject, .. }) = self.events.next_until(until_ns) {
            self.lines += 1;
            let (major, minor) = subject.device;
            let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            let letter = match action {
                Action::Queue => 'Q',
                Action::Get => 'G',
                Action::Insert => 'I',
                Action::Issue => 'D',
                Action::Complete => 'C',
            };
            let (number, pid, rwbs) = (self.lines, subject.pid, letters(&subject));
            write!(self.out, "{major:>3},{minor:<3} {:>2} {number:>8} {seconds:>5}.{ns:09} {pid:>5} ", 0)?;
            write!(self.out, "{letter:>2} {rwbs:>3} ")?;
            match (subject.command_bytes, action) {
                (Some(bytes), Action::Issue) => write!(self.out, "{bytes} ")?,
                (Some(_), _) => {}
                (None, Action::Complete) if subject.sectors == 0 => write!(self.out, "{} ", subject.sector)?,
                (None, _) if subject.sectors == 0 => {}
                (None, _) => write!(self.out, "{} + {} ", subject.sector, subject.sectors)?,
            }
            match (action, subject.name.as_str()) {
                (Action::Complete, _) => writeln!(self.out, "[{}]", if subject.is_error() { ERROR } else { 0 })?,
                (_, "") => writeln!(self.out, "[(null)]")?,
                (_, name) => writeln!(self.out, "[{}]", name.replace(['\n', '\r'], " "))?,
            }
        }
        Ok(())
    }
}

/// Returns blkparse's letters for a request. `N` stands for a request that moves no data in a direction the text could
/// express.
fn letters(subject: &Subject) -> String {
    let has = |flag| subject.flags.contains(flag);
    let mut letters = String::new();
    if subject.operation == Operation::Flush || has(Flags::PRE_FLUSH) {
        letters.push('F');
    }
    letters.push(match subject.operation {
        Operation::Read => 'R',
        Operation::Write => 'W',
        Operation::Trim => 'D',
        Operation::Flush | Operation::Other | Operation::Unknown => 'N',
    });
    let carried = [(Flags::FUA, 'F'), (Flags::READ_AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::METADATA, 'M')];
    letters.extend(carried.into_iter().filter(|&(flag, _)| has(flag)).map(|(_, letter)| letter));
    letters
}
