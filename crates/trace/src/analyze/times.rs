//! [`Times`]: a histogram of times with a fixed relative class width, small enough for one per timeline bin.

use serde::{Deserialize, Serialize};

/// Base-2 logarithm of the number of classes per octave. Each class is 1.6 % wide, and its midpoint is within 0.8 % of
/// all its values.
const CLASS_BITS: u32 = 6;
const CLASSES: u64 = 1 << CLASS_BITS;

/// Summary of the times in a bin, process or phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimesReport {
    /// Number of times.
    pub count: u64,
    /// Mean time, in ns.
    pub mean_ns: f64,
    /// Median, in ns; percentiles are accurate to 0.8 %.
    pub p50_ns: u64,
    /// 95th percentile, in ns.
    pub p95_ns: u64,
    /// 99th percentile, in ns.
    pub p99_ns: u64,
    /// 99.9th percentile, in ns.
    pub p999_ns: u64,
    /// Maximum time, in ns.
    pub max_ns: u64,
}

/// A class of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeClass {
    /// Exclusive upper limit of the class, in ns.
    pub below_ns: u64,
    /// Number of times in the class.
    pub count: u64,
}

/// Counts of times by class. Counts are integers, so parts of a trace add up exactly to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Class of the first count.
    first: usize,
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Times {
    #[inline]
    pub(crate) fn add(&mut self, time_ns: u64) {
        let class = class(time_ns);
        if class < self.first || class - self.first >= self.counts.len() {
            self.reach(class, class);
        }
        self.counts[class - self.first] += 1;
        self.count += 1;
        self.sum_ns += u128::from(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }

    /// Extends the counts to a range of classes.
    #[cold]
    fn reach(&mut self, low: usize, high: usize) {
        if self.counts.is_empty() {
            self.first = low;
        }
        if low < self.first {
            let before = vec![0; self.first - low];
            self.counts.splice(0..0, before);
            self.first = low;
        }
        self.counts.resize(self.counts.len().max(high + 1 - self.first), 0);
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Times) {
        if other.count == 0 {
            return;
        }
        self.reach(other.first, other.first + other.counts.len() - 1);
        let offset = other.first - self.first;
        self.counts[offset..].iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the summary; `None` if there are no times.
    pub(crate) fn report(&self) -> Option<TimesReport> {
        (self.count > 0).then(|| TimesReport {
            count: self.count,
            mean_ns: self.sum_ns as f64 / self.count as f64,
            p50_ns: self.at(0.5),
            p95_ns: self.at(0.95),
            p99_ns: self.at(0.99),
            p999_ns: self.at(0.999),
            max_ns: self.max_ns,
        })
    }

    /// Returns the quantile `share`, in ns.
    fn at(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        let class = self.first + place.unwrap_or(self.counts.len() - 1);
        (least(class) + (least(class + 1) - least(class)) / 2).min(self.max_ns)
    }

    /// Returns the non-empty classes.
    pub(crate) fn classes(&self) -> Vec<TimeClass> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(place, &count)| TimeClass { below_ns: least(self.first + place + 1), count }).collect()
    }
}

/// Returns the class of a time; below 2^6 ns, each time has its own class.
#[inline]
fn class(time_ns: u64) -> usize {
    let time_ns = time_ns.min(i64::MAX as u64);
    if time_ns < CLASSES {
        return time_ns as usize;
    }
    let power = time_ns.ilog2();
    (u64::from(power - CLASS_BITS + 1) * CLASSES + (time_ns >> (power - CLASS_BITS) & (CLASSES - 1))) as usize
}

/// Returns the lower limit of a class, in ns.
fn least(class: usize) -> u64 {
    let (power, part) = (class as u64 / CLASSES, class as u64 % CLASSES);
    if power == 0 { part } else { (CLASSES + part) << (power - 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> Times {
        let mut of = Times::default();
        times.iter().for_each(|time| of.add(*time));
        of
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(
            first in prop::collection::vec(0u64..1 << 62, 0..50),
            later in prop::collection::vec(0u64..1 << 20, 0..50),
        ) {
            let mut merged = of(&first);
            merged.merge(&of(&later));
            let whole = of(&[first, later].concat());
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(merged.classes().iter().map(|class| class.count).sum::<u64>(), whole.count);
        }

        #[test]
        fn a_time_is_in_its_class(time_ns in 0u64..1 << 62) {
            let class = class(time_ns);
            prop_assert!(least(class) <= time_ns && time_ns < least(class + 1));
            let middle = least(class) + (least(class + 1) - least(class)) / 2;
            prop_assert!(middle.abs_diff(time_ns) as f64 <= 0.008 * time_ns as f64);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let report = of(&(1..=1_000).map(|ms| ms * 1_000_000).collect::<Vec<_>>()).report().unwrap();
        for (found, ms) in [
            (report.p50_ns, 500),
            (report.p95_ns, 950),
            (report.p99_ns, 990),
            (report.p999_ns, 999),
            (report.max_ns, 1_000),
        ] {
            assert!(found.abs_diff(ms * 1_000_000) <= ms * 8_000, "{found} for {ms} ms");
        }
        assert_eq!((report.count, report.mean_ns), (1_000, 500.5e6));
        assert_eq!(Times::default().report(), None);
    }
}
