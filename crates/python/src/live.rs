//! Live exports, which Python starts, controls and stops.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headstack_live::{Commander, LiveError, Order, Service, ServiceOptions};
use headstack_sim::timeline::Listener;
use headstack_sim::{Constant, Model, Observed, SystemDescription};
use headstack_trace::TraceError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{RunError, input_error, trace_error};
use crate::interruptible::{attended, check};
use crate::plain::Plain;
use crate::recording::Recording;

/// Maximum number of requests that wait to be written to the recording, which lasts seconds for any drive.
const WAITING_MAX: usize = 1 << 20;
/// Interval at which Python checks for signals while it waits.
const TICK: Duration = Duration::from_millis(50);

/// Options of an export, as specified by Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportRequest {
    name: String,
    /// Model of the exported system; either this or `constant` must be present.
    system: Option<SystemDescription>,
    /// Latency in ns and capacity in bytes of a device with a constant latency.
    constant: Option<(u64, u64)>,
    options: ServiceOptions,
    /// Path of a trace file for the requests; `None` for no recording.
    record: Option<String>,
}

/// A running export.
#[pyclass]
pub struct LiveService {
    service: Mutex<Option<Service>>,
    commander: Commander,
    recording: Mutex<Option<JoinHandle<Result<(), TraceError>>>>,
    lost: Arc<Mutex<bool>>,
    #[pyo3(get)]
    exports: Vec<(String, u64)>,
    #[pyo3(get)]
    addresses: Vec<String>,
    #[pyo3(get)]
    notes: Vec<String>,
    #[pyo3(get)]
    metrics: Option<String>,
    #[pyo3(get)]
    files: Vec<String>,
    #[pyo3(get)]
    devices: Vec<String>,
}

#[pymethods]
impl LiveService {
    /// Starts an export.
    #[new]
    fn new(py: Python<'_>, asked: Plain<ExportRequest>) -> PyResult<LiveService> {
        let Plain(asked) = asked;
        let model = match (&asked.system, asked.constant) {
            (Some(system), None) => Model::System(system.clone()),
            (None, Some((latency_ns, capacity_bytes))) => Model::Constant(Constant { latency_ns, capacity_bytes }),
            _ => return Err(input_error("only a system or a constant device can be served")),
        };
        let lost = Arc::default();
        let (listener, recording) = match (&asked.record, &asked.system) {
            (Some(path), Some(system)) => {
                let recording = Recording::simulated(path, "live", &asked.name, system, Vec::new());
                let (sender, receiver) = sync_channel(WAITING_MAX);
                let recording = recording.map_err(trace_error)?;
                (Some(listener(sender, Arc::clone(&lost))), Some((recording, receiver)))
            }
            (Some(_), None) => return Err(input_error("record: a device of constant latency has no events to record")),
            (None, _) => (None, None),
        };
        let service = started(py, &asked, &model, listener)?;
        // The recording of a service that did not start is dropped, and leaves no file.
        let recording = recording.map(|(recording, requests)| record(recording, requests));
        let text = |path: &PathBuf| path.display().to_string();
        Ok(LiveService {
            notes: service.notes().to_vec(),
            metrics: service.metrics().map(|address| address.to_string()),
            files: service.files().iter().map(text).collect(),
            devices: service.block_devices().iter().map(text).collect(),
            commander: service.commander(),
            exports: service.exports().iter().map(|e| (e.name.clone(), e.span.length_bytes)).collect(),
            addresses: service.addresses().iter().map(ToString::to_string).collect(),
            service: Mutex::new(Some(service)),
            recording: Mutex::new(recording),
            lost,
        })
    }

    /// Gives an order, and returns its answer.
    fn order(&self, py: Python<'_>, order: Plain<Order>) -> PyResult<Plain<Value>> {
        py.detach(|| self.commander.order(order.0)).map(Plain).map_err(live_error)
    }

    /// Waits until no more clients can connect, an order to stop is received, or a signal arrives.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while !self.service.lock().expect("the lock is not poisoned").as_ref().is_none_or(Service::is_over) {
            py.detach(|| std::thread::sleep(TICK));
            check(py)?;
        }
        Ok(())
    }

    /// Whether another process unmounted the directory.
    fn was_unmounted(&self) -> bool {
        self.service.lock().expect("the lock is not poisoned").as_ref().is_some_and(Service::was_unmounted)
    }

    /// Ends the export; returns the accuracy of the session once the recording is complete.
    fn stop(&self, py: Python<'_>) -> PyResult<Plain<Value>> {
        let Some(service) = self.service.lock().expect("the lock is not poisoned").take() else {
            return Err(RunError::new_err("the export has been stopped"));
        };
        let fidelity = py.detach(|| service.stop()).map_err(live_error)?;
        if let Some(recording) = self.recording.lock().expect("the lock is not poisoned").take() {
            let recorded = py.detach(|| recording.join().expect("recording does not panic"));
            recorded.map_err(trace_error)?;
            if *self.lost.lock().expect("the lock is not poisoned") {
                return Err(RunError::new_err("the recording has gaps, since its disk was too slow"));
            }
        }
        Ok(Plain(json!(fidelity)))
    }
}

/// Starts the service. A signal during the start ends the service.
fn started(py: Python<'_>, asked: &ExportRequest, model: &Model, listener: Option<Listener>) -> PyResult<Service> {
    let start = |_: &AtomicBool| Service::start(&asked.name, model, &asked.options, listener);
    let (service, heard) = py.detach(|| attended(|_| Ok(()), start));
    match (service, heard) {
        (service, Ok(())) => service.map_err(live_error),
        // The signal arrived when the start could no longer be cancelled.
        (Ok(service), Err(interruption)) => {
            py.detach(|| service.stop()).map_err(live_error)?;
            Err(interruption)
        }
        (Err(_), Err(interruption)) => Err(interruption),
    }
}

/// Records requests until the session ends.
fn record(mut recording: Recording, requests: Receiver<Observed>) -> JoinHandle<Result<(), TraceError>> {
    std::thread::spawn(move || {
        requests.iter().for_each(|observed| recording.observe(&observed));
        recording.finish()
    })
}

/// Returns a listener that never makes the clock thread wait: it drops requests that cannot be recorded in time, and
/// sets `lost`.
fn listener(sender: SyncSender<Observed>, lost: Arc<Mutex<bool>>) -> Listener {
    Box::new(move |observed| {
        if let Err(TrySendError::Full(_)) = sender.try_send(*observed) {
            *lost.lock().expect("the lock is not poisoned") = true;
        }
    })
}

/// Maps errors of live exports to `InputError`, or to `RunError` for errors of the operating system.
pub(crate) fn live_error(error: LiveError) -> PyErr {
    match error {
        LiveError::Io { .. } => RunError::new_err(error.to_string()),
        _ => input_error(error),
    }
}
