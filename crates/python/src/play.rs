//! Replays and scenarios on real files and devices, from Python.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use headstack_load::{
    EngineKind, LoadError, Observed, Progress, ReplaySpec, ScenarioSpec, Target, Writes, play_scenario, replay,
};
use headstack_replay::{Replay, ReplayError};
use headstack_result::{RunResult, SystemRecord};
use headstack_trace::{DeviceMeta, Flags, Requests, TraceError};
use headstack_workload::Recorded;
use headstack_workload::scenario::Scenario;
use pyo3::PyErr;
use serde::Deserialize;

use crate::error::{input_error, load_error, trace_error};
use crate::recording::{Recording, record_of};
use crate::replay::uses_times;
use crate::trace::TraceSource;

/// Number of observed requests that are passed to the writing thread together.
const HANDED_OVER: usize = 256;

/// A replay, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// Index of the target.
    target: usize,
    system_name: String,
    pub source: TraceSource,
    replay: Replay,
    writes: Writes,
    engine: EngineKind,
    slots: u32,
    realtime: bool,
    interval_ns: Option<u64>,
    pub labels: Vec<(String, String)>,
    /// A trace file for the observed requests.
    record: Option<String>,
}

/// A play of a scenario, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRequest {
    pub system_name: String,
    /// Name of each LUN, in the order of the targets.
    luns: Vec<String>,
    pub scenario: Scenario,
    /// Requested number of clients: the depth in the table of results.
    pub clients: Option<u64>,
    engine: EngineKind,
    slots: u32,
    seed: u64,
    interval_ns: Option<u64>,
    pub labels: Vec<(String, String)>,
}

/// Why a replay cannot start, or ended.
pub enum PlayError {
    Load(LoadError),
    Replay(String, ReplayError),
    Trace(TraceError),
}

impl From<LoadError> for PlayError {
    fn from(error: LoadError) -> PlayError {
        PlayError::Load(error)
    }
}

impl From<ReplayError> for PlayError {
    fn from(error: ReplayError) -> PlayError {
        PlayError::Replay(String::new(), error)
    }
}

impl From<TraceError> for PlayError {
    fn from(error: TraceError) -> PlayError {
        PlayError::Trace(error)
    }
}

impl fmt::Display for PlayError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PlayError::Load(error) => error.fmt(f),
            PlayError::Replay(name, error @ ReplayError::Request { .. }) if !name.is_empty() => {
                write!(f, "{name}: {error}")
            }
            PlayError::Replay(_, error) => error.fmt(f),
            PlayError::Trace(error) => error.fmt(f),
        }
    }
}

impl PlayError {
    /// The corresponding Python exception.
    pub fn raised(self) -> PyErr {
        match self {
            PlayError::Load(error) => load_error(error),
            PlayError::Trace(error) => trace_error(error),
            other => input_error(other.to_string()),
        }
    }
}

impl ReplayRequest {
    /// Replays `requests` on its target of `targets`, while `goes_on` returns true.
    pub fn carry_out(
        &self,
        targets: &[Arc<Target>],
        mut requests: Requests,
        goes_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunResult, PlayError> {
        let Some(target) = targets.get(self.target) else {
            let message = format!("names target {}, which is not open", self.target);
            return Err(LoadError::Job { job: self.replay.name.clone(), message }.into());
        };
        let is_timed = uses_times(&self.replay.mode);
        if is_timed {
            requests.check_times()?;
        }
        let target = Arc::clone(target);
        let spec = ReplaySpec {
            system: SystemRecord::new(&self.system_name, target.kind().name(), target.description().clone()),
            targets: vec![target],
            replay: self.replay.clone(),
            writes: self.writes,
            engine: self.engine,
            slots: self.slots,
            realtime: self.realtime,
            interval_ns: self.interval_ns,
            verification: None,
        };
        let mut source = |batch: &mut Vec<Recorded>| requests.next(batch).map_err(PlayError::from);
        let played = match &self.record {
            None => replay(&spec, &mut source, goes_on, None),
            Some(path) => {
                let recording = Recording::measured(path, &self.replay.name, self.device(&spec.targets))?;
                recorded(&spec, &mut source, goes_on, recording)
            }
        };
        let mut result = played.map_err(|error| match error {
            PlayError::Replay(_, error) => PlayError::Replay(self.replay.name.clone(), error),
            other => other,
        })?;
        result.notes.extend(requests.notes(is_timed));
        Ok(result)
    }

    /// The device of the recording.
    fn device(&self, targets: &[Arc<Target>]) -> DeviceMeta {
        let block_bytes = Target::common_block_bytes(targets);
        DeviceMeta {
            name: self.system_name.clone(),
            capacity_bytes: Some(targets.iter().map(|target| target.whole_bytes(block_bytes)).sum()),
            sector_bytes: Some(block_bytes),
            model: None,
        }
    }
}

/// Replays, and records the observed requests. If writing fails, the replay ends and its result is kept.
fn recorded(
    spec: &ReplaySpec,
    source: &mut (dyn FnMut(&mut Vec<Recorded>) -> Result<bool, PlayError> + Send),
    goes_on: &mut dyn FnMut(&Progress) -> bool,
    recording: Recording,
) -> Result<RunResult, PlayError> {
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, observed) = channel();
        let writer = scope.spawn(|| write(observed, recording, &has_failed));
        let mut batch = Vec::with_capacity(HANDED_OVER);
        let mut hear = |one: &Observed| {
            batch.push(*one);
            if batch.len() == HANDED_OVER {
                // The receiver is gone only after a panic, which the join below propagates.
                let _ = sender.send(std::mem::replace(&mut batch, Vec::with_capacity(HANDED_OVER)));
            }
        };
        let mut listened = |now: &Progress| goes_on(now) && !has_failed.load(Ordering::Relaxed);
        let result = replay(spec, source, &mut listened, Some(&mut hear));
        let _ = sender.send(batch);
        drop(sender);
        let recording = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut result = result?;
        if let Err(error) = recording.finish() {
            result.ended_early = Some(error.to_string());
        }
        Ok(result)
    })
}

/// Writes requests in order of issue that arrive in order of completion: slow work must not run on the issuing thread.
fn write(observed: Receiver<Vec<Observed>>, mut recording: Recording, has_failed: &AtomicBool) -> Recording {
    let mut next = 0;
    let mut early: BTreeMap<u64, Observed> = BTreeMap::new();
    let mut take = |one: &Observed| {
        let mut record = record_of(&one.recorded);
        if one.failed {
            record.flags = record.flags.with(Flags::ERROR);
        }
        recording.take(record);
        has_failed.store(recording.has_failed(), Ordering::Relaxed);
    };
    for batch in observed {
        early.extend(batch.into_iter().map(|one| (one.sequence, one)));
        while let Some(one) = early.remove(&next) {
            take(&one);
            next += 1;
        }
    }
    // Requests under way at the end leave gaps.
    early.values().for_each(take);
    recording
}

impl ScenarioRequest {
    /// Plays the scenario on `targets`, described as `system` in results, while `goes_on` returns true.
    pub fn carry_out(
        &self,
        targets: &[Arc<Target>],
        system: SystemRecord,
        goes_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunResult, LoadError> {
        let luns = self.luns.iter().cloned().zip(targets.iter().cloned()).collect();
        let spec = ScenarioSpec {
            system,
            luns,
            scenario: self.scenario.clone(),
            engine: self.engine,
            slots: self.slots,
            seed: self.seed,
            interval_ns: self.interval_ns,
            verification: None,
        };
        play_scenario(&spec, goes_on)
    }
}
