//! Long work that Python hears of and Ctrl-C ends: the interpreter is free meanwhile.
//!
//! Signals come in by Python's handlers alone. Those of `headstack/signals.py` either raise, as Python's own do, or call
//! [`ask_to_end`], which ends the work and lets Python go on with what it has come to.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::targets::give_up_all;

/// How often Python looks at signals and is told of progress.
const TICK: Duration = Duration::from_millis(50);
/// How often somebody asked for the end, since the process began.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// The share of a piece of work that is done, which the worker notes and Python hears of.
#[derive(Default)]
pub struct Share(AtomicU64);

impl Share {
    /// Notes the share done; returns whether to continue.
    pub fn note(&self, share: f64, goes_on: &AtomicBool) -> bool {
        self.0.store(share.to_bits(), Ordering::Relaxed);
        goes_on.load(Ordering::Relaxed)
    }

    /// The share done, 0 to 1.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Calls `progress`, where there is one, with the share done.
    ///
    /// # Errors
    /// Any exception that `progress` raises.
    pub fn tell(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        progress.map_or(Ok(()), |progress| progress.call1(py, (self.get(),)).map(drop))
    }
}

/// Ends all work under way, and all that begins from now on: as an interruption, without an exception for Python's own
/// code.
#[pyfunction]
pub fn ask_to_end() {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// How often somebody asked for the end.
pub fn asked_to_end() -> u32 {
    ASKED.load(Ordering::Relaxed)
}

/// Raises what a signal has raised, or an interruption where somebody asked for the end.
pub fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    match asked_to_end() {
        0 => Ok(()),
        _ => Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(())),
    }
}

/// Carries out `work` on another thread, since Python handles signals on the caller's alone, and calls `tell` there now
/// and then. `work` is told to end by its flag becoming false; an exception of a signal or of `tell` is raised when it has
/// ended.
pub fn interruptibly<T: Send>(
    tell: impl Fn(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let (result, heard) = attended(tell, work);
    heard.map(|()| result)
}

/// The same for work that has something to show for it when it was interrupted: its result, and the exception.
pub fn attended<T: Send>(
    tell: impl Fn(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> (T, PyResult<()>) {
    // Whoever asked before this began need not wait for a tick, however many short works are to follow.
    let mut heard = Python::attach(check);
    let goes_on = AtomicBool::new(heard.is_ok());
    let look = || Python::attach(|py| check(py).and_then(|()| tell(py)));
    thread::scope(|scope| {
        // The sender goes with the worker, whether it returns or panics.
        let (finished, finish) = channel();
        let flag = &goes_on;
        let worker = scope.spawn(move || {
            let _finished: Sender<()> = finished;
            work(flag)
        });
        while finish.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if heard.is_ok() {
                heard = look();
                goes_on.store(heard.is_ok(), Ordering::Relaxed);
            } else {
                wait_impatiently(&heard, &tell);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        (result, heard)
    })
}

/// A tick of the end that somebody asked for: progress is still told, and who asks again waits for no target any longer.
fn wait_impatiently(heard: &PyResult<()>, tell: &impl Fn(Python<'_>) -> PyResult<()>) {
    Python::attach(|py| {
        // Python's own handler raises every time, those of `signals.py` count.
        if py.check_signals().is_err() || asked_to_end() > 1 {
            give_up_all();
        }
        if heard.as_ref().is_err_and(|error| is_interruption(error, py)) {
            // What goes wrong in telling cannot end it sooner.
            let _ = tell(py);
        }
    });
}

/// Whether this is Ctrl-C.
pub fn is_interruption(error: &PyErr, py: Python<'_>) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
}
