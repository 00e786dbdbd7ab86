//! [`TouchedBlocks`]: which blocks are touched in which bins of a timeline.
//!
//! Up to a limit, all blocks are kept, each with the bins in which it was touched. Above the limit, the blocks are
//! sampled, and the sample is halved as often as needed. The final sample depends only on the set of blocks, so parts
//! add up exactly.

use serde::{Deserialize, Serialize};

use super::latency::Sort;
use super::sample::Sample;
use super::table::{Table, place};
use crate::record::Record;

/// Maximum number of bins; above it, ten bins are merged into one.
pub(super) const BINS_MAX: usize = 399;
/// Maximum number of blocks kept; with all their bins they take 12 MB. Totals of larger sets have a random error of 0.6
/// %.
const BLOCKS_MAX: usize = 1 << 15;
/// Number of touched blocks between two checks of the limit.
const PIECE: u64 = 1_024;
const WORDS: usize = 7;
const _: () = assert!(BINS_MAX <= WORDS * u64::BITS as usize, "every bin has its bit");

/// Bitmap of the bins in which a block was touched.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Bins([u64; WORDS]);

impl Bins {
    #[inline]
    fn set(&mut self, bin: usize) {
        self.0[bin / 64] |= 1 << (bin % 64);
    }

    fn with(self, other: Bins) -> Bins {
        Bins(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        let bits = |word: u64| std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
        self.0.into_iter().enumerate().flat_map(move |(index, word)| {
            bits(word).take_while(|left| *left != 0).map(move |left| index * 64 + left.trailing_zeros() as usize)
        })
    }

    fn moved(self, to: impl Fn(usize) -> usize) -> Bins {
        let mut moved = Bins::default();
        self.iter().for_each(|bin| moved.set(to(bin)));
        moved
    }
}

/// Bins in which a block was touched, by class of operation.
type Touched = [Bins; Sort::ALL.len()];

/// Number of blocks touched in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InBin {
    /// Number of distinct blocks in the bin.
    pub(super) in_bin: f64,
    /// Number of distinct blocks that were not touched in an earlier bin.
    pub(super) new: f64,
    pub(super) in_bin_bytes: f64,
    pub(super) so_far_bytes: f64,
}

/// Blocks touched per bin, for each class of operation and for all together.
pub(super) struct SetByBin([Vec<InBin>; Sort::ALL.len() + 1]);

impl SetByBin {
    pub(super) fn of(&self, sorts: &[Sort], bin: usize) -> InBin {
        match sorts {
            [sort] => self.0[*sort as usize][bin],
            _ => self.0[Sort::ALL.len()][bin],
        }
    }
}

/// Blocks, and the bins in which they were touched.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TouchedBlocks {
    block_bytes: u32,
    table: Table<Touched>,
    sample: Sample,
}

impl TouchedBlocks {
    /// Creates an empty set; `block_bytes` must be a power of two.
    pub(super) fn new(block_bytes: u32) -> TouchedBlocks {
        TouchedBlocks { block_bytes, table: Table::new(), sample: Sample::all(0) }
    }

    pub(super) fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    pub(super) fn sampled_rate(&self) -> f64 {
        self.sample.rate()
    }

    /// Adds a request; returns the number of its blocks.
    #[inline]
    pub(super) fn touch(&mut self, record: &Record, sort: usize, bin: usize) -> u64 {
        if record.length_bytes == 0 {
            return 0;
        }
        let shift = self.block_bytes.trailing_zeros();
        let first = record.offset_bytes >> shift;
        let end = ((record.end_bytes() - 1) >> shift) + 1;
        let mut value = first;
        while value < end {
            let piece_end = (value + PIECE).min(end);
            for value in value..piece_end {
                let place = place(record.device, value);
                if self.sample.takes(place) {
                    self.table.entry(place).0[sort].set(bin);
                }
            }
            value = piece_end;
            self.thin();
        }
        end - first
    }

    fn thin(&mut self) {
        while self.table.len() > BLOCKS_MAX {
            self.sample.halve();
            let sample = self.sample;
            self.table.retain(|place| sample.takes(place));
        }
    }

    /// Renumbers the bins.
    pub(super) fn regroup(&mut self, to: impl Fn(usize) -> usize) {
        for touched in self.table.values_mut() {
            *touched = touched.map(|bins| bins.moved(&to));
        }
    }

    /// Merges another part. The bins here move by `mine` and those of the other part by `offset`.
    pub(super) fn merge(&mut self, later: TouchedBlocks, mine: usize, offset: usize) {
        if mine > 0 {
            self.regroup(|bin| bin + mine);
        }
        if later.sample.rate() < self.sample.rate() {
            let sample = later.sample;
            self.sample = sample;
            self.table.retain(|place| sample.takes(place));
        }
        let sample = self.sample;
        for (place, touched) in later.table.iter().filter(|(place, _)| sample.takes(*place)) {
            let entry = self.table.entry(place).0;
            for (bins, later) in entry.iter_mut().zip(touched) {
                *bins = bins.with(later.moved(|bin| bin + offset));
            }
        }
        self.thin();
    }

    /// Returns the number of blocks touched in each of `bins` bins.
    pub(super) fn by_bin(&self, bins: usize) -> SetByBin {
        let weight = self.sample.rate().recip();
        let mut sets = SetByBin(std::array::from_fn(|_| vec![InBin::default(); bins]));
        for (_, touched) in self.table.iter() {
            let all = touched.iter().fold(Bins::default(), |all, bins| all.with(*bins));
            for (set, bins) in sets.0.iter_mut().zip([touched.as_slice(), &[all]].concat()) {
                for (nth, bin) in bins.iter().enumerate() {
                    set[bin].in_bin += weight;
                    set[bin].new += if nth == 0 { weight } else { 0.0 };
                }
            }
        }
        let bytes = f64::from(self.block_bytes);
        for set in &mut sets.0 {
            let mut so_far = 0.0;
            for bin in set {
                so_far += bin.new;
                (bin.in_bin_bytes, bin.so_far_bytes) = (bin.in_bin * bytes, so_far * bytes);
            }
        }
        sets
    }
}
