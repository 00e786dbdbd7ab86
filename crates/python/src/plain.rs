//! Values of serde as values of Python: [`Plain`].
//!
//! Descriptions and reports cross the border as dictionaries, lists, texts and numbers; text is JSON only where it is stored.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{input_error, json_error};

/// A value that Python holds as dictionaries, lists, texts and numbers.
///
/// As an argument it is what serde reads of that, and `InputError` says what does not fit; as a result it is what serde writes.
pub struct Plain<T>(pub T);

impl<'py, T: Serialize> IntoPyObject<'py> for Plain<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0)
    }
}

/// A value that is borrowed, as [`Plain`] gives it to Python.
pub fn plain<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = pythonize::pythonize(py, value)?;
    Ok(listed(&value)?.unwrap_or(value))
}

/// The same with lists in place of tuples, as stored values have them; nothing where there is no tuple in it.
fn listed<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let list = PyList::new(value.py(), tuple)?.into_any();
        return Ok(Some(listed(&list)?.unwrap_or(list)));
    }
    if let Ok(list) = value.cast::<PyList>() {
        for (place, one) in list.iter().enumerate() {
            if let Some(changed) = listed(&one)? {
                list.set_item(place, changed)?;
            }
        }
    } else if let Ok(dict) = value.cast::<PyDict>() {
        for (key, one) in dict.copy()? {
            if let Some(changed) = listed(&one)? {
                dict.set_item(key, changed)?;
            }
        }
    }
    Ok(None)
}

impl<'py, T: DeserializeOwned> FromPyObject<'_, 'py> for Plain<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Plain<T>> {
        // By way of a value: enums and keys are read as they are of JSON, and errors say the same.
        let value: serde_json::Value = pythonize::depythonize(&value).map_err(input_error)?;
        serde_json::from_value(value).map(Plain).map_err(json_error)
    }
}
