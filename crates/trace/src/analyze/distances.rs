//! [`Distances`] counts LRU stack distances; the resulting [`Curve`] is the miss ratio of caches of any size.

use serde::{Deserialize, Serialize};

use super::sample::GROUPS;

/// Student's t for a 95 % band from 64 groups.
const BAND: f64 = 1.998;
/// Bins per octave in the groups' histograms: 3 %, far below the resolution of a sample.
const FINE: u64 = 32;
/// Number of cache sizes over which the mean band is computed.
const STEPS: usize = 200;

/// A point of a miss-ratio curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Cache size in blocks or requests.
    pub cache: u64,
    /// Cache size in bytes; null if requests are counted.
    pub cache_bytes: Option<u64>,
    /// Miss ratio of an LRU cache of that size.
    pub miss_ratio: f64,
    /// Number of hits; an estimate if `low` is not null.
    pub hits: f64,
    /// Lower end of the 95 % band; null if the count is exact.
    pub low: Option<f64>,
    /// Upper end of the 95 % band; null if the count is exact.
    pub high: Option<f64>,
}

/// Number of references by distance in sampled blocks.
#[derive(Serialize, Deserialize)]
pub(crate) struct Distances {
    /// By distance. Whole numbers until the sample is halved, and exact below 2^53.
    counts: Vec<f64>,
    cold: f64,
    /// Sampled references of each group: by bins of distance, and those to new blocks.
    groups: Vec<Group>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Group {
    bins: Vec<f64>,
    cold: f64,
}

/// The bin of a distance: one per distance below [`FINE`], then [`FINE`] per octave.
#[inline]
fn bin(distance: u64) -> usize {
    let octave = u64::from(distance.max(FINE).ilog2() - FINE.ilog2());
    (octave * FINE + (distance >> octave)) as usize
}

impl Distances {
    pub(crate) fn new() -> Distances {
        Distances { counts: Vec::new(), cold: 0.0, groups: vec![Group::default(); GROUPS] }
    }

    /// Adds `uses` references of that distance; with a group if blocks are sampled.
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

    /// Adds `uses` references to new blocks.
    #[inline]
    pub(crate) fn add_cold(&mut self, uses: u32, group: Option<usize>) {
        self.cold += f64::from(uses);
        if let Some(group) = group {
            self.groups[group].cold += f64::from(uses);
        }
    }

    /// Adds the references of a later part with a known distance; blocks that are new there may not be new here.
    pub(crate) fn merge_distances(&mut self, later: &Distances) {
        fn add(counts: &mut Vec<f64>, later: &[f64]) {
            counts.resize(counts.len().max(later.len()), 0.0);
            counts.iter_mut().zip(later).for_each(|(count, later)| *count += later);
        }
        add(&mut self.counts, &later.counts);
        self.groups.iter_mut().zip(&later.groups).for_each(|(group, later)| add(&mut group.bins, &later.bins));
    }

    /// Halves the sample: distances are halved, and references weigh half as much.
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
                // One octave down; below, distance by distance.
                let half = if index < 2 * FINE as usize { index / 2 } else { index - FINE as usize };
                if half >= group.bins.len() {
                    group.bins.resize(half + 1, 0.0);
                }
                group.bins[half] += count / 2.0;
            }
            group.cold /= 2.0;
        }
    }

    /// Builds the curve for `references` in all, at the final sampling rate.
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
/// For sampled blocks, misses are divided by the expected number of references of such a sample, not by the actual
/// number (SHARDS-adj): a hot block inside or outside of the sample only changes hits in small caches. Two alternatives
/// were tried on disk traces: dividing by the actual number errs by half as much again, and by twenty times if a few
/// blocks are hot; correcting by the slope of groups' misses over their references errs by as much as this.
pub(crate) struct Curve {
    /// Cumulative sampled references by distance.
    hits_to: Vec<f64>,
    cold: f64,
    /// For each group, misses from each bin on.
    groups: Vec<Group>,
    references: u64,
    rate: f64,
}

impl Curve {
    /// Expected number of references in the sample.
    fn expected(&self) -> f64 {
        (self.references as f64 * self.rate).max(f64::MIN_POSITIVE)
    }

    /// Actual number of references in the sample.
    fn sampled_references(&self) -> f64 {
        self.cold + self.hits_to.last().copied().unwrap_or(0.0)
    }

    /// Misses in a cache of that many sampled blocks, interpolated linearly.
    fn misses(&self, sampled: f64) -> f64 {
        let hits_below = |blocks: usize| match blocks.min(self.hits_to.len()) {
            0 => 0.0,
            blocks => self.hits_to[blocks - 1],
        };
        let whole = (sampled as usize).min(self.hits_to.len());
        let (below, above) = (hits_below(whole), hits_below(whole + 1));
        self.sampled_references() - below - (above - below) * (sampled - sampled.floor())
    }

    /// Variance of the sample's misses, from the differences between groups.
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

    /// Miss ratio of a cache of that many sampled blocks, and half the width of the 95 % band.
    fn estimate(&self, sampled: f64) -> (f64, f64) {
        if self.is_exact() {
            return ((self.misses(sampled) / self.expected()).min(1.0), 0.0);
        }
        let ratio = self.misses(sampled) / self.expected();
        // A distance is itself a binomial count of a sample.
        let spread = (sampled * (1.0 - self.rate)).sqrt();
        let place = self.misses((sampled - spread).max(0.0)) - self.misses(sampled + spread);
        (ratio.clamp(0.0, 1.0), BAND * (self.variance(sampled) + place * place / 4.0).sqrt() / self.expected())
    }

    /// The point of an LRU cache of that size.
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

    /// Mean half width of the band, up to a cache that holds everything.
    pub(crate) fn mean_band(&self, distinct: f64) -> Option<f64> {
        let at = |step: usize| self.estimate(distinct * self.rate * step as f64 / STEPS as f64).1;
        (!self.is_exact()).then(|| (1..=STEPS).map(at).sum::<f64>() / STEPS as f64)
    }
}
