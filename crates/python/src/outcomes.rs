//! [`Outcomes`]: the outcomes of many runs in chunks; each run may fail independently.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};
use headstack_catalogue::{DescribedPoints, Point, Points, Refused};
use headstack_result::RunResult;
use headstack_result::columns::{OwnedCell, kept_cells};
use headstack_sim::{Progress, SimError, contained, run_contained};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{input_error, json_error};
use crate::interruptible::{Share, interruptibly};
use crate::plain::Plain;
use crate::results::{Results, labelled};
use crate::run::Spec;
use crate::table::{Table, fields_of, kept_columns};
use headstack_result::tables::{RUN_COLUMNS, Row, RunSettings};

/// A chunk of a sweep or a study, as Python stores and hashes it. Python also compares the build that runs the chunk.
enum Chunk {
    /// Specified runs, of which the complete results are needed.
    Runs(Vec<Value>),
    /// Points of a sweep.
    Points(Box<Points>),
}

impl Chunk {
    fn read(content: &str) -> PyResult<Chunk> {
        #[derive(Deserialize)]
        struct Runs {
            runs: Option<Vec<Value>>,
        }
        let Runs { runs } = serde_json::from_str(content).map_err(json_error)?;
        Ok(match runs {
            Some(runs) => Chunk::Runs(runs),
            None => Chunk::Points(serde_json::from_str(content).map_err(json_error)?),
        })
    }
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Runs(runs) => runs.len(),
            Chunk::Points(points) => points.len(),
        }
    }

    fn describe(&self) -> PyResult<Option<DescribedPoints<'_>>> {
        match self {
            Chunk::Runs(_) => Ok(None),
            Chunk::Points(points) => points.describe().map(Some).map_err(input_error),
        }
    }

    fn tasks<'c>(&'c self, points: Option<&'c DescribedPoints<'c>>) -> Vec<Task<'c>> {
        match (self, points) {
            (Chunk::Runs(runs), _) => runs.iter().map(Task::Run).collect(),
            (Chunk::Points(asked), Some(points)) => {
                (0..asked.len()).map(|number| Task::Point(points, number)).collect()
            }
            (Chunk::Points(_), None) => unreachable!("points have been described"),
        }
    }
}

/// A run of a chunk.
enum Task<'c> {
    Run(&'c Value),
    Point(&'c DescribedPoints<'c>, usize),
}

/// Outcome of a run.
enum Outcome {
    /// The run finished: its settings, the cells of its row, and its complete result as JSON if needed.
    Done(RunSettings, Vec<OwnedCell>, Option<String>),
    /// The run is impossible, with the reason.
    Impossible(RunSettings, String),
    /// The simulator failed, or the self-check of the result did; with the reason.
    Failed(RunSettings, String),
}

impl Outcome {
    /// Executes a run; `progress` receives the completed share.
    fn of(task: &Task<'_>, whole: bool, progress: &Progress) -> PyResult<Outcome> {
        let spec = match *task {
            Task::Run(spec) => Spec::from_json(spec.clone())?,
            Task::Point(points, number) => match contained(|| points.point(number)) {
                Ok(Point { labels, draft: Ok(draft) }) => Spec::for_point(draft, labels),
                Ok(Point { labels, draft: Err(refused) }) => return Ok(Outcome::refused(labels, refused)),
                Err(panic) => return Ok(Outcome::refused(Vec::new(), Refused::Failed(panic))),
            },
        };
        if let Err(fault) = spec.fault() {
            return Ok(Outcome::refused(spec.labels(), Refused::Impossible(fault.to_string())));
        }
        let names = spec.stream_names.clone();
        let (asked, spec) = spec.split();
        Ok(match run_contained(&spec, progress) {
            Ok(mut result) => {
                if !names.is_empty() {
                    result.name_streams(&names);
                }
                match failed_check(&result) {
                    None => Outcome::from_result(asked, result, whole)?,
                    Some(check) => Outcome::Failed(asked, check),
                }
            }
            Err(error @ (SimError::Panicked(_) | SimError::Stopped)) => Outcome::Failed(asked, error.to_string()),
            Err(error) => Outcome::Impossible(asked, error.to_string()),
        })
    }

    fn refused(labels: Vec<(String, String)>, refused: Refused) -> Outcome {
        let asked = RunSettings { labels, ..RunSettings::default() };
        match refused {
            Refused::Impossible(why) => Outcome::Impossible(asked, why),
            Refused::Failed(why) => Outcome::Failed(asked, why),
        }
    }

    /// Keeps only the requested parts of a result, since its histograms take most of a megabyte.
    fn from_result(asked: RunSettings, result: RunResult, whole: bool) -> PyResult<Outcome> {
        let json = whole.then(|| result.to_json()).transpose().map_err(input_error)?;
        let row = Row::new(asked, result);
        let cells = kept_cells(RUN_COLUMNS, &row);
        Ok(Outcome::Done(row.into_settings(), cells, json))
    }

    fn settings(&self) -> &RunSettings {
        match self {
            Outcome::Done(asked, ..) | Outcome::Impossible(asked, _) | Outcome::Failed(asked, _) => asked,
        }
    }

    fn cells(&self) -> Option<&[OwnedCell]> {
        match self {
            Outcome::Done(_, cells, _) => Some(cells),
            Outcome::Impossible(..) | Outcome::Failed(..) => None,
        }
    }

    fn full_result(&self) -> Option<&str> {
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
    Some(format!("a self-check failed, so the results are invalid: {}: {}", check.name, check.detail))
}

/// Outcomes of runs, in the requested order.
#[pyclass(frozen, module = "headstack._native")]
pub struct Outcomes {
    outcomes: Vec<Outcome>,
    whole: bool,
}

/// Executes the runs of chunks, given as JSON, on all cores. A failure is reported in the row of its run. Results are
/// kept as rows; results of chunks that need complete runs are also kept in the form that `results_of_kept` reads.
/// `progress` receives the completed share. Raises `InputError` for an invalid chunk.
#[pyfunction]
#[pyo3(signature = (chunks, progress=None))]
pub fn run_chunks(py: Python<'_>, chunks: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Outcomes> {
    let chunks: Vec<Chunk> = chunks.iter().map(|content| Chunk::read(content)).collect::<PyResult<_>>()?;
    let whole = chunks.iter().any(|chunk| matches!(chunk, Chunk::Runs(_)));
    let runs: usize = chunks.iter().map(Chunk::len).sum();
    // One share per run, since a long run would otherwise show no progress.
    let shares: Vec<Share> = (0..runs).map(|_| Share::default()).collect();
    let report = |py: Python<'_>| match &progress {
        Some(progress) => {
            let done: f64 = shares.iter().map(Share::get).sum();
            progress.call1(py, (done / runs.max(1) as f64,)).map(drop)
        }
        None => Ok(()),
    };
    let carry_out = |goes_on: &AtomicBool| {
        let described: Vec<Option<DescribedPoints<'_>>> =
            chunks.par_iter().map(Chunk::describe).collect::<PyResult<_>>()?;
        let tasks: Vec<Task<'_>> =
            chunks.iter().zip(&described).flat_map(|(chunk, points)| chunk.tasks(points.as_ref())).collect();
        let one = |(number, task): (usize, &Task<'_>)| {
            let outcome = Outcome::of(task, whole, &|share| shares[number].note(share, goes_on));
            shares[number].note(1.0, goes_on);
            outcome
        };
        tasks.par_iter().enumerate().with_max_len(1).map(one).collect::<PyResult<Vec<_>>>()
    };
    let outcomes = py.detach(|| interruptibly(report, carry_out))??;
    Ok(Outcomes { outcomes, whole })
}

/// Returns the runs of a chunk's points: the specification of each run, or `impossible` or `failed` with the reason.
/// Raises `InputError` for an invalid chunk of points.
#[pyfunction]
pub fn specifications(chunk: Plain<Points>) -> PyResult<Vec<Plain<Value>>> {
    let Plain(points) = chunk;
    let described = points.describe().map_err(input_error)?;
    let one = |number| {
        let text = match described.point(number).draft {
            Ok(draft) => serde_json::to_value(draft).map_err(json_error)?,
            Err(Refused::Impossible(why)) => json!({ "impossible": why }),
            Err(Refused::Failed(why)) => json!({ "failed": why }),
        };
        Ok(Plain(text))
    };
    (0..points.len()).map(one).collect()
}

#[pymethods]
impl Outcomes {
    /// Returns `count` outcomes, starting with outcome `first`, one per row: the table of results, the labels, and the
    /// reason if a run was `impossible` or `failed`; for complete results also the form that `results_of_kept` reads.
    fn table(&self, first: usize, count: usize) -> PyResult<Table> {
        let outcomes = self.outcomes.get(first..first + count).ok_or_else(|| input_error("no such outcomes"))?;
        let asked: Vec<&RunSettings> = outcomes.iter().map(Outcome::settings).collect();
        let cells: Vec<_> = outcomes.iter().map(Outcome::cells).collect();
        let mut table = kept_columns(&fields_of(RUN_COLUMNS), &cells);
        table.extend(labelled(&asked));
        table.push(text_column("impossible", outcomes.iter().map(Outcome::impossible).collect()));
        table.push(text_column("failed", outcomes.iter().map(Outcome::failed).collect()));
        if self.whole {
            let kept = asked.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(json_error)?;
            table.push(text_column("asked", kept.into()));
            table.push(text_column("whole", outcomes.iter().map(Outcome::full_result).collect()));
        }
        Ok(Table::new(table))
    }
}

fn text_column(name: &str, texts: StringArray) -> (Field, ArrayRef) {
    (Field::new(name, DataType::Utf8, true), Arc::new(texts))
}

/// Returns the results stored in the columns `asked` and `whole` of a table of outcomes. Raises `InputError`.
#[pyfunction]
pub fn results_of_kept(asked: Vec<String>, whole: Vec<String>) -> PyResult<Results> {
    let read = |(asked, whole): (&String, &String)| {
        Ok((
            serde_json::from_str::<RunSettings>(asked).map_err(json_error)?,
            RunResult::from_json(whole).map_err(input_error)?,
        ))
    };
    Ok(Results::new(asked.iter().zip(&whole).map(read).collect::<PyResult<_>>()?))
}
