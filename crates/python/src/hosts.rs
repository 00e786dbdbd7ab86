//! Measurements from several hosts: the gate of an agent, and the joined results.

use headstack_load::{AllHosts, Gate, HostRun, Missing};
use headstack_result::tables::Asked;
use headstack_result::{Fact, RunResult};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::input_error;
use crate::plain::Plain;
use crate::results::Results;

/// Python's callbacks of a gate.
struct Called {
    ready: Py<PyAny>,
    began: Py<PyAny>,
}

impl Gate for Called {
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
    let is_first = headstack_load::begin_together(Box::new(Called { ready, began }));
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
pub struct HostsAsked {
    name: String,
    labels: Vec<(String, String)>,
    clients: Option<u64>,
    interval_ns: Option<u64>,
    ended_early: Option<String>,
    notes: Vec<String>,
    runs: Vec<HostAsked>,
    missing: Vec<(String, Figures)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAsked {
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
pub fn join_hosts(asked: Plain<HostsAsked>) -> PyResult<Results> {
    let Plain(asked) = asked;
    let run = |one: HostAsked| {
        let result = RunResult::from_json(&one.result).map_err(input_error)?;
        Ok(HostRun { host: one.host, began_ns: one.began_ns, facts: facts(one.facts), result })
    };
    let hosts = AllHosts {
        name: asked.name,
        runs: asked.runs.into_iter().map(run).collect::<PyResult<_>>()?,
        missing: asked.missing.into_iter().map(|(host, told)| Missing { host, facts: facts(told) }).collect(),
        interval_ns: asked.interval_ns,
        ended_early: asked.ended_early,
        notes: asked.notes,
    };
    let (all, each) = hosts.joined().ok_or_else(|| input_error("no host has results".to_owned()))?;
    let of_each = Asked { labels: asked.labels, clients: asked.clients, ..Asked::default() };
    Ok(Results::new(std::iter::once(all).chain(each).map(|result| (of_each.clone(), result)).collect()))
}
