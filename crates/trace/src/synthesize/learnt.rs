//! What one pass over a trace tells a synthesis.

use super::places::Touched;
use super::thoughts::Thoughts;
use crate::record::{NOT_RECORDED, Record};

/// A closed loop keeps its requests in flight: their mean number is at least this share of the most.
const CLOSED_SHARE: f64 = 0.9;

/// A trace being learnt from.
pub(super) struct Learnt {
    pub(super) touched: Touched,
    pub(super) requests: u64,
    first_ns: u64,
    last_ns: u64,
    with_response: u64,
    response_ns: f64,
    thoughts: Thoughts,
    thought_ns: f64,
    most: usize,
    end_ns: u64,
}

impl Learnt {
    pub(super) fn new() -> Learnt {
        Learnt {
            touched: Touched::new(),
            requests: 0,
            first_ns: 0,
            last_ns: 0,
            with_response: 0,
            response_ns: 0.0,
            thoughts: Thoughts::default(),
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

    /// From the first arrival to the last.
    pub(super) fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// From a request to the next, on average.
    pub(super) fn mean_gap_ns(&self) -> u64 {
        self.duration_ns() / self.requests.saturating_sub(1).max(1)
    }

    /// All requests have a recorded response, but for those that were in flight when the recording ended.
    pub(super) fn has_responses(&self) -> bool {
        self.with_response > 0 && self.requests - self.with_response <= self.most as u64
    }

    /// Mean of the recorded response times.
    pub(super) fn mean_response_ns(&self) -> u64 {
        (self.response_ns / self.with_response.max(1) as f64).round() as u64
    }

    /// The clients of a closed loop, if it was one: by Little's law, so many requests in flight on average, and at no
    /// time many more.
    pub(super) fn clients(&self) -> Option<u32> {
        let length_ns = self.end_ns.saturating_sub(self.first_ns) as f64;
        let is_closed = self.has_responses() && self.response_ns >= CLOSED_SHARE * length_ns * self.most as f64;
        (is_closed && length_ns > 0.0).then_some(self.most as u32)
    }

    /// The clients of which the trace's requests would be the closed loop: those that it had, else, by Little's law, the
    /// mean number of those who wait for a response or think.
    pub(super) fn loop_clients(&self) -> f64 {
        let busy = |length_ns: f64| (self.response_ns + self.thought_ns) / length_ns;
        self.clients().map_or_else(|| busy(self.end_ns.saturating_sub(self.first_ns) as f64), f64::from)
    }
}
