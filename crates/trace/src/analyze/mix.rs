//! Properties of requests: operations, sizes, alignment, flags.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::record::{Flags, Operation, Record};

/// Number of distinct sizes; with more, all are rounded up to nine binary digits, by 0.4 % at most.
const SIZES_MAX: usize = 4_096;
const ROUNDED_BITS: u32 = 9;
/// Number of devices with separate figures, the first of the trace's list: 1 KB each, more if they have many streams.
pub(crate) const DEVICES_MAX: usize = 1 << 17;
/// Number of processes with separate counts, the first of the trace's list.
pub(crate) const PROCESSES_MAX: usize = 1_024;
/// Base-2 logarithms of the reported alignments: 512 bytes to 1 MiB.
const ALIGNMENTS: std::ops::RangeInclusive<u32> = 9..=20;

/// Whether the operation moves data between host and device; an unknown operation is assumed to.
pub(crate) fn transfers(operation: Operation) -> bool {
    matches!(operation, Operation::Read | Operation::Write | Operation::Unknown)
}

/// A number of requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

/// Requests by operation.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Mix([Amount; Operation::ALL.len()]);

impl Mix {
    #[inline]
    pub(crate) fn add(&mut self, record: &Record) {
        let amount = &mut self.0[record.operation as usize];
        amount.requests += 1;
        amount.bytes += u64::from(record.length_bytes);
    }

    pub(crate) fn merge(&mut self, other: &Mix) {
        for (amount, other) in self.0.iter_mut().zip(&other.0) {
            amount.requests += other.requests;
            amount.bytes += other.bytes;
        }
    }

    pub(crate) fn of(&self, operation: Operation) -> Amount {
        self.0[operation as usize]
    }

    pub(crate) fn total(&self) -> Amount {
        let sum = |sum: Amount, more: &Amount| Amount {
            requests: sum.requests + more.requests,
            bytes: sum.bytes + more.bytes,
        };
        self.0.iter().fold(Amount::default(), sum)
    }

    /// The operations that occur, by name.
    pub(crate) fn report(&self) -> BTreeMap<&'static str, Amount> {
        let amounts = Operation::ALL.into_iter().map(|operation| (operation.name(), self.of(operation)));
        amounts.filter(|(_, amount)| amount.requests > 0).collect()
    }
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SizeReport {
    /// Length in bytes.
    pub length_bytes: u32,
    /// Number of requests.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of trims.
    pub trims: u64,
}

/// Lengths of requests, except those without a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizesReport {
    /// Mean length of the requests that transfer data.
    pub mean_bytes: Option<f64>,
    /// Smallest length.
    pub min_bytes: Option<u32>,
    /// Median length.
    pub p50_bytes: Option<u32>,
    /// 90th percentile.
    pub p90_bytes: Option<u32>,
    /// 99th percentile.
    pub p99_bytes: Option<u32>,
    /// Largest length.
    pub max_bytes: Option<u32>,
    /// Requests whose size is rounded up by at most 0.4 %, since more than 4,096 sizes occur.
    pub rounded: u64,
    /// Every size.
    pub sizes: Vec<SizeReport>,
}

/// Requests of one size by operation: random ones, and those that continue a stream.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SizeCounts {
    pub(crate) random: [u64; Operation::ALL.len()],
    pub(crate) sequential: [u64; Operation::ALL.len()],
}

impl SizeCounts {
    fn of(&self, operation: Operation) -> u64 {
        self.random[operation as usize] + self.sequential[operation as usize]
    }

    fn all(&self) -> u64 {
        self.random.iter().chain(&self.sequential).sum()
    }

    fn merge(&mut self, other: &SizeCounts) {
        self.random.iter_mut().zip(other.random).for_each(|(count, other)| *count += other);
        self.sequential.iter_mut().zip(other.sequential).for_each(|(count, other)| *count += other);
    }
}

/// Sizes of requests. Whether they are rounded depends on the set of sizes, not on their order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sizes {
    places: FxHashMap<u32, usize>,
    counts: Vec<(u32, SizeCounts)>,
    last: usize,
    is_rounded: bool,
    rounded: u64,
}

impl Sizes {
    pub(crate) fn new() -> Sizes {
        Sizes { places: FxHashMap::default(), counts: Vec::new(), last: 0, is_rounded: false, rounded: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, record: &Record, is_sequential: bool) {
        if self.counts.get(self.last).is_none_or(|(bytes, _)| *bytes != record.length_bytes) {
            self.last = self.place(record.length_bytes, 1);
        }
        let counts = &mut self.counts[self.last].1;
        let counts = if is_sequential { &mut counts.sequential } else { &mut counts.random };
        counts[record.operation as usize] += 1;
    }

    /// Index of the counts of a size for `requests` requests.
    fn place(&mut self, bytes: u32, requests: u64) -> usize {
        let counted = if self.is_rounded { rounded(bytes) } else { bytes };
        let place = self.places.get(&counted).copied();
        if place.is_none() && !self.is_rounded && self.counts.len() >= SIZES_MAX {
            self.round();
            return self.place(bytes, requests);
        }
        if counted != bytes {
            self.rounded += requests;
        }
        place.unwrap_or_else(|| {
            self.places.insert(counted, self.counts.len());
            self.counts.push((counted, SizeCounts::default()));
            self.counts.len() - 1
        })
    }

    #[cold]
    fn round(&mut self) {
        let exact = std::mem::replace(self, Sizes { is_rounded: true, rounded: self.rounded, ..Sizes::new() });
        exact.counts.iter().for_each(|(bytes, counts)| self.add_size(*bytes, counts));
    }

    fn add_size(&mut self, bytes: u32, counts: &SizeCounts) {
        let place = self.place(bytes, counts.all());
        self.counts[place].1.merge(counts);
    }

    pub(crate) fn merge(&mut self, other: &Sizes) {
        if other.is_rounded && !self.is_rounded {
            self.round();
        }
        self.rounded += other.rounded;
        other.counts.iter().for_each(|(bytes, counts)| self.add_size(*bytes, counts));
    }

    /// Sizes with their counts, in ascending order.
    pub(crate) fn sorted(&self) -> Vec<(u32, SizeCounts)> {
        let mut counts = self.counts.clone();
        counts.sort_unstable_by_key(|(bytes, _)| *bytes);
        counts
    }

    pub(crate) fn report(&self) -> SizesReport {
        let sorted = self.sorted();
        let transferred = |counts: &SizeCounts| -> u64 {
            Operation::ALL.into_iter().filter(|operation| transfers(*operation)).map(|o| counts.of(o)).sum()
        };
        let count: u64 = sorted.iter().map(|(_, counts)| transferred(counts)).sum();
        let sum: f64 = sorted.iter().map(|(bytes, counts)| f64::from(*bytes) * transferred(counts) as f64).sum();
        let at = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
            let mut seen = 0;
            let mut reaches = |counts: &SizeCounts| {
                seen += transferred(counts);
                seen >= rank
            };
            sorted.iter().find(|(_, counts)| reaches(counts)).map(|(bytes, _)| *bytes)
        };
        let size = |&(length_bytes, counts): &(u32, SizeCounts)| SizeReport {
            length_bytes,
            requests: transferred(&counts) + counts.of(Operation::Trim),
            reads: counts.of(Operation::Read),
            writes: counts.of(Operation::Write),
            trims: counts.of(Operation::Trim),
        };
        SizesReport {
            mean_bytes: (count > 0).then(|| sum / count as f64),
            min_bytes: at(0.0),
            p50_bytes: at(0.5),
            p90_bytes: at(0.9),
            p99_bytes: at(0.99),
            max_bytes: at(1.0),
            rounded: self.rounded,
            sizes: sorted.iter().map(size).collect(),
        }
    }
}

fn rounded(bytes: u32) -> u32 {
    let step = 1u32 << (u32::BITS - bytes.leading_zeros()).saturating_sub(ROUNDED_BITS);
    bytes.checked_next_multiple_of(step).unwrap_or(u32::MAX)
}

/// Share of requests whose offset or length is a multiple of a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlignmentShare {
    /// The power of two.
    pub align_bytes: u64,
    /// Share with an aligned offset, of all requests that transfer data.
    pub offset: f64,
    /// Share with an aligned length.
    pub length: f64,
    /// Share with both.
    pub both: f64,
}

/// Alignment of requests that transfer data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AlignmentReport {
    /// Largest power of two that divides all offsets and lengths; null without requests.
    pub common_bytes: Option<u64>,
    /// From 512 bytes to 1 MiB.
    pub shares: Vec<AlignmentShare>,
}

/// Trailing zeros of offsets, of lengths and of both.
#[derive(Serialize, Deserialize)]
pub(crate) struct Alignment {
    zeros: Vec<[u64; 3]>,
    requests: u64,
}

impl Alignment {
    pub(crate) fn new() -> Alignment {
        Alignment { zeros: vec![[0; 3]; 65], requests: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, record: &Record) {
        let (offset, length) = (record.offset_bytes, u64::from(record.length_bytes));
        self.requests += 1;
        for (what, value) in [offset, length, offset | length].into_iter().enumerate() {
            self.zeros[value.trailing_zeros() as usize][what] += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Alignment) {
        self.requests += other.requests;
        for (zeros, other) in self.zeros.iter_mut().zip(&other.zeros) {
            zeros.iter_mut().zip(other).for_each(|(count, other)| *count += other);
        }
    }

    pub(crate) fn report(&self) -> AlignmentReport {
        let share = |power: u32, what: usize| {
            let aligned: u64 = self.zeros[power as usize..].iter().map(|zeros| zeros[what]).sum();
            aligned as f64 / self.requests as f64
        };
        let shares = ALIGNMENTS.map(|power| AlignmentShare {
            align_bytes: 1 << power,
            offset: share(power, 0),
            length: share(power, 1),
            both: share(power, 2),
        });
        // All zeros: only empty requests at 0.
        let common = self.zeros[..64].iter().position(|zeros| zeros[2] > 0);
        AlignmentReport {
            common_bytes: common.map(|power| 1 << power),
            shares: if self.requests > 0 { shares.collect() } else { Vec::new() },
        }
    }
}

/// Number of requests with each flag.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct FlagCounts([u64; Flags::ALL.len()]);

impl FlagCounts {
    #[inline]
    pub(crate) fn add(&mut self, flags: Flags) {
        if flags == Flags::default() {
            return;
        }
        for (count, (flag, _)) in self.0.iter_mut().zip(Flags::ALL) {
            *count += u64::from(flags.contains(flag));
        }
    }

    pub(crate) fn merge(&mut self, other: &FlagCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(count, other)| *count += other);
    }

    /// The flags that occur, by name.
    pub(crate) fn report(&self) -> BTreeMap<&'static str, u64> {
        let counts = Flags::ALL.iter().zip(self.0).map(|((_, name), count)| (*name, count));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}
