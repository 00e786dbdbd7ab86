//! Which requests of a stored trace are read.

use crate::record::Record;

/// A part of the time of stored traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Arrivals from here on, on the trace's clock.
    pub from_ns: u64,
    /// To before here.
    pub to_ns: u64,
    /// Only those that are known not to be complete at this moment.
    pub in_flight_at_ns: Option<u64>,
}

impl Window {
    pub(crate) fn holds(self, record: &Record) -> bool {
        (self.from_ns..self.to_ns).contains(&record.arrival_ns)
            && self.in_flight_at_ns.is_none_or(|at_ns| record.completion_ns().is_some_and(|done_ns| done_ns > at_ns))
    }
}
