//! [`Distances`]: counts LRU stack distances, from which [`Curve`] computes the miss ratio for any cache size.

use serde::{Deserialize, Serialize};

use super::sample::GROUPS;

/// Student's t for a 95 % confidence band from 64 groups.
const BAND: f64 = 1.998;
/// Bins per octave in the histograms of groups: 3 % wide, much finer than the accuracy of a sample.
const FINE: u64 = 32;
/// Number of cache sizes over which the band width is averaged.
const STEPS: usize = 200;

/// A point of a miss-ratio curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Cache size, in blocks or requests.
    pub cache: u64,
    /// Cache size, in bytes; null if requests are counted.
    pub cache_bytes: Option<u64>,
    /// Miss ratio of an LRU cache of this size.
    pub miss_ratio: f64,
    /// Number of hits; an estimate if `low` is not null.
    pub hits: f64,
    /// Lower bound of the 95 % confidence band; null if the count is exact.
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence band; null if the count is exact.
    pub high: Option<f64>,
}

/// Number of references by stack distance in sampled blocks.
#[derive(Serialize, Deserialize)]
pub(crate) struct Distances {
    /// Number of references at each distance. Counts are integers until the sample is halved, and exact below 2^53.
    counts: Vec<f64>,
    cold: f64,
    /// Sampled references of each group, by distance bin and for new blocks.
    groups: Vec<Group>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Group {
    bins: Vec<f64>,
    cold: f64,
}

/// Returns the bin of a distance: one bin per distance below [`FINE`], then [`FINE`] bins per octave.
#[inline]
fn bin(distance: u64) -> usize {
    let octave = u64::from(distance.max(FINE).ilog2() - FINE.ilog2());
    (octave * FINE + (distance >> octave)) as usize
}

impl Distances {
    pub(crate) fn new() -> Distances {
        Distances { counts: Vec::new(), cold: 0.0, groups: vec![Group::default(); GROUPS] }
    }

    /// Adds `uses` references at a distance; `group` is set if blocks are sampled.
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

    /// Adds the references of a later part whose distance is known. Blocks that are new in the later part are excluded,
    /// because they may not be new here.
    pub(crate) fn merge_distances(&mut self, later: &Distances) {
        fn add(counts: &mut Vec<f64>, later: &[f64]) {
            counts.resize(counts.len().max(later.len()), 0.0);
            counts.iter_mut().zip(later).for_each(|(count, later)| *count += later);
        }
        add(&mut self.counts, &later.counts);
        self.groups.iter_mut().zip(&later.groups).for_each(|(group, later)| add(&mut group.bins, &later.bins));
    }

    /// Halves the sample: halves each distance and the weight of each reference.
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
                // Above the first bins, half the distance is one octave down.
                let half = if index < 2 * FINE as usize { index / 2 } else { index - FINE as usize };
                if half >= group.bins.len() {
                    group.bins.resize(half + 1, 0.0);
                }
                group.bins[half] += count / 2.0;
            }
            group.cold /= 2.0;
        }
    }

    /// Builds the curve; `references` is the total number of references, and `rate` the final sampling rate.
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
/// For a sample, misses are divided by the expected number of sampled references instead of the actual number
/// (SHARDS-adj), so a hot block that is or is not in the sample changes only the hits in small caches. Two alternatives
/// did worse or no better on disk traces. Dividing by the actual number gave 1.5 times the error, and 20 times the
/// error if a few blocks are hot. Correcting by the slope of misses over references across groups gave the same error.
pub(crate) struct Curve {
    /// Cumulative number of sampled references by distance.
    hits_to: Vec<f64>,
    cold: f64,
    /// Number of misses of each group, cumulative from each bin upwards.
    groups: Vec<Group>,
    references: u64,
    rate: f64,
}

impl Curve {
    /// Returns the expected number of references in the sample.
    fn expected(&self) -> f64 {
        (self.references as f64 * self.rate).max(f64::MIN_POSITIVE)
    }

    /// Returns the actual number of references in the sample.
    fn sampled_references(&self) -> f64 {
        self.cold + self.hits_to.last().copied().unwrap_or(0.0)
    }

    /// Returns the number of misses in a cache of `sampled` sampled blocks, interpolated linearly.
    fn misses(&self, sampled: f64) -> f64 {
        let hits_below = |blocks: usize| match blocks.min(self.hits_to.len()) {
            0 => 0.0,
            blocks => self.hits_to[blocks - 1],
        };
        let whole = (sampled as usize).min(self.hits_to.len());
        let (below, above) = (hits_below(whole), hits_below(whole + 1));
        self.sampled_references() - below - (above - below) * (sampled - sampled.floor())
    }

    /// Returns the variance of the sample's misses, estimated from the differences between groups.
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

    /// Returns the miss ratio of a cache of `sampled` sampled blocks, and the half-width of its 95 % confidence band.
    fn estimate(&self, sampled: f64) -> (f64, f64) {
        if self.is_exact() {
            return ((self.misses(sampled) / self.expected()).min(1.0), 0.0);
        }
        let ratio = self.misses(sampled) / self.expected();
        // The number of sampled blocks that fit the cache is itself binomially distributed.
        let spread = (sampled * (1.0 - self.rate)).sqrt();
        let place = self.misses((sampled - spread).max(0.0)) - self.misses(sampled + spread);
        (ratio.clamp(0.0, 1.0), BAND * (self.variance(sampled) + place * place / 4.0).sqrt() / self.expected())
    }

    /// Returns the point of the curve for an LRU cache of this size.
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

    /// Returns the mean half-width of the band over cache sizes up to one that holds everything.
    pub(crate) fn mean_band(&self, distinct: f64) -> Option<f64> {
        let at = |step: usize| self.estimate(distinct * self.rate * step as f64 / STEPS as f64).1;
        (!self.is_exact()).then(|| (1..=STEPS).map(at).sum::<f64>() / STEPS as f64)
    }
}
