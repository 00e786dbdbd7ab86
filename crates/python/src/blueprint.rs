//! Blueprints: files with some values changed, for the points of a sweep.

use headstack_catalogue::{Blueprint, Described, Drafter};
use headstack_sim::{Demand, contained};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::input_error;
use crate::plain::Plain;

/// The blueprint of a drive or an array; `drives` are alternative drive files for the array. Raises `InputError`.
#[pyfunction]
pub fn system_blueprint(name: &str, drives: Vec<String>) -> PyResult<Plain<Blueprint>> {
    let drives: Vec<&str> = drives.iter().map(String::as_str).collect();
    Blueprint::for_system(name, &drives).map(Plain).map_err(input_error)
}

/// The blueprint of a workload or a scenario. Raises `InputError`.
#[pyfunction]
pub fn demand_blueprint(name: &str) -> PyResult<Plain<Blueprint>> {
    Blueprint::for_demand(name).map(Plain).map_err(input_error)
}

/// Describes each point of a blueprint, on all cores: `described` with the system, or with the workload or scenario
/// under its kind; `unknown-key` or `impossible` with the reason; `failed` with the reason of a bug.
#[pyfunction]
pub fn describe_points(
    py: Python<'_>,
    blueprint: Plain<Blueprint>,
    points: Vec<Vec<(String, String)>>,
) -> PyResult<Vec<(&'static str, Plain<Value>)>> {
    let drafter = Drafter::new(blueprint.0).map_err(input_error)?;
    let describe = |values: &Vec<_>| match contained(|| drafter.with(values)) {
        Ok(Ok(Described::System(system))) => ("described", Plain(json!(system))),
        Ok(Ok(Described::Demand(Demand::Workload(workload)))) => ("described", Plain(json!({ "workload": workload }))),
        Ok(Ok(Described::Demand(Demand::Scenario(scenario)))) => ("described", Plain(json!({ "scenario": scenario }))),
        Ok(Err(error)) if error.is_unknown_key() => ("unknown-key", Plain(error.to_string().into())),
        Ok(Err(error)) => ("impossible", Plain(error.to_string().into())),
        Err(panic) => ("failed", Plain(panic.into())),
    };
    Ok(py.detach(|| points.par_iter().map(describe).collect()))
}

/// The figures of `[stated]` that no longer hold with these values, such as `stated.random_read`. Raises `InputError`.
#[pyfunction]
pub fn dropped_figures(blueprint: Plain<Blueprint>, values: Vec<(String, String)>) -> PyResult<Vec<String>> {
    Drafter::new(blueprint.0).and_then(|drafter| drafter.dropped_figures(&values)).map_err(input_error)
}

/// The note on the stated figures of a system that the values of its varied keys drop.
#[pyfunction]
pub fn note_of_dropped(system: &str, varied: Vec<String>, figures: Vec<String>) -> String {
    headstack_catalogue::note_of_dropped(system, &varied, &figures)
}

/// The file with the description by [`describe_points`] of one point, as TOML. Raises `InputError`.
#[pyfunction]
pub fn drafted_toml(blueprint: Plain<Blueprint>, values: Vec<(String, String)>) -> PyResult<String> {
    Drafter::new(blueprint.0).and_then(|drafter| drafter.text_with(&values)).map_err(input_error)
}
