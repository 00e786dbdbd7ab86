//! [`Requests`]: requests between their arrival and their completion, or that of an earlier one.

use std::collections::VecDeque;

use crate::collect::Collector;
use crate::record::{NOT_RECORDED, Record};

/// Number of requests held back because of an incomplete earlier one. At 100,000 per second this is 20 s.
const REQUESTS_MAX: usize = 1 << 21;

/// Requests in order of arrival, identified by their numbers from the start of the trace.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: VecDeque<Waiting>,
    /// Number of the first one.
    first: u64,
    /// Requests returned before they completed, on request.
    given_up: usize,
    /// Requests that arrived before this time are not waited for.
    too_old_ns: u64,
}

/// A request with its state.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) record: Record,
    /// Number of its incomplete parts.
    pub(super) parts: u32,
    /// Whether it is to be dropped.
    pub(super) is_withdrawn: bool,
}

impl Requests {
    /// Number of the first request that was not returned.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next request.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Adds a request of one part; returns its number.
    #[inline]
    pub(super) fn add(&mut self, record: Record) -> u64 {
        self.waiting.push_back(Waiting { record, parts: 1, is_withdrawn: false });
        self.end() - 1
    }

    /// The request with that number, unless it was given up.
    #[inline]
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Waiting> {
        self.waiting.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The record with that number, unless it was given up.
    #[inline]
    pub(super) fn peek(&self, number: u64) -> Option<&Record> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get(place).map(|waiting| &waiting.record)
    }

    /// Stops waiting for requests that arrived before `at_ns`.
    pub(super) fn give_up_before(&mut self, at_ns: u64) {
        self.too_old_ns = at_ns;
    }

    /// Returns finished requests, as long as no earlier one is waiting, or has waited too long. Occasionally returns
    /// true: numbers below [`Requests::first`] should then be dropped.
    pub(super) fn hand_over(&mut self, out: &mut Collector) -> bool {
        while let Some(waiting) = self.waiting.front() {
            if waiting.parts > 0 {
                if self.waiting.len() <= REQUESTS_MAX && waiting.record.arrival_ns >= self.too_old_ns {
                    break;
                }
                self.given_up += 1;
            }
            self.hand_over_first(out);
        }
        let is_time = self.given_up > REQUESTS_MAX / 2;
        if is_time {
            self.given_up = 0;
        }
        is_time
    }

    /// Returns the remaining requests.
    pub(super) fn finish(&mut self, out: &mut Collector) {
        while !self.waiting.is_empty() {
            self.hand_over_first(out);
        }
    }

    fn hand_over_first(&mut self, out: &mut Collector) {
        let Some(Waiting { mut record, parts, is_withdrawn }) = self.waiting.pop_front() else { return };
        self.first += 1;
        if is_withdrawn {
            return;
        }
        if parts > 0 {
            record.response_ns = NOT_RECORDED;
            out.meta.count("requests without completion", 1);
        }
        out.records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Operation;

    #[test]
    fn an_incomplete_request_delays_others_only_until_the_time_out() {
        let (mut requests, mut out) = (Requests::default(), Collector::new(false));
        for number in 0..=REQUESTS_MAX as u64 {
            requests.add(Record::new(number, Operation::Read, 0, 512));
            if number > 0 {
                requests.get(number).unwrap().parts = 0;
            }
            assert!(out.records.is_empty());
            requests.hand_over(&mut out);
        }
        assert_eq!((out.records.len(), requests.first()), (REQUESTS_MAX + 1, REQUESTS_MAX as u64 + 1));
        assert_eq!(out.meta.counts["requests without completion"], 1);
        assert!(requests.get(0).is_none());
    }

    #[test]
    fn what_is_too_old_is_not_waited_for() {
        let (mut requests, mut out) = (Requests::default(), Collector::new(false));
        for arrival_ns in [10, 20, 30] {
            requests.add(Record::new(arrival_ns, Operation::Read, 0, 512));
        }
        requests.get(1).unwrap().parts = 0;
        requests.give_up_before(10);
        requests.hand_over(&mut out);
        assert!(out.records.is_empty());
        requests.give_up_before(11);
        requests.hand_over(&mut out);
        assert_eq!(out.records.iter().map(|record| record.arrival_ns).collect::<Vec<_>>(), [10, 20]);
        assert_eq!(out.meta.counts["requests without completion"], 1);
    }
}
