//! Files and devices as one striped stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use headstack_load::{EngineKind, Pass, Stretch, Target, stream};
use headstack_workload::Kind;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::load_error;
use crate::interruptible::{attended, is_interruption};
use crate::plain::Plain;

/// A pass over all targets, from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassRequest {
    engines: Vec<EngineKind>,
    write: bool,
    block_bytes: u32,
    ahead: u32,
    device_bytes: Option<u64>,
    start_bytes: u64,
    interval_ns: u64,
}

impl PassRequest {
    /// Writes or reads the targets; `keep` receives each completed interval, and `progress` the position in bytes;
    /// returns the end of the pass.
    ///
    /// # Errors
    /// Those of the stream and of the callbacks.
    pub fn carry_out(
        self,
        py: Python<'_>,
        targets: Vec<Arc<Target>>,
        keep: &Py<PyAny>,
        progress: &Py<PyAny>,
    ) -> PyResult<Plain<Value>> {
        let PassRequest { engines, write, block_bytes, ahead, device_bytes, start_bytes, interval_ns } = self;
        let kind = if write { Kind::Write } else { Kind::Read };
        let device_bytes = device_bytes.unwrap_or(u64::MAX);
        let pass = Pass { targets, engines, kind, block_bytes, ahead, device_bytes, start_bytes, interval_ns };
        let (position_bytes, kept) = (AtomicU64::new(start_bytes), Mutex::new(Vec::new()));
        let hand_over = |py: Python<'_>| {
            let stretches = std::mem::take(&mut *kept.lock().expect("no panics with it"));
            stretches.into_iter().try_for_each(|stretch: Stretch| keep.call1(py, (Plain(stretch),)).map(drop))
        };
        let report = |py: Python<'_>| {
            hand_over(py)?;
            progress.call1(py, (position_bytes.load(Ordering::Relaxed),)).map(drop)
        };
        let (passed, heard) = py.detach(|| {
            attended(report, |goes_on| {
                let mut keep = |stretch| kept.lock().expect("no panics with it").push(stretch);
                stream(&pass, &mut keep, &mut |at_bytes| {
                    position_bytes.store(at_bytes, Ordering::Relaxed);
                    goes_on.load(Ordering::Relaxed)
                })
            })
        });
        let heard = heard.or_else(|error| if is_interruption(&error, py) { Ok(()) } else { Err(error) });
        heard.and(hand_over(py))?;
        Ok(Plain(json!(passed.map_err(load_error)?)))
    }
}
