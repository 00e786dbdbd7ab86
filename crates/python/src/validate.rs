//! Replays a measured trace on an imported drive.

use std::path::Path;

use headstack_sim::replay::closed_responses_ns;
use headstack_trace::{Format, ReadOptions, Record, TraceReader};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::catalogue::unmapped_line;
use crate::error::{InputError, input_error};

const NS_PER_MS: f64 = 1e6;

/// Replays the measured trace at `trace` on the drive of DiskSim's parameter file at `parameters`, with queue depth 1,
/// and scores the simulated response times. Raises `InputError`.
#[pyfunction]
pub fn validate<'py>(py: Python<'py>, trace: &str, parameters: &str) -> PyResult<Bound<'py, PyDict>> {
    let (score, simulated_ms, unmapped) = py.detach(|| {
        let options = ReadOptions { format: Some(Format::Validate), ..ReadOptions::default() };
        let records = TraceReader::open(&[Path::new(trace)], &options).and_then(|mut reader| reader.read_all());
        let records = records.map_err(input_error)?;
        let imported = headstack_disksim::import(Path::new(parameters)).map_err(input_error)?;
        let drive = imported.drives.into_iter().next();
        let drive = drive.ok_or_else(|| InputError::new_err(format!("{parameters}: no drive in this file")))?;
        let ms = |ns: u64| ns as f64 / NS_PER_MS;
        let simulated_ns = closed_responses_ns(&drive.description, records.iter().filter_map(Record::recorded));
        let simulated_ns = simulated_ns.map_err(|error| input_error(format!("{trace}: {error}")))?;
        let simulated_ms: Vec<f64> = simulated_ns.into_iter().map(ms).collect();
        let measured_ms: Vec<f64> = records.iter().map(|record| ms(record.response_ns)).collect();
        let score = headstack_result::score(&simulated_ms, &measured_ms).map_err(input_error)?;
        let unmapped: Vec<String> = drive.unmapped.iter().map(unmapped_line).collect();
        PyResult::Ok((score, simulated_ms, unmapped))
    })?;
    let figures = PyDict::new(py);
    figures.set_item("requests", score.requests)?;
    figures.set_item("mean_measured_ms", score.mean_measured_ms)?;
    figures.set_item("mean_simulated_ms", score.mean_simulated_ms)?;
    figures.set_item("demerit_ms", score.demerit_ms)?;
    figures.set_item("demerit_relative", score.demerit_relative)?;
    figures.set_item("demerit_disksim_ms", score.demerit_disksim_ms)?;
    figures.set_item("paired_rms_ms", score.paired_rms_ms)?;
    figures.set_item("pearson_r", score.pearson_r)?;
    figures.set_item("worst_percentile", score.worst_percentile)?;
    figures.set_item("worst_percentile_error_ms", score.worst_percentile_error_ms)?;
    figures.set_item("unmapped", unmapped)?;
    figures.set_item("simulated_ms", simulated_ms)?;
    Ok(figures)
}
