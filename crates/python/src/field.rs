//! [`Field`]: columns of tables, whether created here or in Python.

use headstack_result::columns::Kind;
use pyo3::prelude::*;

use crate::error::input_error;

/// A column of a table: its name, the kind of its cells (`text`, `count`, `figure` or `flag`), their unit, which may be
/// empty, and their meaning.
#[pyclass(frozen, module = "headstack._native")]
#[derive(Clone)]
pub struct Field {
    #[pyo3(get)]
    pub name: String,
    pub kind: Kind,
    #[pyo3(get)]
    pub unit: String,
    #[pyo3(get)]
    pub meaning: String,
}

#[pymethods]
impl Field {
    #[new]
    fn new(name: String, kind: &str, unit: String, meaning: String) -> PyResult<Field> {
        let kind_named = Kind::ALL.into_iter().find(|kind_named| kind_named.to_string() == kind);
        let kind = kind_named.ok_or_else(|| input_error(format!("{name}: {kind:?} is not a kind of cell")))?;
        Ok(Field { name, kind, unit, meaning })
    }

    #[getter]
    fn kind(&self) -> String {
        self.kind.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Field({:?}, \"{}\", {:?}, {:?})", self.name, self.kind, self.unit, self.meaning)
    }
}
