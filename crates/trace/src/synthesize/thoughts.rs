//! How long clients thought, as far as a trace tells.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::record::{NOT_RECORDED, Record};

/// The most requests that are followed in flight, as in the analysis.
const FLIGHTS_MAX: usize = 1 << 20;

/// Completions as recorded, and those that nobody has answered.
#[derive(Default)]
pub(super) struct Thoughts {
    in_flight: BinaryHeap<Reverse<u64>>,
    unanswered: VecDeque<u64>,
}

impl Thoughts {
    /// Since the completion that a request answers: the first that no other has answered. 0 if there was none.
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

    /// Requests in flight with the last one.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}
