//! Synthetic traces for Python.

use std::path::Path;

use headstack_trace::synthesize::{Length, Options, Synthesis, synthesize};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{input_error, trace_error};
use crate::interruptible::interruptibly;
use crate::plain::Plain;
use crate::trace::{Counter, TraceSource};

/// Options of a synthetic trace, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthesisRequest {
    length: LengthRequest,
    rate: f64,
    footprint: f64,
    clients: Option<u32>,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthRequest {
    Times(f64),
    Requests(u64),
    Ns(u64),
}

/// Writes a synthetic trace to `output`, in the stored form; returns what was learnt and written. `progress` receives
/// the requests read and written.
#[pyfunction]
#[pyo3(signature = (source, output, options, progress=None))]
pub fn trace_synthesize(
    py: Python<'_>,
    source: Plain<TraceSource>,
    output: &str,
    options: Plain<SynthesisRequest>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Synthesis>> {
    let (Plain(source), Plain(asked)) = (source, options);
    let length = match asked.length {
        LengthRequest::Times(times) => Length::Times(times),
        LengthRequest::Requests(requests) => Length::Requests(requests),
        LengthRequest::Ns(ns) => Length::Ns(ns),
    };
    let SynthesisRequest { rate, footprint, clients, seed, .. } = asked;
    let options = Options { length, rate, footprint, clients, seed };
    let (paths, reading) = (source.paths(), source.options()?);
    let inputs = headstack_files::Outputs::for_reader();
    for path in &paths {
        inputs.measure(path, &[]).map_err(input_error)?;
        // The reader reports a missing file.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let message = "must be a file, since the trace is read several times";
            return Err(input_error(format!("{}: {message}", path.display())));
        }
    }
    let open = || headstack_trace::TraceReader::open(&paths, &reading);
    let counter = Counter::default();
    let synthesis = py.detach(|| {
        interruptibly(
            |py| counter.report(py, progress.as_ref()),
            |goes_on| synthesize(&open, &options, Path::new(output), &mut |done| counter.count(done, goes_on)),
        )
    })?;
    synthesis.map(Plain).map_err(trace_error)
}
