//! Arrow tables of results, handed to Python through the PyCapsule interface.
//!
//! Each table is a list of columns; a column is a name and a function of a row, so that Arrow and Python see the same
//! figures.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

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

/// A named column; units are part of the name.
pub struct Column<R> {
    name: &'static str,
    cell: Cell<R>,
}

impl<R> Column<R> {
    fn field_and_array(&self, rows: &[R]) -> (Field, ArrayRef) {
        let (kind, array): (_, ArrayRef) = match self.cell {
            Cell::Text(of) => {
                let texts: StringArray = rows.iter().map(of).collect();
                (DataType::Utf8, Arc::new(texts))
            }
            Cell::Count(of) => {
                let counts: UInt64Array = rows.iter().map(of).collect();
                (DataType::UInt64, Arc::new(counts))
            }
            Cell::Figure(of) => {
                let figures: Float64Array = rows.iter().map(of).collect();
                (DataType::Float64, Arc::new(figures))
            }
            Cell::Flag(of) => {
                let flags: BooleanArray = rows.iter().map(of).collect();
                (DataType::Boolean, Arc::new(flags))
            }
        };
        (Field::new(self.name, kind, true), array)
    }
}

/// A column of names or labels.
pub const fn text<R>(name: &'static str, of: fn(&R) -> Option<String>) -> Column<R> {
    Column { name, cell: Cell::Text(of) }
}

/// A column of whole numbers.
pub const fn count<R>(name: &'static str, of: fn(&R) -> Option<u64>) -> Column<R> {
    Column { name, cell: Cell::Count(of) }
}

/// A column of measured or computed figures.
pub const fn figure<R>(name: &'static str, of: fn(&R) -> Option<f64>) -> Column<R> {
    Column { name, cell: Cell::Figure(of) }
}

/// A column of yes and no.
pub const fn flag<R>(name: &'static str, of: fn(&R) -> Option<bool>) -> Column<R> {
    Column { name, cell: Cell::Flag(of) }
}

/// The columns of `rows` as fields and arrays.
pub fn columns<R>(columns: &[Column<R>], rows: &[R]) -> Vec<(Field, ArrayRef)> {
    columns.iter().map(|column| column.field_and_array(rows)).collect()
}

/// A cell whose row is gone.
pub enum Kept {
    Text(Option<String>),
    Count(Option<u64>),
    Figure(Option<f64>),
    Flag(Option<bool>),
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
pub fn kept_columns<R>(columns: &[Column<R>], rows: &[Option<&[Kept]>]) -> Vec<(Field, ArrayRef)> {
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
    let column = |(at, column): (usize, &Column<R>)| {
        let (kind, array): (_, ArrayRef) = match column.cell {
            Cell::Text(_) => (DataType::Utf8, array!(StringArray, Kept::Text, at)),
            Cell::Count(_) => (DataType::UInt64, array!(UInt64Array, Kept::Count, at)),
            Cell::Figure(_) => (DataType::Float64, array!(Float64Array, Kept::Figure, at)),
            Cell::Flag(_) => (DataType::Boolean, array!(BooleanArray, Kept::Flag, at)),
        };
        (Field::new(column.name, kind, true), array)
    };
    columns.iter().enumerate().map(column).collect()
}

/// One row as a Python dict, under the names of the columns.
pub fn dict<'py, R>(py: Python<'py>, columns: &[Column<R>], row: &R) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for Column { name, cell } in columns {
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
    pub fn new(columns: Vec<(Field, ArrayRef)>) -> Self {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch =
            RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns are made from the same rows");
        Self { batch }
    }
}

#[pymethods]
impl Table {
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
