//! Options of runs on what Python specifies.

use headstack_catalogue::options::{self, Draft};
use pyo3::prelude::*;

use crate::error::{input_error, json_error};

/// A run of which something is known, as JSON, with these options applied, whatever their order. Raises `InputError`.
#[pyfunction]
pub fn with_options(draft: &str, chosen: Vec<(String, String)>) -> PyResult<String> {
    // By way of a value: an error of it does not name a place in a text that nobody wrote.
    let value: serde_json::Value = serde_json::from_str(draft).map_err(json_error)?;
    let mut draft: Draft = serde_json::from_value(value).map_err(json_error)?;
    draft.apply(&chosen).map_err(input_error)?;
    serde_json::to_string(&draft).map_err(json_error)
}

/// Nanoseconds of an interval that results are kept for. Raises `InputError`.
#[pyfunction]
pub fn interval_ns(text: &str) -> PyResult<u64> {
    options::interval_ns(text).map_err(input_error)
}

/// A workload of requests of one size. Raises `InputError`.
#[pyfunction]
pub fn uniform_workload(size: &str, read: &str, random: &str) -> PyResult<String> {
    let workload = options::uniform_workload(size, read, random).map_err(input_error)?;
    serde_json::to_string(&workload).map_err(json_error)
}
