//! What a column of a table holds, for tables made here and in Python alike.

use std::fmt;

use pyo3::prelude::*;

use crate::error::input_error;

/// What a cell is. Every cell may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or a label.
    Text,
    /// A whole number, from 0 to 2^64 - 1.
    Count,
    /// A measured or computed figure.
    Figure,
    /// Yes or no.
    Flag,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Text, Kind::Count, Kind::Figure, Kind::Flag];
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Kind::Text => "text",
            Kind::Count => "count",
            Kind::Figure => "figure",
            Kind::Flag => "flag",
        })
    }
}

/// A column of a table: its name, what its cells are (`text`, `count`, `figure` or `flag`), their unit, which is empty
/// where they have none, and what they say.
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
        let known = Kind::ALL.into_iter().find(|known| known.to_string() == kind);
        let kind = known.ok_or_else(|| input_error(format!("{name}: {kind:?} is no kind of cell")))?;
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
