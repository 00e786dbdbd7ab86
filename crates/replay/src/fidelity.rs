//! [`ReplayCounts`]: counts from which the fidelity of a replay is computed.

use std::collections::VecDeque;

use headstack_result::{Fidelity, LatencyHistogram};

use crate::earliest_queue::EarliestQueue;
use crate::issue::{Arrived, Issue, Slot};

/// Counts of a replay in progress.
#[derive(Default)]
pub struct ReplayCounts {
    /// Requests read.
    pub recorded: u64,
    /// Arrival of the last of them, after the first.
    pub last_arrival_ns: u64,
    pub without_completion: u64,
    pub folded: u64,
    pub dropped: u64,
    pub rounded: u64,
    /// Requests before which the system flushes its cache.
    pub pre_flushes: u64,
    pub replayed: u64,
    first_issue_ns: u64,
    last_issue_ns: u64,
    lateness: LatencyHistogram,
    early: u64,
    highest_number: u64,
    reordered: u64,
    causality_violations: u64,
    unfinished: Unfinished,
    /// Sum of latencies as recorded, and the last completion.
    recorded_response_ns: u128,
    last_completion_ns: u64,
    first_arrival_ns: Option<u64>,
    recorded_depth_max: u64,
    /// Requests issued at `suspects_ns` while others were unfinished that had been complete before they arrived: if
    /// those complete at that same moment, nothing was violated.
    suspects: Vec<(u64, u64)>,
    suspects_ns: u64,
}

impl ReplayCounts {
    /// Records a request that was read; returns its slot. Calls `hear`, in order, with the recorded completions up to
    /// its arrival that were not reported before.
    #[inline]
    pub fn record_read(&mut self, arrived: &Arrived, hear: impl FnMut(u64, Slot)) -> Slot {
        self.unfinished.arrive(arrived.arrival_ns, hear);
        self.first_arrival_ns.get_or_insert(arrived.arrival_ns);
        let slot = self.unfinished.add(arrived.number);
        if let Some(completion_ns) = arrived.completion_ns {
            self.recorded_response_ns += u128::from(completion_ns.saturating_sub(arrived.arrival_ns));
            self.last_completion_ns = self.last_completion_ns.max(completion_ns);
            self.unfinished.coming.push((completion_ns, arrived.number, slot));
            self.recorded_depth_max = self.recorded_depth_max.max(self.unfinished.coming.len() as u64);
        }
        slot
    }

    /// Returns the requests that were in flight in the trace when the last one arrived, including it.
    pub fn in_flight(&self) -> usize {
        self.unfinished.coming.len()
    }

    /// Records that a request is issued at `at_ns`.
    #[inline]
    pub fn issued(&mut self, issue: &Issue, at_ns: u64) {
        if self.replayed == 0 {
            self.first_issue_ns = at_ns;
        }
        self.replayed += 1;
        self.last_issue_ns = at_ns;
        self.lateness.record(at_ns.saturating_sub(issue.scheduled_ns));
        self.early += u64::from(at_ns < issue.scheduled_ns);
        self.reordered += u64::from(issue.number < self.highest_number);
        self.highest_number = self.highest_number.max(issue.number);
        self.settle(at_ns);
        // Of those complete at the moment of its arrival, the ones before it in the trace were complete before it.
        let place = (issue.arrival_ns, issue.number);
        if self.unfinished.first().is_some_and(|first| first < place) {
            self.suspects.push(place);
            self.suspects_ns = at_ns;
        }
    }

    /// Records that a request is complete.
    #[inline]
    pub fn completed(&mut self, slot: Slot, at_ns: u64) {
        self.settle(at_ns);
        self.unfinished.finish(slot);
    }

    /// Releases the slot of a request that is no longer needed.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        self.unfinished.free.push(slot);
    }

    /// Advances to `at_ns`: suspects of an earlier moment are cleared, or counted as violations.
    #[inline]
    fn settle(&mut self, at_ns: u64) {
        if at_ns > self.suspects_ns && !self.suspects.is_empty() {
            let first = self.unfinished.first();
            let violations = self.suspects.drain(..).filter(|&place| first.is_some_and(|first| first < place)).count();
            self.causality_violations += violations as u64;
        }
    }

    /// Returns the fidelity, with `scale` times the recorded times.
    pub fn fidelity(&self, scale: f64) -> Fidelity {
        let per_s = |requests: u64, span_ns: u64| {
            (span_ns > 0).then(|| requests.saturating_sub(1) as f64 / (span_ns as f64 / 1e9))
        };
        let replayed_duration_ns = self.last_issue_ns - self.first_issue_ns;
        let recorded_per_s = per_s(self.recorded, self.last_arrival_ns);
        let achieved_per_s = per_s(self.replayed, replayed_duration_ns);
        let ratio = recorded_per_s.zip(achieved_per_s).map(|(recorded, achieved)| achieved * scale / recorded);
        let recorded_ns = self.last_completion_ns.saturating_sub(self.first_arrival_ns.unwrap_or(0));
        let lateness = |q| self.lateness.quantile_ns(q).unwrap_or(0);
        Fidelity {
            recorded_requests: self.recorded,
            replayed_requests: self.replayed,
            recorded_duration_ns: self.last_arrival_ns,
            replayed_duration_ns,
            recorded_per_s,
            achieved_per_s,
            rate_ratio: ratio.filter(|ratio| ratio.is_finite()),
            lateness_p50_ns: lateness(0.5),
            lateness_p90_ns: lateness(0.9),
            lateness_p99_ns: lateness(0.99),
            lateness_max_ns: lateness(1.0),
            early: self.early,
            causality_violations: self.causality_violations,
            reordered: self.reordered,
            folded: self.folded,
            dropped: self.dropped,
            rounded: self.rounded,
            without_completion: self.without_completion,
            recorded_depth_mean: (recorded_ns > 0).then(|| self.recorded_response_ns as f64 / recorded_ns as f64),
            recorded_depth_max: (recorded_ns > 0).then_some(self.recorded_depth_max),
        }
    }
}

/// Requests that were read and that the replay has not completed, if they were complete before the last arrival.
///
/// Completions are added in order, so that in a replay that is late, where many are unfinished, the first of them is
/// available at once.
#[derive(Default)]
struct Unfinished {
    /// Requests that were in flight at the last arrival: (recorded completion, number, slot).
    coming: EarliestQueue<(u64, u64, Slot)>,
    /// Requests that were complete by then, likewise. In both, those that the replay has completed stay until they are
    /// the first.
    passed: VecDeque<(u64, u64, Slot)>,
    /// Number of the request in each slot; 0 once the replay has completed it.
    numbers: Vec<u64>,
    free: Vec<Slot>,
}

impl Unfinished {
    /// Handles an arrival, whether or not its own completion is known: requests complete by then have passed.
    #[inline]
    fn arrive(&mut self, arrival_ns: u64, mut hear: impl FnMut(u64, Slot)) {
        while let Some(key @ (completion_ns, _, _)) = self.coming.first()
            && completion_ns <= arrival_ns
        {
            self.coming.pop();
            if self.is_unfinished(key) {
                self.passed.push_back(key);
            }
            hear(completion_ns, key.2);
        }
    }

    /// Adds a request that arrived; returns its slot.
    #[inline]
    fn add(&mut self, number: u64) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.numbers.push(0);
            Slot((self.numbers.len() - 1) as u32)
        });
        self.numbers[slot.index()] = number;
        slot
    }

    #[inline]
    fn is_unfinished(&self, (_, number, slot): (u64, u64, Slot)) -> bool {
        self.numbers[slot.index()] == number
    }

    #[inline]
    fn finish(&mut self, slot: Slot) {
        self.numbers[slot.index()] = 0;
        while let Some(&key) = self.passed.front()
            && !self.is_unfinished(key)
        {
            self.passed.pop_front();
        }
    }

    /// Returns (recorded completion, number) of the first.
    #[inline]
    fn first(&self) -> Option<(u64, u64)> {
        self.passed.front().map(|&(completion_ns, number, _)| (completion_ns, number))
    }
}
