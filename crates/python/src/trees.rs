//! Loads on files in folders, from Python.

use std::path::PathBuf;

use headstack_jobfiles::TreePhase;
use headstack_load::trees::{TreeSpec, play_trees, verify_tree as judge_tree};
use headstack_result::tables::RunSettings;
use pyo3::prelude::*;

use crate::error::load_error;
use crate::measure::{ProgressCallback, one_by_one};
use crate::plain::Plain;
use crate::results::Results;

/// Runs phases of a job file, one after another; `ledger` records writes, and `progress` receives the state of each at
/// intervals. Otherwise as for `Targets.measure`.
#[pyfunction]
#[pyo3(signature = (phases, seed, ledger=None, progress=None))]
pub fn measure_trees(
    py: Python<'_>,
    phases: Vec<Plain<TreePhase>>,
    seed: u64,
    ledger: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let spec = |Plain(phase): Plain<TreePhase>| -> PyResult<TreeSpec> {
        let spec = TreeSpec { phase, seed, ledger: ledger.clone() };
        spec.check().map_err(load_error)?;
        Ok(spec)
    };
    let specs = phases.into_iter().map(spec).collect::<PyResult<Vec<_>>>()?;
    let settings = specs.iter().map(|_| RunSettings::default()).collect();
    one_by_one(py, settings, specs, progress.as_ref(), |spec, goes_on| play_trees(&spec, goes_on), load_error)
}

/// Verifies the data that a run left on the tree in a folder, by its ledger; with `power_loss` only flushed data have
/// to be there.
#[pyfunction]
#[pyo3(signature = (anchor, ledger, power_loss=false, progress=None))]
pub fn verify_tree(
    py: Python<'_>,
    anchor: String,
    ledger: PathBuf,
    power_loss: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let judge = |(), goes_on: &mut ProgressCallback| judge_tree(&anchor, &ledger, power_loss, goes_on);
    one_by_one(py, vec![RunSettings::default()], vec![()], progress.as_ref(), judge, load_error)
}
