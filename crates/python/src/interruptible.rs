//! Long work that Python hears of and Ctrl-C ends: the interpreter is free meanwhile.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Python looks at signals and is told of progress.
const TICK: Duration = Duration::from_millis(50);

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
    let goes_on = AtomicBool::new(true);
    let look = || Python::attach(|py| py.check_signals().and_then(|()| tell(py)));
    thread::scope(|scope| {
        // The sender goes with the worker, whether it returns or panics.
        let (finished, finish) = channel();
        let flag = &goes_on;
        let worker = scope.spawn(move || {
            let _finished: Sender<()> = finished;
            work(flag)
        });
        let mut heard: PyResult<()> = Ok(());
        while finish.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if heard.is_ok() {
                heard = look();
                goes_on.store(heard.is_ok(), Ordering::Relaxed);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        (result, heard)
    })
}

/// Whether this is Ctrl-C.
pub fn is_interruption(error: &PyErr, py: Python<'_>) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
}
