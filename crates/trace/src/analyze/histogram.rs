//! Bounded histograms: [`Powers`] with power-of-two bins for display, [`Values`] with 0.1 % resolution for percentiles.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A histogram bin from a power of two up to the next; the bin from 0 contains only zeros.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower limit of the bin; the upper limit is twice this value.
    pub from: u64,
    /// Number of values; an estimate if blocks were sampled.
    pub count: f64,
}

/// Counts in power-of-two bins, up to the largest value. Small enough to keep several per device.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Powers(Vec<f64>);

impl Powers {
    pub(crate) fn new() -> Powers {
        Powers::default()
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.add_weighted(value, 1.0);
    }

    /// Adds a value with a weight.
    #[inline]
    pub(crate) fn add_weighted(&mut self, value: u64, weight: f64) {
        let index = (u64::BITS - value.leading_zeros()) as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, 0.0);
        }
        self.0[index] += weight;
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Powers) {
        self.0.resize(self.0.len().max(other.0.len()), 0.0);
        self.0.iter_mut().zip(&other.0).for_each(|(count, other)| *count += other);
    }

    /// Returns the non-empty bins.
    pub(crate) fn bins(&self) -> Vec<Bin> {
        let from = |index: usize| if index == 0 { 0 } else { 1 << (index - 1) };
        let bins = self.0.iter().enumerate().filter(|(_, count)| **count > 0.0);
        bins.map(|(index, &count)| Bin { from: from(index), count }).collect()
    }
}

/// Summary of a set of times or other values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Mean value.
    pub mean: f64,
    /// Smallest value.
    pub min: u64,
    /// Median; percentiles are rounded up, by at most 0.1 %.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest value.
    pub max: u64,
}

/// Largest value counted exactly; larger values go to the last bin.
const VALUE_MAX: u64 = i64::MAX as u64;

/// Values recorded for percentiles.
pub(crate) struct Values {
    histogram: Histogram<u64>,
    /// Sum of the values; an integer, so the order of summation does not matter.
    sum: u128,
    min: u64,
    max: u64,
}

impl Values {
    pub(crate) fn new() -> Values {
        // The full range is set from the start, because saturating recording clamps values instead of growing the
        // range.
        let histogram = Histogram::new_with_max(VALUE_MAX, 3);
        let histogram = histogram.unwrap_or_else(|_| unreachable!("3 significant digits are valid"));
        Values { histogram, sum: 0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.saturating_record(value);
    }

    /// Adds the values of another histogram.
    pub(crate) fn merge(&mut self, other: &Values) {
        let added = self.histogram.add(&other.histogram);
        added.unwrap_or_else(|_| unreachable!("both histograms have the same range"));
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the summary; `None` if there are no values.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let count = self.histogram.len();
        // Quantiles are shares, not percentages: 99.9 / 100 is slightly above 0.999, which is one rank too high in
        // 1,000.
        let at = |share: f64| self.histogram.value_at_quantile(share).clamp(self.min, self.max);
        (count > 0).then(|| Summary {
            count,
            mean: self.sum as f64 / count as f64,
            min: self.min,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        })
    }
}

/// Serialized form: the non-empty bins.
#[derive(Serialize, Deserialize)]
struct Sent {
    bins: Vec<(u64, u64)>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bins = self.histogram.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value()));
        Sent { bins: bins.collect(), sum: self.sum, min: self.min, max: self.max }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        let sent = Sent::deserialize(deserializer)?;
        let mut values = Values { sum: sent.sum, min: sent.min, max: sent.max, ..Values::new() };
        sent.bins.iter().for_each(|&(value, count)| values.histogram.saturating_record_n(value, count));
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth_at_every_magnitude() {
        for unit in [1, 1_000, 1_000_000, 1_000_000_000, 3_600_000_000_000] {
            let mut values = Values::new();
            (1..=1_000).for_each(|value| values.add(value * unit));
            let summary = values.summary().unwrap();
            let shown = [summary.p50, summary.p90, summary.p95, summary.p99, summary.p999];
            for (shown, rank) in shown.into_iter().zip([500, 900, 950, 990, 999]) {
                let exact = rank * unit;
                assert!(shown >= exact && shown - exact <= exact / 1_000, "{shown} for {exact}");
            }
            assert_eq!((summary.min, summary.max, summary.count), (unit, 1_000 * unit, 1_000));
            assert!((summary.mean / unit as f64 - 500.5).abs() < 1e-9);
        }
    }

    #[test]
    fn the_greatest_values_are_counted() {
        let mut values = Values::new();
        [0, u64::MAX, u64::MAX, u64::MAX].into_iter().for_each(|value| values.add(value));
        let summary = values.summary().unwrap();
        assert_eq!((summary.count, summary.min, summary.max), (4, 0, u64::MAX));
        assert!(summary.p50 >= VALUE_MAX);
    }
}
