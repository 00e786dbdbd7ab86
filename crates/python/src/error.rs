//! The exceptions `InputError` and `RunError`, whose classes are in `errors.py`.

use std::ffi::CString;
use std::fmt::Display;

use headstack_crash::CrashError;
use headstack_files::FileError;
use headstack_live::LiveError;
use headstack_load::{LoadError, WRITING_STOPPED};
use headstack_result::ResultError;
use headstack_sim::{InvalidDescription, SimError};
use headstack_trace::{Place, TraceError};
use headstack_workload::WorkloadError;
use headstack_workload::quantity::QuantityError;
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::PythonizeError;

import_exception!(headstack._native, InputError);
import_exception!(headstack._native, RunError);

/// Adds the exception classes to the module.
///
/// # Errors
/// Returns the Python exception if the classes cannot be compiled.
pub fn define(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names = PyDict::new(module.py());
    names.set_item("__name__", "headstack")?;
    let code = CString::new(include_str!("errors.py"))?;
    module.py().run(&code, Some(&names), None)?;
    for name in ["InputError", "RunError"] {
        let class = names.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name))?;
        module.add(name, class)?;
    }
    Ok(())
}

/// The parts of an `InputError`.
pub struct Complaint {
    file: Option<String>,
    line: Option<usize>,
    key: Option<String>,
    message: String,
}

impl Complaint {
    fn of_key(key: String, message: String) -> Complaint {
        Complaint { file: None, line: None, key: Some(key), message }
    }

    fn of_message(message: impl Display) -> Complaint {
        Complaint { file: None, line: None, key: None, message: message.to_string() }
    }
}

impl From<headstack_workload::InputError> for Complaint {
    fn from(error: headstack_workload::InputError) -> Complaint {
        let known = |text: String| (!text.is_empty()).then_some(text);
        Complaint { file: known(error.file), line: error.line, key: known(error.key), message: error.message }
    }
}

impl From<WorkloadError> for Complaint {
    fn from(error: WorkloadError) -> Complaint {
        Complaint::of_key(error.key, error.message)
    }
}

impl From<InvalidDescription> for Complaint {
    fn from(error: InvalidDescription) -> Complaint {
        Complaint::of_key(error.key, error.message)
    }
}

impl From<FileError> for Complaint {
    fn from(error: FileError) -> Complaint {
        Complaint { file: Some(error.path), line: None, key: None, message: error.message }
    }
}

/// Implements the conversion of errors of which only the message is used.
macro_rules! as_messages {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Complaint {
            fn from(error: $error) -> Complaint {
                Complaint::of_message(error)
            }
        })*
    };
}

as_messages!(
    String,
    &str,
    serde_json::Error,
    CrashError,
    LiveError,
    PythonizeError,
    QuantityError,
    ResultError,
    TraceError
);

/// Creates an `InputError` from an error of the crates or from a message.
pub fn input_error(error: impl Into<Complaint>) -> PyErr {
    let Complaint { file, line, key, message } = error.into();
    InputError::new_err((message, file, line, key))
}

/// Creates an `InputError` for a JSON value of the wrong form.
pub fn json_error(error: serde_json::Error) -> PyErr {
    input_error(error)
}

/// Creates a `RunError` for work that was ended by the user.
pub fn stopped() -> PyErr {
    RunError::new_err(("stopped", "stopped"))
}

/// Maps errors of the simulator to `InputError`, unless the simulator was stopped or failed internally.
pub fn sim_error(error: SimError) -> PyErr {
    match error {
        SimError::Stopped => stopped(),
        SimError::Panicked(_) => RunError::new_err(error.to_string()),
        SimError::Drive(error) => input_error(error),
        SimError::Workload(error) => input_error(error),
        SimError::Range(why) => input_error(Complaint::of_key("range".to_owned(), why)),
        SimError::Replay(_) | SimError::Fault(_) => input_error(error.to_string()),
    }
}

/// Maps errors of traces to `InputError`, or to `OSError` if the output cannot be written.
pub fn trace_error(error: TraceError) -> PyErr {
    match error.place {
        Place::Output(number) => PyOSError::new_err((number, error.message, error.file)),
        _ => input_error(error),
    }
}

/// Maps errors of measurements to `InputError`, or to `RunError` for errors of system calls.
pub fn load_error(error: LoadError) -> PyErr {
    match error {
        LoadError::Stopped => stopped(),
        LoadError::Io { action: "open" | "create", .. } => input_error(error.to_string()),
        LoadError::Io { .. } => RunError::new_err(error.to_string()),
        LoadError::Target { ref message, .. } if message.starts_with(WRITING_STOPPED) => {
            RunError::new_err((error.to_string(), "in use"))
        }
        LoadError::Target { target, message } => InputError::new_err((message, Some(target))),
        LoadError::Job { .. } => input_error(error.to_string()),
        LoadError::Workload(error) => input_error(error),
    }
}
