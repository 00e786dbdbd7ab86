//! Measurements of real files and devices from Python.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use headstack_jobfiles::{Bounds, Content, Errors, Limits, Phase, Verify, Zoning};
use headstack_load::{
    EngineKind, Job, LedgerPlace, LoadError, PhaseSpec, Progress, Spec, Target, TargetKind, Verification, VerifySpec,
    play_phase,
};
use headstack_result::{RunResult, SystemRecord};
use headstack_trace::Requests;
use headstack_workload::{Span, Workload};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{input_error, load_error};
use crate::interruptible::{attended, is_interruption};
use crate::plain::Plain;
use crate::play::{PlayError, ReplayRequest, ScenarioRequest};
use crate::request_log::RequestLog;
use crate::results::Results;
use crate::stream::PassRequest;
use crate::targets::{self, TargetRequest};
use headstack_result::tables::RunSettings;

/// A measurement, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunRequest {
    system_name: String,
    workload: Value,
    jobs: Vec<JobRequest>,
    seed: u64,
    interval_ns: Option<u64>,
    labels: Vec<(String, String)>,
}

/// A phase of a job file, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseRequest {
    system_name: String,
    phase: Phase,
    /// Indices of the targets of each job.
    targets: Vec<Vec<usize>>,
    null_service_ns: u64,
    seed: u64,
    interval_ns: Option<u64>,
    #[serde(default)]
    times_handing_over: bool,
    labels: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobRequest {
    name: String,
    /// Indices of the targets.
    targets: Vec<usize>,
    span: Option<(u64, u64)>,
    workload: Workload,
    /// Number of threads that share its load.
    threads: u32,
    limits: Limits,
    engine: EngineKind,
    slots: u32,
    start_delay_ns: u64,
    seed: u64,
    #[serde(default)]
    verify: Verify,
    /// How zones of its targets are managed.
    zones: Option<Zoning>,
}

/// Open files and devices, with their permissions.
#[pyclass(frozen)]
pub struct Targets {
    all: Vec<Arc<Target>>,
    /// Whether a measurement has started; until then, created files are removed again.
    is_begun: AtomicBool,
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.remove_unused();
    }
}

#[pymethods]
impl Targets {
    /// Opens targets; `progress` receives the completed share of a file's creation.
    #[new]
    #[pyo3(signature = (targets, progress=None))]
    fn new(py: Python<'_>, targets: Vec<Plain<TargetRequest>>, progress: Option<Py<PyAny>>) -> PyResult<Targets> {
        let share = Mutex::new(0.0);
        let report = |py: Python<'_>| match &progress {
            Some(progress) => progress.call1(py, (*share.lock().expect("no panics with it"),)).map(drop),
            None => Ok(()),
        };
        let (opened, heard) = py.detach(|| {
            attended(report, |goes_on| {
                let hear = |done: f64| {
                    *share.lock().expect("no panics with it") = done;
                    goes_on.load(Ordering::Relaxed)
                };
                let mut opened = Targets { all: Vec::new(), is_begun: AtomicBool::new(false) };
                // If one is refused, files created before are removed with the others.
                for one in &targets {
                    opened.all.push(Arc::new(one.0.open(&hear)?));
                }
                Ok(opened)
            })
        });
        heard?;
        let opened = opened.map_err(load_error)?;
        targets::keep(&opened.all);
        Ok(opened)
    }

    /// Describes each target: `name`, `kind`, `capacity_bytes`, `block_bytes`, `notes` and the whole `description`.
    fn described(&self) -> Vec<Plain<Value>> {
        let one = |target: &Arc<Target>| {
            Plain(json!({
                "name": target.name(),
                "kind": target.kind().name(),
                "capacity_bytes": target.capacity_bytes(),
                "block_bytes": target.block_bytes(),
                "rotational": target.is_rotational(),
                "notes": target.notes(),
                "description": target.description(),
            }))
        };
        self.all.iter().map(one).collect()
    }

    /// Runs measurements, one after another. `progress` receives the state of each at intervals, as a dictionary;
    /// results up to an interruption are kept. `log` keeps individual requests of all. Jobs that verify share a ledger:
    /// in memory, in the new file `ledger`, or with `resume` in the one that an earlier run left there.
    #[pyo3(signature = (runs, progress=None, log=None, ledger=None, resume=false))]
    fn measure(
        &self,
        py: Python<'_>,
        runs: Vec<Plain<RunRequest>>,
        progress: Option<Py<PyAny>>,
        log: Option<Py<RequestLog>>,
        ledger: Option<PathBuf>,
        resume: bool,
    ) -> PyResult<Results> {
        let log = log.as_ref().map(|log| &log.get().0);
        let place = match (ledger, resume) {
            (None, _) => LedgerPlace::Memory,
            (Some(path), false) => LedgerPlace::New(path),
            (Some(path), true) => LedgerPlace::Existing(path),
        };
        let runs: Vec<RunRequest> = runs.into_iter().map(checked).collect::<PyResult<_>>()?;
        let asked =
            runs.iter().map(|run| RunSettings { labels: run.labels.clone(), ..RunSettings::default() }).collect();
        let specs = self.kept_if_begun(py.detach(|| self.specs(&runs, &place)).map_err(load_error))?;
        let one = |spec: Spec, goes_on: &mut ProgressCallback| headstack_load::run_logged(&spec, log, goes_on);
        let results = one_by_one(py, asked, specs, progress.as_ref(), self.marked(one), load_error);
        let results = self.kept_if_begun(results);
        if let (LedgerPlace::New(path), true) = (&place, results.is_err() && !self.is_begun.load(Ordering::Relaxed)) {
            // It was created for these runs, none of which has started.
            std::fs::remove_file(path)?;
        }
        results
    }

    /// Replays traces, with the options of `measure`.
    #[pyo3(signature = (replays, progress=None))]
    fn replay(
        &self,
        py: Python<'_>,
        replays: Vec<Plain<ReplayRequest>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results> {
        let asked = replays
            .iter()
            .map(|Plain(asked)| RunSettings { labels: asked.labels.clone(), ..RunSettings::default() })
            .collect();
        let opened = |Plain(asked): Plain<ReplayRequest>| {
            // The thread that issues requests has no time to decode them.
            let mut requests = Requests::shared(asked.source.open()?, 1).map_err(input_error)?;
            PyResult::Ok((asked, requests.remove(0)))
        };
        let replays = replays.into_iter().map(opened).collect::<PyResult<Vec<_>>>()?;
        let one = |(asked, requests): (ReplayRequest, Requests), goes_on: &mut ProgressCallback| {
            asked.carry_out(&self.all, requests, goes_on)
        };
        self.kept_if_begun(one_by_one(py, asked, replays, progress.as_ref(), self.marked(one), PlayError::raised))
    }

    /// Plays scenarios, with the options of `measure`; the targets are their LUNs.
    #[pyo3(signature = (plays, progress=None))]
    fn play(
        &self,
        py: Python<'_>,
        plays: Vec<Plain<ScenarioRequest>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results> {
        let plays: Vec<ScenarioRequest> = plays.into_iter().map(|play| play.0).collect();
        plays.iter().try_for_each(|play| play.scenario.validate().map_err(input_error))?;
        let asked = plays
            .iter()
            .map(|play| RunSettings { labels: play.labels.clone(), clients: play.clients, capacity_bytes: None })
            .collect();
        let one = |play: ScenarioRequest, goes_on: &mut ProgressCallback| {
            play.carry_out(&self.all, self.record(&play.system_name), goes_on)
        };
        self.kept_if_begun(one_by_one(py, asked, plays, progress.as_ref(), self.marked(one), load_error))
    }

    /// Discards everything on the block device with this index; `progress` receives the completed share.
    #[pyo3(signature = (number, progress=None))]
    fn discard(&self, py: Python<'_>, number: usize, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let no_target = || input_error(format!("target {number} is not open"));
        let target = self.all.get(number).cloned().ok_or_else(no_target)?;
        self.is_begun.store(true, Ordering::Relaxed);
        let share = Mutex::new(0.0);
        let report = |py: Python<'_>| match &progress {
            Some(progress) => progress.call1(py, (*share.lock().expect("no panics with it"),)).map(drop),
            None => Ok(()),
        };
        let (discarded, heard) = py.detach(|| {
            attended(report, |goes_on| {
                target.discard(&|done| {
                    *share.lock().expect("no panics with it") = done;
                    goes_on.load(Ordering::Relaxed)
                })
            })
        });
        heard?;
        discarded.map_err(load_error)
    }

    /// Writes or reads all targets as one striped stream. `keep` receives each completed interval, and `progress` the
    /// position in bytes; returns the end of the pass. An interruption ends it, and so does an exception of `keep` or
    /// `progress`, which is raised when all results have been kept.
    fn stream(
        &self,
        py: Python<'_>,
        asked: Plain<PassRequest>,
        keep: Py<PyAny>,
        progress: Py<PyAny>,
    ) -> PyResult<Plain<Value>> {
        self.is_begun.store(true, Ordering::Relaxed);
        asked.0.carry_out(py, self.all.clone(), &keep, &progress)
    }

    /// Reads the data that verifying runs wrote to the only target, and judges them by their ledger, or only by the
    /// stamps. An interruption ends it and keeps the findings.
    #[pyo3(signature = (engine, ledger=None, progress=None))]
    fn verify(
        &self,
        py: Python<'_>,
        engine: Plain<EngineKind>,
        ledger: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results> {
        let [target] = &self.all[..] else { return Err(input_error("verify: one target is needed")) };
        let spec = VerifySpec {
            system: self.record(target.name()),
            target: Arc::clone(target),
            ledger,
            engine: engine.0,
            interval_ns: None,
        };
        let asked = vec![RunSettings::default()];
        let one = |spec: VerifySpec, goes_on: &mut ProgressCallback| headstack_load::verify(&spec, goes_on);
        one_by_one(py, asked, vec![spec], progress.as_ref(), one, load_error)
    }

    /// Refuses an impossible phase, as far as can be checked before the start.
    fn check_phase(&self, phase: Plain<PhaseRequest>) -> PyResult<()> {
        self.kept_if_begun(self.phase_spec(&phase.0).and_then(|spec| spec.check()).map(drop).map_err(load_error))
    }

    /// Runs a phase of a job file; `log` numbers requests by the copy among those of all its jobs. Otherwise as for
    /// [`measure`](Self::measure).
    #[pyo3(signature = (phase, progress=None, log=None))]
    fn measure_phase(
        &self,
        py: Python<'_>,
        phase: Plain<PhaseRequest>,
        progress: Option<Py<PyAny>>,
        log: Option<Py<RequestLog>>,
    ) -> PyResult<Results> {
        let log = log.as_ref().map(|log| &log.get().0);
        let Plain(asked) = phase;
        let labels = vec![RunSettings { labels: asked.labels.clone(), ..RunSettings::default() }];
        let spec = self.phase_spec(&asked).map_err(load_error)?;
        let one = |spec: PhaseSpec, goes_on: &mut ProgressCallback| play_phase(&spec, log, goes_on);
        self.kept_if_begun(one_by_one(py, labels, vec![spec], progress.as_ref(), self.marked(one), load_error))
    }
}

/// Receives the state of a measurement, and returns whether to continue.
pub(crate) type ProgressCallback<'a> = dyn FnMut(&Progress) -> bool + 'a;

/// Runs measurements one after another; `progress` receives the state of each at intervals. Results up to an
/// interruption, or up to a measurement that could not start, are kept.
pub(crate) fn one_by_one<R: Send, E: Display + Send>(
    py: Python<'_>,
    asked: Vec<RunSettings>,
    runs: Vec<R>,
    progress: Option<&Py<PyAny>>,
    mut one: impl FnMut(R, &mut ProgressCallback) -> Result<RunResult, E> + Send,
    raised: impl Fn(E) -> PyErr,
) -> PyResult<Results> {
    let present: Mutex<(usize, Progress)> = Mutex::default();
    let count = runs.len();
    let report = |py: Python<'_>| match progress {
        Some(progress) => {
            let (index, now) = *present.lock().expect("no panics with it");
            progress.call1(py, (progress_dict(py, index, count, &now)?,)).map(drop)
        }
        None => Ok(()),
    };
    let work = |goes_on: &AtomicBool| {
        let mut results: Vec<RunResult> = Vec::new();
        for (index, run) in runs.into_iter().enumerate() {
            let outcome = one(run, &mut |now: &Progress| {
                *present.lock().expect("no panics with it") = (index, *now);
                goes_on.load(Ordering::Relaxed)
            });
            match (outcome, results.last_mut()) {
                (Ok(result), _) => results.push(result),
                (Err(error), Some(last)) => last.ended_early = Some(format!("number {}: {error}", index + 1)),
                (Err(error), None) => return Err(error),
            }
            // After an interruption, or on a vanished device, the others would yield nothing.
            if results.last().is_some_and(|last| last.ended_early.is_some()) {
                break;
            }
        }
        Ok(results)
    };
    let (results, heard) = py.detach(|| attended(report, work));
    // An interruption ends the measurement and keeps it; any other exception is an error.
    if let Err(error) = heard
        && !is_interruption(&error, py)
    {
        return Err(error);
    }
    Ok(Results::new(asked.into_iter().zip(results.map_err(raised)?).collect()))
}

impl Targets {
    /// Removes created files if nothing was measured.
    fn remove_unused(&self) {
        if !self.is_begun.load(Ordering::Relaxed) {
            self.all.iter().for_each(|target| target.remove_created());
        }
    }

    /// Returns a result; if a measurement is refused before its start, its files are removed.
    fn kept_if_begun<T>(&self, result: PyResult<T>) -> PyResult<T> {
        if result.is_err() {
            self.remove_unused();
        }
        result
    }

    /// Notes that a measurement has started, as soon as `one` reports progress or returns a result.
    fn marked<R, E>(
        &self,
        mut one: impl FnMut(R, &mut ProgressCallback) -> Result<RunResult, E> + Send,
    ) -> impl FnMut(R, &mut ProgressCallback) -> Result<RunResult, E> + Send {
        move |run, goes_on| {
            let result = one(run, &mut |now| {
                self.is_begun.store(true, Ordering::Relaxed);
                goes_on(now)
            });
            if result.is_ok() {
                self.is_begun.store(true, Ordering::Relaxed);
            }
            result
        }
    }

    /// All targets, for a measurement that starts now.
    pub fn all(&self) -> &[Arc<Target>] {
        self.is_begun.store(true, Ordering::Relaxed);
        &self.all
    }

    /// The runs, with the common ledger of those that verify.
    fn specs(&self, runs: &[RunRequest], place: &LedgerPlace) -> Result<Vec<Spec>, LoadError> {
        let mut specs = runs.iter().map(|run| self.spec(run)).collect::<Result<Vec<_>, _>>()?;
        let jobs: Vec<&Job> = specs.iter().flat_map(|spec| &spec.jobs).collect();
        let verification = Verification::of_jobs(&jobs, place)?.map(Arc::new);
        specs.iter_mut().for_each(|spec| spec.verification.clone_from(&verification));
        Ok(specs)
    }

    fn spec(&self, run: &RunRequest) -> Result<Spec, LoadError> {
        let shared = |job: &JobRequest| {
            let targets = job.targets.iter().map(|&number| self.all.get(number).cloned()).collect::<Option<Vec<_>>>();
            let no_target =
                || LoadError::Job { job: job.name.clone(), message: "names a target that is not open".into() };
            let whole = Job {
                name: job.name.clone(),
                targets: targets.ok_or_else(no_target)?,
                span: job.span.map(|(start_bytes, length_bytes)| Span { start_bytes, length_bytes }),
                workload: job.workload.clone(),
                limits: job.limits,
                engine: job.engine,
                slots: job.slots,
                start_delay_ns: job.start_delay_ns,
                seed: job.seed,
                verify: job.verify,
                invalidates_every_bytes: None,
                target_bytes_max: u64::MAX,
                rates_per_s: None,
                flow: None,
                errors: Errors::default(),
                content: Content::default(),
                bounds: Bounds::default(),
                flushes_at_end: false,
                times_handing_over: false,
                zones: job.zones,
            };
            whole.shared(job.threads)
        };
        let jobs = run.jobs.iter().map(shared).collect::<Result<Vec<_>, LoadError>>()?.concat();
        Ok(Spec {
            system: self.record(&run.system_name),
            workload: run.workload.clone(),
            jobs,
            seed: run.seed,
            interval_ns: run.interval_ns,
            ends_with_first: false,
            tells_streams: false,
            verification: None,
        })
    }

    fn phase_spec(&self, asked: &PhaseRequest) -> Result<PhaseSpec, LoadError> {
        let targets_of = |numbers: &Vec<usize>| numbers.iter().map(|&number| self.all.get(number).cloned()).collect();
        let targets: Option<Vec<Vec<Arc<Target>>>> = asked.targets.iter().map(targets_of).collect();
        let not_open =
            || LoadError::Job { job: asked.phase.name.clone(), message: "names a target that is not open".into() };
        let targets = targets.ok_or_else(not_open)?;
        let mut used: Vec<&Arc<Target>> = Vec::new();
        for target in targets.iter().flatten() {
            if !used.iter().any(|known| Arc::ptr_eq(known, target)) {
                used.push(target);
            }
        }
        Ok(PhaseSpec {
            system: record_of(&asked.system_name, &used),
            phase: asked.phase.clone(),
            times_handing_over: asked.times_handing_over,
            targets,
            null_service_ns: asked.null_service_ns,
            seed: asked.seed,
            interval_ns: asked.interval_ns,
        })
    }

    /// Description of the targets for results.
    pub fn record(&self, name: &str) -> SystemRecord {
        record_of(name, &self.all.iter().collect::<Vec<_>>())
    }
}

/// Description of targets for results.
fn record_of(name: &str, targets: &[&Arc<Target>]) -> SystemRecord {
    match targets {
        [only] => SystemRecord::new(name, only.kind().name(), only.description().clone()),
        several => {
            let all = several.iter().map(|target| target.description().clone()).collect::<Vec<_>>();
            let are = |kind| several.iter().all(|one| one.kind() == kind);
            let kind = match () {
                () if are(TargetKind::BlockDevice) => "block devices",
                () if are(TargetKind::Namespace) => "NVMe namespaces",
                () if are(TargetKind::Export) => "NBD exports",
                () if are(TargetKind::Null) => TargetKind::Null.name(),
                () => "files",
            };
            SystemRecord::new(name, kind, json!({ "targets": all }))
        }
    }
}

fn checked(Plain(run): Plain<RunRequest>) -> PyResult<RunRequest> {
    run.jobs.iter().try_for_each(|job| job.workload.validate().map_err(input_error))?;
    Ok(run)
}

fn progress_dict<'py>(py: Python<'py>, index: usize, count: usize, now: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("run", index)?;
    dict.set_item("runs", count)?;
    dict.set_item("elapsed_s", now.elapsed_ns as f64 / 1e9)?;
    dict.set_item("share", now.share)?;
    dict.set_item("completed", now.completed)?;
    dict.set_item("bytes", now.bytes)?;
    dict.set_item("response_s", now.response_ns as f64 / 1e9)?;
    dict.set_item("errors", now.errors)?;
    dict.set_item("under_way", now.under_way)?;
    dict.set_item("ending", now.is_ending)?;
    Ok(dict)
}
