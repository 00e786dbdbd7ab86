//! Traces for Python: files in, files or JSON out.

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

use crate::error::{RunError, input_error, json_error, trace_error};
use crate::interruptible::interruptibly;

/// A trace as Python asks for it.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    paths: Vec<String>,
    format: Option<String>,
    #[serde(default)]
    skip_bad: bool,
    #[serde(default)]
    steps: Vec<String>,
    /// Only these, before all steps.
    devices: Option<Vec<String>>,
    columns: Option<String>,
    sector_bytes: Option<u32>,
    time_unit: Option<String>,
    at: Option<String>,
}

impl TraceSource {
    /// Reads what Python wrote.
    pub fn read(text: &str) -> PyResult<TraceSource> {
        serde_json::from_str(text).map_err(json_error)
    }

    /// The options, with unknown names refused.
    pub fn options(&self) -> PyResult<ReadOptions> {
        let known = || Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        let format = |name: &String| {
            Format::from_name(name).ok_or_else(|| input_error(format!("format: there is no `{name}`, but {}", known())))
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

    /// Its files.
    pub fn paths(&self) -> Vec<&Path> {
        self.paths.iter().map(Path::new).collect()
    }

    /// Opens it.
    pub fn open(&self) -> PyResult<TraceReader> {
        TraceReader::open(&self.paths(), &self.options()?).map_err(input_error)
    }
}

/// An analysis as Python asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnalysisOptions {
    block_bytes: u64,
    reuse: Option<String>,
    sample: Option<f64>,
}

impl AnalysisOptions {
    fn read(text: &str) -> PyResult<Options> {
        let asked: AnalysisOptions = serde_json::from_str(text).map_err(json_error)?;
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

    fn begin(text: &str) -> PyResult<Analysis> {
        Analysis::new(AnalysisOptions::read(text)?).map_err(|error| {
            // As users call it.
            let name = match error.field {
                "block_bytes" => "block",
                "rate" => "sample",
                field => field,
            };
            input_error(format!("{name}: {}", error.message))
        })
    }
}

/// A part of a trace as Python asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartAsked {
    start_ns: u64,
    from_ns: u64,
    to_ns: u64,
}

/// What an analysis says: in the order of the report, without a copy of its maps.
#[derive(Serialize)]
struct Analyzed<'a> {
    meta: &'a Meta,
    report: Report,
}

/// Requests read so far, as the work counts them and Python hears of them.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Whether the work goes on.
    pub fn count(&self, requests: u64, goes_on: &AtomicBool) -> bool {
        self.0.store(requests, Ordering::Relaxed);
        goes_on.load(Ordering::Relaxed)
    }

    /// Lets Python hear of them.
    pub fn tell(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        match progress {
            Some(progress) => progress.call1(py, (self.0.load(Ordering::Relaxed),)).map(drop),
            None => Ok(()),
        }
    }
}

/// Tells Python of the requests read so far, where it wants to hear of them.
pub fn counted<'a>(read: &'a AtomicU64, progress: Option<&'a Py<PyAny>>) -> impl Fn(Python<'_>) -> PyResult<()> + 'a {
    move |py| match progress {
        Some(progress) => progress.call1(py, (read.load(Ordering::Relaxed),)).map(drop),
        None => Ok(()),
    }
}

/// Every format that is read: names and titles.
#[pyfunction]
pub fn trace_formats() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.title())).collect()
}

/// A line of every format that is read: names and lines.
#[pyfunction]
pub fn trace_format_lines() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.sample())).collect()
}

/// Every format that is written beside the stored form: names and titles.
#[pyfunction]
pub fn trace_export_formats() -> Vec<(&'static str, &'static str)> {
    ExportFormat::ALL.iter().map(|format| (format.name(), format.title())).collect()
}

/// Writes a trace in the stored form to `output`; returns its metadata as JSON. `progress` hears the requests read.
#[pyfunction]
#[pyo3(signature = (source, output, progress=None))]
pub fn trace_import(py: Python<'_>, source: &str, output: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut reader = TraceSource::read(source)?.open()?;
    let counter = Counter::default();
    let meta = py.detach(|| {
        interruptibly(
            |py| counter.tell(py, progress.as_ref()),
            |goes_on| headstack_trace::import(&mut reader, Path::new(output), &mut |read| counter.count(read, goes_on)),
        )
    })?;
    described(&meta.map_err(trace_error)?, counter.0.into_inner())
}

/// Writes the requests to each device of a trace to a file of its own in `folder`; returns devices, paths and numbers of
/// requests as JSON, with the metadata. `progress` hears the requests read.
#[pyfunction]
#[pyo3(signature = (source, folder, progress=None))]
pub fn trace_split(py: Python<'_>, source: &str, folder: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut reader = TraceSource::read(source)?.open()?;
    let counter = Counter::default();
    let parted = py.detach(|| {
        interruptibly(
            |py| counter.tell(py, progress.as_ref()),
            |goes_on| headstack_trace::split(&mut reader, Path::new(folder), &mut |read| counter.count(read, goes_on)),
        )
    })?;
    let (meta, pieces) = parted.map_err(trace_error)?;
    let piece = |piece: Piece| json!({ "device": piece.device, "path": piece.path, "requests": piece.requests });
    let meta = serde_json::to_value(meta).map_err(json_error)?;
    Ok(json!({ "meta": meta, "pieces": pieces.into_iter().map(piece).collect::<Vec<_>>() }).to_string())
}

/// The metadata of a trace, and what one pass counts, as JSON.
#[pyfunction]
#[pyo3(signature = (source, progress=None))]
pub fn trace_info(py: Python<'_>, source: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut reader = TraceSource::read(source)?.open()?;
    let mut summary = Summary::default();
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| summary.add(batch))?;
    let text = serde_json::to_string(&json!({ "meta": reader.meta(), "summary": summary }));
    text.map_err(json_error)
}

/// The metadata of a trace, and what it is like, as JSON; `options` say how re-use is counted.
#[pyfunction]
#[pyo3(signature = (source, options, progress=None))]
pub fn trace_analyze(py: Python<'_>, source: &str, options: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut analysis = AnalysisOptions::begin(options)?;
    let mut reader = TraceSource::read(source)?.open()?;
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| analysis.add(batch))?;
    let (meta, report) = (reader.meta(), analysis.finish(reader.meta()));
    serde_json::to_string(&Analyzed { meta, report }).map_err(json_error)
}

/// What each device of a trace is like, as JSON.
#[pyfunction]
#[pyo3(signature = (source, progress=None))]
pub fn trace_volumes(py: Python<'_>, source: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut reader = TraceSource::read(source)?.open()?;
    let mut volumes = Volumes::default();
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| volumes.add(batch))?;
    serde_json::to_string(&volumes.finish(reader.meta())).map_err(json_error)
}

/// Where a stored trace is cut into parts of at least so many requests, as JSON.
#[pyfunction]
pub fn trace_parts(py: Python<'_>, source: &str, requests: u64) -> PyResult<String> {
    let source = TraceSource::read(source)?;
    let options = source.options()?;
    let parts = py.detach(|| Parts::of(&source.paths(), &options, requests)).map_err(input_error)?;
    let window =
        |(from_ns, to_ns)| json!({ "start_ns": parts.start_ns.unwrap_or(0), "from_ns": from_ns, "to_ns": to_ns });
    let windows: Vec<Value> = parts.windows.into_iter().map(window).collect();
    Ok(json!({ "requests": parts.requests, "parts": windows }).to_string())
}

/// Analyses one of these parts; `progress` hears the requests read of it.
#[pyfunction]
#[pyo3(signature = (source, options, part, progress=None))]
pub fn trace_analyze_part(
    py: Python<'_>,
    source: &str,
    options: &str,
    part: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyBytes>> {
    let source = TraceSource::read(source)?;
    let (read, options) = (source.options()?, AnalysisOptions::read(options)?);
    let PartAsked { start_ns, from_ns, to_ns } = serde_json::from_str(part).map_err(json_error)?;
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

/// The parts of a trace, in their order, as one analysis: what [`trace_analyze`] returns of it. `next` returns the bytes of
/// the next of them, or nothing.
#[pyfunction]
pub fn trace_merge_parts(py: Python<'_>, source: &str, options: &str, next: Py<PyAny>) -> PyResult<String> {
    let mut analysis = AnalysisOptions::begin(options)?;
    while let Some(bytes) = next.call0(py)?.extract::<Option<Vec<u8>>>(py)? {
        let merged = py.detach(|| analysis.merge(Part::from_bytes(&bytes)?));
        merged.map_err(input_error)?;
        crate::interruptible::check(py)?;
    }
    // Names of all files are known once something was read of each.
    let mut reader = TraceSource::read(source)?.open()?;
    py.detach(|| reader.next_batch(&mut Vec::new())).map_err(input_error)?;
    let (meta, report) = (reader.meta(), analysis.finish(reader.meta()));
    serde_json::to_string(&Analyzed { meta, report }).map_err(json_error)
}

/// The requests of a trace that transfer data, of every `stride` the first `length`, as [`Course::finish`] has them.
#[pyfunction]
#[pyo3(signature = (source, stride, length, progress=None))]
pub fn trace_course<'py>(
    py: Python<'py>,
    source: &str,
    stride: u64,
    length: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut course = Course::new(stride, length);
    let mut reader = TraceSource::read(source)?.open()?;
    each_batch(py, &mut reader, progress.as_ref(), &mut |batch| course.add(batch))?;
    Ok(PyBytes::new(py, &course.finish()))
}

/// Writes a trace in another program's format; returns what that could not hold, as JSON.
#[pyfunction]
#[pyo3(signature = (source, output, format, progress=None))]
pub fn trace_export(
    py: Python<'_>,
    source: &str,
    output: &str,
    format: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let names = || ExportFormat::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    let format = ExportFormat::from_name(format)
        .ok_or_else(|| input_error(format!("to: there is no `{format}`, but {}", names())))?;
    let mut reader = TraceSource::read(source)?.open()?;
    let counter = Counter::default();
    let losses = py.detach(|| {
        interruptibly(
            |py| counter.tell(py, progress.as_ref()),
            |goes_on| {
                let mut count = |read| counter.count(read, goes_on);
                export::export(&mut reader, Path::new(output), format, &mut count)
            },
        )
    })?;
    let losses: BTreeMap<&str, u64> = losses.map_err(trace_error)?;
    let meta = serde_json::to_value(reader.meta()).map_err(json_error)?;
    let told = json!({ "meta": meta, "requests": counter.0.into_inner(), "losses": losses });
    Ok(told.to_string())
}

/// Hands every batch of a trace to `take`, interruptibly.
pub fn each_batch(
    py: Python<'_>,
    reader: &mut TraceReader,
    progress: Option<&Py<PyAny>>,
    take: &mut (dyn FnMut(&[Record]) + Send),
) -> PyResult<()> {
    let counter = Counter::default();
    let result = py.detach(|| {
        interruptibly(
            |py| counter.tell(py, progress),
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
        false => Err(RunError::new_err("stopped")),
    }
}

fn described(meta: &Meta, requests: u64) -> PyResult<String> {
    let meta: Value = serde_json::to_value(meta).map_err(json_error)?;
    Ok(json!({ "meta": meta, "requests": requests }).to_string())
}
