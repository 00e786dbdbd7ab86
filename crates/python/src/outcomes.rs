//! Many runs, each of which may fail for itself: what a chunk is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};
use headstack_result::RunResult;
use headstack_sim::{SimError, run_contained};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{input_error, json_error};
use crate::interruptible::interruptibly;
use crate::result_columns::{Asked, RUN_COLUMNS, Row};
use crate::results::{Results, labelled};
use crate::run::Spec;
use crate::table::{Kept, Table, fields_of, kept_cells, kept_columns};

/// A run of which it is known before it is tried that it cannot be.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Refused {
    Impossible { why: String, labels: Vec<(String, String)> },
    Failed { why: String, labels: Vec<(String, String)> },
}

/// What came of a run.
enum Outcome {
    /// It is over: the cells of its row, and the whole result as JSON where that is wanted.
    Done(Asked, Vec<Kept>, Option<String>),
    /// What was asked for cannot be: why.
    Impossible(Asked, String),
    /// The simulator failed, or found its own result to be wrong.
    Failed(Asked, String),
}

impl Outcome {
    fn of(spec: &str, whole: bool, goes_on: &AtomicBool) -> PyResult<Outcome> {
        let value: Value = serde_json::from_str(spec).map_err(json_error)?;
        if value.get("system").is_none() {
            let asked = |labels| Asked { labels, ..Asked::default() };
            return Ok(match serde_json::from_value(value).map_err(json_error)? {
                Refused::Impossible { why, labels } => Outcome::Impossible(asked(labels), why),
                Refused::Failed { why, labels } => Outcome::Failed(asked(labels), why),
            });
        }
        let spec: Spec = serde_json::from_value(value).map_err(json_error)?;
        if let Err(fault) = spec.fault() {
            return Ok(Outcome::Impossible(spec.asked(), fault));
        }
        let names = spec.stream_names.clone();
        let (asked, spec) = spec.split();
        Ok(match run_contained(&spec, &|_| goes_on.load(Ordering::Relaxed)) {
            Ok(mut result) => {
                if !names.is_empty() {
                    result.name_streams(&names);
                }
                match failed_check(&result) {
                    None => Outcome::done(asked, result, whole)?,
                    Some(check) => Outcome::Failed(asked, check),
                }
            }
            Err(error @ (SimError::Panicked(_) | SimError::Stopped)) => Outcome::Failed(asked, error.to_string()),
            Err(error) => Outcome::Impossible(asked, error.to_string()),
        })
    }

    /// Of a result, whose histograms take most of a megabyte, only what is asked for is kept.
    fn done(asked: Asked, result: RunResult, whole: bool) -> PyResult<Outcome> {
        let json = whole.then(|| result.to_json()).transpose().map_err(input_error)?;
        let row = Row::new(asked, result);
        let cells = kept_cells(RUN_COLUMNS, &row);
        Ok(Outcome::Done(row.into_asked(), cells, json))
    }

    fn asked(&self) -> &Asked {
        match self {
            Outcome::Done(asked, ..) | Outcome::Impossible(asked, _) | Outcome::Failed(asked, _) => asked,
        }
    }

    fn cells(&self) -> Option<&[Kept]> {
        match self {
            Outcome::Done(_, cells, _) => Some(cells),
            Outcome::Impossible(..) | Outcome::Failed(..) => None,
        }
    }

    fn whole(&self) -> Option<&str> {
        match self {
            Outcome::Done(_, _, whole) => whole.as_deref(),
            Outcome::Impossible(..) | Outcome::Failed(..) => None,
        }
    }

    fn impossible(&self) -> Option<&str> {
        match self {
            Outcome::Impossible(_, why) => Some(why),
            Outcome::Done(..) | Outcome::Failed(..) => None,
        }
    }

    fn failed(&self) -> Option<&str> {
        match self {
            Outcome::Failed(_, why) => Some(why),
            Outcome::Done(..) | Outcome::Impossible(..) => None,
        }
    }
}

fn failed_check(result: &RunResult) -> Option<String> {
    let check = result.checks.iter().find(|check| !check.passed)?;
    Some(format!("its own check failed, its figures cannot be trusted: {}: {}", check.name, check.detail))
}

/// What came of runs, in the order in which they were asked for.
#[pyclass(frozen, module = "headstack._native")]
pub struct Outcomes {
    outcomes: Vec<Outcome>,
    whole: bool,
}

/// Carries out runs on all cores, each a specification as JSON, or
/// `{"impossible": {"why": ..., "labels": [...]}}`, likewise `failed`: what fails is told in its row. Results are
/// kept as rows, and with `whole` as what `results_of_kept` reads. `progress` is called with the share done. Raises `InputError` for what is not a specification.
#[pyfunction]
#[pyo3(signature = (specs, whole, progress=None))]
pub fn run_each(py: Python<'_>, specs: Vec<String>, whole: bool, progress: Option<Py<PyAny>>) -> PyResult<Outcomes> {
    let done = AtomicUsize::new(0);
    let tell = |py: Python<'_>| match &progress {
        Some(progress) => {
            progress.call1(py, (done.load(Ordering::Relaxed) as f64 / specs.len().max(1) as f64,)).map(drop)
        }
        None => Ok(()),
    };
    let outcomes = py.detach(|| {
        interruptibly(tell, |goes_on| {
            let carry_out = |spec: &String| {
                let outcome = Outcome::of(spec, whole, goes_on);
                done.fetch_add(1, Ordering::Relaxed);
                outcome
            };
            specs.par_iter().with_max_len(1).map(carry_out).collect::<PyResult<Vec<_>>>()
        })
    })??;
    Ok(Outcomes { outcomes, whole })
}

#[pymethods]
impl Outcomes {
    /// `count` outcomes from number `first`, a row for each: the table of results, the labels, and why a run was
    /// `impossible` or `failed`; of whole results, also what `results_of_kept` reads.
    fn table(&self, first: usize, count: usize) -> PyResult<Table> {
        let outcomes = self.outcomes.get(first..first + count).ok_or_else(|| input_error("no such outcomes"))?;
        let asked: Vec<&Asked> = outcomes.iter().map(Outcome::asked).collect();
        let cells: Vec<_> = outcomes.iter().map(Outcome::cells).collect();
        let mut table = kept_columns(&fields_of(RUN_COLUMNS), &cells);
        table.extend(labelled(&asked));
        table.push(text_column("impossible", outcomes.iter().map(Outcome::impossible).collect()));
        table.push(text_column("failed", outcomes.iter().map(Outcome::failed).collect()));
        if self.whole {
            let kept = asked.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(json_error)?;
            table.push(text_column("asked", kept.into()));
            table.push(text_column("whole", outcomes.iter().map(Outcome::whole).collect()));
        }
        Ok(Table::new(table))
    }
}

fn text_column(name: &str, texts: StringArray) -> (Field, ArrayRef) {
    (Field::new(name, DataType::Utf8, true), Arc::new(texts))
}

/// Results from the columns `asked` and `whole` of a table of outcomes. Raises `InputError`.
#[pyfunction]
pub fn results_of_kept(asked: Vec<String>, whole: Vec<String>) -> PyResult<Results> {
    let read = |(asked, whole): (&String, &String)| {
        Ok((
            serde_json::from_str::<Asked>(asked).map_err(json_error)?,
            RunResult::from_json(whole).map_err(input_error)?,
        ))
    };
    Ok(Results::new(asked.iter().zip(&whole).map(read).collect::<PyResult<_>>()?))
}
