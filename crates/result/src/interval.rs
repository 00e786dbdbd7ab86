//! A confidence interval for the mean of an autocorrelated series.

/// The most batches held; when that many are complete they are paired up into half as many.
const MAX_BATCHES: usize = 64;
/// Fewer batches give no interval.
const MIN_BATCHES: usize = MAX_BATCHES / 2;

/// The method of batch means: successive response times depend on each other (they queued together), so that the
/// standard error of single values is far too small. Means of long batches hardly do. (Law and Kelton, *Simulation
/// Modeling and Analysis*, chapter 9.)
///
/// The batch length starts at one value and doubles whenever 64 batches are full, so that 32 to 63 batches stand at
/// any time, whatever the length of the run.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    means: [f64; MAX_BATCHES],
    complete: usize,
    batch_len: u64,
    open_sum: f64,
    open_len: u64,
}

impl BatchMeans {
    /// An empty series.
    pub fn new() -> Self {
        Self { means: [0.0; MAX_BATCHES], complete: 0, batch_len: 1, open_sum: 0.0, open_len: 0 }
    }

    /// Appends one value, in any unit.
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.open_sum += value;
        self.open_len += 1;
        if self.open_len == self.batch_len {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        self.means[self.complete] = self.open_sum / self.batch_len as f64;
        self.complete += 1;
        (self.open_sum, self.open_len) = (0.0, 0);
        if self.complete == MAX_BATCHES {
            for pair in 0..MIN_BATCHES {
                self.means[pair] = (self.means[2 * pair] + self.means[2 * pair + 1]) / 2.0;
            }
            self.complete = MIN_BATCHES;
            self.batch_len *= 2;
        }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.complete as u64 * self.batch_len + self.open_len
    }

    /// How many values make a batch at present. The interval is sound when this is long against the time over which
    /// values depend on each other.
    pub fn batch_len(&self) -> u64 {
        self.batch_len
    }

    /// Half the width of the 95 % confidence interval of the mean, in the unit of the values: Student's t over the
    /// complete batches. `None` before 32 values.
    pub fn half_width_95(&self) -> Option<f64> {
        if self.complete < MIN_BATCHES {
            return None;
        }
        let batches = &self.means[..self.complete];
        let n = batches.len() as f64;
        let mean = batches.iter().sum::<f64>() / n;
        let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(student_t_975(n - 1.0) * (variance / n).sqrt())
    }
}

impl Default for BatchMeans {
    fn default() -> Self {
        Self::new()
    }
}

/// The 97.5 % point of Student's t: the expansion about the normal's (Abramowitz and Stegun 26.7.5), good to 10^-5 for
/// the 31 and more degrees of freedom used here.
fn student_t_975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    Z + (z3 + Z) / (4.0 * degrees)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * degrees.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * degrees.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of 12 uniform variates of a 64-bit linear congruence: near enough to normal, and reproducible.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            let uniform = |state: &mut u64| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (*state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
        }
    }

    /// The share of `runs` whose interval holds the true mean 0 of an AR(1) series x' = phi x + noise, for batch means
    /// and for the interval that takes the values as independent.
    fn coverage(phi: f64, values: u32, runs: u32) -> (f64, f64) {
        let mut noise = Noise(1);
        let (mut batched, mut naive) = (0, 0);
        for _ in 0..runs {
            let mut batches = BatchMeans::new();
            // Started in its stationary distribution.
            let mut x = noise.next() / (1.0 - phi * phi).sqrt();
            let (mut sum, mut squares, n) = (0.0, 0.0, f64::from(values));
            for _ in 0..values {
                batches.record(x);
                sum += x;
                squares += x * x;
                x = phi * x + noise.next();
            }
            let mean: f64 = sum / n;
            batched += u32::from(mean.abs() <= batches.half_width_95().unwrap());
            naive += u32::from(mean.abs() <= 1.96 * (squares / n - mean * mean).sqrt() / n.sqrt());
        }
        (f64::from(batched) / f64::from(runs), f64::from(naive) / f64::from(runs))
    }

    #[test]
    fn the_interval_covers_the_mean_of_independent_values() {
        // 2,000 runs: one standard error is 0.5 points.
        let (batched, naive) = coverage(0.0, 1000, 2000);
        assert!((0.935..0.965).contains(&batched), "{batched}");
        assert!((0.935..0.965).contains(&naive), "{naive}");
    }

    #[test]
    fn the_interval_covers_the_mean_of_correlated_values() {
        // At phi = 0.9 the variance of the mean is (1+phi)/(1-phi) = 19 times that of independent values: an interval
        // that ignores it is 4.4 times too narrow and covers a third.
        let (batched, naive) = coverage(0.9, 10_000, 1500);
        assert!((0.93..0.965).contains(&batched), "{batched}");
        assert!((0.30..0.40).contains(&naive), "{naive}");
    }

    #[test]
    fn pairing_up_keeps_every_value_in_its_batch() {
        let mut batches = BatchMeans::new();
        for n in 1..=5000u64 {
            batches.record(n as f64);
            assert_eq!(batches.count(), n);
            assert_eq!(batches.half_width_95().is_some(), n >= 32);
            assert!(n < 32 || (32..64).contains(&batches.complete));
            // The mean of 1, 2, ... m is (m + 1) / 2: m values are in complete batches of equal length.
            let m = batches.complete as u64 * batches.batch_len();
            let mean = batches.means[..batches.complete].iter().sum::<f64>() / batches.complete as f64;
            assert!((mean - (m + 1) as f64 / 2.0).abs() < 1e-9 || m == 0);
        }
        assert_eq!(batches.batch_len(), 128);
    }

    #[test]
    fn a_constant_series_has_no_width_and_the_width_follows_the_unit() {
        let width = |scale: f64| {
            let mut batches = BatchMeans::new();
            (0..999).for_each(|i| batches.record(scale * f64::from(i % 7)));
            batches.half_width_95().unwrap()
        };
        assert_eq!(width(0.0), 0.0);
        assert!((width(1000.0) / width(1.0) / 1000.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_width_is_students_t_times_the_standard_error() {
        // 0, 1, 0, 1, ... 40 batches of one value: variance 1/4 x 40/39, t = 2.02269 at 39 degrees.
        let mut batches = BatchMeans::new();
        (0..40).for_each(|i| batches.record(f64::from(i % 2)));
        let expected = 2.02269 * (0.25f64 / 39.0).sqrt();
        let width = batches.half_width_95().unwrap();
        assert!((width / expected - 1.0).abs() < 1e-5, "{width}");
    }

    #[test]
    fn student_t_is_as_tabulated() {
        for (degrees, t) in [(31.0, 2.03951), (40.0, 2.02108), (60.0, 2.00030), (62.0, 1.99897)] {
            assert!((student_t_975(degrees) - t).abs() < 1e-5, "{degrees}: {}", student_t_975(degrees));
        }
    }
}
