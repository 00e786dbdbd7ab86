//! Job files of other programs from Python: read into the model, which crosses the border as JSON.

use std::fs;
use std::io;
use std::path::Path;

use headstack_jobfiles::{Demand, JobFile, Phase, fio, icf, vdbench};
use headstack_workload::InputError;
use pyo3::prelude::*;
use serde_json::json;

use crate::error::{input_error, json_error};

/// Reads a job file of fio; only the sections that are named, all where none is.
#[pyfunction]
pub fn read_fio(path: &str, sections: Vec<String>) -> PyResult<String> {
    let included = |name: &str| beside(path, name);
    told(fio::read(path, &text_of(path)?, &sections, &fio::surroundings, &included))
}

/// Reads the arguments of fio's command line.
#[pyfunction]
pub fn read_fio_arguments(arguments: Vec<String>) -> PyResult<String> {
    told(fio::from_arguments(&arguments))
}

/// Reads a configuration file of Iometer.
#[pyfunction]
pub fn read_icf(path: &str) -> PyResult<String> {
    told(icf::read(path, &text_of(path)?))
}

/// Reads a parameter file of vdbench with the values of its variables.
#[pyfunction]
pub fn read_vdbench(path: &str, substitutes: Vec<(String, String)>) -> PyResult<String> {
    let included = |name: &str| beside(path, name);
    told(vdbench::read(path, &text_of(path)?, &substitutes, &included))
}

/// A phase with its rates, given what each job of the phase without a limit has reached, in requests a second.
#[pyfunction]
pub fn phase_at_observed(phase: &str, observed_per_s: Vec<f64>) -> PyResult<String> {
    serde_json::to_string(&phase_of(phase)?.at_observed(&observed_per_s)).map_err(json_error)
}

/// The workload or scenario that is a phase on a simulated system of so many bytes, with `remarks` and under `streams`
/// the names under which results tell of its streams.
#[pyfunction]
pub fn phase_demand(phase: &str, capacity_bytes: u64) -> PyResult<String> {
    let simulation = phase_of(phase)?.demand(capacity_bytes).map_err(input_error)?;
    let mut demand = match simulation.demand {
        Demand::Workload(workload) => json!({ "workload": workload }),
        Demand::Scenario(scenario) => json!({ "scenario": scenario }),
    };
    demand["remarks"] = json!(simulation.remarks);
    demand["streams"] = json!(simulation.streams);
    Ok(demand.to_string())
}

/// What results call the copies of each job of a phase.
#[pyfunction]
pub fn phase_stream_names(phase: &str) -> PyResult<Vec<Vec<String>>> {
    Ok(phase_of(phase)?.stream_names())
}

fn phase_of(phase: &str) -> PyResult<Phase> {
    serde_json::from_str(phase).map_err(json_error)
}

fn told(file: Result<JobFile, InputError>) -> PyResult<String> {
    serde_json::to_string(&file.map_err(input_error)?).map_err(json_error)
}

fn text_of(path: &str) -> PyResult<String> {
    fs::read_to_string(path).map_err(|error| input_error(format!("{path}: {error}")))
}

/// The text of a file that another names: as seen from here, or else from beside it.
fn beside(path: &str, name: &str) -> io::Result<String> {
    fs::read_to_string(name).or_else(|error| match Path::new(path).parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => fs::read_to_string(folder.join(name)),
        _ => Err(error),
    })
}
