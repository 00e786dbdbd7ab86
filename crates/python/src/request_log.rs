//! [`RequestLog`]: individual requests of measurements.

use std::sync::Arc;

use headstack_load::{Log, Logged};
use pyo3::prelude::*;

/// Individual requests of the measured part, in order of completion.
#[pyclass(frozen)]
#[derive(Default)]
pub struct RequestLog(pub Arc<Log>);

/// A request as a tuple: index of its job, kind, offset and length in bytes, intended issue time on the machine's
/// monotonic clock and response time since then in ns, whether it failed, and the time in ns until the system accepted
/// it.
type Row = (u32, &'static str, u64, u32, u64, u64, bool, u64);

#[pymethods]
impl RequestLog {
    /// Creates an empty log.
    #[new]
    fn new() -> RequestLog {
        RequestLog::default()
    }

    /// Returns the requests completed since the last call as tuples (job, kind, offset, length, intended, response,
    /// failed, handing over), in bytes and ns.
    fn take(&self) -> Vec<Row> {
        let row = |one: Logged| {
            let Logged { job, kind, offset_bytes, length_bytes, intended_ns, response_ns, handing_over_ns, failed } =
                one;
            (job, kind.name(), offset_bytes, length_bytes, intended_ns, response_ns, failed, handing_over_ns)
        };
        self.0.take().into_iter().map(row).collect()
    }
}
