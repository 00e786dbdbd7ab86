//! [`Buckets`]: a histogram of times that is small enough to be reported every second, with twenty buckets per decade
//! at preferred numbers.

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// Bucket bounds within a decade: preferred numbers (R20 of ISO 3), rounded.
const STEPS: [u64; 20] =
    [100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];
/// Number of decades, from 1 us to 100 s.
const DECADES: usize = 8;
const BOUNDS: usize = STEPS.len() * DECADES + 1;

/// Number of times per bucket. A bucket holds the times above the previous bound, up to and including its own bound.
#[derive(Clone, Debug)]
pub struct Buckets {
    counts: [u64; BOUNDS + 1],
    sum_ns: u128,
}

/// Inclusive upper bounds of the buckets in ns; the last bucket has no bound.
pub const BOUNDS_NS: [u64; BOUNDS] = bounds_ns();

const fn bounds_ns() -> [u64; BOUNDS] {
    let mut bounds = [0; BOUNDS];
    let mut index = 0;
    let mut scale = 10;
    while index < BOUNDS {
        bounds[index] = STEPS[index % STEPS.len()] * scale;
        index += 1;
        if index.is_multiple_of(STEPS.len()) {
            scale *= 10;
        }
    }
    bounds
}

impl Buckets {
    /// Creates an empty histogram.
    pub fn new() -> Buckets {
        Buckets { counts: [0; BOUNDS + 1], sum_ns: 0 }
    }

    /// Records a time in ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[BOUNDS_NS.partition_point(|&bound| bound < ns)] += 1;
        self.sum_ns += u128::from(ns);
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the recorded times in ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the number of times up to and including the bound with index `bound`.
    pub fn at_most(&self, bound: usize) -> u64 {
        self.counts[..=bound].iter().sum()
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets::new()
    }
}

/// Serialises the counts per bucket as a list, up to the last non-empty bucket.
impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let used = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let mut list = serializer.serialize_seq(Some(used))?;
        for count in &self.counts[..used] {
            list.serialize_element(count)?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        assert_eq!((BOUNDS_NS[0], BOUNDS_NS[20], BOUNDS_NS[BOUNDS - 1]), (1_000, 10_000, 100_000_000_000));
        assert!(BOUNDS_NS.is_sorted_by(|a, b| a < b));
        let mut buckets = Buckets::new();
        [0, 1_000, 1_001, 1_120, u64::MAX].into_iter().for_each(|ns| buckets.record(ns));
        assert_eq!(
            (buckets.count(), buckets.at_most(0), buckets.at_most(1), buckets.at_most(BOUNDS - 1)),
            (5, 2, 4, 4)
        );
        assert_eq!(buckets.counts[BOUNDS], 1, "a time above every bound is counted");
    }
}
