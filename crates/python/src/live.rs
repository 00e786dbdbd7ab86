//! Live exports: one service, started, asked and stopped from Python.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headstack_live::{Commander, LiveError, Order, Service, ServiceOptions};
use headstack_sim::{Constant, Model};
use headstack_sim::{Observed, SystemDescription};
use headstack_trace::TraceError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::error::{RunError, input_error, json_error, trace_error};
use crate::interruptible::check;
use crate::recording::Recording;

/// Requests that may wait for the disk that the recording is on: seconds of any drive's.
const WAITING_MAX: usize = 1 << 20;
/// How often Python looks at signals while it waits.
const TICK: Duration = Duration::from_millis(50);

/// What is exported, as Python asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    /// One of the two.
    system: Option<SystemDescription>,
    /// Latency in nanoseconds, bytes.
    constant: Option<(u64, u64)>,
    options: ServiceOptions,
    /// A trace to write.
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
    metrics: Option<String>,
    #[pyo3(get)]
    files: Vec<String>,
    #[pyo3(get)]
    devices: Vec<String>,
}

#[pymethods]
impl LiveService {
    /// Starts what a JSON text asks for.
    #[new]
    fn new(py: Python<'_>, asked: &str) -> PyResult<LiveService> {
        let asked: Asked = serde_json::from_str(asked).map_err(json_error)?;
        let model = match (&asked.system, asked.constant) {
            (Some(system), None) => Model::System(system.clone()),
            (None, Some((latency_ns, capacity_bytes))) => Model::Constant(Constant { latency_ns, capacity_bytes }),
            _ => return Err(input_error("a system or a constant device is served")),
        };
        let lost = Arc::default();
        let (listener, recording) = match (&asked.record, &asked.system) {
            (Some(path), Some(system)) => {
                let recording = Recording::simulated(path, "live", &asked.name, system, Vec::new());
                let (sender, receiver) = sync_channel(WAITING_MAX);
                let thread = record(recording.map_err(trace_error)?, receiver);
                (Some(listener(sender, Arc::clone(&lost))), Some(thread))
            }
            (Some(_), None) => return Err(input_error("record: a device of constant latency has nothing to tell")),
            (None, _) => (None, None),
        };
        let service =
            py.detach(|| Service::start(&asked.name, &model, &asked.options, listener)).map_err(live_error)?;
        let text = |path: &PathBuf| path.display().to_string();
        Ok(LiveService {
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

    /// Gives an order as JSON, and returns its answer.
    fn order(&self, py: Python<'_>, order: &str) -> PyResult<String> {
        let order: Order = serde_json::from_str(order).map_err(json_error)?;
        let answer = py.detach(|| self.commander.order(order)).map_err(live_error)?;
        Ok(answer.to_string())
    }

    /// Waits until nobody can come any more or somebody asks for the end, or a signal ends it.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while !self.service.lock().expect("nobody panics with it").as_ref().is_none_or(Service::is_over) {
            py.detach(|| std::thread::sleep(TICK));
            check(py)?;
        }
        Ok(())
    }

    /// Somebody unmounted the directory from outside.
    fn was_unmounted(&self) -> bool {
        self.service.lock().expect("nobody panics with it").as_ref().is_some_and(Service::was_unmounted)
    }

    /// Ends it: how true the session was, as JSON, once what was recorded is in its file.
    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        let Some(service) = self.service.lock().expect("nobody panics with it").take() else {
            return Err(RunError::new_err("the export has been stopped"));
        };
        let fidelity = py.detach(|| service.stop()).map_err(live_error)?;
        if let Some(recording) = self.recording.lock().expect("nobody panics with it").take() {
            let recorded = py.detach(|| recording.join().expect("recording does not panic"));
            recorded.map_err(trace_error)?;
            if *self.lost.lock().expect("nobody panics with it") {
                return Err(RunError::new_err("the recording has gaps: its disk was too slow"));
            }
        }
        Ok(json!(fidelity).to_string())
    }
}

/// Writes what comes until the session is over.
fn record(mut recording: Recording, requests: Receiver<Observed>) -> JoinHandle<Result<(), TraceError>> {
    std::thread::spawn(move || {
        requests.iter().for_each(|observed| recording.observe(&observed));
        recording.finish()
    })
}

/// The clock thread waits for nobody: what the disk cannot take in time is missed, and said to be.
fn listener(sender: SyncSender<Observed>, lost: Arc<Mutex<bool>>) -> headstack_sim::timeline::Listener {
    Box::new(move |observed| {
        if let Err(TrySendError::Full(_)) = sender.try_send(*observed) {
            *lost.lock().expect("nobody panics with it") = true;
        }
    })
}

/// What was asked is bad input; what the machine refuses is a failed run.
pub(crate) fn live_error(error: LiveError) -> PyErr {
    match error {
        LiveError::Io { .. } => RunError::new_err(error.to_string()),
        _ => input_error(error),
    }
}
