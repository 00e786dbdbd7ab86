//! The cache lab for Python: takes a trace and options, returns a report.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstack_cache::CachePolicy;
use headstack_replay::{Outside, Replay, ReplayError, ReplayMode};
use headstack_result::LatencyHistogram;
use headstack_sim::replay::{ReplaySpec, replay as simulate};
use headstack_sim::{Observed, SimError, SystemDescription};
use headstack_trace::caching::{CacheBefore, Lab, LabOptions, LabPolicy, LabReport};
use headstack_trace::{TraceError, TraceReader};
use headstack_workload::Recorded;
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{input_error, sim_error, stopped, trace_error};
use crate::interruptible::interruptibly;
use crate::plain::Plain;
use crate::trace::{TraceSource, counted};

/// The error in the terms of users.
fn user_error(error: TraceError) -> PyErr {
    if error.field.is_empty() { input_error(error) } else { input_error(format!("{}: {}", error.field, error.message)) }
}

/// Simulates caches on a trace: misses of each policy at each size.
#[pyfunction]
#[pyo3(signature = (source, options, progress=None))]
pub fn trace_cache(
    py: Python<'_>,
    source: Plain<TraceSource>,
    options: Plain<LabOptions>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<LabReport>> {
    let mut lab = Lab::new(options.0).map_err(user_error)?;
    let mut reader = source.0.open()?;
    let read = AtomicU64::new(0);
    let report = py.detach(|| {
        interruptibly(counted(&read, progress.as_ref()), |goes_on| {
            let mut batch = Vec::new();
            while reader.next_batch(&mut batch)? {
                lab.add(&batch)?;
                read.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !goes_on.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
            Ok(Some(lab.finish()))
        })
    })?;
    match report.map_err(user_error)? {
        Some(report) => Ok(Plain(report)),
        None => Err(stopped()),
    }
}

/// A system behind caches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendSystem {
    system_name: String,
    system: SystemDescription,
    hit_ns: u64,
    outside: Outside,
    seed: u64,
}

/// Results of the replays behind caches.
#[derive(Serialize)]
pub struct BehindReport {
    /// Response times for each cache.
    times: Vec<Responses>,
    /// Notes on limits of the trace, the same for every cache.
    notes: Vec<String>,
}

/// Response times in front of one cache; null if there were none.
#[derive(Serialize)]
pub struct Responses {
    policy: CachePolicy,
    cache: u64,
    responses: u64,
    mean_ns: Option<f64>,
    p99_ns: Option<u64>,
    read_mean_ns: Option<f64>,
    read_p99_ns: Option<u64>,
    write_mean_ns: Option<f64>,
    write_p99_ns: Option<u64>,
}

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

/// Replays the misses of each cache on the system, in virtual time; returns response times in front of the cache, and
/// notes. Policies that know the future are not permitted.
#[pyfunction]
#[pyo3(signature = (source, options, behind, progress=None))]
pub fn trace_cache_behind(
    py: Python<'_>,
    source: Plain<TraceSource>,
    options: Plain<LabOptions>,
    behind: Plain<BackendSystem>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<BehindReport>> {
    let (Plain(source), Plain(options), Plain(behind)) = (source, options, behind);
    behind.system.check().map_err(input_error)?;
    let caches: Vec<(CachePolicy, u64)> = options
        .policies
        .iter()
        .filter_map(|policy| match policy {
            LabPolicy::Online(policy) => Some(*policy),
            LabPolicy::Belady => None,
        })
        .flat_map(|policy| options.sizes.iter().map(move |&size| (policy, size)))
        .collect();
    // Each cache reads the trace separately.
    let readers: Vec<TraceReader> = caches.iter().map(|_| source.open()).collect::<PyResult<_>>()?;
    let read = AtomicU64::new(0);
    let found: Vec<Result<(Responses, Vec<String>), Failure>> = py.detach(|| {
        interruptibly(counted(&read, progress.as_ref()), |goes_on| {
            let one = |(&cache, reader): (&(CachePolicy, u64), TraceReader)| {
                before(cache, &options, &behind, reader, goes_on, &read)
            };
            caches.par_iter().zip(readers).with_max_len(1).map(one).collect()
        })
    })?;
    let found = found.into_iter().map(|found| {
        found.map_err(|failure| match failure {
            Failure::Sim(SimError::Stopped) => stopped(),
            Failure::Sim(SimError::Replay(error)) => input_error(format!("{}: {error}", behind.system_name)),
            Failure::Sim(error) => sim_error(error),
            Failure::Trace(error) => trace_error(error),
        })
    });
    let (times, notes): (Vec<Responses>, Vec<_>) = found.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    let notes = notes.into_iter().next().unwrap_or_default();
    Ok(Plain(BehindReport { times, notes }))
}

fn before(
    (policy, size): (CachePolicy, u64),
    options: &LabOptions,
    behind: &BackendSystem,
    mut reader: TraceReader,
    goes_on: &AtomicBool,
    read: &AtomicU64,
) -> Result<(Responses, Vec<String>), Failure> {
    let cache = RefCell::new(CacheBefore::new(policy, size, options, behind.hit_ns)?);
    let (mut reads, mut writes) = (LatencyHistogram::new(), LatencyHistogram::new());
    let mut batch = Vec::new();
    let mut next = |to_back: &mut Vec<Recorded>| -> Result<bool, Failure> {
        to_back.clear();
        while to_back.is_empty() && reader.next_batch(&mut batch)? {
            if !goes_on.load(Ordering::Relaxed) {
                return Err(Failure::Sim(SimError::Stopped));
            }
            cache.borrow_mut().pass_to_cache(&batch, reader.meta(), to_back)?;
            read.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        Ok(!to_back.is_empty())
    };
    let mut first = Vec::new();
    if next(&mut first)? {
        let spec = ReplaySpec {
            system_name: behind.system_name.clone(),
            system: behind.system.clone(),
            replay: Replay { outside: behind.outside, ..Replay::new("cache", ReplayMode::Timed { time_scale: 1.0 }) },
            seed: behind.seed,
            interval_ns: None,
            faults: None,
        };
        let mut first = Some(first);
        let mut requests = |to_back: &mut Vec<Recorded>| match first.take() {
            Some(first) => {
                *to_back = first;
                Ok(true)
            }
            None => next(to_back),
        };
        let mut hear = |observed: &Observed| {
            let Recorded { arrival_ns, completion_ns, .. } = observed.recorded;
            let mut cache = cache.borrow_mut();
            cache.completed(completion_ns.map_or(0, |at_ns| at_ns - arrival_ns));
            record(&mut cache, &mut reads, &mut writes);
        };
        simulate::<Failure>(&spec, &mut requests, &|_| goes_on.load(Ordering::Relaxed), Some(&mut hear))?;
    }
    record(&mut cache.borrow_mut(), &mut reads, &mut writes);
    let notes = cache.borrow().notes(reader.meta());
    let mut all = reads.clone();
    all.merge(&writes);
    let mean = |times: &LatencyHistogram| (times.count() > 0).then(|| times.mean_ns());
    let responses = Responses {
        policy,
        cache: size,
        responses: all.count(),
        mean_ns: mean(&all),
        p99_ns: all.quantile_ns(0.99),
        read_mean_ns: mean(&reads),
        read_p99_ns: reads.quantile_ns(0.99),
        write_mean_ns: mean(&writes),
        write_p99_ns: writes.quantile_ns(0.99),
    };
    Ok((responses, notes))
}

fn record(cache: &mut CacheBefore, reads: &mut LatencyHistogram, writes: &mut LatencyHistogram) {
    for (is_write, ns) in cache.responses() {
        if is_write { writes.record(ns) } else { reads.record(ns) }
    }
}
