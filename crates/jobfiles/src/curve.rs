//! [`CurvePoint`]: a point of a saturation curve, whose rate is a percentage of the rate of an unlimited run.

use headstack_workload::{ArrivalProcess, Arrivals};
use serde::{Deserialize, Serialize};

use super::Phase;

/// Rate that vdbench assumes if the unlimited run observed nothing, in requests per second (`Vdb/Reporter.java`,
/// 5.04.06).
const UNSEEN_RATE_PER_S: f64 = 10_000.0;

/// A phase whose rate is a percentage of another phase's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Index in the file of the earlier phase that runs without a rate limit.
    pub max_phase: usize,
    /// Rate in percent of the observed rate of `max_phase`.
    pub percent: f64,
    /// Distribution of interarrival times.
    pub process: ArrivalProcess,
    /// Mean response time above which the curve ends after the current point, in ns. The file's phases end with it.
    pub stop_response_ns: Option<u64>,
}

/// Returns the rate of a curve point as vdbench chooses it (`For_loop.for_add_curve`): in whole requests per second,
/// rounded up to a multiple of 100 above 1000, else to a multiple of 10; 0 if there is nothing to run.
///
/// `observed_per_s` is the rate of the unlimited run; 0 means that the run observed nothing.
pub fn curve_rate_per_s(observed_per_s: f64, percent: f64) -> f64 {
    let observed = if observed_per_s > 0.0 { observed_per_s } else { UNSEEN_RATE_PER_S };
    let rate = (observed.round() * percent.trunc() / 100.0).max(0.0).floor();
    let step = if rate > 1000.0 { 100.0 } else { 10.0 };
    (rate / step).ceil() * step
}

impl Phase {
    /// Returns the phase of a curve point with its rates. `observed_per_s` is the observed rate of each job of the
    /// unlimited phase, in job order. Other phases are returned unchanged.
    ///
    /// As in vdbench, the rate is divided in proportion to the observed rates, not the requested ones. If nothing was
    /// observed, it is divided by shares, or evenly if there are none. A job with a rate of 0 is omitted.
    #[must_use]
    pub fn at_observed(&self, observed_per_s: &[f64]) -> Phase {
        let Some(point) = self.curve_point else {
            return self.clone();
        };
        let observed = |index: usize| observed_per_s.get(index).copied().filter(|rate| *rate > 0.0).unwrap_or(0.0);
        let total_per_s: f64 = (0..self.jobs.len()).map(observed).sum();
        let rate_per_s = curve_rate_per_s(total_per_s, point.percent);
        let mut phase = Phase { pool: None, curve_point: None, ..self.clone() };
        for (index, job) in phase.jobs.iter_mut().enumerate() {
            let share = match (total_per_s > 0.0, job.share_percent.take()) {
                (true, _) => observed(index) / total_per_s,
                (false, Some(percent)) => percent / 100.0,
                (false, None) => 1.0 / self.jobs.len() as f64,
            };
            let rate_per_s = rate_per_s * share / f64::from(job.copies.max(1));
            job.workload.arrivals = Arrivals::Open { rate_per_s, process: point.process };
        }
        phase.jobs.retain(|job| matches!(job.workload.arrivals, Arrivals::Open { rate_per_s, .. } if rate_per_s > 0.0));
        phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_up_as_vdbench_does() {
        // Calculated by hand from `(int) max * (int) pct / 100`, rounded up to hundreds above 1000, else to tens.
        for (observed, percent, expected) in [
            (12_345.4, 10.0, 1_300.0),
            (12_345.4, 50.0, 6_200.0),
            (12_345.4, 100.0, 12_400.0),
            (10_000.0, 10.0, 1_000.0),
            (10_010.0, 10.0, 1_100.0),
            (183.0, 10.0, 20.0),
            (183.0, 70.0, 130.0),
            (1_200.0, 70.0, 840.0),
            (0.0, 50.0, 5_000.0),
            (99.0, 0.5, 0.0),
        ] {
            assert_eq!(curve_rate_per_s(observed, percent), expected, "{percent} % of {observed}");
        }
    }
}
