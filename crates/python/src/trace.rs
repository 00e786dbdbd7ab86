//! Traces for Python: reads files, returns files or reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstack_trace::analyze::{Analysis, Course, Granularity, Options, Part, Report, ReuseOptions, Volumes};
use headstack_trace::export::{self, ExportFormat};
use headstack_trace::{
    CsvColumns, Format, Meta, Parts, Piece, ReadOptions, Record, Stage, Step, Summary, TimeUnit, TraceError,
    TraceReader, Window,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{input_error, stopped, trace_error};
use crate::interruptible::interruptibly;
use crate::plain::{Plain, plain};

/// A trace to read, from Python.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    paths: Vec<String>,
    format: Option<String>,
    #[serde(default)]
    skip_bad: bool,
    #[serde(default)]
    steps: Vec<String>,
    /// Only these devices, before all steps.
    devices: Option<Vec<String>>,
    columns: Option<String>,
    sector_bytes: Option<u32>,
    time_unit: Option<String>,
    at: Option<String>,
}

impl TraceSource {
    /// The read options; unknown names are refused.
    pub fn options(&self) -> PyResult<ReadOptions> {
        let known = || Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        let format = |name: &String| {
            Format::from_name(name)
                .ok_or_else(|| input_error(format!("format: `{name}` is unknown; allowed: {}", known())))
        };
        let step = |text: &String| Step::parse(text).map_err(|error| input_error(format!("step: {error}")));
        let columns = |text: &String| {
            let path = Path::new(text);
            if path.extension().is_some_and(|extension| extension == "toml") || path.is_dir() {
                let first = self.paths.first().map_or("", String::as_str);
                return CsvColumns::load(path, Path::new(first)).map_err(input_error);
            }
            CsvColumns::parse(text).map_err(|error| input_error(format!("columns: {error}")))
        };
        let unit = |name: &String| {
            TimeUnit::from_name(name)
                .ok_or_else(|| input_error(format!("time_unit: must be s, ms, us, ns, not `{name}`")))
        };
        let stage = |name: &String| match name.as_str() {
            "queue" => Ok(Stage::Queue),
            "issue" => Ok(Stage::Issue),
            _ => Err(input_error(format!("at: must be queue or issue, not `{name}`"))),
        };
        Ok(ReadOptions {
            format: self.format.as_ref().map(format).transpose()?,
            skip_bad: self.skip_bad,
            steps: self
                .devices
                .iter()
                .cloned()
                .map(|names| Ok(Step::Device(names)))
                .chain(self.steps.iter().map(step))
                .collect::<PyResult<_>>()?,
            at: self.at.as_ref().map(stage).transpose()?,
            sector_bytes: self.sector_bytes,
            time_unit: self.time_unit.as_ref().map(unit).transpose()?,
            window: None,
            csv: self.columns.as_ref().map(columns).transpose()?,
        })
    }

    /// Paths of its files.
    pub fn paths(&self) -> Vec<&Path> {
        self.paths.iter().map(Path::new).collect()
    }

    /// Opens the trace.
    pub fn open(&self) -> PyResult<TraceReader> {
        TraceReader::open(&self.paths(), &self.options()?).map_err(input_error)
    }
}

/// Options of an analysis, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnalysisOptions {
    block_bytes: u64,
    reuse: Option<String>,
    sample: Option<f64>,
}

impl AnalysisOptions {
    fn options(self) -> PyResult<Options> {
        let asked = self;
        let granularity = |name: &String| match name.as_str() {
            "block" => Ok(Granularity::Block),
            "request" => Ok(Granularity::Request),
            _ => Err(input_error(format!("reuse: must be block or request, not `{name}`"))),
        };
        let reuse = asked.reuse.as_ref().map(granularity).transpose()?;
        let rate = asked.sample.unwrap_or(1.0);
        Ok(Options {
            block_bytes: u32::try_from(asked.block_bytes)
                .map_err(|_| input_error(format!("block: must be at most 2^30 bytes, not {}", asked.block_bytes)))?,
            reuse: reuse.map(|granularity| ReuseOptions { granularity, rate, ..ReuseOptions::default() }),
            ..Options::default()
        })
    }

    fn begin(self) -> PyResult<Analysis> {
        Analysis::new(self.options()?).map_err(|error| {
            // In the terms of users.
            let name = match error.field {
                "block_bytes" => "block",
                "rate" => "sample",
                field => field,
            };
            input_error(format!("{name}: {}", error.message))
        })
    }
}

/// A part of a trace, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartRequest {
    start_ns: u64,
    from_ns: u64,
    to_ns: u64,
}

/// The analysis: in the order of the report, without a copy of its maps.
#[derive(Serialize)]
struct Analyzed<'a> {
    meta: &'a Meta,
    report: Report,
}

/// Number of requests read so far, for progress reports.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Stores the number; returns whether to continue.
    pub fn count(&self, requests: u64, goes_on: &AtomicBool) -> bool {
        self.0.store(requests, Ordering::Relaxed);
        goes_on.load(Ordering::Relaxed)
    }

    /// Reports the number to Python.
    pub fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        match progress {
            Some(progress) => progress.call1(py, (self.0.load(Ordering::Relaxed),)).map(drop),
            None => Ok(()),
        }
    }
}

/// Reports the number of requests read so far to Python, if it has a callback.
pub fn counted<'a>(read: &'a AtomicU64, progress: Option<&'a Py<PyAny>>) -> impl Fn(Python<'_>) -> PyResult<()> + 'a {
    move |py| match progress {
        Some(progress) => progress.call1(py, (read.load(Ordering::Relaxed),)).map(drop),
        None => Ok(()),
    }
}

/// All input formats: names and titles.
#[pyfunction]
pub fn trace_formats() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.title())).collect()
}

/// A sample line of every input format: names and lines.
#[pyfunction]
pub fn trace_format_lines() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.sample())).collect()
}

/// All output formats except the stored form: names and titles.
#[pyfunction]
pub fn trace_export_formats() -> Vec<(&'static str, &'static str)> {
    ExportFormat::ALL.iter().map(|format| (format.name(), format.title())).collect()
}

/// Writes a trace in the stored form to `output`; returns its metadata. `progress` receives the number of requests
/// read.
#[pyfunction]
#[pyo3(signature = (source, output, progress=None))]
pub fn trace_import(
    py: Python<'_>,
    source: Plain<TraceSource>,
    output: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Value>> {
    let mut reader = source.0.open()?;
    let counter = Counter::default();
    let meta = py.detach(|| {
        interruptibly(
            |py| counter.report(py, progress.as_ref()),
            |goes_on| headstack_trace::import(&mut reader, Path::new(output), &mut |read| counter.count(read, goes_on)),
        )
    })?;
    Ok(Plain(json!({ "meta": meta.map_err(trace_error)?, "requests": counter.0.into_inner() })))
}

/// Writes the requests to each device of a trace to a separate file in `folder`; returns devices, paths and numbers of
/// requests, with the metadata. `progress` receives the number of requests read.
#[pyfunction]
#[pyo3(signature = (source, folder, progress=None))]
pub fn trace_split(
    py: Python<'_>,
    source: Plain<TraceSource>,
    folder: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Value>> {
    let mut reader = source.0.open()?;
    let counter = Counter::default();
    let parted = py.detach(|| {
        interruptibly(
            |py| counter.report(py, progress.as_ref()),
            |goes_on| headstack_trace::split(&mut reader, Path::new(folder), &mut |read| counter.count(read, goes_on)),
        )
    })?;
    let (meta, pieces) = parted.map_err(trace_error)?;
    let piece = |piece: Piece| json!({ "device": piece.device, "path": piece.path, "requests": piece.requests });
    Ok(Plain(json!({ "meta": meta, "pieces": pieces.into_iter().map(piece).collect::<Vec<_>>() })))
}

/// The metadata of a trace, and its summary.
#[pyfunction]
#[pyo3(signature = (source, progress=None))]
pub fn trace_info(py: Python<'_>, source: Plain<TraceSource>, progress: Option<Py<PyAny>>) -> PyResult<Plain<Value>> {
    let mut reader = source.0.open()?;
    let mut summary = Summary::default();
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| summary.add(batch))?;
    Ok(Plain(json!({ "meta": reader.meta(), "summary": summary })))
}

/// The metadata of a trace, and its analysis; `options` define how re-use is counted.
#[pyfunction]
#[pyo3(signature = (source, options, progress=None))]
pub fn trace_analyze<'py>(
    py: Python<'py>,
    source: Plain<TraceSource>,
    options: Plain<AnalysisOptions>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut analysis = options.0.begin()?;
    let mut reader = source.0.open()?;
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| analysis.add(batch))?;
    let (meta, report) = (reader.meta(), analysis.finish(reader.meta()));
    plain(py, &Analyzed { meta, report })
}

/// Figures of each device of a trace.
#[pyfunction]
#[pyo3(signature = (source, progress=None))]
pub fn trace_volumes(
    py: Python<'_>,
    source: Plain<TraceSource>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Value>> {
    let mut reader = source.0.open()?;
    let mut volumes = Volumes::default();
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| volumes.add(batch))?;
    Ok(Plain(json!(volumes.finish(reader.meta()))))
}

/// Cuts of a stored trace into parts of at least that many requests.
#[pyfunction]
pub fn trace_parts(py: Python<'_>, source: Plain<TraceSource>, requests: u64) -> PyResult<Plain<Value>> {
    let Plain(source) = source;
    let options = source.options()?;
    let parts = py.detach(|| Parts::of(&source.paths(), &options, requests)).map_err(input_error)?;
    let window =
        |(from_ns, to_ns)| json!({ "start_ns": parts.start_ns.unwrap_or(0), "from_ns": from_ns, "to_ns": to_ns });
    let windows: Vec<Value> = parts.windows.into_iter().map(window).collect();
    Ok(Plain(json!({ "requests": parts.requests, "parts": windows })))
}

/// Analyses one of these parts; `progress` receives the number of its requests read.
#[pyfunction]
#[pyo3(signature = (source, options, part, progress=None))]
pub fn trace_analyze_part(
    py: Python<'_>,
    source: Plain<TraceSource>,
    options: Plain<AnalysisOptions>,
    part: Plain<PartRequest>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyBytes>> {
    let Plain(source) = source;
    let (read, options) = (source.options()?, options.0.options()?);
    let PartRequest { start_ns, from_ns, to_ns } = part.0;
    let paths = source.paths();
    let begun = py.detach(|| {
        let part = Part::of(&paths, &read, options, start_ns, from_ns)?;
        let window = Window { from_ns, to_ns, in_flight_at_ns: None };
        Ok((part, TraceReader::open(&paths, &ReadOptions { window: Some(window), ..read })?))
    });
    let (mut part, mut reader) = begun.map_err(|error: TraceError| input_error(error))?;
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| part.add(batch))?;
    let bytes = py.detach(|| part.to_bytes());
    Ok(PyBytes::new(py, &bytes).unbind())
}

/// Merges the parts of a trace, in order, into one analysis, as returned by [`trace_analyze`]. `next` returns the bytes
/// of the next part, or `None`.
#[pyfunction]
pub fn trace_merge_parts<'py>(
    py: Python<'py>,
    source: Plain<TraceSource>,
    options: Plain<AnalysisOptions>,
    next: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut analysis = options.0.begin()?;
    while let Some(bytes) = next.call0(py)?.extract::<Option<Vec<u8>>>(py)? {
        let merged = py.detach(|| analysis.merge(Part::from_bytes(&bytes)?));
        merged.map_err(input_error)?;
        crate::interruptible::check(py)?;
    }
    // The names of all files are known once each has been read in part.
    let mut reader = source.0.open()?;
    py.detach(|| reader.next_batch(&mut Vec::new())).map_err(input_error)?;
    let (meta, report) = (reader.meta(), analysis.finish(reader.meta()));
    plain(py, &Analyzed { meta, report })
}

/// The requests of a trace that transfer data, the first `length` of every `stride`, in the form of [`Course::finish`].
#[pyfunction]
#[pyo3(signature = (source, stride, length, progress=None))]
pub fn trace_course<'py>(
    py: Python<'py>,
    source: Plain<TraceSource>,
    stride: u64,
    length: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut course = Course::new(stride, length);
    let mut reader = source.0.open()?;
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| course.add(batch))?;
    Ok(PyBytes::new(py, &course.finish()))
}

/// Writes a trace in another program's format; returns the losses.
#[pyfunction]
#[pyo3(signature = (source, output, format, progress=None))]
pub fn trace_export(
    py: Python<'_>,
    source: Plain<TraceSource>,
    output: &str,
    format: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Value>> {
    let names = || ExportFormat::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    let format = ExportFormat::from_name(format)
        .ok_or_else(|| input_error(format!("to: `{format}` is unknown; allowed: {}", names())))?;
    let mut reader = source.0.open()?;
    let counter = Counter::default();
    let losses = py.detach(|| {
        interruptibly(
            |py| counter.report(py, progress.as_ref()),
            |goes_on| {
                let mut count = |read| counter.count(read, goes_on);
                export::export(&mut reader, Path::new(output), format, &mut count)
            },
        )
    })?;
    let losses: BTreeMap<&str, u64> = losses.map_err(trace_error)?;
    Ok(Plain(json!({ "meta": reader.meta(), "requests": counter.0.into_inner(), "losses": losses })))
}

/// Passes every batch of a trace to `take`, interruptibly.
pub fn each_batch(
    py: Python<'_>,
    reader: &mut TraceReader,
    progress: Option<&Py<PyAny>>,
    take: &mut (dyn FnMut(&[Record]) + Send),
) -> PyResult<()> {
    let counter = Counter::default();
    let result = py.detach(|| {
        interruptibly(
            |py| counter.report(py, progress),
            |goes_on| {
                let (mut batch, mut read) = (Vec::new(), 0);
                while reader.next_batch(&mut batch)? {
                    take(&batch);
                    read += batch.len() as u64;
                    if !counter.count(read, goes_on) {
                        return Ok(false);
                    }
                }
                Ok::<bool, TraceError>(true)
            },
        )
    })?;
    match result.map_err(input_error)? {
        true => Ok(()),
        false => Err(stopped()),
    }
}
