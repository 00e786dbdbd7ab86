//! Stack distances, counted; and what they say about caches of any size.

use serde::{Deserialize, Serialize};

use super::sample::GROUPS;

/// Student's t for a band of 95 % from 64 groups.
const BAND: f64 = 1.998;
/// Bins of an octave in the groups' histograms: 3 %, far below what a sample can tell.
const FINE: u64 = 32;
/// Cache sizes that the mean band is taken over.
const STEPS: usize = 200;

/// A point of a miss-ratio curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Cache size in blocks or requests.
    pub cache: u64,
    /// The same in bytes; null where requests are counted.
    pub cache_bytes: Option<u64>,
    /// References that miss in an LRU cache of that size, over all.
    pub miss_ratio: f64,
    /// References that hit; an estimate where `low` is not null.
    pub hits: f64,
    /// Lower end of the 95 % band; null where the count is exact.
    pub low: Option<f64>,
    /// Upper end of the 95 % band; null where the count is exact.
    pub high: Option<f64>,
}

/// How many references had which distance, in sampled blocks.
#[derive(Serialize, Deserialize)]
pub(crate) struct Distances {
    /// By distance. Whole numbers until the sample is halved, and exact below 2^53.
    counts: Vec<f64>,
    cold: f64,
    /// The sampled references of each group: by bins of distance, and those to new blocks.
    groups: Vec<Group>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Group {
    bins: Vec<f64>,
    cold: f64,
}

/// The bin of a distance: one a distance below [`FINE`], then [`FINE`] an octave.
#[inline]
fn bin(distance: u64) -> usize {
    let octave = u64::from(distance.max(FINE).ilog2() - FINE.ilog2());
    (octave * FINE + (distance >> octave)) as usize
}

impl Distances {
    pub(crate) fn new() -> Distances {
        Distances { counts: Vec::new(), cold: 0.0, groups: vec![Group::default(); GROUPS] }
    }

    /// So many references of that distance; of one group where blocks are sampled.
    #[inline]
    pub(crate) fn add(&mut self, distance: u64, uses: u32, group: Option<usize>) {
        let index = distance as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0.0);
        }
        self.counts[index] += f64::from(uses);
        if let Some(group) = group {
            let bins = &mut self.groups[group].bins;
            let index = bin(distance);
            if index >= bins.len() {
                bins.resize(index + 1, 0.0);
            }
            bins[index] += f64::from(uses);
        }
    }

    /// So many references to new blocks.
    #[inline]
    pub(crate) fn add_cold(&mut self, uses: u32, group: Option<usize>) {
        self.cold += f64::from(uses);
        if let Some(group) = group {
            self.groups[group].cold += f64::from(uses);
        }
    }

    /// Those that have a distance in a later part of the trace; what is new there may not be new here.
    pub(crate) fn merge_known(&mut self, later: &Distances) {
        fn add(counts: &mut Vec<f64>, later: &[f64]) {
            counts.resize(counts.len().max(later.len()), 0.0);
            counts.iter_mut().zip(later).for_each(|(count, later)| *count += later);
        }
        add(&mut self.counts, &later.counts);
        self.groups.iter_mut().zip(&later.groups).for_each(|(group, later)| add(&mut group.bins, &later.bins));
    }

    /// Half as many blocks are looked at: distances halve, and references weigh half.
    pub(crate) fn halve(&mut self) {
        for distance in 0..self.counts.len() {
            let count = std::mem::take(&mut self.counts[distance]);
            self.counts[distance / 2] += count / 2.0;
        }
        self.counts.truncate(self.counts.len().div_ceil(2));
        self.cold /= 2.0;
        for group in &mut self.groups {
            let bins = std::mem::take(&mut group.bins);
            for (index, count) in bins.into_iter().enumerate() {
                // An octave down; below, distance by distance.
                let half = if index < 2 * FINE as usize { index / 2 } else { index - FINE as usize };
                if half >= group.bins.len() {
                    group.bins.resize(half + 1, 0.0);
                }
                group.bins[half] += count / 2.0;
            }
            group.cold /= 2.0;
        }
    }

    /// Sums up, of `references` in all, at the rate in the end.
    pub(crate) fn finish(mut self, references: u64, rate: f64) -> Curve {
        let mut hits = 0.0;
        for count in &mut self.counts {
            hits += *count;
            *count = hits;
        }
        for group in &mut self.groups {
            let mut misses = group.cold;
            for count in group.bins.iter_mut().rev() {
                misses += *count;
                *count = misses;
            }
        }
        Curve { hits_to: self.counts, cold: self.cold, groups: self.groups, references, rate }
    }
}

/// A miss-ratio curve.
///
/// Where blocks are sampled, misses are divided by the references that a sample of this rate should hold, not by those
/// it happens to hold (SHARDS-adj): a hot block that the sample has or lacks moves hits in small caches alone. Dividing
/// by those it holds, and correcting by the slope of groups' misses over their references, were tried: on disk traces
/// the first errs by half as much again and by twenty times where a few blocks are hot, the second by as much as this.
pub(crate) struct Curve {
    /// Sampled references at most that far.
    hits_to: Vec<f64>,
    cold: f64,
    /// For each group, misses from each bin on.
    groups: Vec<Group>,
    references: u64,
    rate: f64,
}

impl Curve {
    /// References that the sample should hold.
    fn expected(&self) -> f64 {
        (self.references as f64 * self.rate).max(f64::MIN_POSITIVE)
    }

    /// References that it holds.
    fn held(&self) -> f64 {
        self.cold + self.hits_to.last().copied().unwrap_or(0.0)
    }

    /// Misses in a cache of so many sampled blocks, between whole ones on a straight line.
    fn misses(&self, sampled: f64) -> f64 {
        let hits_below = |blocks: usize| match blocks.min(self.hits_to.len()) {
            0 => 0.0,
            blocks => self.hits_to[blocks - 1],
        };
        let whole = (sampled as usize).min(self.hits_to.len());
        let (below, above) = (hits_below(whole), hits_below(whole + 1));
        self.held() - below - (above - below) * (sampled - sampled.floor())
    }

    /// Variance of the misses of the sample, from how the groups differ.
    fn variance(&self, sampled: f64) -> f64 {
        let index = bin(sampled as u64);
        let misses = |group: &Group| group.bins.get(index).copied().unwrap_or(group.cold);
        let count = GROUPS as f64;
        let mean = self.groups.iter().map(misses).sum::<f64>() / count;
        let squares: f64 = self.groups.iter().map(|group| (misses(group) - mean).powi(2)).sum();
        squares * count / (count - 1.0) * (1.0 - self.rate)
    }

    fn is_exact(&self) -> bool {
        self.rate == 1.0
    }

    /// Misses over references in a cache of so many sampled blocks, and half the width of the 95 % band.
    fn estimate(&self, sampled: f64) -> (f64, f64) {
        if self.is_exact() {
            return ((self.misses(sampled) / self.expected()).min(1.0), 0.0);
        }
        let ratio = self.misses(sampled) / self.expected();
        // A distance is itself the count of a sample: binomial.
        let spread = (sampled * (1.0 - self.rate)).sqrt();
        let place = self.misses((sampled - spread).max(0.0)) - self.misses(sampled + spread);
        (ratio.clamp(0.0, 1.0), BAND * (self.variance(sampled) + place * place / 4.0).sqrt() / self.expected())
    }

    /// What an LRU cache of that size does.
    pub(crate) fn point(&self, cache: u64, cache_bytes: Option<u64>) -> CurvePoint {
        let (miss_ratio, half) = self.estimate(cache as f64 * self.rate);
        let hits = (1.0 - miss_ratio) * self.references as f64;
        CurvePoint {
            cache,
            cache_bytes,
            miss_ratio,
            hits: if self.is_exact() { hits.round() } else { hits },
            low: (!self.is_exact()).then(|| (miss_ratio - half).max(0.0)),
            high: (!self.is_exact()).then(|| (miss_ratio + half).min(1.0)),
        }
    }

    /// The mean half width of the band, up to a cache that holds everything.
    pub(crate) fn mean_band(&self, distinct: f64) -> Option<f64> {
        let at = |step: usize| self.estimate(distinct * self.rate * step as f64 / STEPS as f64).1;
        (!self.is_exact()).then(|| (1..=STEPS).map(at).sum::<f64>() / STEPS as f64)
    }
}
