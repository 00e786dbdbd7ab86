//! [`ThinkTimes`]: think times of clients, as far as a trace reveals them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::record::{NOT_RECORDED, Record};

/// Largest number of requests that are followed in flight, as in the analysis.
const FLIGHTS_MAX: usize = 1 << 20;

/// Recorded completions, and those without an answer.
#[derive(Default)]
pub(super) struct ThinkTimes {
    in_flight: BinaryHeap<Reverse<u64>>,
    unanswered: VecDeque<u64>,
}

impl ThinkTimes {
    /// Time since the completion that a request answers: the first without an answer. 0 if there was none.
    pub(super) fn before_ns(&mut self, record: &Record) -> u64 {
        while let Some(&Reverse(at_ns)) = self.in_flight.peek().filter(|at| at.0 <= record.arrival_ns) {
            self.in_flight.pop();
            self.unanswered.push_back(at_ns);
        }
        if record.response_ns != NOT_RECORDED && self.in_flight.len() < FLIGHTS_MAX {
            self.in_flight.push(Reverse(record.arrival_ns.saturating_add(record.response_ns)));
        }
        self.unanswered.pop_front().map_or(0, |at_ns| record.arrival_ns - at_ns)
    }

    /// Number of requests in flight including the last one.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}
