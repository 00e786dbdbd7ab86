//! Replays traces on simulated systems.

use std::cell::RefCell;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use headstack_replay::{Extent, Replay, ReplayError, ReplayMode, VolumeResult, Volumes};
use headstack_result::RunResult;
use headstack_sim::faults::Schedule;
use headstack_sim::replay::{ReplaySpec, replay as simulate};
use headstack_sim::{Observed, SimError, SystemDescription};
use headstack_trace::{Requests, TraceError, TraceReader};
use headstack_workload::Recorded;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{input_error, sim_error, stopped, trace_error};
use crate::interruptible::interruptibly;
use crate::plain::Plain;
use crate::recording::Recording;
use crate::results::Results;
use crate::trace::TraceSource;
use headstack_result::tables::RunSettings;

/// A replay, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    system_name: String,
    system: SystemDescription,
    source: TraceSource,
    replay: Replay,
    /// Placement of the volumes of a trace, which may then have several.
    #[serde(default)]
    map: Vec<Extent>,
    seed: u64,
    interval_ns: Option<u64>,
    /// Schedule of faults, from `load_faults`.
    #[serde(default)]
    faults: Option<Schedule>,
    /// Labels: columns of the table of results that distinguish it from others.
    labels: Vec<(String, String)>,
    /// A trace file for the observed requests.
    record: Option<String>,
}

/// Why a replay ended.
enum Failure {
    Sim(SimError),
    Trace(TraceError),
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure::Sim(error)
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        Failure::Sim(error.into())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::Trace(error)
    }
}

/// Number of replays that share one reading of their trace: each has its system in memory and a thread.
const TOGETHER: usize = 8;

/// Result of a replay: of the whole, and of each separately placed volume.
type Replayed = Result<(RunResult, Vec<VolumeResult>), Failure>;

/// Runs replays on all cores, and returns their results in order, and those of the volumes of each. `progress` receives
/// the number of requests read by all of them.
#[pyfunction]
#[pyo3(signature = (specs, progress=None))]
pub fn replay(
    py: Python<'_>,
    specs: Vec<Plain<Spec>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Results, Plain<Vec<Vec<VolumeResult>>>)> {
    let specs: Vec<Spec> = specs.into_iter().map(|spec| spec.0).collect();
    specs.iter().try_for_each(|spec| spec.system.check().map_err(input_error))?;
    let readers = readings(&specs).into_iter().map(|group| Ok((specs[group[0]].source.open()?, group)));
    let readers: Vec<(TraceReader, Vec<usize>)> = readers.collect::<PyResult<_>>()?;
    let read = AtomicU64::new(0);
    let report = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, (read.load(Ordering::Relaxed),)).map(drop),
        None => Ok(()),
    };
    let results = py.detach(|| interruptibly(report, |goes_on| carry_out_all(&specs, readers, goes_on, &read)))?;
    let results = specs.iter().zip(results).map(|(spec, result)| {
        let name = &spec.replay.name;
        result.map_err(|failure| match failure {
            Failure::Sim(SimError::Stopped) => stopped(),
            Failure::Sim(SimError::Replay(error @ ReplayError::Request { .. })) => {
                input_error(format!("{name}: {error}"))
            }
            Failure::Sim(error) => sim_error(error),
            Failure::Trace(error) => trace_error(error),
        })
    });
    let (results, volumes): (Vec<_>, Vec<_>) = results.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    let settings = specs.into_iter().map(|spec| RunSettings { labels: spec.labels, ..RunSettings::default() });
    Ok((Results::new(settings.zip(results).collect()), Plain(volumes)))
}

/// Indices of the replays that share a reading of their trace.
fn readings(specs: &[Spec]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let shared = |group: &&mut Vec<usize>| group.len() < TOGETHER && specs[group[0]].source == spec.source;
        match groups.iter_mut().find(shared) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Runs the readings in turn, as many at a time as there are cores; the replays of one have a thread each, since the
/// slowest limits the others. Decoding uses rayon's threads.
fn carry_out_all(
    specs: &[Spec],
    readers: Vec<(TraceReader, Vec<usize>)>,
    goes_on: &AtomicBool,
    read: &AtomicU64,
) -> Vec<Replayed> {
    let done: Vec<OnceLock<Replayed>> = specs.iter().map(|_| OnceLock::new()).collect();
    let at_a_time = thread::available_parallelism().map_or(1, NonZero::get).min(readers.len());
    let waiting = Mutex::new(readers.into_iter());
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                let next = || waiting.lock().expect("no one panics with it").next();
                while let Some((reader, group)) = next() {
                    let played = carry_out_together(specs, reader, &group, goes_on, read);
                    for (index, result) in group.into_iter().zip(played) {
                        assert!(done[index].set(result).is_ok(), "a replay runs only once");
                    }
                }
            });
        }
    });
    done.into_iter().map(|result| result.into_inner().expect("all requests were issued")).collect()
}

/// Runs the replays of one reading.
fn carry_out_together(
    specs: &[Spec],
    reader: TraceReader,
    group: &[usize],
    goes_on: &AtomicBool,
    read: &AtomicU64,
) -> Vec<Replayed> {
    let requests = match Requests::shared(reader, group.len()) {
        Ok(requests) => requests,
        Err(error) => return group.iter().map(|_| Err(error.clone().into())).collect(),
    };
    thread::scope(|scope| {
        let replays: Vec<_> = group
            .iter()
            .zip(requests)
            .map(|(&index, requests)| scope.spawn(move || carry_out(&specs[index], requests, goes_on, read)))
            .collect();
        replays.into_iter().map(|replay| replay.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Whether requests arrive at recorded times, or after recorded delays.
pub fn uses_times(mode: &ReplayMode) -> bool {
    match mode {
        ReplayMode::Timed { .. } | ReplayMode::Closed | ReplayMode::Dependent { .. } => true,
        ReplayMode::Asap { .. } => false,
    }
}

fn carry_out(spec: &Spec, mut requests: Requests, goes_on: &AtomicBool, read: &AtomicU64) -> Replayed {
    let mut settings = spec.replay.clone();
    let is_timed = uses_times(&settings.mode);
    if is_timed {
        requests.check_times()?;
    }
    if let Some(first_ns) = requests.start_of_recording_ns() {
        // Such a clock began with the recording, and so does that of the simulation: a recorded simulation is
        // reproduced exactly, down to the rotational position.
        settings.start_ns = first_ns;
    }
    let settings = ReplaySpec {
        system_name: spec.system_name.clone(),
        system: spec.system.clone(),
        replay: settings,
        seed: spec.seed,
        interval_ns: spec.interval_ns,
        faults: spec.faults.clone(),
    };
    let volumes = match &spec.map[..] {
        [] => None,
        extents => Some(RefCell::new(Volumes::new(extents.to_vec(), spec.replay.outside)?)),
    };
    let mut source = |batch: &mut Vec<Recorded>| -> Result<bool, Failure> {
        if !goes_on.load(Ordering::Relaxed) {
            return Err(Failure::Sim(SimError::Stopped));
        }
        let more = match &volumes {
            None => requests.next(batch)?,
            Some(volumes) => requests.next_placed(batch, &mut |device, recorded| {
                let mut volumes = volumes.borrow_mut();
                let index = volumes.find(device).ok_or_else(|| format!("map: `{device}` is not mapped"))?;
                volumes.place(index, recorded)
            })?,
        };
        read.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(more)
    };
    let progress = |_| goes_on.load(Ordering::Relaxed);
    let begin =
        |path: &String| Recording::simulated(path, &spec.replay.name, &spec.system_name, &spec.system, Vec::new());
    let mut recording = spec.record.as_ref().map(begin).transpose()?;
    let mut result = if recording.is_none() && volumes.is_none() {
        simulate(&settings, &mut source, &progress, None)?
    } else {
        let mut hear = |observed: &Observed| {
            recording.iter_mut().for_each(|recording| recording.observe(observed));
            volumes.iter().for_each(|volumes| volumes.borrow_mut().replayed(&observed.recorded));
        };
        simulate(&settings, &mut source, &progress, Some(&mut hear))?
    };
    recording.map(Recording::finish).transpose()?;
    result.notes.extend(requests.notes(is_timed));
    let volumes = volumes.map_or_else(Vec::new, |volumes| volumes.borrow().results());
    Ok((result, volumes))
}
