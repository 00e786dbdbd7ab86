//! Files with values of theirs changed: the points of a sweep.

use headstack_catalogue::{Blueprint, Described, Drafter};
use headstack_sim::{Demand, contained};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde_json::json;

use crate::error::{input_error, json_error};

/// The blueprint of a drive or an array, as JSON; `drives` are files that may be put into the array. Raises `InputError`.
#[pyfunction]
pub fn system_blueprint(name: &str, drives: Vec<String>) -> PyResult<String> {
    let drives: Vec<&str> = drives.iter().map(String::as_str).collect();
    let blueprint = Blueprint::of_system(name, &drives).map_err(input_error)?;
    serde_json::to_string(&blueprint).map_err(json_error)
}

/// The blueprint of a workload or a scenario, as JSON. Raises `InputError`.
#[pyfunction]
pub fn demand_blueprint(name: &str) -> PyResult<String> {
    serde_json::to_string(&Blueprint::of_demand(name).map_err(input_error)?).map_err(json_error)
}

/// What a blueprint describes with the values of each point, on all cores: `described` with the JSON of the system, or of
/// the workload or scenario under its kind; `unknown-key` or `impossible` with the reason; `failed` with that of a bug.
/// Raises `InputError` for what is not a blueprint.
#[pyfunction]
pub fn describe_points(
    py: Python<'_>,
    blueprint: &str,
    points: Vec<Vec<(String, String)>>,
) -> PyResult<Vec<(&'static str, String)>> {
    let blueprint: Blueprint = serde_json::from_str(blueprint).map_err(json_error)?;
    let drafter = Drafter::new(blueprint).map_err(input_error)?;
    let describe = |values: &Vec<_>| match contained(|| drafter.with(values)) {
        Ok(Ok(Described::System(system))) => ("described", json!(system).to_string()),
        Ok(Ok(Described::Demand(Demand::Workload(workload)))) => {
            ("described", json!({ "workload": workload }).to_string())
        }
        Ok(Ok(Described::Demand(Demand::Scenario(scenario)))) => {
            ("described", json!({ "scenario": scenario }).to_string())
        }
        Ok(Err(error)) if error.is_unknown_key() => ("unknown-key", error.to_string()),
        Ok(Err(error)) => ("impossible", error.to_string()),
        Err(panic) => ("failed", panic),
    };
    Ok(py.detach(|| points.par_iter().map(describe).collect()))
}

/// The file that describes what [`describe_points`] does of one point, as TOML. Raises `InputError`.
#[pyfunction]
pub fn drafted_toml(blueprint: &str, values: Vec<(String, String)>) -> PyResult<String> {
    let blueprint: Blueprint = serde_json::from_str(blueprint).map_err(json_error)?;
    Drafter::new(blueprint).and_then(|drafter| drafter.text_with(&values)).map_err(input_error)
}
