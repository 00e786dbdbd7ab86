//! [`Blocks`]: tracks the blocks that requests touch, how many are touched per time window, and how often they are
//! rewritten.

use serde::{Deserialize, Serialize};

use super::histogram::{Bin, Powers};
use super::sample::Sample;
use super::table::{Table, place};
use crate::record::{Operation, Record};

const S: u64 = 1_000_000_000;
/// Window lengths in ns, each a multiple of the previous one.
const WINDOWS_NS: [u64; 5] = [S, 10 * S, 60 * S, 600 * S, 3_600 * S];
/// Maximum number of points of the growth curve, a power of two.
const POINTS_MAX: usize = 512;
const STEP_NS: u64 = 1_000_000;
/// Number of touched blocks between two checks of memory use.
const PIECE: u64 = 1_024;

const READ: u8 = 1;
const WRITTEN: u8 = 2;
const LAST_READ: u8 = 4;
const LAST_WRITTEN: u8 = 8;

/// A point of the growth curve of the working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GrowthPoint {
    /// Time since the first arrival, in ns.
    pub at_ns: u64,
    /// Bytes of all blocks touched so far.
    pub touched_bytes: f64,
}

/// Blocks touched in consecutive windows of one length, starting at the first arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowReport {
    /// Window length, in ns.
    pub window_ns: u64,
    /// Mean number of bytes touched in a window, including the last, shorter window.
    pub mean_bytes: f64,
    /// Maximum number of bytes touched in a window.
    pub max_bytes: f64,
}

/// References to previously touched blocks, by current and previous operation on the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Successions {
    /// Reads after a read.
    pub read_after_read: f64,
    /// Reads after a write.
    pub read_after_write: f64,
    /// Writes after a read.
    pub write_after_read: f64,
    /// Writes after a write.
    pub write_after_write: f64,
}

/// Blocks touched by the requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkingSetReport {
    /// Block size, in bytes.
    pub block_bytes: u32,
    /// Share of blocks still sampled at the end; 1 if all figures are exact.
    pub sampled_rate: f64,
    /// Number of block references; each request references all of its blocks.
    pub references: u64,
    /// Bytes of all blocks touched.
    pub touched_bytes: f64,
    /// Bytes of the blocks read.
    pub read_bytes: f64,
    /// Bytes of the blocks written.
    pub written_bytes: f64,
    /// Growth of the working set: one point for the last new block in each of up to 512 equal parts of the time.
    pub growth: Vec<GrowthPoint>,
    /// Blocks touched per time window, up to the first window longer than the trace.
    pub windows: Vec<WindowReport>,
    /// References by current and previous operation.
    pub successions: Successions,
    /// Time between two references to the same block, in ns; 0 if below the clock's resolution.
    pub reuse_times_ns: Vec<Bin>,
    /// Time between two writes of the same block, in ns.
    pub update_times_ns: Vec<Bin>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Block {
    last_ns: u64,
    last_write_ns: u64,
    used: u8,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Window {
    start_ns: u64,
    blocks: f64,
    sum: f64,
    max: f64,
}

/// First use of a block in a later part of a trace.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct First {
    place: u64,
    at_ns: u64,
    /// [`LAST_READ`], [`LAST_WRITTEN`], or 0 for other operations.
    did: u8,
}

/// State at the start of a later part that cannot be evaluated without the part before.
#[derive(Default, Serialize, Deserialize)]
struct Seam {
    firsts: Vec<First>,
    /// Time of the first write of each written block: (block, ns).
    first_writes: Vec<(u64, u64)>,
    /// First window of each length, once it has ended. It may be the rest of a window that began in an earlier part.
    windows: [Option<(u64, f64)>; WINDOWS_NS.len()],
}

impl Seam {
    fn retain(&mut self, sample: Sample) {
        self.firsts.retain(|first| sample.takes(first.place));
        self.first_writes.retain(|(place, _)| sample.takes(*place));
    }
}

/// Growth of the working set: the number of new sampled blocks and the time of the last one, in equal parts of the
/// time. The division into parts depends only on the latest time.
#[derive(Serialize, Deserialize)]
struct Growth {
    step_ns: u64,
    parts: Vec<(u64, f64)>,
}

impl Growth {
    #[inline]
    fn add(&mut self, at_ns: u64) {
        while at_ns / self.step_ns >= POINTS_MAX as u64 {
            self.step_ns = self.step_ns.saturating_mul(2);
            let both = |parts: &[(u64, f64)]| {
                parts.iter().fold((0, 0.0), |sum: (u64, f64), part| (sum.0.max(part.0), sum.1 + part.1))
            };
            self.parts = self.parts.chunks(2).map(both).collect();
        }
        let index = (at_ns / self.step_ns) as usize;
        if index >= self.parts.len() {
            self.parts.resize(index + 1, (0, 0.0));
        }
        let (last_ns, blocks) = &mut self.parts[index];
        (*last_ns, *blocks) = ((*last_ns).max(at_ns), *blocks + 1.0);
    }

    fn halve(&mut self) {
        self.parts.iter_mut().for_each(|(_, blocks)| *blocks /= 2.0);
    }

    /// Returns the time and the number of sampled blocks at each point of growth, at most `all`.
    fn points(&self, all: f64) -> impl Iterator<Item = (u64, f64)> {
        let mut sum = 0.0;
        self.parts.iter().filter(|(_, blocks)| *blocks > 0.0).map(move |(at_ns, blocks)| {
            sum += blocks;
            (*at_ns, f64::min(sum, all))
        })
    }
}

/// Tracks touched blocks. Figures are weighted by the number of blocks that a sampled block represents.
#[derive(Serialize, Deserialize)]
pub(crate) struct Blocks {
    block_bytes: u32,
    block_shift: u32,
    table: Table<Block>,
    blocks_max: usize,
    sample: Sample,
    references: u64,
    is_begun: bool,
    windows: [Window; WINDOWS_NS.len()],
    growth: Growth,
    successions: Successions,
    reuse: Powers,
    update: Powers,
    /// State that depends on the part before, if this is a later part of a trace.
    seam: Option<Seam>,
}

impl Blocks {
    /// Creates an empty tracker for a trace or a later part of one. `block_bytes` must be a power of two.
    pub(crate) fn new(block_bytes: u32, memory_bytes: u64, is_later: bool) -> Blocks {
        Blocks {
            block_bytes,
            block_shift: block_bytes.trailing_zeros(),
            table: Table::new(),
            blocks_max: Table::<Block>::blocks_within(memory_bytes),
            sample: Sample::all(0),
            references: 0,
            is_begun: false,
            windows: [Window::default(); WINDOWS_NS.len()],
            growth: Growth { step_ns: STEP_NS, parts: Vec::new() },
            successions: Successions::default(),
            reuse: Powers::new(),
            update: Powers::new(),
            seam: is_later.then(Seam::default),
        }
    }

    /// Adds a request that transfers data.
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
    }

    #[inline]
    fn open_windows(&mut self, now_ns: u64) {
        if !self.is_begun {
            self.is_begun = true;
            self.windows.iter_mut().zip(WINDOWS_NS).for_each(|(window, ns)| window.start_ns = now_ns / ns * ns);
        }
        for (index, length_ns) in WINDOWS_NS.into_iter().enumerate() {
            let window = &mut self.windows[index];
            if now_ns - window.start_ns < length_ns {
                return;
            }
            match self.seam.as_mut().map(|seam| &mut seam.windows[index]) {
                Some(first @ None) => *first = Some((window.start_ns, std::mem::take(&mut window.blocks))),
                Some(Some(_)) | None => window.close(),
            }
            window.start_ns = now_ns / length_ns * length_ns;
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
            if is_new {
                match &mut self.seam {
                    Some(seam) => seam.firsts.push(First { place, at_ns: now_ns, did: last }),
                    None => self.growth.add(now_ns),
                }
            } else {
                self.reuse.add_weighted(now_ns - block.last_ns, weight);
                if last == LAST_WRITTEN && block.used & WRITTEN > 0 {
                    self.update.add_weighted(now_ns - block.last_write_ns, weight);
                }
                self.successions.add(block.used, last, weight);
            }
            if let Some(seam) = self.seam.as_mut().filter(|_| last == LAST_WRITTEN && block.used & WRITTEN == 0) {
                seam.first_writes.push((place, now_ns));
            }
            block.last_ns = now_ns;
            if last == LAST_WRITTEN {
                block.last_write_ns = now_ns;
            }
            block.used = block.used & (READ | WRITTEN) | this;
        }
        self.fit();
    }

    fn fit(&mut self) {
        while self.table.len() > self.blocks_max {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.sample.halve();
        let sample = self.sample;
        self.table.retain(|place| sample.takes(place));
        self.growth.halve();
        self.seam.iter_mut().for_each(|seam| seam.retain(sample));
    }

    /// Appends a later part. The result is exact if no blocks were sampled out.
    pub(crate) fn merge(&mut self, mut later: Blocks) {
        if !later.is_begun {
            return;
        }
        while self.sample.is_more_than(later.sample) {
            self.halve();
        }
        while later.sample.is_more_than(self.sample) {
            later.halve();
        }
        let seam = later.seam.take().unwrap_or_default();
        let twice = self.meet(&seam);
        for (index, window) in self.windows.iter_mut().enumerate() {
            window.merge(seam.windows[index], twice[index], &later.windows[index]);
        }
        self.is_begun = true;
        self.references += later.references;
        self.successions.merge(&later.successions);
        self.reuse.merge(&later.reuse);
        self.update.merge(&later.update);
        self.table.make_room(later.table.len().min(self.blocks_max - self.table.len()));
        for (place, later) in later.table.iter() {
            if !self.sample.takes(place) {
                continue;
            }
            let (block, _) = self.table.entry(place);
            let last_write_ns = if later.used & WRITTEN > 0 { later.last_write_ns } else { block.last_write_ns };
            let used = block.used & (READ | WRITTEN) | later.used;
            *block = Block { last_ns: later.last_ns, last_write_ns, used };
            // Checks memory only here, after the merge: two full tables may exceed the limit.
            self.fit();
        }
    }

    /// Merges the first uses of a later part. Returns, for each window length, the number of blocks counted both in the
    /// current window here and in the first window of the later part.
    fn meet(&mut self, seam: &Seam) -> [f64; WINDOWS_NS.len()] {
        let weight = self.sample.rate().recip();
        let mut twice = [0.0; WINDOWS_NS.len()];
        for &First { place, at_ns, did } in &seam.firsts {
            let Some(block) = self.table.get(place) else {
                self.growth.add(at_ns);
                continue;
            };
            for (twice, length_ns) in twice.iter_mut().zip(WINDOWS_NS) {
                if block.last_ns >= at_ns / length_ns * length_ns {
                    *twice += weight;
                }
            }
            self.reuse.add_weighted(at_ns - block.last_ns, weight);
            self.successions.add(block.used, did, weight);
        }
        for &(place, at_ns) in &seam.first_writes {
            if let Some(block) = self.table.get(place).filter(|block| block.used & WRITTEN > 0) {
                self.update.add_weighted(at_ns - block.last_write_ns, weight);
            }
        }
        twice
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
        let mut growth: Vec<(u64, f64)> =
            self.growth.points(self.table.len() as f64).map(|(at_ns, blocks)| (at_ns, blocks / rate)).collect();
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

    /// Merges the windows of a later part. Its first window and the current window here have `twice` blocks in common.
    fn merge(&mut self, first: Option<(u64, f64)>, twice: f64, later: &Window) {
        let (start_ns, blocks) = first.unwrap_or((later.start_ns, later.blocks));
        if self.start_ns != start_ns {
            self.close();
            self.start_ns = start_ns;
        }
        self.blocks += blocks - twice;
        if first.is_some() {
            self.close();
            self.sum += later.sum;
            self.max = self.max.max(later.max);
            (self.start_ns, self.blocks) = (later.start_ns, later.blocks);
        }
    }
}

impl Successions {
    fn merge(&mut self, later: &Successions) {
        self.read_after_read += later.read_after_read;
        self.read_after_write += later.read_after_write;
        self.write_after_read += later.write_after_read;
        self.write_after_write += later.write_after_write;
    }

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
