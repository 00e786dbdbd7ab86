//! Reads job files of other programs.

use std::fs;
use std::io;
use std::path::Path;

use headstack_jobfiles::{Demand, JobFile, Phase, fio, icf, vdbench};
use headstack_workload::InputError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::input_error;
use crate::plain::Plain;

/// Reads a job file of fio, either the named sections or, if none is named, all sections.
#[pyfunction]
pub fn read_fio(path: &str, sections: Vec<String>) -> PyResult<Plain<JobFile>> {
    let included = |name: &str| beside(path, name);
    parsed(fio::read(path, &text_of(path)?, &sections, &fio::surroundings, &included))
}

/// Reads the arguments of an fio command line.
#[pyfunction]
pub fn read_fio_arguments(arguments: Vec<String>) -> PyResult<Plain<JobFile>> {
    parsed(fio::from_arguments(&arguments))
}

/// Reads a configuration file of Iometer.
#[pyfunction]
pub fn read_icf(path: &str) -> PyResult<Plain<JobFile>> {
    parsed(icf::read(path, &text_of(path)?))
}

/// Reads a parameter file of vdbench, with the values of its variables.
#[pyfunction]
pub fn read_vdbench(path: &str, substitutes: Vec<(String, String)>) -> PyResult<Plain<JobFile>> {
    let included = |name: &str| beside(path, name);
    parsed(vdbench::read(path, &text_of(path)?, &substitutes, &included))
}

/// Returns a phase with fixed rates. `observed_per_s` has the observed rate, in requests per second, of each job of the
/// phase without a limit.
#[pyfunction]
pub fn phase_at_observed(phase: Plain<Phase>, observed_per_s: Vec<f64>) -> Plain<Phase> {
    Plain(phase.0.at_observed(&observed_per_s))
}

/// Returns the workload or scenario of a phase on a simulated system of `capacity_bytes` bytes, with `remarks`, and the
/// names of its streams in results under `streams`.
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

/// Returns the names of the copies of each job of a phase in results.
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

/// Returns the text of an included file. Its path is relative to the current folder or, if there is no such file, to
/// the folder of the including file.
fn beside(path: &str, name: &str) -> io::Result<String> {
    read_input(Path::new(name)).or_else(|error| match Path::new(path).parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => read_input(&folder.join(name)),
        _ => Err(error),
    })
}

/// Returns the text of a file, and registers the file as an input that no output of the command may replace.
fn read_input(path: &Path) -> io::Result<String> {
    headstack_files::note_input(path).map_err(|error| io::Error::other(error.message))?;
    fs::read_to_string(path)
}
