//! [`TraceStatistics`]: statistics that one pass collects for the synthesis.

use super::places::Touched;
use super::think_times::ThinkTimes;
use crate::record::{NOT_RECORDED, Record};

/// Minimum ratio of mean to maximum requests in flight for a trace to count as a closed loop.
const CLOSED_SHARE: f64 = 0.9;

/// Statistics of a trace.
pub(super) struct TraceStatistics {
    pub(super) touched: Touched,
    pub(super) requests: u64,
    first_ns: u64,
    last_ns: u64,
    with_response: u64,
    response_ns: f64,
    thoughts: ThinkTimes,
    thought_ns: f64,
    most: usize,
    end_ns: u64,
}

impl TraceStatistics {
    pub(super) fn new() -> TraceStatistics {
        TraceStatistics {
            touched: Touched::new(),
            requests: 0,
            first_ns: 0,
            last_ns: 0,
            with_response: 0,
            response_ns: 0.0,
            thoughts: ThinkTimes::default(),
            thought_ns: 0.0,
            most: 0,
            end_ns: 0,
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        if self.requests == 0 {
            self.first_ns = record.arrival_ns;
        }
        self.requests += 1;
        self.last_ns = record.arrival_ns;
        self.touched.add(record);
        self.thought_ns += self.thoughts.before_ns(record) as f64;
        if record.response_ns == NOT_RECORDED {
            return;
        }
        self.with_response += 1;
        self.response_ns += record.response_ns as f64;
        self.end_ns = self.end_ns.max(record.arrival_ns.saturating_add(record.response_ns));
        self.most = self.most.max(self.thoughts.in_flight());
    }

    /// Returns the time from the first to the last arrival, in ns.
    pub(super) fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// Returns the mean gap between requests, in ns.
    pub(super) fn mean_gap_ns(&self) -> u64 {
        self.duration_ns() / self.requests.saturating_sub(1).max(1)
    }

    /// Returns whether all requests have a recorded latency, except those in flight at the end of the recording.
    pub(super) fn has_responses(&self) -> bool {
        self.with_response > 0 && self.requests - self.with_response <= self.most as u64
    }

    /// Returns the mean of the recorded latencies, in ns.
    pub(super) fn mean_latency_ns(&self) -> u64 {
        (self.response_ns / self.with_response.max(1) as f64).round() as u64
    }

    /// Returns the number of clients if the trace is a closed loop. By Little's law, this is the mean number of
    /// requests in flight, which a closed loop never exceeds by much.
    pub(super) fn clients(&self) -> Option<u32> {
        let length_ns = self.end_ns.saturating_sub(self.first_ns) as f64;
        let is_closed = self.has_responses() && self.response_ns >= CLOSED_SHARE * length_ns * self.most as f64;
        (is_closed && length_ns > 0.0).then_some(self.most as u32)
    }

    /// Returns the number of clients of an equivalent closed loop: the actual number, or, by Little's law, the mean
    /// number of clients that wait or think.
    pub(super) fn loop_clients(&self) -> f64 {
        let busy = |length_ns: f64| (self.response_ns + self.thought_ns) / length_ns;
        self.clients().map_or_else(|| busy(self.end_ns.saturating_sub(self.first_ns) as f64), f64::from)
    }
}
