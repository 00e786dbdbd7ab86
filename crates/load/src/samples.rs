//! [`Samples`]: throughput of a thread over time, as rates of each kind in windows of half a second.

use headstack_result::{Fact, Kinds};

/// Length of a window, in ns, as in fio's `iopsavgtime` and `bwavgtime`.
const WINDOW_NS: u64 = 500_000_000;

/// Rates of each kind, and of reads, writes and trims together, in requests and in bytes per second.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    since_ns: u64,
    /// Counts of requests and bytes at the end of the last window.
    seen: [[u64; 2]; 5],
    rates: [[Spread; 2]; 5],
}

/// Name for all transfers together, as in fio's JSON.
const MIXED: &str = "mixed";

impl Samples {
    /// Starts at `now_ns` with all counts at 0.
    pub fn start(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// Ends a window if its time is over.
    pub fn look(&mut self, now_ns: u64, kinds: &Kinds) {
        if now_ns.saturating_sub(self.since_ns) >= WINDOW_NS {
            self.sample(now_ns, kinds);
        }
    }

    /// Ends the run. A run shorter than a window counts as one window.
    pub fn end(&mut self, now_ns: u64, kinds: &Kinds) {
        let has_any = self.rates.iter().flatten().any(|spread| spread.count > 0);
        if !has_any && now_ns > self.since_ns {
            self.sample(now_ns, kinds);
        }
    }

    fn sample(&mut self, now_ns: u64, kinds: &Kinds) {
        let passed_s = (now_ns - self.since_ns) as f64 / 1e9;
        let each = kinds.all().map(|(_, kind)| [kind.count, kind.bytes]);
        let mixed = each[..3].iter().fold([0; 2], |[count, bytes], kind| [count + kind[0], bytes + kind[1]]);
        for (index, counted) in each.into_iter().chain([mixed]).enumerate() {
            for (figure, now) in counted.into_iter().enumerate() {
                if counted[0] > 0 {
                    self.rates[index][figure].add((now - self.seen[index][figure]) as f64 / passed_s);
                }
            }
            self.seen[index] = counted;
        }
        self.since_ns = now_ns;
    }

    /// Adds the samples of a thread that ran at the same time.
    pub fn merge(&mut self, other: &Samples) {
        let own = self.rates.iter_mut().flatten();
        own.zip(other.rates.iter().flatten()).for_each(|(own, other)| own.merge(other));
    }

    /// Returns minimum, maximum, mean and standard deviation of each kind, as figures of a stream.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        let is_mixed = self.rates[..3].iter().filter(|kind| kind[0].count > 0).count() > 1;
        let names = Kinds::default().all().map(|(name, _)| name);
        for (kind, name) in
            names.into_iter().chain([MIXED]).enumerate().filter(|(kind, _)| is_mixed || *kind < names.len())
        {
            for (spread, unit) in self.rates[kind].iter().zip(["iops", "bytes_per_s"]) {
                let figures = [
                    ("min", spread.min),
                    ("max", spread.max),
                    ("mean", spread.mean),
                    ("stddev", spread.variance().sqrt()),
                    ("samples", spread.count as f64),
                ];
                let fact = |(figure, value)| Fact { name: format!("{name}_{unit}_{figure}"), value };
                facts.extend(figures.into_iter().map(fact).filter(|_| spread.count > 0));
            }
        }
        facts
    }
}

/// Moments of a rate (Welford's recurrence).
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    /// Sum of the variances of the other threads.
    others_variance: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn add(&mut self, rate: f64) {
        self.min = if self.count == 0 { rate } else { self.min.min(rate) };
        self.max = self.max.max(rate);
        self.count += 1;
        let distance = rate - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (rate - self.mean);
    }

    fn variance(&self) -> f64 {
        self.others_variance + if self.count > 1 { self.squares / (self.count - 1) as f64 } else { 0.0 }
    }

    /// Merges another thread: rates add up, and so do the variances of independent rates. Minimum and maximum remain
    /// those of a single thread, as in fio's groups.
    fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        let variance = self.variance() + other.variance();
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.mean += other.mean;
        self.count += other.count;
        (self.squares, self.others_variance) = (0.0, variance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_show_the_variation_of_the_rate() {
        let mut kinds = Kinds::default();
        let mut samples = Samples::default();
        samples.start(1_000);
        for (window, count) in [(1, 100), (2, 400), (3, 500)] {
            kinds.read.count = count;
            kinds.read.bytes = count * 4_096;
            let now_ns = 1_000 + window * WINDOW_NS;
            samples.look(now_ns - 1, &kinds);
            samples.look(now_ns, &kinds);
        }
        samples.end(9 * WINDOW_NS, &kinds);
        // The rate is 100, 300 and 100 in half a second each.
        let fact =
            |samples: &Samples, name: &str| samples.facts().into_iter().find(|fact| fact.name == name).unwrap().value;
        assert_eq!(fact(&samples, "read_iops_samples"), 3.0);
        assert_eq!((fact(&samples, "read_iops_min"), fact(&samples, "read_iops_max")), (200.0, 600.0));
        assert!((fact(&samples, "read_iops_mean") - 1_000.0 / 3.0).abs() < 1e-9);
        assert!((fact(&samples, "read_bytes_per_s_stddev") - 4_096.0 * 160_000f64.sqrt() / 3f64.sqrt()).abs() < 1e-6);
        let both = {
            let mut both = samples.clone();
            both.merge(&samples);
            both
        };
        assert!((fact(&both, "read_iops_mean") - 2_000.0 / 3.0).abs() < 1e-9);
        assert!(
            (fact(&both, "read_iops_stddev").powi(2) - 2.0 * fact(&samples, "read_iops_stddev").powi(2)).abs() < 1e-6
        );
        assert!(samples.facts().iter().all(|fact| fact.name.starts_with("read_")));
        kinds.write.count = 50;
        samples.look(1_000 + 4 * WINDOW_NS, &kinds);
        assert_eq!(fact(&samples, "write_iops_max"), 100.0);
        assert_eq!((fact(&samples, "mixed_iops_min"), fact(&samples, "mixed_iops_max")), (100.0, 600.0));
    }
}
