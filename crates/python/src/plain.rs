//! [`Plain`]: converts between serde values and Python values.
//!
//! Descriptions and reports are passed as dictionaries, lists, strings and numbers; JSON text is only used for storage.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{input_error, json_error};

/// A value that Python represents by dictionaries, lists, strings and numbers.
///
/// Arguments are deserialised with serde, and a mismatch raises `InputError`; return values are serialised with serde.
pub struct Plain<T>(pub T);

impl<'py, T: Serialize> IntoPyObject<'py> for Plain<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0)
    }
}

/// Converts a borrowed value to Python, as [`Plain`] does.
pub fn plain<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = pythonize::pythonize(py, value)?;
    Ok(listed(&value)?.unwrap_or(value))
}

/// Replaces tuples by lists, as in stored values; returns `None` if the value contains no tuple.
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
        // Converts via a JSON value, so that enums and keys are read as from JSON, with the same errors.
        let value: serde_json::Value = pythonize::depythonize(&value).map_err(input_error)?;
        serde_json::from_value(value).map(Plain).map_err(json_error)
    }
}
