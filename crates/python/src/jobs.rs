//! Reads job files of other programs into the model.

use std::fs;
use std::io;
use std::path::Path;

use headstack_jobfiles::{Demand, JobFile, Phase, fio, icf, vdbench};
use headstack_workload::InputError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::input_error;
use crate::plain::Plain;

/// Reads a job file of fio; only the named sections, or all if none is named.
#[pyfunction]
pub fn read_fio(path: &str, sections: Vec<String>) -> PyResult<Plain<JobFile>> {
    let included = |name: &str| beside(path, name);
    parsed(fio::read(path, &text_of(path)?, &sections, &fio::surroundings, &included))
}

/// Reads the arguments of fio's command line.
#[pyfunction]
pub fn read_fio_arguments(arguments: Vec<String>) -> PyResult<Plain<JobFile>> {
    parsed(fio::from_arguments(&arguments))
}

/// Reads a configuration file of Iometer.
#[pyfunction]
pub fn read_icf(path: &str) -> PyResult<Plain<JobFile>> {
    parsed(icf::read(path, &text_of(path)?))
}

/// Reads a parameter file of vdbench with the values of its variables.
#[pyfunction]
pub fn read_vdbench(path: &str, substitutes: Vec<(String, String)>) -> PyResult<Plain<JobFile>> {
    let included = |name: &str| beside(path, name);
    parsed(vdbench::read(path, &text_of(path)?, &substitutes, &included))
}

/// A phase with its rates, given the observed rate of each job of the phase without a limit, in requests per second.
#[pyfunction]
pub fn phase_at_observed(phase: Plain<Phase>, observed_per_s: Vec<f64>) -> Plain<Phase> {
    Plain(phase.0.at_observed(&observed_per_s))
}

/// The workload or scenario of a phase on a simulated system of that size, with `remarks`, and the names of its streams
/// in results under `streams`.
#[pyfunction]
pub fn phase_demand(phase: Plain<Phase>, capacity_bytes: u64) -> PyResult<Plain<Value>> {
    let simulation = phase.0.demand(capacity_bytes).map_err(input_error)?;
    let mut demand = match simulation.demand {
        Demand::Workload(workload) => json!({ "workload": workload }),
        Demand::Scenario(scenario) => json!({ "scenario": scenario }),
    };
    demand["remarks"] = json!(simulation.remarks);
    demand["streams"] = json!(simulation.streams);
    Ok(Plain(demand))
}

/// Names of the copies of each job of a phase in results.
#[pyfunction]
pub fn phase_stream_names(phase: Plain<Phase>) -> Vec<Vec<String>> {
    phase.0.stream_names()
}

fn parsed(file: Result<JobFile, InputError>) -> PyResult<Plain<JobFile>> {
    file.map(Plain).map_err(input_error)
}

fn text_of(path: &str) -> PyResult<String> {
    read_input(Path::new(path)).map_err(|error| input_error(format!("{path}: {error}")))
}

/// The text of an included file: relative to the current folder, or else to that of the including file.
fn beside(path: &str, name: &str) -> io::Result<String> {
    read_input(Path::new(name)).or_else(|error| match Path::new(path).parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => read_input(&folder.join(name)),
        _ => Err(error),
    })
}

/// The text of a file, which no output of the command replaces.
fn read_input(path: &Path) -> io::Result<String> {
    headstack_files::note_input(path).map_err(|error| io::Error::other(error.message))?;
    fs::read_to_string(path)
}
