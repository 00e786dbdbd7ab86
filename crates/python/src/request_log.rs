//! Requests of measurements one by one.

use std::sync::Arc;

use headstack_load::{Log, Logged};
use pyo3::prelude::*;

/// Requests of the measured part one by one, as they come back.
#[pyclass(frozen)]
#[derive(Default)]
pub struct RequestLog(pub Arc<Log>);

/// A request as Python has it: the number of its job, its kind, offset and length in bytes, when it was to be made on the
/// machine's monotonic clock and how long it took from then on in nanoseconds, whether it failed, and how
/// long it took until the system had it.
type Row = (u32, &'static str, u64, u32, u64, u64, bool, u64);

#[pymethods]
impl RequestLog {
    /// An empty log.
    #[new]
    fn new() -> RequestLog {
        RequestLog::default()
    }

    /// What came back since this was asked last: (job, kind, offset, length, intended, response, failed, handing over),
    /// in bytes and nanoseconds.
    fn take(&self) -> Vec<Row> {
        let row = |one: Logged| {
            let Logged { job, kind, offset_bytes, length_bytes, intended_ns, response_ns, handing_over_ns, failed } =
                one;
            (job, kind.name(), offset_bytes, length_bytes, intended_ns, response_ns, failed, handing_over_ns)
        };
        self.0.take().into_iter().map(row).collect()
    }
}
