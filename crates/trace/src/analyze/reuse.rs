//! [`Reuse`]: LRU stack distances in one pass, and the resulting miss-ratio curve.
//!
//! A reference hits in an LRU cache of C blocks if fewer than C other blocks were used since the last use of its own.
//! The count is exact as long as the blocks fit the permitted memory; beyond it, half of the blocks are sampled, then a
//! quarter (fixed-size SHARDS), and the curve has a band.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::distances::{CurvePoint, Distances};
use super::sample::Sample;
use super::stack::Stack;
use super::table::{Table, place};
use crate::record::Record;

/// Unit of re-use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Granularity {
    /// Blocks of the analysis' block size; a request uses its blocks in address order.
    Block,
    /// Whole requests, identified by device and first byte, of any length: the objects of cache simulators.
    Request,
}

/// How re-use is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReuseOptions {
    /// Unit of re-use.
    pub granularity: Granularity,
    /// Smallest share of the blocks that is sampled while they fit the memory, above 0 and up to 1: 1 is all, 0.01 one
    /// in a hundred (SHARDS). If there are few blocks, a larger share is used, since a sample of less than 8,192 is too
    /// inaccurate.
    pub rate: f64,
    /// Seed of the choice of sampled blocks.
    pub salt: u64,
    /// Memory for the table of blocks; beyond it, half of them are dropped.
    pub memory_bytes: u64,
    /// Cache sizes, in blocks or requests, that the curve contains in addition to its own eight per octave.
    pub cache_sizes: Vec<u64>,
}

impl Default for ReuseOptions {
    fn default() -> ReuseOptions {
        ReuseOptions {
            granularity: Granularity::Block,
            rate: 1.0,
            salt: 0,
            memory_bytes: 256 << 20,
            cache_sizes: Vec::new(),
        }
    }
}

/// Re-use of blocks or requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseReport {
    /// Block size in bytes; null if whole requests are counted.
    pub block_bytes: Option<u32>,
    /// Number of references.
    pub references: u64,
    /// Number of distinct blocks or requests; an estimate if `sampled_rate` is below 1.
    pub distinct: f64,
    /// Share of the blocks still sampled at the end; 1 if the count is exact.
    pub sampled_rate: f64,
    /// Mean half width of the 95 % band over cache sizes in equal steps up to the working set; null if exact.
    pub mean_band: Option<f64>,
    /// Miss ratio of an LRU cache by increasing size.
    pub lru_curve: Vec<CurvePoint>,
}

/// Size above which a sample is halved, down to the requested rate: twice the figure of the SHARDS paper.
const SAMPLE_MAX: usize = 16_384;
/// Number of touched blocks between two checks of the memory.
const PIECE: u64 = 1_024;
/// Old position of a block that is used for the first time.
const COLD: u32 = u32::MAX;

/// Counts re-use as references arrive.
pub struct Reuse {
    options: ReuseOptions,
    block_bytes: u32,
    block_shift: u32,
    last_use: Table<u32>,
    /// Number of blocks that fit the memory, and at which the sample is halved.
    memory_blocks: usize,
    blocks_max: usize,
    stack: Stack,
    sample: Sample,
    distances: Distances,
    references: u64,
    /// For a later part of a trace: its blocks in order of their first use.
    firsts: Option<Vec<u64>>,
}

/// Consecutive references that were also consecutive the last time: all have the same distance.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Position of the first one, or [`COLD`].
    old: u32,
    uses: u32,
    group: Option<usize>,
}

impl Reuse {
    /// Creates an empty count. `block_bytes` must be a power of two; [`super::Analysis::new`] checks it and the rate.
    pub fn new(options: ReuseOptions, block_bytes: u32) -> Reuse {
        let memory_blocks = Table::<u32>::blocks_within(options.memory_bytes);
        Reuse {
            block_bytes,
            block_shift: block_bytes.trailing_zeros(),
            last_use: Table::new(),
            memory_blocks,
            blocks_max: if options.rate <= 0.5 { SAMPLE_MAX.min(memory_blocks) } else { memory_blocks },
            stack: Stack::new(),
            sample: Sample::all(options.salt),
            distances: Distances::new(),
            references: 0,
            firsts: None,
            options,
        }
    }

    /// Creates the count of a later part of a trace.
    pub fn later(options: ReuseOptions, block_bytes: u32) -> Reuse {
        Reuse { firsts: Some(Vec::new()), ..Reuse::new(options, block_bytes) }
    }

    /// Adds a request that transfers data.
    #[inline]
    pub fn add(&mut self, record: &Record) {
        match self.options.granularity {
            Granularity::Request => self.touch(record.device, record.offset_bytes, 1),
            Granularity::Block if record.length_bytes == 0 => {}
            Granularity::Block => {
                let mut first = record.offset_bytes >> self.block_shift;
                let end = ((record.end_bytes() - 1) >> self.block_shift) + 1;
                while first < end {
                    let count = (end - first).min(PIECE);
                    self.touch(record.device, first, count);
                    first += count;
                }
            }
        }
    }

    fn touch(&mut self, device: u32, first: u64, count: u64) {
        self.references += count;
        self.make_room(count as usize);
        let is_all = self.sample.is_all();
        let mut run = Run::default();
        for value in first..first + count {
            let place = place(device, value);
            if !self.sample.takes(place) {
                continue;
            }
            let (last, is_new) = self.last_use.entry(place);
            let old = if is_new { COLD } else { *last };
            if let Some(firsts) = self.firsts.as_mut().filter(|_| is_new) {
                firsts.push(place);
            }
            *last = self.stack.next() + run.uses;
            if is_all && run.uses > 0 && old == run.old.saturating_add(run.uses) {
                run.uses += 1;
            } else {
                self.book(run);
                let group = (!is_all).then(|| self.sample.group(place));
                run = Run { old, uses: 1, group };
            }
        }
        self.book(run);
        self.fit();
    }

    fn fit(&mut self) {
        while self.last_use.len() > self.blocks_max {
            self.halve();
        }
    }

    #[inline]
    fn book(&mut self, run: Run) {
        if run.uses == 0 {
            return;
        }
        if run.old == COLD {
            self.distances.add_cold(run.uses, run.group);
        } else {
            self.distances.add(self.stack.behind(run.old), run.uses, run.group);
            self.stack.clear(run.old, run.uses as usize);
        }
        self.stack.push(run.uses as usize);
    }

    #[cold]
    fn halve(&mut self) {
        self.sample.halve();
        let sample = self.sample;
        for (_, &position) in self.last_use.iter().filter(|(place, _)| !sample.takes(*place)) {
            self.stack.clear(position, 1);
        }
        self.last_use.retain(|place| sample.takes(place));
        self.firsts.iter_mut().for_each(|firsts| firsts.retain(|&place| sample.takes(place)));
        self.distances.halve();
        let may_halve = sample.rate() / 2.0 >= self.options.rate;
        self.blocks_max = if may_halve { SAMPLE_MAX.min(self.blocks_max) } else { self.memory_blocks };
    }

    /// Appends a later part. A block that is used for the first time there, but was used here, has as its distance the
    /// blocks used since then in both parts: those after it here that were not yet used there, and those that were. The
    /// count remains exact while nothing is sampled.
    pub fn merge(&mut self, mut later: Reuse) {
        while self.sample.is_more_than(later.sample) {
            self.halve();
        }
        while later.sample.is_more_than(self.sample) {
            later.halve();
        }
        self.references += later.references;
        self.distances.merge_distances(&later.distances);
        let (sample, is_all) = (self.sample, self.sample.is_all());
        for (before, &place) in (0..).zip(later.firsts.iter().flatten()) {
            let group = (!is_all).then(|| sample.group(place));
            if let Some(&position) = self.last_use.get(place) {
                self.distances.add(self.stack.behind(position) + before, 1, group);
                self.stack.clear(position, 1);
            } else {
                self.distances.add_cold(1, group);
            }
        }
        let order = later.order();
        self.make_room(order.len());
        for (position, &place) in (self.stack.next()..).zip(&order) {
            *self.last_use.entry(place).0 = position;
        }
        self.stack.push(order.len());
        self.fit();
    }

    /// All blocks by their last use.
    fn order(&self) -> Vec<u64> {
        let mut order: Vec<(u32, u64)> = self.last_use.iter().map(|(place, &position)| (position, place)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, place)| place).collect()
    }

    fn make_room(&mut self, uses: usize) {
        if !self.stack.has_room(uses) {
            let moves = self.stack.compact(uses);
            self.last_use.values_mut().for_each(|position| *position = moves.to(*position));
        }
    }

    /// Returns the curve with its confidence band.
    pub fn finish(mut self) -> ReuseReport {
        let by_block = self.options.granularity == Granularity::Block;
        let distinct = self.last_use.len() as f64 / self.sample.rate();
        let curve = self.distances.finish(self.references, self.sample.rate());
        let mut sizes = std::mem::take(&mut self.options.cache_sizes);
        // Eight per octave, up to the first that holds everything.
        sizes.extend(
            (0..)
                .map(|step: i32| (f64::from(step) / 8.0).exp2().round())
                .take_while(|&size| size < distinct)
                .map(|size| size as u64),
        );
        sizes.push(distinct.ceil() as u64);
        sizes.retain(|&size| size > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let bytes = |cache: u64| by_block.then(|| cache.saturating_mul(u64::from(self.block_bytes)));
        ReuseReport {
            block_bytes: by_block.then_some(self.block_bytes),
            references: self.references,
            distinct,
            sampled_rate: self.sample.rate(),
            mean_band: curve.mean_band(distinct),
            lru_curve: sizes.into_iter().map(|cache| curve.point(cache, bytes(cache))).collect(),
        }
    }
}

/// Serialised form, with the order of last uses in place of table and stack.
type Sent<O, F, D> = (O, u32, Vec<u64>, F, usize, Sample, D, u64);

impl Serialize for Reuse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sent: Sent<&ReuseOptions, &Option<Vec<u64>>, &Distances> = (
            &self.options,
            self.block_bytes,
            self.order(),
            &self.firsts,
            self.blocks_max,
            self.sample,
            &self.distances,
            self.references,
        );
        sent.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reuse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Reuse, D::Error> {
        let sent: Sent<ReuseOptions, Option<Vec<u64>>, Distances> = Deserialize::deserialize(deserializer)?;
        let (options, block_bytes, order, firsts, blocks_max, sample, distances, references) = sent;
        let mut reuse = Reuse { blocks_max, sample, distances, references, firsts, ..Reuse::new(options, block_bytes) };
        reuse.make_room(order.len());
        for (position, &place) in (0..).zip(&order) {
            *reuse.last_use.entry(place).0 = position;
        }
        reuse.stack.push(order.len());
        Ok(reuse)
    }
}
