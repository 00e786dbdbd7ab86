//! Measurements from several hosts: the gate of an agent, and the joined results.

use headstack_load::{AllHosts, HostRun, Missing, StartBarrier};
use headstack_result::tables::RunSettings;
use headstack_result::{Fact, RunResult};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::input_error;
use crate::plain::Plain;
use crate::results::Results;

/// Python's callbacks of a gate.
struct CallbackBarrier {
    ready: Py<PyAny>,
    began: Py<PyAny>,
}

impl StartBarrier for CallbackBarrier {
    fn ready(&self) -> Option<u64> {
        let opens = |py: Python<'_>| -> PyResult<Option<u64>> { self.ready.call0(py)?.extract(py) };
        // The reason not to start is printed as Python prints exceptions.
        Python::attach(|py| opens(py).inspect_err(|error| error.print(py)).unwrap_or(None))
    }

    fn began(&self, at_ns: u64) {
        Python::attach(|py| {
            if let Err(error) = self.began.call1(py, (at_ns,)) {
                error.print(py);
            }
        });
    }
}

/// Makes each load of this process wait, once it is ready, until the moment that `ready` returns, on the clock of
/// `clock_ns`; it ends at once for `None`. `began` receives the actual start. Both are called on other threads. Raises
/// `RuntimeError` the second time.
#[pyfunction]
pub fn begin_together(ready: Py<PyAny>, began: Py<PyAny>) -> PyResult<()> {
    let is_first = headstack_load::begin_together(Box::new(CallbackBarrier { ready, began }));
    is_first.then_some(()).ok_or_else(|| PyRuntimeError::new_err("this process is already measuring with other hosts"))
}

/// The time of measurements, in nanoseconds.
#[pyfunction]
pub fn clock_ns() -> u64 {
    headstack_load::clock_ns()
}

type Figures = Vec<(String, f64)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsRequest {
    name: String,
    labels: Vec<(String, String)>,
    clients: Option<u64>,
    interval_ns: Option<u64>,
    ended_early: Option<String>,
    notes: Vec<String>,
    runs: Vec<HostRequest>,
    missing: Vec<(String, Figures)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRequest {
    host: String,
    began_ns: u64,
    facts: Figures,
    /// A result as JSON.
    result: String,
}

fn facts(figures: Figures) -> Vec<Fact> {
    figures.into_iter().map(|(name, value)| Fact { name, value }).collect()
}

/// Joins results that hosts measured at the same time: all of them as one run, then each. Raises `InputError` for an
/// invalid result.
#[pyfunction]
pub fn join_hosts(settings: Plain<HostsRequest>) -> PyResult<Results> {
    let Plain(settings) = settings;
    let run = |one: HostRequest| {
        let result = RunResult::from_json(&one.result).map_err(input_error)?;
        Ok(HostRun { host: one.host, began_ns: one.began_ns, facts: facts(one.facts), result })
    };
    let hosts = AllHosts {
        name: settings.name,
        runs: settings.runs.into_iter().map(run).collect::<PyResult<_>>()?,
        missing: settings.missing.into_iter().map(|(host, told)| Missing { host, facts: facts(told) }).collect(),
        interval_ns: settings.interval_ns,
        ended_early: settings.ended_early,
        notes: settings.notes,
    };
    let (all, each) = hosts.joined().ok_or_else(|| input_error("no host has results".to_owned()))?;
    let of_each = RunSettings { labels: settings.labels, clients: settings.clients, ..RunSettings::default() };
    Ok(Results::new(std::iter::once(all).chain(each).map(|result| (of_each.clone(), result)).collect()))
}
