//! [`Measuring`]: measurements of a run after its warm-up.

use std::cell::Cell;

use crate::batches::{Batches, Levels};
use crate::stalls::StallWatch;
use crate::{Check, DepthResult, Finished, Interval, Kinds, LatencyHistogram, RunResult, Sampling};

/// Measurements taken after the warm-up of a run.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// End of the warm-up, in ns.
    pub start_ns: u64,
    kinds: Kinds,
    intervals: Vec<Interval>,
    interval: Interval,
    interval_response: LatencyHistogram,
    batches: Batches,
    /// Detector of device stalls; `None` for a simulated system, which stalls only because of injected faults.
    stalls: Option<StallWatch>,
    precision_check: Cell<PrecisionCheck>,
    time_at_depth_ns: Vec<u64>,
    depth_since_ns: u64,
    interval_ns: u64,
    /// Number of requests completed since the warm-up.
    pub completed: u64,
    /// Number of requests that failed since the warm-up, if they are recorded here.
    pub failed: u64,
    /// Number of open-loop arrivals since the warm-up.
    pub arrived: u64,
    backlog_at_start: u64,
    /// Sum over all requests of their outstanding time within the measured time, in ns.
    sojourn_ns: u128,
    /// End of the measured time, in ns.
    pub end_ns: Option<u64>,
}

/// Number of completions before the confidence interval of the mean is first checked.
const FIRST_CHECK: u64 = 1 << 10;

/// Time of the next check of the mean's confidence interval, and whether the last check found it narrow enough.
#[derive(Clone, Copy, Debug)]
struct PrecisionCheck {
    next: u64,
    was_precise: bool,
}

/// Returns whether an open loop is overloaded: since the warm-up `piled` more requests wait, out of `arrived` arrivals,
/// which is more than chance explains.
pub fn piles_up(piled: u64, arrived: u64) -> bool {
    piled > 32 && piled as f64 > 0.02 * arrived as f64
}

impl Measuring {
    /// Starts measuring at `start_ns` with `backlog` requests outstanding, in intervals of `interval_ns` (`u64::MAX`
    /// for none).
    pub fn new(start_ns: u64, backlog: u64, interval_ns: u64) -> Self {
        Measuring {
            start_ns,
            kinds: Kinds::default(),
            intervals: Vec::new(),
            interval: Interval { start_ns, ..Interval::default() },
            interval_response: LatencyHistogram::new(),
            batches: Batches::new(),
            stalls: None,
            precision_check: Cell::new(PrecisionCheck { next: FIRST_CHECK, was_precise: false }),
            time_at_depth_ns: vec![0; 64],
            depth_since_ns: start_ns,
            interval_ns,
            completed: 0,
            failed: 0,
            arrived: 0,
            backlog_at_start: backlog,
            sojourn_ns: 0,
            end_ns: None,
        }
    }

    /// Does the same as [`Self::new`] for a device that may stall; its confidence intervals must not depend on a few
    /// events.
    pub fn of_device(start_ns: u64, backlog: u64, interval_ns: u64) -> Self {
        Measuring { stalls: Some(StallWatch::new(start_ns)), ..Measuring::new(start_ns, backlog, interval_ns) }
    }

    /// Records the number of requests that the system served before the measurement, and the initial levels.
    pub fn begin_levels(&mut self, requests_before: u64, levels: Levels) {
        self.batches.begin(requests_before, levels);
    }

    /// Records the system's levels at the end of a batch.
    pub fn note_levels(&mut self, levels: Levels) {
        self.batches.note_levels(levels);
    }

    /// Returns the current counts, by kind.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Adds the time since the last call as spent at queue depth `depth`.
    #[inline]
    pub fn count_depth(&mut self, at_ns: u64, depth: usize) {
        // A closed loop responds to a completion at once, so no time has passed at every other call.
        if at_ns == self.depth_since_ns {
            return;
        }
        if depth >= self.time_at_depth_ns.len() {
            self.time_at_depth_ns.resize(depth.next_power_of_two() + 1, 0);
        }
        if let Some(stalls) = &mut self.stalls {
            stalls.count_depth(at_ns, depth);
        }
        let since_ns = at_ns - self.depth_since_ns;
        self.time_at_depth_ns[depth] += since_ns;
        // Converts through signed integers, which takes a single instruction; no run lasts for centuries.
        self.batches.outstanding(depth as i64 as f64 * since_ns as i64 as f64);
        self.depth_since_ns = at_ns;
    }

    /// Records a completed request, whose outstanding time is already counted. Returns whether the caller must record
    /// the system's levels.
    #[inline]
    pub fn record(&mut self, finished: &Finished) -> bool {
        let Finished { length_bytes, intended_ns, at_ns, .. } = *finished;
        let response_ns = at_ns - intended_ns;
        self.completed += 1;
        self.sojourn_ns += u128::from(at_ns - intended_ns.max(self.start_ns));
        self.kinds.record(finished);
        if let Some(stalls) = &mut self.stalls {
            stalls.complete(at_ns, intended_ns);
        }
        let is_batch = self.batches.record(response_ns);
        if self.interval_ns != u64::MAX {
            while at_ns >= self.interval.start_ns + self.interval_ns {
                self.finish_interval(self.interval.start_ns + self.interval_ns);
            }
            self.interval.count += 1;
            self.interval.bytes += u64::from(length_bytes);
            self.interval_response.record(response_ns);
        }
        is_batch
    }

    /// Counts a failed request among the errors of its kind, and nowhere else.
    pub fn fail(&mut self, kind: usize, intended_ns: u64, at_ns: u64) {
        self.failed += 1;
        self.kinds.of(kind).errors += 1;
        self.forget(intended_ns, at_ns);
    }

    /// Excludes a failed request from all counts except the outstanding time.
    pub fn forget(&mut self, intended_ns: u64, at_ns: u64) {
        if self.end_ns.is_none() {
            let sojourn_ns = at_ns - intended_ns.max(self.start_ns);
            self.sojourn_ns += u128::from(sojourn_ns);
            self.batches.outstanding(-(sojourn_ns as f64));
        }
    }

    fn finish_interval(&mut self, end_ns: u64) {
        let next = Interval { start_ns: end_ns, ..Interval::default() };
        let mut done = std::mem::replace(&mut self.interval, next);
        let last_ns = self.intervals.last().map_or(self.start_ns, |last| last.start_ns + last.duration_ns);
        debug_assert_eq!(done.start_ns, last_ns, "intervals are contiguous");
        done.duration_ns = end_ns - done.start_ns;
        done.response = std::mem::take(&mut self.interval_response).store();
        if done.duration_ns > 0 {
            self.intervals.push(done);
        }
    }

    /// Returns whether the 95 % confidence interval of the mean latency is within `percent` of the mean. Called after
    /// every completion, but computes the interval only rarely.
    ///
    /// Stopping at the first narrow interval favors intervals that are narrow by chance, and more so the more often
    /// they are checked. Checks are therefore 25 % of the run apart, and two in a row must agree.
    pub fn is_known_within(&self, percent: f64) -> bool {
        let PrecisionCheck { next, was_precise } = self.precision_check.get();
        if self.completed < next {
            return false;
        }
        let is_known = self.is_narrow(percent);
        self.precision_check.set(PrecisionCheck { next: self.completed + self.completed / 4, was_precise: is_known });
        is_known && was_precise
    }

    fn is_narrow(&self, percent: f64) -> bool {
        let sum_ns: u128 = self.kinds.all().iter().map(|(_, kind)| kind.response.sum_ns()).sum();
        let mean_ns = sum_ns as f64 / self.completed as f64;
        Sampling::for_mean(&self.batches, self.stalls.is_some())
            .half_width_ns()
            .is_some_and(|half| half <= mean_ns * percent / 100.0)
    }

    /// Records a request that is still in flight at the end of the measured time.
    pub fn still_outstanding(&mut self, intended_ns: u64) {
        let end_ns = self.end_ns.unwrap_or(self.start_ns);
        self.sojourn_ns += u128::from(end_ns.saturating_sub(intended_ns.max(self.start_ns)));
    }

    /// Returns whether more requests have piled up since the warm-up than chance explains.
    pub fn has_piled_up(&self, backlog: u64) -> bool {
        piles_up(backlog.saturating_sub(self.backlog_at_start), self.arrived)
    }

    /// Writes the measurements to `result`.
    pub fn write_to(mut self, result: &mut RunResult) {
        let end_ns = self.end_ns.expect("a finished run has an end time");
        if self.interval_ns != u64::MAX {
            self.finish_interval(end_ns);
        }
        let over_time: u128 = self.time_at_depth_ns.iter().enumerate().map(|(n, &ns)| n as u128 * u128::from(ns)).sum();
        result.checks.push(Check {
            name: "Little's law".to_owned(),
            passed: over_time == self.sojourn_ns,
            detail: format!("{over_time} request-ns over time, {} over requests", self.sojourn_ns),
        });
        let deepest = self.time_at_depth_ns.iter().rposition(|&ns| ns > 0).unwrap_or(0);
        self.time_at_depth_ns.truncate(deepest + 1);
        result.start_ns = self.start_ns;
        result.duration_ns = end_ns - self.start_ns;
        result.kinds = self.kinds;
        result.sampling = Sampling::of(&self.batches, &result.response(), self.stalls.is_some());
        result.stalls = self.stalls.and_then(|stalls| stalls.finish(end_ns));
        result.intervals = self.intervals;
        result.depth = DepthResult::new(self.time_at_depth_ns);
    }

    /// Ends the measured time.
    pub fn close(&mut self, end_ns: u64, depth: u64) {
        self.count_depth(end_ns.max(self.depth_since_ns), depth as usize);
        self.end_ns = Some(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{Mode, SystemRecord};

    /// Returns a measurement that starts at 100 ns, with one request of 10 ns that arrives at 100 ns.
    fn one_request() -> Measuring {
        let mut measuring = Measuring::new(100, 0, u64::MAX);
        measuring.count_depth(110, 1);
        let finished = Finished { kind: 0, length_bytes: 512, intended_ns: 100, started_ns: 100, at_ns: 110 };
        measuring.record(&finished);
        measuring
    }

    /// Returns the check of Little's law for a measurement that ends at 200 ns.
    fn littles_law(measuring: Measuring) -> Check {
        let system = SystemRecord::new("", "", Value::Null);
        let mut result = RunResult::new(Mode::Simulated, system, Value::Null, 0, "");
        measuring.write_to(&mut result);
        let [check] = &result.checks[..] else { panic!("{:?}", result.checks) };
        assert_eq!(check.name, "Little's law");
        check.clone()
    }

    #[test]
    fn littles_law_is_checked_to_the_nanosecond() {
        let mut right = one_request();
        right.close(200, 0);
        let check = littles_law(right);
        assert!(check.passed && check.detail == "10 request-ns over time, 10 over requests", "{check:?}");
        // A depth that is counted for 1 ns too long, and a request that the depth does not include.
        let mut long = one_request();
        long.count_depth(111, 1);
        long.close(200, 0);
        let mut unknown = one_request();
        unknown.close(200, 0);
        unknown.still_outstanding(100);
        for (measuring, said) in [(long, "11 request-ns over time, 10 over"), (unknown, "10 request-ns over time, 110")]
        {
            let check = littles_law(measuring);
            assert!(!check.passed && check.detail.starts_with(said), "{check:?}");
        }
    }

    #[test]
    fn intervals_follow_each_other_from_the_end_of_the_warm_up() {
        let mut measuring = Measuring::new(100, 0, 50);
        for at_ns in [110, 149, 150, 230] {
            measuring.count_depth(at_ns, 0);
            let finished = Finished { kind: 0, length_bytes: 512, intended_ns: at_ns, started_ns: at_ns, at_ns };
            measuring.record(&finished);
        }
        measuring.close(260, 0);
        let mut result = RunResult::new(Mode::Simulated, SystemRecord::new("", "", Value::Null), Value::Null, 0, "");
        measuring.write_to(&mut result);
        let of = |one: &Interval| (one.start_ns, one.duration_ns, one.count, one.bytes);
        let intervals: Vec<_> = result.intervals.iter().map(of).collect();
        assert_eq!(intervals, [(100, 50, 2, 1024), (150, 50, 1, 512), (200, 60, 1, 512)]);
    }

    #[test]
    fn more_than_32_requests_and_2_percent_of_the_arrivals_are_a_pile() {
        let piled = |arrived, at_start, backlog| {
            let mut measuring = Measuring::new(0, at_start, u64::MAX);
            measuring.arrived = arrived;
            measuring.has_piled_up(backlog)
        };
        assert!(!piled(100, 0, 32), "chance alone can pile up that many");
        assert!(piled(100, 0, 33));
        assert!(!piled(10_000, 0, 200), "200 of 10,000 is not more than 2 %");
        assert!(piled(10_000, 0, 201));
        // Requests outstanding at the end of the warm-up do not count as piled up.
        assert!(!piled(100, 1000, 1032) && piled(100, 1000, 1033));
        assert!(!piled(100, 1000, 10));
    }
}
