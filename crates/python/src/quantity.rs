//! Quantities with units: parsing and formatting.

use headstack_workload::quantity;
use pyo3::prelude::*;

use crate::error::input_error;

/// Parses a size such as "64KiB", in bytes. Raises `InputError`.
#[pyfunction]
pub fn parse_bytes(text: &str) -> PyResult<u64> {
    quantity::parse_bytes(text).map_err(input_error)
}

/// Parses a rate such as "69MB/s" or "560Mb/s", in bytes per second. Raises `InputError`.
#[pyfunction]
pub fn parse_rate(text: &str) -> PyResult<f64> {
    quantity::parse_rate_bytes_per_s(text).map_err(input_error)
}

/// Parses a duration such as "8.5ms", in ns. Raises `InputError`.
#[pyfunction]
pub fn parse_duration_ns(text: &str) -> PyResult<i64> {
    quantity::parse_duration_ns(text).map_err(input_error)
}

/// Formats a size in bytes, for example as "36.7GB".
#[pyfunction]
pub fn format_bytes(bytes: u64) -> String {
    quantity::format_bytes(bytes)
}

/// Formats a duration in ns, for example as "8.512ms".
#[pyfunction]
pub fn format_duration_ns(duration_ns: i64) -> String {
    quantity::format_duration_ns(duration_ns)
}
