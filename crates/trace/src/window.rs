//! [`Window`]: the requests to read from a stored trace.

use crate::record::Record;

/// A range of time of stored traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First arrival, on the trace's clock.
    pub from_ns: u64,
    /// End of arrivals, exclusive.
    pub to_ns: u64,
    /// Only requests that are known to be incomplete at this moment.
    pub in_flight_at_ns: Option<u64>,
}

impl Window {
    pub(crate) fn holds(self, record: &Record) -> bool {
        (self.from_ns..self.to_ns).contains(&record.arrival_ns)
            && self.in_flight_at_ns.is_none_or(|at_ns| record.completion_ns().is_some_and(|done_ns| done_ns > at_ns))
    }
}
