//! Applies options to runs that Python specifies.

use headstack_catalogue::options::{self, Draft};
use headstack_workload::Workload;
use pyo3::prelude::*;

use crate::error::input_error;
use crate::plain::Plain;

/// Applies options to the draft of a run, in any order. Raises `InputError`.
#[pyfunction]
pub fn with_options(draft: Plain<Draft>, chosen: Vec<(String, String)>) -> PyResult<Plain<Draft>> {
    let Plain(mut draft) = draft;
    draft.apply(&chosen).map_err(input_error)?;
    Ok(Plain(draft))
}

/// Parses the interval of the time series, in ns. Raises `InputError`.
#[pyfunction]
pub fn interval_ns(text: &str) -> PyResult<u64> {
    options::interval_ns(text).map_err(input_error)
}

/// Returns a workload of requests of one size. Raises `InputError`.
#[pyfunction]
pub fn uniform_workload(size: &str, read: &str, random: &str) -> PyResult<Plain<Workload>> {
    options::uniform_workload(size, read, random).map(Plain).map_err(input_error)
}
