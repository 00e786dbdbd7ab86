//! Many runs, each of which may fail for itself: what a chunk is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};
use headstack_result::RunResult;
use headstack_sim::{SimError, run_contained};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{input_error, json_error};
use crate::interruptible::interruptibly;
use crate::results::{Asked, Results, Row, labelled};
use crate::run::Spec;
use crate::table::{Table, columns_where};

/// A run that is known to be impossible before it is tried.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Impossible {
    impossible: String,
    labels: Vec<(String, String)>,
}

/// What came of a run.
enum Outcome {
    /// It is over.
    Done(Box<Row>),
    /// What was asked for cannot be: why.
    Impossible(Asked, String),
    /// The simulator failed, or found its own result to be wrong.
    Failed(Asked, String),
}

impl Outcome {
    fn of(spec: &str, goes_on: &AtomicBool) -> PyResult<Outcome> {
        let value: Value = serde_json::from_str(spec).map_err(json_error)?;
        if value.get("impossible").is_some() {
            let Impossible { impossible, labels } = serde_json::from_value(value).map_err(json_error)?;
            return Ok(Outcome::Impossible(Asked { labels, clients: None }, impossible));
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
                    None => Outcome::Done(Box::new(Row::new(asked, result))),
                    Some(check) => Outcome::Failed(asked, check),
                }
            }
            Err(error @ (SimError::Panicked(_) | SimError::Stopped)) => Outcome::Failed(asked, error.to_string()),
            Err(error) => Outcome::Impossible(asked, error.to_string()),
        })
    }

    fn row(&self) -> Option<&Row> {
        match self {
            Outcome::Done(row) => Some(row),
            Outcome::Impossible(..) | Outcome::Failed(..) => None,
        }
    }

    fn asked(&self) -> &Asked {
        match self {
            Outcome::Done(row) => row.asked(),
            Outcome::Impossible(asked, _) | Outcome::Failed(asked, _) => asked,
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
}

/// Carries out runs on all cores, each a specification as JSON, or `{"impossible": WHY, "labels": [...]}`: what fails is
/// told in its row. `progress` is called with the share done. Raises `InputError` for what is no specification.
#[pyfunction]
#[pyo3(signature = (specs, progress=None))]
pub fn run_each(py: Python<'_>, specs: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Outcomes> {
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
                let outcome = Outcome::of(spec, goes_on);
                done.fetch_add(1, Ordering::Relaxed);
                outcome
            };
            specs.par_iter().with_max_len(1).map(carry_out).collect::<PyResult<Vec<_>>>()
        })
    })??;
    Ok(Outcomes { outcomes })
}

/// What was asked of a run, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    labels: Vec<(String, String)>,
    clients: Option<u64>,
}

#[pymethods]
impl Outcomes {
    /// `count` outcomes from number `first`, a row for each: the table of results, the labels, and why a run was
    /// `impossible` or `failed`. `whole` adds what `results_of_kept` reads.
    fn table(&self, first: usize, count: usize, whole: bool) -> PyResult<Table> {
        let outcomes = self.outcomes.get(first..first + count).ok_or_else(|| input_error("no such outcomes"))?;
        let rows: Vec<Option<&Row>> = outcomes.iter().map(Outcome::row).collect();
        let mut table = columns_where(Results::COLUMNS, &rows);
        let asked: Vec<&Asked> = outcomes.iter().map(Outcome::asked).collect();
        table.extend(labelled(&asked));
        let why = |of: fn(&Outcome) -> Option<&str>| outcomes.iter().map(of).collect::<StringArray>();
        let impossible = why(|outcome| match outcome {
            Outcome::Impossible(_, why) => Some(why),
            Outcome::Done(_) | Outcome::Failed(..) => None,
        });
        let failed = why(|outcome| match outcome {
            Outcome::Failed(_, why) => Some(why),
            Outcome::Done(_) | Outcome::Impossible(..) => None,
        });
        table.push(text_column("impossible", impossible));
        table.push(text_column("failed", failed));
        if whole {
            let kept = |asked: &&Asked| {
                serde_json::to_string(&Kept { labels: asked.labels.clone(), clients: asked.clients })
                    .map_err(json_error)
            };
            table.push(text_column("asked", asked.iter().map(kept).collect::<PyResult<Vec<_>>>()?.into()));
            let json = |row: &Option<&Row>| row.map(|row| row.result().to_json()).transpose().map_err(input_error);
            table.push(text_column("whole", rows.iter().map(json).collect::<PyResult<Vec<_>>>()?.into()));
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
        let Kept { labels, clients } = serde_json::from_str(asked).map_err(json_error)?;
        Ok((Asked { labels, clients }, RunResult::from_json(whole).map_err(input_error)?))
    };
    Ok(Results::new(asked.iter().zip(&whole).map(read).collect::<PyResult<_>>()?))
}
