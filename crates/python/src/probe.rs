//! Probes for Python: predetermined requests to a simulated system or a real target.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstack_driver::{Answer, Pace, Probe};
use headstack_load::EngineKind;
use headstack_sim::{Bench, SystemDescription};
use headstack_workload::{Kind, Request};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{input_error, load_error, sim_error};
use crate::interruptible::interruptibly;
use crate::measure::Targets;
use crate::plain::Plain;

/// Answers of a probe as columns: issue times and completion times in ns as 64-bit words, and the number of failures.
pub type Columns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize);

/// Builds a probe from columns of native words: kinds (8 bits, in the order read, write, trim, flush), offsets (64
/// bits), lengths (32 bits) and times in ns (64 bits). `times_ns` are think times at queue depth `depth`, or arrival
/// times if `depth` is 0.
fn probe_of(kinds: &[u8], offsets: &[u8], lengths: &[u8], depth: u32, times_ns: &[u8]) -> PyResult<Probe> {
    let (offsets, lengths, times) = (words(offsets), shorts(lengths), words(times_ns));
    if offsets.len() != kinds.len() || lengths.len() != kinds.len() {
        return Err(input_error("a probe's columns must be equally long"));
    }
    let request = |((&kind, offset_bytes), length_bytes)| {
        let kind = *Kind::ALL.get(usize::from(kind)).ok_or_else(|| input_error(format!("no kind {kind}")))?;
        Ok(Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false })
    };
    let requests = kinds.iter().zip(offsets).zip(lengths).map(request).collect::<PyResult<_>>()?;
    let pace = match depth {
        0 => Pace::Times(times),
        depth => Pace::Depth { depth, think_ns: times },
    };
    Ok(Probe { requests, pace })
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("chunks of eight bytes"));
    bytes.chunks_exact(8).map(word).collect()
}

fn shorts(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| u32::from_ne_bytes(chunk.try_into().expect("chunks of four bytes"));
    bytes.chunks_exact(4).map(word).collect()
}

fn columns<'py>(py: Python<'py>, answers: &[Answer]) -> Columns<'py> {
    let column = |of: fn(&Answer) -> u64| {
        let bytes: Vec<u8> = answers.iter().flat_map(|answer| of(answer).to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    let failed = answers.iter().filter(|answer| answer.failed).count();
    (column(|answer| answer.issued_ns), column(|answer| answer.completed_ns), failed)
}

/// A simulated system for probes, in virtual time. Its state and clock persist between probes.
#[pyclass(frozen)]
pub struct SimulatedBench(Mutex<Bench>);

#[pymethods]
impl SimulatedBench {
    /// Creates an idle system with this description, and a seed for its random processes.
    #[new]
    fn new(system: Plain<SystemDescription>, seed: u64) -> PyResult<SimulatedBench> {
        let Plain(system) = system;
        Ok(SimulatedBench(Mutex::new(Bench::new(&system, seed).map_err(sim_error)?)))
    }

    /// Exported capacity in bytes.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.bench().capacity_bytes()
    }

    /// Alignment of requests in bytes.
    #[getter]
    fn block_bytes(&self) -> u32 {
        self.bench().block_bytes()
    }

    /// Current time in ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.bench().now_ns()
    }

    /// Lets `ns` nanoseconds pass without requests.
    fn rest(&self, ns: u64) {
        self.bench().rest(ns);
    }

    /// Runs a probe; returns (issued, completed, failed) in the order of its requests.
    fn carry_out<'py>(
        &self,
        py: Python<'py>,
        kinds: &[u8],
        offsets: &[u8],
        lengths: &[u8],
        depth: u32,
        times_ns: &[u8],
    ) -> PyResult<Columns<'py>> {
        let probe = probe_of(kinds, offsets, lengths, depth, times_ns)?;
        let work = |goes_on: &AtomicBool| self.bench().carry_out(&probe, &|_| goes_on.load(Ordering::Relaxed));
        let answers = py.detach(|| interruptibly(|_| Ok(()), work))?;
        Ok(columns(py, &answers.map_err(sim_error)?))
    }
}

impl SimulatedBench {
    fn bench(&self) -> std::sync::MutexGuard<'_, Bench> {
        self.0.lock().expect("no panics with it")
    }
}

/// Runs a probe on the only target of `targets`, like `SimulatedBench.carry_out`, on the machine's monotonic clock. If
/// it is stopped, unanswered requests are missing. `progress` receives the completed share.
#[pyfunction]
#[pyo3(signature = (targets, kinds, offsets, lengths, depth, times_ns, realtime=false, progress=None))]
#[allow(clippy::too_many_arguments)] // Columns of one probe.
pub fn probe<'py>(
    py: Python<'py>,
    targets: &Targets,
    kinds: &[u8],
    offsets: &[u8],
    lengths: &[u8],
    depth: u32,
    times_ns: &[u8],
    realtime: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Columns<'py>> {
    let [target] = targets.all() else { return Err(input_error("probe: one target is needed")) };
    let asked = probe_of(kinds, offsets, lengths, depth, times_ns)?;
    let share = AtomicU64::new(0);
    let report = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, (f64::from_bits(share.load(Ordering::Relaxed)),)).map(drop),
        None => Ok(()),
    };
    let work = |goes_on: &AtomicBool| {
        headstack_load::probe(target, &asked, EngineKind::Auto, realtime, &mut |now| {
            share.store(now.share.to_bits(), Ordering::Relaxed);
            goes_on.load(Ordering::Relaxed)
        })
    };
    let answers = py.detach(|| interruptibly(report, work))?;
    Ok(columns(py, &answers.map_err(load_error)?))
}
