//! [`Window`]: selects the requests to read from a stored trace.

use crate::record::Record;

/// A time range of stored traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First arrival, in ns on the trace's clock.
    pub from_ns: u64,
    /// Exclusive end of arrivals, in ns on the trace's clock.
    pub to_ns: u64,
    /// If set, only requests known to be incomplete at this time, in ns.
    pub in_flight_at_ns: Option<u64>,
}

impl Window {
    pub(crate) fn holds(self, record: &Record) -> bool {
        (self.from_ns..self.to_ns).contains(&record.arrival_ns)
            && self.in_flight_at_ns.is_none_or(|at_ns| record.completion_ns().is_some_and(|done_ns| done_ns > at_ns))
    }
}
