//! Blocks: which are touched, how many in a window of time, how often they are written again.

use serde::Serialize;

use super::histogram::{Bin, Powers};
use super::sample::Sample;
use super::table::{Table, place};
use crate::record::{Operation, Record};

const S: u64 = 1_000_000_000;
/// Windows of time, each a multiple of the one before.
const WINDOWS_NS: [u64; 5] = [S, 10 * S, 60 * S, 600 * S, 3_600 * S];
/// The most points of the curve of growth, and the first distance between them.
const POINTS_MAX: usize = 512;
const STEP_NS: u64 = 1_000_000;
/// Blocks that are touched between two looks at the memory.
const PIECE: u64 = 1_024;

const READ: u8 = 1;
const WRITTEN: u8 = 2;
const LAST_READ: u8 = 4;
const LAST_WRITTEN: u8 = 8;

/// A point of the curve along which the working set grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GrowthPoint {
    /// Time since the first arrival.
    pub at_ns: u64,
    /// Bytes of all blocks touched until then.
    pub touched_bytes: f64,
}

/// What is touched in windows of one length, which follow each other from the first arrival on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowReport {
    /// Length of a window.
    pub window_ns: u64,
    /// Mean bytes of the blocks touched in a window, the last and shorter one included.
    pub mean_bytes: f64,
    /// Most bytes in a window.
    pub max_bytes: f64,
}

/// References to a block that was touched before, by what they do and what the one before did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Successions {
    /// Reads of what was last read.
    pub read_after_read: f64,
    /// Reads of what was last written.
    pub read_after_write: f64,
    /// Writes of what was last read.
    pub write_after_read: f64,
    /// Writes of what was last written.
    pub write_after_write: f64,
}

/// The blocks that requests touch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkingSetReport {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Share of the blocks that were looked at in the end; 1 where all figures are exact.
    pub sampled_rate: f64,
    /// References to blocks: each request touches its own.
    pub references: u64,
    /// Bytes of all blocks touched.
    pub touched_bytes: f64,
    /// Of those that were read.
    pub read_bytes: f64,
    /// Of those that were written.
    pub written_bytes: f64,
    /// How the set grows.
    pub growth: Vec<GrowthPoint>,
    /// What is touched in windows of time, up to the first longer than the trace.
    pub windows: Vec<WindowReport>,
    /// References by what came before.
    pub successions: Successions,
    /// Time from a reference to the one before of the same block. Below the clock's step it is 0.
    pub reuse_times_ns: Vec<Bin>,
    /// Time from a write to the write before of the same block.
    pub update_times_ns: Vec<Bin>,
}

#[derive(Clone, Copy, Default)]
struct Block {
    last_ns: u64,
    last_write_ns: u64,
    used: u8,
}

#[derive(Clone, Copy, Default)]
struct Window {
    start_ns: u64,
    blocks: f64,
    sum: f64,
    max: f64,
}

/// Follows blocks. Figures are weighted by what a block of the sample stands for.
pub(crate) struct Blocks {
    block_bytes: u32,
    block_shift: u32,
    table: Table<Block>,
    blocks_max: usize,
    sample: Sample,
    references: u64,
    windows: [Window; WINDOWS_NS.len()],
    growth: Vec<(u64, f64)>,
    step_ns: u64,
    successions: Successions,
    reuse: Powers,
    update: Powers,
}

impl Blocks {
    /// `block_bytes` is a power of two.
    pub(crate) fn new(block_bytes: u32, memory_bytes: u64) -> Blocks {
        Blocks {
            block_bytes,
            block_shift: block_bytes.trailing_zeros(),
            table: Table::new(),
            blocks_max: Table::<Block>::blocks_within(memory_bytes),
            sample: Sample::all(0),
            references: 0,
            windows: [Window::default(); WINDOWS_NS.len()],
            growth: Vec::new(),
            step_ns: STEP_NS,
            successions: Successions::default(),
            reuse: Powers::new(),
            update: Powers::new(),
        }
    }

    /// A request that transfers data.
    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, record: &Record) {
        self.open_windows(since_start_ns);
        if record.length_bytes > 0 {
            let mut first = record.offset_bytes >> self.block_shift;
            let end = ((record.end_bytes() - 1) >> self.block_shift) + 1;
            self.references += end - first;
            while first < end {
                let next = (first + PIECE).min(end);
                self.touch(since_start_ns, record, first..next);
                first = next;
            }
        }
        if self.growth.last().is_none_or(|(at_ns, _)| since_start_ns - at_ns >= self.step_ns) {
            self.grow(since_start_ns);
        }
    }

    #[inline]
    fn open_windows(&mut self, now_ns: u64) {
        for (window, length_ns) in self.windows.iter_mut().zip(WINDOWS_NS) {
            if now_ns - window.start_ns < length_ns {
                return;
            }
            window.start_ns = now_ns / length_ns * length_ns;
            window.close();
        }
    }

    fn touch(&mut self, now_ns: u64, record: &Record, values: std::ops::Range<u64>) {
        let weight = self.sample.rate().recip();
        let (this, last) = match record.operation {
            Operation::Read => (READ | LAST_READ, LAST_READ),
            Operation::Write => (WRITTEN | LAST_WRITTEN, LAST_WRITTEN),
            _ => (0, 0),
        };
        for value in values {
            let place = place(record.device, value);
            if !self.sample.takes(place) {
                continue;
            }
            let (block, is_new) = self.table.entry(place);
            for window in &mut self.windows {
                if !is_new && block.last_ns >= window.start_ns {
                    break;
                }
                window.blocks += weight;
            }
            if !is_new {
                self.reuse.add_weighted(now_ns - block.last_ns, weight);
                if last == LAST_WRITTEN && block.used & WRITTEN > 0 {
                    self.update.add_weighted(now_ns - block.last_write_ns, weight);
                }
                self.successions.add(block.used, last, weight);
            }
            block.last_ns = now_ns;
            if last == LAST_WRITTEN {
                block.last_write_ns = now_ns;
            }
            block.used = block.used & (READ | WRITTEN) | this;
        }
        while self.table.len() > self.blocks_max {
            self.sample.halve();
            let sample = self.sample;
            self.table.retain(|place| sample.takes(place));
        }
    }

    fn grow(&mut self, now_ns: u64) {
        self.growth.push((now_ns, self.table.len() as f64 / self.sample.rate()));
        if self.growth.len() > POINTS_MAX {
            self.step_ns = self.step_ns.saturating_mul(2);
            let mut kept = Vec::with_capacity(POINTS_MAX);
            for &point in &self.growth {
                if kept.last().is_none_or(|(at_ns, _)| point.0 - at_ns >= self.step_ns) {
                    kept.push(point);
                }
            }
            self.growth = kept;
        }
    }

    pub(crate) fn finish(mut self, last_ns: u64) -> WorkingSetReport {
        self.windows.iter_mut().for_each(Window::close);
        let bytes = |blocks: f64| blocks * f64::from(self.block_bytes);
        let rate = self.sample.rate();
        let using = |bit: u8| {
            let blocks = self.table.iter().filter(|(_, block)| block.used & bit > 0).count();
            bytes(blocks as f64 / rate)
        };
        let touched = self.table.len() as f64 / rate;
        let mut growth = self.growth;
        growth.retain(|(at_ns, _)| *at_ns < last_ns);
        growth.push((last_ns, touched));
        let windows = self.windows.iter().zip(WINDOWS_NS);
        let longest =
            WINDOWS_NS.iter().position(|&length_ns| length_ns > last_ns).map_or(WINDOWS_NS.len(), |at| at + 1);
        WorkingSetReport {
            block_bytes: self.block_bytes,
            sampled_rate: rate,
            references: self.references,
            touched_bytes: bytes(touched),
            read_bytes: using(READ),
            written_bytes: using(WRITTEN),
            growth: growth
                .into_iter()
                .map(|(at_ns, blocks)| GrowthPoint { at_ns, touched_bytes: bytes(blocks) })
                .collect(),
            windows: windows
                .take(longest)
                .map(|(window, window_ns)| WindowReport {
                    window_ns,
                    mean_bytes: bytes(window.sum / (last_ns / window_ns + 1) as f64),
                    max_bytes: bytes(window.max),
                })
                .collect(),
            successions: self.successions,
            reuse_times_ns: self.reuse.bins(),
            update_times_ns: self.update.bins(),
        }
    }
}

impl Window {
    fn close(&mut self) {
        self.sum += self.blocks;
        self.max = self.max.max(self.blocks);
        self.blocks = 0.0;
    }
}

impl Successions {
    #[inline]
    fn add(&mut self, before: u8, now: u8, weight: f64) {
        let count = match (before & (LAST_READ | LAST_WRITTEN), now) {
            (LAST_READ, LAST_READ) => &mut self.read_after_read,
            (LAST_WRITTEN, LAST_READ) => &mut self.read_after_write,
            (LAST_READ, LAST_WRITTEN) => &mut self.write_after_read,
            (LAST_WRITTEN, LAST_WRITTEN) => &mut self.write_after_write,
            _ => return,
        };
        *count += weight;
    }
}
