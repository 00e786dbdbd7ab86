//! Replaying traces on simulated systems.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstack_replay::{Replay, ReplayError};
use headstack_result::RunResult;
use headstack_sim::faults::Schedule;
use headstack_sim::replay::{ReplaySpec, replay as simulate};
use headstack_sim::{SimError, SystemDescription};
use headstack_trace::{Requests, TraceError, TraceReader};
use headstack_workload::Recorded;
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;

use crate::error::{RunError, input_error, json_error, sim_error, trace_error};
use crate::interruptible::interruptibly;
use crate::recording::Recording;
use crate::results::Results;
use crate::trace::TraceSource;
use headstack_result::tables::Asked;

/// One replay as Python asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    system_name: String,
    system: SystemDescription,
    source: TraceSource,
    replay: Replay,
    seed: u64,
    interval_ns: Option<u64>,
    /// What goes wrong, and when, as `load_faults` gives it.
    #[serde(default)]
    faults: Option<Schedule>,
    /// What distinguishes it from others: columns of the table of results.
    labels: Vec<(String, String)>,
    /// The trace to write of what came out.
    record: Option<String>,
}

/// What ends a replay.
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

/// Carries out the replays of a JSON list on all cores, and returns their results in its order. `progress` hears the
/// number of requests read by all of them.
#[pyfunction]
#[pyo3(signature = (specs, progress=None))]
pub fn replay(py: Python<'_>, specs: &str, progress: Option<Py<PyAny>>) -> PyResult<Results> {
    let specs: Vec<Spec> = serde_json::from_str(specs).map_err(json_error)?;
    let readers = specs.iter().map(|spec| {
        spec.system.check().map_err(input_error)?;
        spec.source.open()
    });
    let readers: Vec<TraceReader> = readers.collect::<PyResult<_>>()?;
    let read = AtomicU64::new(0);
    let tell = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, (read.load(Ordering::Relaxed),)).map(drop),
        None => Ok(()),
    };
    let results: Vec<Result<RunResult, Failure>> = py.detach(|| {
        interruptibly(tell, |goes_on| {
            let one = |(spec, reader): (&Spec, TraceReader)| carry_out(spec, reader, goes_on, &read);
            specs.par_iter().zip(readers).with_max_len(1).map(one).collect()
        })
    })?;
    let results = specs.iter().zip(results).map(|(spec, result)| {
        let name = &spec.replay.name;
        result.map_err(|failure| match failure {
            Failure::Sim(SimError::Stopped) => RunError::new_err("stopped"),
            Failure::Sim(SimError::Replay(error @ ReplayError::Request { .. })) => {
                input_error(format!("{name}: {error}"))
            }
            Failure::Sim(error) => sim_error(error),
            Failure::Trace(error) => trace_error(error),
        })
    });
    let results = results.collect::<PyResult<Vec<_>>>()?;
    let asked = specs.into_iter().map(|spec| Asked { labels: spec.labels, ..Asked::default() });
    Ok(Results::new(asked.zip(results).collect()))
}

fn carry_out(spec: &Spec, reader: TraceReader, goes_on: &AtomicBool, read: &AtomicU64) -> Result<RunResult, Failure> {
    let mut requests = Requests::of(reader)?;
    let mut settings = spec.replay.clone();
    if let Some(first_ns) = requests.start_of_recording_ns() {
        // Such a clock began with the recording, and so does that of the simulation: a recorded simulation comes out the
        // same, down to where the platters stand.
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
    let mut source = |batch: &mut Vec<Recorded>| -> Result<bool, Failure> {
        if !goes_on.load(Ordering::Relaxed) {
            return Err(Failure::Sim(SimError::Stopped));
        }
        let more = requests.next(batch)?;
        read.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(more)
    };
    let progress = |_| goes_on.load(Ordering::Relaxed);
    let Some(path) = &spec.record else {
        return simulate(&settings, &mut source, &progress, None);
    };
    let mut recording = Recording::simulated(path, &spec.replay.name, &spec.system_name, &spec.system, Vec::new())?;
    let result = simulate(&settings, &mut source, &progress, Some(&mut |observed| recording.observe(observed)))?;
    recording.finish()?;
    Ok(result)
}
