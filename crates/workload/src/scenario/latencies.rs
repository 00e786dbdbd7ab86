//! [`Latencies`]: a histogram of times, for quantiles of transactions.

/// Classes for each doubling, so that a quantile is at most 1.6 % too high.
const CLASSES: u64 = 64;

/// A histogram whose classes grow with the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
}

impl Latencies {
    /// Adds a time.
    pub(crate) fn add(&mut self, ns: u64) {
        let class = class(ns);
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }

    /// Returns the number of times.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean in ns; 0 without times.
    pub(crate) fn mean_ns(&self) -> f64 {
        super::step::mean_ns(self.sum_ns, self.count)
    }

    /// Returns the upper end of the class that holds this quantile, in ns; 0 without times.
    pub(crate) fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut below = 0;
        let at = self.counts.iter().position(|&count| {
            below += count;
            below >= wanted.max(1)
        });
        at.map_or(0.0, |class| upper_end(class as u64) as f64)
    }
}

fn class(ns: u64) -> usize {
    if ns < CLASSES {
        return ns as usize;
    }
    let doublings = u64::from(ns.ilog2() - CLASSES.ilog2());
    (doublings * CLASSES + (ns >> doublings)) as usize
}

fn upper_end(class: u64) -> u64 {
    if class < 2 * CLASSES {
        return class;
    }
    let doublings = class / CLASSES - 1;
    let first = (class % CLASSES + CLASSES) << doublings;
    first + ((1 << doublings) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_2_percent_too_high() {
        let mut latencies = Latencies::default();
        (1..=100_000u64).for_each(|number| latencies.add(number * 1_000));
        for share in [0.01, 0.5, 0.99, 1.0] {
            let exact_ns = share * 1e8;
            let quantile_ns = latencies.quantile_ns(share);
            assert!((exact_ns..=exact_ns * 1.016).contains(&quantile_ns), "{share}: {quantile_ns}");
        }
        assert_eq!((latencies.count(), latencies.mean_ns()), (100_000, 50_000_500.0));
        assert_eq!(Latencies::default().quantile_ns(0.5), 0.0);
        let edges = [0, 1, 63, 64, 127, 128, 129, 1 << 20, u64::MAX];
        assert!(edges.into_iter().all(|ns| upper_end(class(ns) as u64) >= ns));
    }
}
