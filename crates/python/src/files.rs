//! Output files of Python, with checks before a command starts.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use headstack_files::{FileError, Place};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::error::input_error;

/// The files of a command, checked before it does anything.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Outputs(headstack_files::Outputs);

#[pymethods]
impl Outputs {
    /// Creates an empty set.
    #[new]
    fn new() -> Outputs {
        Outputs::default()
    }

    /// Adds an output; refuses a path that cannot be a file, is another output, or is measured.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        self.0.write(&path).map_err(input_error)
    }

    /// Adds a file that is kept open and written in place.
    fn keep(&self, path: PathBuf) -> PyResult<()> {
        self.0.keep(&path).map_err(input_error)
    }

    /// Adds a folder that receives files; refuses one that is read.
    fn fill(&self, path: PathBuf) -> PyResult<()> {
        self.0.fill(&path).map_err(input_error)
    }

    /// Adds a folder all of whose files are read; refuses an output that replaces one of them.
    fn search(&self, path: PathBuf) -> PyResult<()> {
        self.0.search(&path).map_err(input_error)
    }

    /// Ends the command: its inputs may be replaced from now on.
    fn close(&self) {
        self.0.close();
    }

    /// Adds a file or device that is read or measured, with its backing files; refuses an output.
    fn measure(&self, path: PathBuf) -> PyResult<()> {
        let below = headstack_load::files_below(&path);
        self.0.measure(&path, &below).map_err(input_error)
    }
}

/// Registers a file as read with the current commands, such as one in a folder; refuses an output.
#[pyfunction]
pub fn note_input(path: PathBuf) -> PyResult<()> {
    headstack_files::note_input(&path).map_err(input_error)
}

/// A regular file that appears complete or not at all: data written to `draft` get its name once it is finished.
#[pyclass(frozen)]
pub struct AtomicFile(Mutex<Option<headstack_files::AtomicFile>>);

#[pymethods]
impl AtomicFile {
    /// Starts writing a regular file `path`.
    #[new]
    fn new(path: PathBuf) -> PyResult<AtomicFile> {
        let file = headstack_files::AtomicFile::create(&path).map_err(file_error)?;
        Ok(AtomicFile(Mutex::new(Some(file))))
    }

    /// Path for writing; `None` once it is finished or discarded.
    #[getter]
    fn draft(&self) -> Option<PathBuf> {
        let file = self.0.lock().expect("the lock is not poisoned");
        file.as_ref().and_then(headstack_files::AtomicFile::draft).map(Path::to_owned)
    }

    /// Gives it its name.
    fn finish(&self) -> PyResult<()> {
        match self.0.lock().expect("the lock is not poisoned").take() {
            Some(file) => file.finish().map_err(file_error),
            None => Ok(()),
        }
    }

    /// Removes the draft, unless it is finished.
    fn discard(&self) {
        drop(self.0.lock().expect("the lock is not poisoned").take());
    }
}

/// Destination of an output that is written directly: the path of a pipe or a device, or the number of a descriptor;
/// `None` for a regular file.
#[pyfunction]
pub fn written_through(py: Python<'_>, path: PathBuf) -> PyResult<Option<Py<PyAny>>> {
    Ok(match Place::of(&path).map_err(file_error)? {
        Place::File { .. } => None,
        Place::Special(at) => Some(at.into_os_string().into_pyobject(py)?.into_any().unbind()),
        Place::Descriptor(number) => Some(number.into_pyobject(py)?.into_any().unbind()),
    })
}

/// Whether an output goes to standard output, by any name.
#[pyfunction]
pub fn is_stdout(path: PathBuf) -> bool {
    Place::of(&path).is_ok_and(|place| place.is_stdout())
}

/// Maps file errors: bad input for an impossible path, else the kernel's error.
fn file_error(error: FileError) -> PyErr {
    match error.number {
        None => input_error(error),
        Some(number) => PyOSError::new_err((number, error.message, error.path)),
    }
}
