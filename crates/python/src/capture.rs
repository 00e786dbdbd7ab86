//! Live capture of a block device's requests, for Python.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headstack_trace::capture::{Capture, CaptureOptions, Method, Progress};
use headstack_trace::{Meta, Stage, StoreWriter, TraceError};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{input_error, trace_error};
use crate::interruptible::{interruptibly, is_interruption};
use crate::plain::Plain;

/// Options of a capture, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    device: String,
    method: Option<String>,
    at: Option<String>,
    duration_ns: Option<u64>,
    requests: Option<u64>,
    buffer_bytes: Option<u64>,
}

impl CaptureRequest {
    fn options(self) -> PyResult<CaptureOptions> {
        let method = |name: &String| {
            let names = Method::ALL.map(Method::name).join(" or ");
            Method::from_name(name).ok_or_else(|| input_error(format!("method: must be {names}, not `{name}`")))
        };
        let mut options = CaptureOptions::new(self.device);
        options.method = self.method.as_ref().map(method).transpose()?;
        options.stage = match self.at.as_deref() {
            None | Some("queue") => Stage::Queue,
            Some("issue") => Stage::Issue,
            Some(other) => return Err(input_error(format!("at: must be queue or issue, not `{other}`"))),
        };
        options.duration = self.duration_ns.map(Duration::from_nanos);
        options.requests = self.requests;
        options.buffer_bytes = self.buffer_bytes.unwrap_or(options.buffer_bytes);
        Ok(options)
    }
}

/// Captures a device's requests to `output` in the stored form until the time limit, the request limit or Ctrl-C; the
/// recorded requests are kept in each case. `progress` receives requests, lost events, requests and bytes per second,
/// and seconds. Returns metadata and counts.
#[pyfunction]
#[pyo3(signature = (asked, output, progress=None))]
pub fn trace_capture(
    py: Python<'_>,
    asked: Plain<CaptureRequest>,
    output: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plain<Value>> {
    let options = asked.0.options()?;
    let mut capture = Capture::start(&options).map_err(input_error)?;
    let mut writer = StoreWriter::create(Path::new(output)).map_err(trace_error)?;
    let seen = Mutex::new(Progress::default());
    let report = |py: Python<'_>| {
        let Some(progress) = &progress else {
            return Ok(());
        };
        let now = *seen.lock().expect("the lock is not poisoned");
        let seconds = now.elapsed.as_secs_f64();
        progress.call1(py, (now.requests, now.lost, now.rate_per_s, now.bytes_per_s, seconds)).map(drop)
    };
    let mut recorded = None;
    let outcome = py.detach(|| {
        interruptibly(report, |goes_on| {
            recorded = Some(record(&mut capture, &mut writer, goes_on, &seen));
        })
    });
    let meta = recorded.expect("the work has ended").map_err(trace_error)?;
    writer.finish(&meta).map_err(trace_error)?;
    match outcome {
        // Ctrl-C ends the capture normally.
        Err(error) if !is_interruption(&error, py) => return Err(error),
        _ => {}
    }
    let last = *seen.lock().expect("the lock is not poisoned");
    let summary = json!({
        "meta": meta, "method": capture.method().name(), "requests": last.requests, "bytes": last.bytes,
        "lost": last.lost, "seconds": last.elapsed.as_secs_f64(),
    });
    Ok(Plain(summary))
}

fn record(
    capture: &mut Capture,
    writer: &mut StoreWriter,
    goes_on: &AtomicBool,
    seen: &Mutex<Progress>,
) -> Result<Meta, TraceError> {
    let mut batch = Vec::new();
    loop {
        if !goes_on.load(Ordering::Relaxed) {
            capture.stop()?;
        }
        let progress = capture.poll(&mut batch)?;
        writer.write(&batch, capture.meta())?;
        *seen.lock().expect("the lock is not poisoned") = progress;
        if progress.is_over {
            return Ok(capture.meta().clone());
        }
    }
}
