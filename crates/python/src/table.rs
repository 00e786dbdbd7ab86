//! Arrow tables of results, handed to Python through the PyCapsule interface.
//!
//! Each table is a list of columns; a column is a name and a function of a row, so that Arrow and Python see the same
//! figures.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{DataType, Field as ArrowField, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::field::{Field, Kind};

/// How the cell of a column follows from a row. Every cell may be absent.
enum Cell<R> {
    /// A name or a label.
    Text(fn(&R) -> Option<String>),
    /// A whole number.
    Count(fn(&R) -> Option<u64>),
    /// A measured or computed figure.
    Figure(fn(&R) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&R) -> Option<bool>),
}

/// A column, for which there is a [`Field`]; units are part of the name.
pub struct Column<R> {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    cell: Cell<R>,
}

impl<R> Column<R> {
    /// What its cells are.
    fn kind(&self) -> Kind {
        match self.cell {
            Cell::Text(_) => Kind::Text,
            Cell::Count(_) => Kind::Count,
            Cell::Figure(_) => Kind::Figure,
            Cell::Flag(_) => Kind::Flag,
        }
    }

    fn field_and_array(&self, rows: &[R]) -> (ArrowField, ArrayRef) {
        let array: ArrayRef = match self.cell {
            Cell::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            Cell::Count(of) => Arc::new(rows.iter().map(of).collect::<UInt64Array>()),
            Cell::Figure(of) => Arc::new(rows.iter().map(of).collect::<Float64Array>()),
            Cell::Flag(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
        };
        (arrow_field(self.name, self.kind()), array)
    }
}

fn arrow_field(name: &str, kind: Kind) -> ArrowField {
    let of = match kind {
        Kind::Text => DataType::Utf8,
        Kind::Count => DataType::UInt64,
        Kind::Figure => DataType::Float64,
        Kind::Flag => DataType::Boolean,
    };
    ArrowField::new(name, of, true)
}

/// A column of names or labels.
pub const fn text<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<String>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Text(of) }
}

/// A column of whole numbers.
pub const fn count<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<u64>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Count(of) }
}

/// A column of measured or computed figures.
pub const fn figure<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<f64>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Figure(of) }
}

/// A column of yes and no.
pub const fn flag<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<bool>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Flag(of) }
}

/// The fields of columns.
pub fn fields_of<R>(columns: &[Column<R>]) -> Vec<Field> {
    let field = |column: &Column<R>| Field {
        name: column.name.to_owned(),
        kind: column.kind(),
        unit: column.unit.to_owned(),
        meaning: column.meaning.to_owned(),
    };
    columns.iter().map(field).collect()
}

/// The columns of `rows` as fields and arrays.
pub fn columns<R>(columns: &[Column<R>], rows: &[R]) -> Vec<(ArrowField, ArrayRef)> {
    columns.iter().map(|column| column.field_and_array(rows)).collect()
}

/// A cell whose row is gone.
pub enum Kept {
    Text(Option<String>),
    Count(Option<u64>),
    Figure(Option<f64>),
    Flag(Option<bool>),
}

impl Kept {
    /// A cell of a row of Python's.
    fn from_python(kind: Kind, cell: &Bound<'_, PyAny>) -> PyResult<Kept> {
        Ok(match kind {
            Kind::Text => Kept::Text(cell.extract()?),
            Kind::Count => Kept::Count(cell.extract()?),
            Kind::Figure => Kept::Figure(cell.extract()?),
            Kind::Flag => Kept::Flag(cell.extract()?),
        })
    }
}

/// The cells of one row, so that the row itself, which may be large, need not be kept.
pub fn kept_cells<R>(columns: &[Column<R>], row: &R) -> Vec<Kept> {
    let keep = |column: &Column<R>| match column.cell {
        Cell::Text(of) => Kept::Text(of(row)),
        Cell::Count(of) => Kept::Count(of(row)),
        Cell::Figure(of) => Kept::Figure(of(row)),
        Cell::Flag(of) => Kept::Flag(of(row)),
    };
    columns.iter().map(keep).collect()
}

/// The columns of rows whose cells were kept; those of rows that never were are empty.
pub fn kept_columns(fields: &[Field], rows: &[Option<&[Kept]>]) -> Vec<(ArrowField, ArrayRef)> {
    /// The cells of a column, all of which are of one kind.
    macro_rules! array {
        ($array:ty, $kind:path, $at:expr) => {
            Arc::new(
                rows.iter()
                    .map(|row| match row.map(|cells| &cells[$at]) {
                        Some($kind(cell)) => cell.clone(),
                        _ => None,
                    })
                    .collect::<$array>(),
            )
        };
    }
    let column = |(at, field): (usize, &Field)| {
        let array: ArrayRef = match field.kind {
            Kind::Text => array!(StringArray, Kept::Text, at),
            Kind::Count => array!(UInt64Array, Kept::Count, at),
            Kind::Figure => array!(Float64Array, Kept::Figure, at),
            Kind::Flag => array!(BooleanArray, Kept::Flag, at),
        };
        (arrow_field(&field.name, field.kind), array)
    };
    fields.iter().enumerate().map(column).collect()
}

/// One row as a Python dict, under the names of the columns.
pub fn dict<'py, R>(py: Python<'py>, columns: &[Column<R>], row: &R) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for Column { name, cell, .. } in columns {
        match cell {
            Cell::Text(of) => dict.set_item(name, of(row))?,
            Cell::Count(of) => dict.set_item(name, of(row))?,
            Cell::Figure(of) => dict.set_item(name, of(row))?,
            Cell::Flag(of) => dict.set_item(name, of(row))?,
        }
    }
    Ok(dict)
}

/// A table that any Arrow consumer (duckdb, polars, pyarrow, pandas) reads without a copy.
#[pyclass(frozen, module = "headstack._native")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    pub fn new(columns: Vec<(ArrowField, ArrayRef)>) -> Self {
        let (fields, arrays): (Vec<ArrowField>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch =
            RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns are made from the same rows");
        Self { batch }
    }
}

#[pymethods]
impl Table {
    /// A table of rows of Python's, which map the names of all fields to values or `None`. Raises `TypeError` or
    /// `OverflowError` for a value that is not of its field's kind.
    #[new]
    fn of_rows(fields: Vec<PyRef<'_, Field>>, rows: &Bound<'_, PyAny>) -> PyResult<Table> {
        let fields: Vec<Field> = fields.iter().map(|field| Field::clone(field)).collect();
        let mut kept = Vec::new();
        for row in rows.try_iter()? {
            let row = row?;
            let cell = |field: &Field| Kept::from_python(field.kind, &row.get_item(&field.name)?);
            kept.push(fields.iter().map(cell).collect::<PyResult<Vec<Kept>>>()?);
        }
        let rows: Vec<_> = kept.iter().map(|cells| Some(cells.as_slice())).collect();
        Ok(Table::new(kept_columns(&fields, &rows)))
    }

    /// Exports the table as an Arrow C stream. A requested schema is not converted to, as the protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new(vec![Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}
