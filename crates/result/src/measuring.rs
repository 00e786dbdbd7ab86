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
        done.latency = std::mem::take(&mut self.interval_response).store();
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
        let sum_ns: u128 = self.kinds.all().iter().map(|(_, kind)| kind.latency.sum_ns()).sum();
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
        result.sampling = Sampling::of(&self.batches, &result.latency(), self.stalls.is_some());
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

    /// Returns the result of a measured time that ends at `end_ns` with `depth` requests outstanding.
    fn ended(mut measuring: Measuring, end_ns: u64, depth: u64) -> RunResult {
        measuring.close(end_ns, depth);
        let mut result = RunResult::new(Mode::Simulated, SystemRecord::new("", "", Value::Null), Value::Null, 0, "");
        measuring.write_to(&mut result);
        result
    }

    #[test]
    fn a_failed_request_was_outstanding_and_is_counted_among_the_errors_of_its_kind() {
        let mut measuring = one_request();
        measuring.count_depth(150, 1);
        measuring.fail(1, 110, 150);
        measuring.count_depth(170, 1);
        measuring.forget(150, 170);
        assert_eq!((measuring.failed, measuring.completed), (1, 1));
        let errors = measuring.kinds().all().map(|(kind, of)| (kind, of.errors));
        assert_eq!(errors, [("read", 0), ("write", 1), ("trim", 0), ("flush", 0)]);
        // Only the time of the completed request is in the mean of its batch.
        assert_eq!(measuring.batches.means_ns(), [10.0]);
        let result = ended(measuring, 200, 0);
        assert_eq!(result.checks[0].detail, "70 request-ns over time, 70 over requests");
        assert_eq!((result.count(), result.errors(), result.latency().count()), (1, 1, 1));
    }

    #[test]
    fn requests_that_fail_after_the_end_are_outstanding_up_to_the_end() {
        let mut measuring = one_request();
        measuring.close(200, 1);
        measuring.still_outstanding(110);
        measuring.fail(0, 110, 260);
        let check = littles_law(measuring);
        assert!(check.passed && check.detail.starts_with("100 request-ns"), "{check:?}");
    }

    #[test]
    fn requests_from_the_warm_up_are_outstanding_from_its_end_on() {
        let mut measuring = Measuring::new(100, 2, u64::MAX);
        measuring.count_depth(130, 2);
        measuring.record(&Finished { kind: 0, length_bytes: 512, intended_ns: 60, started_ns: 80, at_ns: 130 });
        measuring.close(200, 1);
        measuring.still_outstanding(70);
        let mut result = RunResult::new(Mode::Simulated, SystemRecord::new("", "", Value::Null), Value::Null, 0, "");
        measuring.write_to(&mut result);
        assert_eq!(result.checks[0].detail, "130 request-ns over time, 130 over requests");
        assert!(result.checks[0].passed);
        assert_eq!((result.start_ns, result.duration_ns), (100, 100));
        assert_eq!((result.kinds.read.latency.max_ns(), result.kinds.read.service.max_ns()), (70, 50));
    }

    #[test]
    fn queue_depths_of_any_size_are_averaged_over_time() {
        for depth in [0, 1, 63, 64, 65, 100, 1_000] {
            let mut measuring = Measuring::new(100, 0, u64::MAX);
            measuring.count_depth(130, depth);
            measuring.count_depth(130, 5_000);
            let result = ended(measuring, 160, 1);
            let mean = (30.0 * depth as f64 + 30.0) / 60.0;
            assert_eq!((result.depth.mean, result.depth.max), (mean, depth.max(1) as u32));
            assert_eq!(result.depth.time_at_depth_ns.len(), depth.max(1) + 1);
        }
        let mut brief = Measuring::new(100, 0, u64::MAX);
        brief.count_depth(101, 7);
        assert_eq!(ended(brief, 160, 1).depth.time_at_depth_ns, [0, 59, 0, 0, 0, 0, 0, 1]);
        let idle = ended(Measuring::new(100, 0, u64::MAX), 100, 3);
        assert_eq!((idle.depth.time_at_depth_ns, idle.duration_ns), (vec![0], 0));
        // The end may be before the last completion that was counted.
        let mut late = Measuring::new(100, 0, u64::MAX);
        late.count_depth(130, 1);
        assert_eq!(ended(late, 120, 1).depth.time_at_depth_ns, [0, 30]);
    }

    #[test]
    fn intervals_are_measured_only_on_request_and_never_empty_in_time() {
        assert!(ended(one_request(), 200, 0).intervals.is_empty());
        let mut whole = Measuring::new(100, 0, 50);
        whole.count_depth(150, 1);
        whole.record(&Finished { kind: 0, length_bytes: 512, intended_ns: 140, started_ns: 140, at_ns: 150 });
        assert!(ended(whole.clone(), 150, 0).intervals.iter().all(|one| one.duration_ns > 0));
        let result = ended(whole, 160, 0);
        let intervals: Vec<_> = result.intervals.iter().map(|one| (one.start_ns, one.duration_ns, one.count)).collect();
        assert_eq!(intervals, [(100, 50, 0), (150, 10, 1)]);
        assert_eq!(result.intervals[1].latency.open().max_ns(), 10);
    }

    /// Returns requests one after the other, that take 90, 110, 90, ... ns.
    fn alternating(count: u64) -> Measuring {
        let (mut measuring, mut at_ns) = (Measuring::new(0, 0, u64::MAX), 0);
        for number in 0..count {
            let intended_ns = at_ns;
            at_ns += 90 + 20 * (number % 2) + number % 7;
            measuring.count_depth(at_ns, 1);
            measuring.record(&Finished { kind: 0, length_bytes: 512, intended_ns, started_ns: intended_ns, at_ns });
        }
        measuring
    }

    #[test]
    fn a_mean_is_precise_once_two_checks_in_a_row_agree() {
        let precise_at = |percent: f64| {
            let mut measuring = alternating(0);
            let mut at_ns = 0;
            (1..=4_000u64).find(|number| {
                let intended_ns = at_ns;
                at_ns += 90 + 20 * (number % 2);
                measuring.count_depth(at_ns, 1);
                measuring.record(&Finished { kind: 0, length_bytes: 512, intended_ns, started_ns: intended_ns, at_ns });
                measuring.is_known_within(percent)
            })
        };
        // The first check is at 1,024 completions, and the next one after a quarter more.
        assert_eq!(precise_at(50.0), Some(1_280));
        assert_eq!(precise_at(-1.0), None);
    }

    #[test]
    fn precision_is_half_the_interval_as_a_share_of_the_mean() {
        let measuring = alternating(3_000);
        let half_ns = Sampling::for_mean(&measuring.batches, false).half_width_ns().expect("long enough");
        let mean_ns = measuring.kinds().read.latency.mean_ns();
        let percent = 100.0 * half_ns / mean_ns;
        assert!(half_ns > 0.0 && (102.0..104.0).contains(&mean_ns), "{half_ns} of {mean_ns}");
        assert!(measuring.is_narrow(1.000_001 * percent) && !measuring.is_narrow(0.999_999 * percent));
    }

    #[test]
    fn only_a_device_has_stalls() {
        let stalled = |mut measuring: Measuring| {
            for number in 1..=200u64 {
                let at_ns = number * 1_000_000 + if number > 100 { 1_000_000_000 } else { 0 };
                measuring.count_depth(at_ns, 1);
                let intended_ns = if number == 101 { 100_000_000 } else { at_ns - 1_000_000 };
                measuring.record(&Finished { kind: 0, length_bytes: 512, intended_ns, started_ns: intended_ns, at_ns });
            }
            ended(measuring, 1_200_000_000, 0).stalls
        };
        assert_eq!(stalled(Measuring::new(0, 0, u64::MAX)), None);
        let stalls = stalled(Measuring::of_device(0, 0, u64::MAX)).expect("a stall");
        let measured: Vec<_> =
            stalls.longest.iter().map(|one| (one.start_ns, one.duration_ns, one.queue_depth)).collect();
        assert_eq!(measured, [(100_000_000, 1_001_000_000, 1)]);
    }
}
