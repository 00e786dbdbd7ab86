//! [`Measuring`]: measurements of a run after its warm-up.

use std::cell::Cell;

use crate::batches::{Batches, Levels};
use crate::stalls::StallWatch;
use crate::{Check, DepthResult, Finished, Interval, Kinds, LatencyHistogram, RunResult, Sampling};

/// The measured part of a run.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// End of the warm-up.
    pub start_ns: u64,
    kinds: Kinds,
    intervals: Vec<Interval>,
    interval: Interval,
    interval_response: LatencyHistogram,
    batches: Batches,
    /// Stalls of a device; `None` for a model, which stalls only by its faults.
    stalls: Option<StallWatch>,
    precision_check: Cell<PrecisionCheck>,
    time_at_depth_ns: Vec<u64>,
    depth_since_ns: u64,
    interval_ns: u64,
    /// Requests completed since the warm-up.
    pub completed: u64,
    /// Requests that failed since the warm-up, if they are recorded here.
    pub failed: u64,
    /// Arrivals of an open loop since the warm-up.
    pub arrived: u64,
    backlog_at_start: u64,
    /// Sum over requests of the time that they were outstanding within the measured time.
    sojourn_ns: u128,
    /// Time at which it ended.
    pub end_ns: Option<u64>,
}

/// Completions before the first look at the confidence interval of the mean.
const FIRST_CHECK: u64 = 1 << 10;

/// When the confidence interval of the mean is checked next, and whether it was narrow enough the last time.
#[derive(Clone, Copy, Debug)]
struct PrecisionCheck {
    next: u64,
    was_precise: bool,
}

/// Whether an open loop is unsustainable: of those that arrived, `piled` wait in addition to those that did before,
/// which is more than chance explains.
pub fn piles_up(piled: u64, arrived: u64) -> bool {
    piled > 32 && piled as f64 > 0.02 * arrived as f64
}

impl Measuring {
    /// Begins at `start_ns` with `backlog` requests outstanding; intervals of `interval_ns`, `u64::MAX` for none.
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

    /// Like [`Self::new`], for a device that may stall, whose confidence intervals must not depend on a few events.
    pub fn of_device(start_ns: u64, backlog: u64, interval_ns: u64) -> Self {
        Measuring { stalls: Some(StallWatch::new(start_ns)), ..Measuring::new(start_ns, backlog, interval_ns) }
    }

    /// Records how many requests the system has served before, and its levels.
    pub fn begin_levels(&mut self, requests_before: u64, levels: Levels) {
        self.batches.begin(requests_before, levels);
    }

    /// Records the levels of the system at the end of a batch.
    pub fn note_levels(&mut self, levels: Levels) {
        self.batches.note_levels(levels);
    }

    /// Returns the present counts, by kind.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Adds the time since the last call at `depth`.
    #[inline]
    pub fn count_depth(&mut self, at_ns: u64, depth: usize) {
        // A closed loop responds to a completion at once: every other time, no time has passed.
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
        // Signed, since that is one instruction, and no run takes centuries.
        self.batches.outstanding(depth as i64 as f64 * since_ns as i64 as f64);
        self.depth_since_ns = at_ns;
    }

    /// Records a completed request, whose outstanding time is already counted. Returns whether the levels of the system
    /// must be recorded.
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

    /// Records a failed request only among the errors of its kind.
    pub fn fail(&mut self, kind: usize, intended_ns: u64, at_ns: u64) {
        self.failed += 1;
        self.kinds.of(kind).errors += 1;
        self.forget(intended_ns, at_ns);
    }

    /// Leaves out a failed request; it was outstanding nevertheless.
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
        debug_assert_eq!(done.start_ns, last_ns, "an interval begins where the one before it ended");
        done.duration_ns = end_ns - done.start_ns;
        done.response = std::mem::take(&mut self.interval_response).store();
        if done.duration_ns > 0 {
            self.intervals.push(done);
        }
    }

    /// Whether the mean latency is known to `percent`, by its 95 % confidence interval. Called after every completion,
    /// it checks seldom.
    ///
    /// Stopping at the first interval that is narrow enough selects those that are narrow by chance, the more so the
    /// more often it is checked. Checks are therefore 25 % of the run apart, and two in a row must agree.
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

    /// Records a request in flight at the end: it was outstanding until then.
    pub fn still_outstanding(&mut self, intended_ns: u64) {
        let end_ns = self.end_ns.unwrap_or(self.start_ns);
        self.sojourn_ns += u128::from(end_ns.saturating_sub(intended_ns.max(self.start_ns)));
    }

    /// Whether more requests have piled up since the warm-up than chance explains.
    pub fn has_piled_up(&self, backlog: u64) -> bool {
        piles_up(backlog.saturating_sub(self.backlog_at_start), self.arrived)
    }

    /// Writes the measurements to a result.
    pub fn write_to(mut self, result: &mut RunResult) {
        let end_ns = self.end_ns.expect("a run that is over has an end");
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

    /// Returns a measured time of 100 ns with a request of 10 ns that is outstanding from 100 ns on.
    fn one_request() -> Measuring {
        let mut measuring = Measuring::new(100, 0, u64::MAX);
        measuring.count_depth(110, 1);
        let finished = Finished { kind: 0, length_bytes: 512, intended_ns: 100, started_ns: 100, at_ns: 110 };
        measuring.record(&finished);
        measuring
    }

    /// Returns the check of Little's law for a measured time that ends at 200 ns.
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
        // A depth that is counted for a nanosecond too long, and a request that the depth does not include.
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
        assert!(!piled(100, 0, 32), "chance piles up as many for a moment");
        assert!(piled(100, 0, 33));
        assert!(!piled(10_000, 0, 200), "it is not more than 2 %");
        assert!(piled(10_000, 0, 201));
        // Requests that were outstanding at the end of the warm-up have not piled up since.
        assert!(!piled(100, 1000, 1032) && piled(100, 1000, 1033));
        assert!(!piled(100, 1000, 10));
    }
}
