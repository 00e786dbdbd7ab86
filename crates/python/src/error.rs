//! The exceptions that Python sees.

use std::fmt::Display;

use headstack_load::{LoadError, WRITING_STOPPED};
use headstack_sim::SimError;
use headstack_trace::{Place, TraceError};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(headstack, InputError, PyValueError, "Input that cannot be accepted; the message is one line.");
create_exception!(headstack, RunError, PyRuntimeError, "A run that could not be carried out.");

/// `InputError` with the error's line.
pub fn input_error(error: impl Display) -> PyErr {
    InputError::new_err(error.to_string())
}

/// `InputError` for a JSON value that does not fit.
pub fn json_error(error: serde_json::Error) -> PyErr {
    input_error(error)
}

/// What was asked of the simulator is bad input, unless it was stopped, or broke down.
pub fn sim_error(error: SimError) -> PyErr {
    match error {
        SimError::Stopped | SimError::Panicked(_) => RunError::new_err(error.to_string()),
        _ => input_error(error),
    }
}

/// What is wrong with a trace is bad input; what keeps one from being written is the kernel's error.
pub fn trace_error(error: TraceError) -> PyErr {
    match error.place {
        Place::Output(number) => PyOSError::new_err((number, error.message, error.file)),
        _ => input_error(error),
    }
}

/// What was asked for is bad input; what the kernel refuses in the course of it is a failed run.
pub fn load_error(error: LoadError) -> PyErr {
    match error {
        LoadError::Stopped => RunError::new_err("stopped"),
        LoadError::Io { action: "open" | "create", .. } => input_error(error),
        LoadError::Io { .. } => RunError::new_err(error.to_string()),
        LoadError::Target { ref message, .. } if message.starts_with(WRITING_STOPPED) => {
            RunError::new_err(error.to_string())
        }
        _ => input_error(error),
    }
}
