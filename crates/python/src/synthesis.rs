//! Twins of traces for Python.

use std::path::Path;

use headstack_trace::synthesize::{Length, Options, synthesize};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{input_error, json_error, trace_error};
use crate::interruptible::interruptibly;
use crate::trace::{Counter, TraceSource};

/// A twin as Python asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    length: AskedLength,
    rate: f64,
    footprint: f64,
    clients: Option<u32>,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum AskedLength {
    Times(f64),
    Requests(u64),
    Ns(u64),
}

/// Writes a twin of a trace to `output`, in the stored form; returns what was learnt and written, as JSON. `progress`
/// hears the requests read and written.
#[pyfunction]
#[pyo3(signature = (source, output, options, progress=None))]
pub fn trace_synthesize(
    py: Python<'_>,
    source: &str,
    output: &str,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let source = TraceSource::read(source)?;
    let asked: Asked = serde_json::from_str(options).map_err(json_error)?;
    let length = match asked.length {
        AskedLength::Times(times) => Length::Times(times),
        AskedLength::Requests(requests) => Length::Requests(requests),
        AskedLength::Ns(ns) => Length::Ns(ns),
    };
    let Asked { rate, footprint, clients, seed, .. } = asked;
    let options = Options { length, rate, footprint, clients, seed };
    let (paths, reading) = (source.paths(), source.options()?);
    for path in &paths {
        // What is not there is said by the reader.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let message = "must be a file: a trace is read once to learn from it, and again for every copy and lap";
            return Err(input_error(format!("{}: {message}", path.display())));
        }
    }
    let open = || headstack_trace::TraceReader::open(&paths, &reading);
    let counter = Counter::default();
    let told = py.detach(|| {
        interruptibly(
            |py| counter.tell(py, progress.as_ref()),
            |goes_on| synthesize(&open, &options, Path::new(output), &mut |done| counter.count(done, goes_on)),
        )
    })?;
    serde_json::to_string(&told.map_err(trace_error)?).map_err(json_error)
}
