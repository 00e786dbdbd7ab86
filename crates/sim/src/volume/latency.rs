//! [`Draws`]: random latencies from a precomputed table of quantiles, so that event times do not depend on
//! floating-point rounding.

use headstack_workload::{Purpose, Random};

use crate::description::volume::Latency;

/// Number of quantiles in the table. The last one is the quantile at 0.99994.
const QUANTILES: u32 = 8192;

/// Random latencies for one kind of request.
#[derive(Clone, Debug)]
pub struct Draws {
    quantiles_ns: Vec<u64>,
    random: Random,
}

impl Draws {
    /// Creates the latency table and seeds the draws.
    pub fn new(latency: &Latency, seed: u64) -> Draws {
        let Latency { floor_ns, median_ns, p99_ns } = *latency;
        let above = |ns: u64| (ns - floor_ns) as f64;
        // In a log-normal distribution, ln(p99 / median) is 2.326 standard deviations of the logarithm.
        let sigma = libm::log(above(p99_ns) / above(median_ns)) / normal_quantile(0.99);
        let quantile = |at: u32| {
            let deviations = normal_quantile((f64::from(at) + 0.5) / f64::from(QUANTILES));
            floor_ns + (above(median_ns) * libm::exp(sigma * deviations)).round() as u64
        };
        Draws { quantiles_ns: (0..QUANTILES).map(quantile).collect(), random: Random::new(seed, Purpose::Latency) }
    }

    /// Draws the next latency, in ns.
    #[inline]
    pub fn draw_ns(&mut self) -> u64 {
        self.quantiles_ns[self.random.below(u64::from(QUANTILES)) as usize]
    }
}

/// Returns a quantile of the standard normal distribution by bisection of its integral. Speed does not matter, because
/// a run computes the table once.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_integral(middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the integral of the standard normal distribution by Abramowitz and Stegun 26.2.17, accurate to 7.5e-8.
fn normal_integral(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial =
        t * (0.319_381_53 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = libm::exp(-x * x / 2.0) / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_floor_the_median_and_the_p99_that_are_stated() {
        let mut draws = Draws::new(&Latency { floor_ns: 300_000, median_ns: 600_000, p99_ns: 2_000_000 }, 1);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| draws.draw_ns()).collect();
        drawn.sort_unstable();
        let near = |found: u64, stated: u64| (found as f64 / stated as f64 - 1.0).abs() < 0.02;
        assert!(drawn[0] > 300_000);
        assert!(near(drawn[50_000], 600_000) && near(drawn[99_000], 2_000_000), "{} {}", drawn[50_000], drawn[99_000]);
    }
}
