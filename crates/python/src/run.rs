//! Executes specifications from Python: the interpreter is free meanwhile, and Ctrl-C stops the runs.

use headstack_catalogue::options::Draft;
use headstack_result::RunResult;
use headstack_sim::{Demand, RunSpec, SimError, record, run_all};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::{input_error, json_error, sim_error, trace_error};
use crate::interruptible::{Share, interruptibly};
use crate::plain::Plain;
use crate::recording::Recording;
use crate::results::Results;
use headstack_result::tables::RunSettings;

/// A run, from Python or a point of a sweep.
pub struct Spec {
    draft: Draft,
    /// Name of each stream of the scenario in results, if different from its own.
    pub stream_names: Vec<String>,
    /// Labels of a run within a sweep: columns of the table of results.
    labels: Vec<(String, String)>,
}

/// Executes the runs of a list of specifications on all cores, and returns their results in order.
///
/// `progress` is called at intervals, on the caller's thread, with the completed share (0 to 1). A single run is
/// recorded as a trace at `record`.
#[pyfunction]
#[pyo3(signature = (specs, progress=None, record=None))]
pub fn run(
    py: Python<'_>,
    specs: Vec<Plain<Value>>,
    progress: Option<Py<PyAny>>,
    record: Option<&str>,
) -> PyResult<Results> {
    let specs: Vec<_> = specs.into_iter().map(|spec| Spec::read(spec.0)).collect::<PyResult<_>>()?;
    let names: Vec<Vec<String>> = specs.iter().map(|spec| spec.stream_names.clone()).collect();
    let (asked, specs): (Vec<_>, Vec<_>) = specs.into_iter().map(Spec::split).unzip();
    let results = match (record, &specs[..]) {
        (None, _) => py.detach(|| run_interruptibly(&specs, progress.as_ref()))?,
        (Some(path), [spec]) => vec![py.detach(|| record_interruptibly(spec, path, progress.as_ref()))?],
        (Some(_), _) => return Err(input_error(format!("record: {} runs; one run is allowed", specs.len()))),
    };
    let results: Result<Vec<RunResult>, SimError> = results.into_iter().collect();
    let mut results = results.map_err(sim_error)?;
    for (result, names) in results.iter_mut().zip(&names).filter(|(_, names)| !names.is_empty()) {
        result.name_streams(names);
    }
    Ok(Results::new(asked.into_iter().zip(results).collect()))
}

impl Spec {
    /// Parses a run from Python with its labels.
    ///
    /// # Errors
    /// `InputError` for an invalid run.
    pub fn from_json(mut value: Value) -> PyResult<Spec> {
        let mut taken = |key: &str| value.as_object_mut().and_then(|spec| spec.remove(key));
        let labels = taken("labels").map_or(Ok(Vec::new()), serde_json::from_value).map_err(json_error)?;
        let stream_names = taken("stream_names").map_or(Ok(Vec::new()), serde_json::from_value).map_err(json_error)?;
        Ok(Spec { draft: serde_json::from_value(value).map_err(json_error)?, stream_names, labels })
    }

    /// The run of a point of a sweep.
    pub fn for_point(draft: Draft, labels: Vec<(String, String)>) -> Spec {
        Spec { draft, stream_names: Vec::new(), labels }
    }

    /// Its labels.
    pub fn labels(self) -> Vec<(String, String)> {
        self.labels
    }

    fn read(value: Value) -> PyResult<Spec> {
        let spec = Spec::from_json(value)?;
        spec.fault().map_err(input_error)?;
        Ok(spec)
    }

    /// Checks whether the run is possible.
    ///
    /// # Errors
    /// The impossible key, and permitted values.
    pub fn fault(&self) -> Result<(), headstack_workload::InputError> {
        self.draft.fault()
    }

    /// Splits it into the request data that the result lacks, and the run. Only for a run without a
    /// [`fault`](Self::fault).
    pub fn split(self) -> (RunSettings, RunSpec) {
        self.draft.split(self.labels)
    }
}

fn run_interruptibly(specs: &[RunSpec], progress: Option<&Py<PyAny>>) -> PyResult<Vec<Result<RunResult, SimError>>> {
    let shares: Vec<Share> = specs.iter().map(|_| Share::default()).collect();
    let report = |py: Python<'_>| {
        let Some(progress) = progress else {
            return Ok(());
        };
        let done: f64 = shares.iter().map(Share::get).sum();
        progress.call1(py, (done / specs.len().max(1) as f64,)).map(drop)
    };
    interruptibly(report, |goes_on| run_all(specs, &|index, share| shares[index].note(share, goes_on)))
}

/// Executes one run, and records its requests as a trace: including those of the warm-up, and those under way at the
/// end.
fn record_interruptibly(
    spec: &RunSpec,
    path: &str,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Result<RunResult, SimError>> {
    let (demand, streams) = match &spec.demand {
        Demand::Workload(workload) => (&workload.name, Vec::new()),
        Demand::Scenario(scenario) => {
            (&scenario.name, scenario.streams.iter().map(|stream| stream.name.clone()).collect())
        }
    };
    let recording = Recording::simulated(path, demand, &spec.system_name, &spec.system, streams);
    let mut recording = recording.map_err(trace_error)?;
    let share = Share::default();
    let result = interruptibly(
        |py| share.report(py, progress),
        |goes_on| record(spec, &|done| share.note(done, goes_on), &mut |observed| recording.observe(observed)),
    )?;
    if result.is_ok() {
        recording.finish().map_err(trace_error)?;
    }
    Ok(result)
}
