//! Files that Python writes, and what is looked at before.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use headstack_files::{FileError, Place};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::error::input_error;

/// The files of a command, looked at before it does anything.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Outputs(headstack_files::Outputs);

#[pymethods]
impl Outputs {
    /// None yet.
    #[new]
    fn new() -> Outputs {
        Outputs::default()
    }

    /// Adds an output; refuses what no file can be written to, what another output has, and what is measured.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        self.0.write(&path).map_err(input_error)
    }

    /// Adds a file that is kept open and written in place.
    fn keep(&self, path: PathBuf) -> PyResult<()> {
        self.0.keep(&path).map_err(input_error)
    }

    /// Adds a folder that gets files; refuses one that is read.
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

    /// Adds a file or device that is read or measured, with the files behind it; refuses what an output has.
    fn measure(&self, path: PathBuf) -> PyResult<()> {
        let below = headstack_load::files_below(&path);
        self.0.measure(&path, &below).map_err(input_error)
    }
}

/// Tells the commands under way that a file is read, such as one in a folder; refuses what an output has.
#[pyfunction]
pub fn note_input(path: PathBuf) -> PyResult<()> {
    headstack_files::note_input(&path).map_err(input_error)
}

/// A regular file that is to be whole or not at all: what is written to `draft` has its name once it is finished.
#[pyclass(frozen)]
pub struct AtomicFile(Mutex<Option<headstack_files::AtomicFile>>);

#[pymethods]
impl AtomicFile {
    /// Begins what will be at `path`, a regular file.
    #[new]
    fn new(path: PathBuf) -> PyResult<AtomicFile> {
        let file = headstack_files::AtomicFile::create(&path).map_err(file_error)?;
        Ok(AtomicFile(Mutex::new(Some(file))))
    }

    /// Where it is to be written; nothing once it is finished or discarded.
    #[getter]
    fn draft(&self) -> Option<PathBuf> {
        let file = self.0.lock().expect("nobody panics with it");
        file.as_ref().and_then(headstack_files::AtomicFile::draft).map(Path::to_owned)
    }

    /// Gives it its name.
    fn finish(&self) -> PyResult<()> {
        match self.0.lock().expect("nobody panics with it").take() {
            Some(file) => file.finish().map_err(file_error),
            None => Ok(()),
        }
    }

    /// Removes it, unless it is finished.
    fn discard(&self) {
        drop(self.0.lock().expect("nobody panics with it").take());
    }
}

/// What an output leads to that is written through: the path of a pipe or a device, or the number of a descriptor; nothing
/// for a regular file.
#[pyfunction]
pub fn written_through(py: Python<'_>, path: PathBuf) -> PyResult<Option<Py<PyAny>>> {
    Ok(match Place::of(&path).map_err(file_error)? {
        Place::File { .. } => None,
        Place::Special(at) => Some(at.into_os_string().into_pyobject(py)?.into_any().unbind()),
        Place::Descriptor(number) => Some(number.into_pyobject(py)?.into_any().unbind()),
    })
}

/// Whether an output goes to standard output, by whatever name.
#[pyfunction]
pub fn is_stdout(path: PathBuf) -> bool {
    Place::of(&path).is_ok_and(|place| place.is_stdout())
}

/// A place that no file can have is bad input; what the kernel refuses is its error.
fn file_error(error: FileError) -> PyErr {
    match error.number {
        None => input_error(error),
        Some(number) => PyOSError::new_err((number, error.message, error.path)),
    }
}
