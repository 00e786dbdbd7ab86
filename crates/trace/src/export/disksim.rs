//! DiskSim's ascii trace: `time_ms device block blocks flags`, with times to the nanosecond.
//!
//! Times that do not count from the start of the recording count from the first request, since DiskSim stores them in a
//! double.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::{Losses, reads};
use crate::formats::disksim::{BLOCK_BYTES, READ, SYNCHRONOUS};
use crate::meta::{Clock, Meta};
use crate::record::{Flags, NOT_RECORDED, Record};

const NS_PER_MS: u64 = 1_000_000;
/// Blocks of the longest request that a reader accepts.
const BLOCKS_MAX: u64 = (u32::MAX / BLOCK_BYTES) as u64;
/// DiskSim 4.0 stores addresses in an `int`.
const BLOCK_END: u64 = 1 << 31;

/// A trace being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Numbers of the devices that have appeared, by index.
    numbers: Vec<u32>,
    taken: FxHashSet<u32>,
    /// Time that is written as 0.
    zero_ns: Option<u64>,
    last_ns: u64,
    losses: Losses,
}

impl<W: Write> Writer<W> {
    /// Starts a trace in `out`.
    pub fn new(out: W) -> Writer<W> {
        let (numbers, taken) = (Vec::new(), FxHashSet::default());
        Writer { out, numbers, taken, zero_ns: None, last_ns: 0, losses: Losses::new() }
    }

    /// Writes requests in order of arrival; `meta` has the names of their devices.
    ///
    /// # Errors
    /// Those of writing; when a request arrives before the previous one.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        for record in records {
            let is_read = match reads(record.operation) {
                Ok(is_read) => is_read,
                Err(lost) => {
                    self.lose(lost);
                    continue;
                }
            };
            if record.arrival_ns < self.last_ns {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "requests must be in order of arrival"));
            }
            self.last_ns = record.arrival_ns;
            let zero_ns = self.zero_ns(record, meta);
            let time_ns = record.arrival_ns - zero_ns;
            let (ms, ns) = (time_ns / NS_PER_MS, time_ns % NS_PER_MS);
            let (block, blocks) = self.blocks(record);
            self.count_losses(record);
            let mut flags = if is_read { READ } else { 0 };
            if record.flags.contains(Flags::SYNC) {
                flags |= SYNCHRONOUS;
            }
            let device = self.number(record.device, meta);
            writeln!(self.out, "{ms}.{ns:06} {device} {block} {blocks} {flags:x}")?;
        }
        Ok(())
    }

    /// Ends the trace and returns the losses.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<Losses> {
        self.out.flush()?;
        Ok(self.losses)
    }

    fn lose(&mut self, what: &'static str) {
        *self.losses.entry(what).or_default() += 1;
    }

    fn zero_ns(&mut self, first: &Record, meta: &Meta) -> u64 {
        if let Some(zero_ns) = self.zero_ns {
            return zero_ns;
        }
        let zero_ns = if meta.clock == Clock::Recording { 0 } else { first.arrival_ns };
        if zero_ns > 0 {
            self.lose("when the first request arrived");
        }
        self.zero_ns = Some(zero_ns);
        zero_ns
    }

    /// Blocks that a request touches.
    fn blocks(&mut self, record: &Record) -> (u64, u64) {
        let block_bytes = u64::from(BLOCK_BYTES);
        let block = record.offset_bytes / block_bytes;
        let blocks = (record.end_bytes().div_ceil(block_bytes) - block).min(BLOCKS_MAX);
        if block * block_bytes != record.offset_bytes || blocks * block_bytes != u64::from(record.length_bytes) {
            self.lose("offsets and lengths within blocks");
        }
        if block + blocks > BLOCK_END {
            self.lose("block numbers from 2^31 on, which DiskSim 4.0 treats as negative");
        }
        (block, blocks)
    }

    fn count_losses(&mut self, record: &Record) {
        if record.response_ns != NOT_RECORDED {
            self.lose("response times");
        }
        if record.wait_ns != NOT_RECORDED {
            self.lose("times in queue");
        }
        if record.flags.0 & !Flags::SYNC.0 != 0 {
            self.lose("flags");
        }
        if record.process > 0 {
            self.lose("processes");
        }
    }

    /// Number of a device: its name if that is a number, else its index or, if that is taken, the next free one.
    fn number(&mut self, device: u32, meta: &Meta) -> u32 {
        while self.numbers.len() <= device as usize {
            let index = self.numbers.len();
            let name = meta.devices.get(index).map_or("", |device| device.name.as_str());
            let own = name.parse::<u32>().ok().filter(|number| number.to_string() == name);
            let number = own.filter(|number| !self.taken.contains(number)).unwrap_or_else(|| {
                self.lose("names of devices");
                // Names that come later must remain free.
                let named: FxHashSet<u32> = meta.devices.iter().filter_map(|device| device.name.parse().ok()).collect();
                let mut free = (index as u32..=u32::MAX).chain(0..index as u32);
                free.find(|number| !self.taken.contains(number) && !named.contains(number)).unwrap_or_default()
            });
            self.taken.insert(number);
            self.numbers.push(number);
        }
        self.numbers[device as usize]
    }
}
