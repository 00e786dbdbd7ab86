//! Long work with progress for Python, which Ctrl-C can end; the interpreter is free meanwhile.
//!
//! Signals arrive only through Python's handlers. Those of `headstack/signals.py` either raise, as Python's own do, or
//! call [`ask_to_end`], which ends the work and lets Python continue with its results so far.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::targets::give_up_all;

/// Interval at which Python checks signals and receives progress.
const TICK: Duration = Duration::from_millis(50);
/// Number of requests to end since the process started.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Completed share of the work, stored by the worker and read by Python.
#[derive(Default)]
pub struct Share(AtomicU64);

impl Share {
    /// Stores the completed share; returns whether to continue.
    pub fn note(&self, share: f64, goes_on: &AtomicBool) -> bool {
        self.0.store(share.to_bits(), Ordering::Relaxed);
        goes_on.load(Ordering::Relaxed)
    }

    /// Completed share, 0 to 1.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Calls `progress`, if given, with the completed share.
    ///
    /// # Errors
    /// Any exception that `progress` raises.
    pub fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        progress.map_or(Ok(()), |progress| progress.call1(py, (self.get(),)).map(drop))
    }
}

/// Ends all current and future work: as an interruption, without an exception for Python's own code.
#[pyfunction]
pub fn ask_to_end() {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// Number of requests to end.
pub fn end_requests() -> u32 {
    ASKED.load(Ordering::Relaxed)
}

/// Raises the exception of a signal, or an interruption if an end was requested.
pub fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    match end_requests() {
        0 => Ok(()),
        _ => Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(())),
    }
}

/// Runs `work` on another thread, since Python handles signals only on the caller's, and calls `report` there at
/// intervals. `work` is ended by its flag becoming false; an exception of a signal or of `report` is raised when it has
/// ended.
pub fn interruptibly<T: Send>(
    report: impl Fn(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let (result, interruption) = attended(report, work);
    interruption.map(|()| result)
}

/// Like [`interruptibly`] for work with results after an interruption: returns them with the exception.
pub fn attended<T: Send>(
    report: impl Fn(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> (T, PyResult<()>) {
    // An earlier request to end takes effect at once, even if many short works follow.
    let mut interruption = Python::attach(check);
    let goes_on = AtomicBool::new(interruption.is_ok());
    let look = || Python::attach(|py| check(py).and_then(|()| report(py)));
    thread::scope(|scope| {
        // The sender is dropped with the worker, whether it returns or panics.
        let (finished, finish) = channel();
        let flag = &goes_on;
        let worker = scope.spawn(move || {
            let _finished: Sender<()> = finished;
            work(flag)
        });
        while finish.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if interruption.is_ok() {
                interruption = look();
                goes_on.store(interruption.is_ok(), Ordering::Relaxed);
            } else {
                wait_impatiently(&interruption, &report);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        (result, interruption)
    })
}

/// A tick after a request to end: progress is still reported, and a second request stops waiting for any target.
fn wait_impatiently(interruption: &PyResult<()>, report: &impl Fn(Python<'_>) -> PyResult<()>) {
    Python::attach(|py| {
        // Python's own handler raises every time, those of `signals.py` count.
        if py.check_signals().is_err() || end_requests() > 1 {
            give_up_all();
        }
        if interruption.as_ref().is_err_and(|error| is_interruption(error, py)) {
            // An error of the callback cannot end it sooner.
            let _ = report(py);
        }
    });
}

/// Whether an exception is Ctrl-C.
pub fn is_interruption(error: &PyErr, py: Python<'_>) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
}
