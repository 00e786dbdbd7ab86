//! Output files, which are checked before a command starts, for Python.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use headstack_files::{FileError, Place};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::error::input_error;

/// The files of a command, which are checked before the command changes anything.
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

    /// Adds an output; raises an error if the path cannot be a file, is another output, or is measured.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        self.0.write(&path).map_err(input_error)
    }

    /// Adds a file that remains open and is written in place.
    fn keep(&self, path: PathBuf) -> PyResult<()> {
        self.0.keep(&path).map_err(input_error)
    }

    /// Adds a folder that receives files; raises an error if files in this folder are read.
    fn fill(&self, path: PathBuf) -> PyResult<()> {
        self.0.fill(&path).map_err(input_error)
    }

    /// Adds a folder of which all files are read; raises an error if an output would replace one of these files.
    fn search(&self, path: PathBuf) -> PyResult<()> {
        self.0.search(&path).map_err(input_error)
    }

    /// Ends the command, after which its inputs may be replaced.
    fn close(&self) {
        self.0.close();
    }

    /// Adds a file or device that is read or measured, with its backing files; raises an error if it is an output.
    fn measure(&self, path: PathBuf) -> PyResult<()> {
        let below = headstack_load::files_below(&path);
        self.0.measure(&path, &below).map_err(input_error)
    }
}

/// Registers a file as an input of the current commands, such as a file in a folder; raises an error if it is an
/// output.
#[pyfunction]
pub fn note_input(path: PathBuf) -> PyResult<()> {
    headstack_files::note_input(&path).map_err(input_error)
}

/// A regular file that appears complete or not at all: data is written to `draft`, which gets the file's name in
/// `finish`.
#[pyclass(frozen)]
pub struct AtomicFile(Mutex<Option<headstack_files::AtomicFile>>);

#[pymethods]
impl AtomicFile {
    /// Starts writing the regular file `path`.
    #[new]
    fn new(path: PathBuf) -> PyResult<AtomicFile> {
        let file = headstack_files::AtomicFile::create(&path).map_err(file_error)?;
        Ok(AtomicFile(Mutex::new(Some(file))))
    }

    /// Path to write to; `None` once the file is finished or discarded.
    #[getter]
    fn draft(&self) -> Option<PathBuf> {
        let file = self.0.lock().expect("the lock is not poisoned");
        file.as_ref().and_then(headstack_files::AtomicFile::draft).map(Path::to_owned)
    }

    /// Renames the draft to the final path.
    fn finish(&self) -> PyResult<()> {
        match self.0.lock().expect("the lock is not poisoned").take() {
            Some(file) => file.finish().map_err(file_error),
            None => Ok(()),
        }
    }

    /// Removes the draft, unless the file is finished.
    fn discard(&self) {
        drop(self.0.lock().expect("the lock is not poisoned").take());
    }
}

/// Returns the destination of an output that is written directly: the path of a pipe or a device, or the number of a
/// descriptor; `None` for a regular file.
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

/// Maps file errors: an impossible path becomes `InputError`, other errors become `OSError`.
fn file_error(error: FileError) -> PyErr {
    match error.number {
        None => input_error(error),
        Some(number) => PyOSError::new_err((number, error.message, error.path)),
    }
}
