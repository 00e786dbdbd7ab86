//! Bounded histograms: by powers of two for the eye, to 0.1 % for percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Values from a power of two up to the next; from 0, zeros alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Least value of the bin; the next bin begins at twice that.
    pub from: u64,
    /// How many; an estimate where blocks were sampled.
    pub count: f64,
}

/// Counts by powers of two.
#[derive(Clone)]
pub(crate) struct Powers([f64; 65]);

impl Powers {
    pub(crate) fn new() -> Powers {
        Powers([0.0; 65])
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.add_weighted(value, 1.0);
    }

    /// A value that stands for so many.
    #[inline]
    pub(crate) fn add_weighted(&mut self, value: u64, weight: f64) {
        self.0[(u64::BITS - value.leading_zeros()) as usize] += weight;
    }

    /// The counts of both.
    pub(crate) fn join(&mut self, other: &Powers) {
        self.0.iter_mut().zip(&other.0).for_each(|(count, other)| *count += other);
    }

    /// The bins that are not empty.
    pub(crate) fn bins(&self) -> Vec<Bin> {
        let from = |index: usize| if index == 0 { 0 } else { 1 << (index - 1) };
        let bins = self.0.iter().enumerate().filter(|(_, count)| **count > 0.0);
        bins.map(|(index, &count)| Bin { from: from(index), count }).collect()
    }
}

/// What times, or other magnitudes, are like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Least.
    pub min: u64,
    /// Median; this and the other percentiles to 0.1 %, rounded up.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Greatest.
    pub max: u64,
}

/// Values whose percentiles are asked for.
pub(crate) struct Values {
    histogram: Histogram<u64>,
    sum: f64,
    min: u64,
    max: u64,
}

impl Values {
    pub(crate) fn new() -> Values {
        // Grows with the greatest value; three digits cannot be refused.
        let histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are allowed"));
        Values { histogram, sum: 0.0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.sum += value as f64;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        // The histogram's own limit; greater values stand in its last bin.
        self.histogram.saturating_record(value.min(i64::MAX as u64));
    }

    /// None where there are none.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let count = self.histogram.len();
        let at = |percent: f64| self.histogram.value_at_percentile(percent).clamp(self.min, self.max);
        (count > 0).then(|| Summary {
            count,
            mean: self.sum / count as f64,
            min: self.min,
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            max: self.max,
        })
    }
}
