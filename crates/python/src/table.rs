//! [`Table`]: Arrow tables of results, passed to Python through the PyCapsule interface.
//!
//! The columns, and their cells by row, are defined in `headstack_result::tables`.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{DataType, Field as ArrowField, Schema};
use headstack_result::columns::{Cell, Column, Kind, OwnedCell};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::field::Field;

fn arrow_field(name: &str, kind: Kind) -> ArrowField {
    let of = match kind {
        Kind::Text => DataType::Utf8,
        Kind::Count => DataType::UInt64,
        Kind::Figure => DataType::Float64,
        Kind::Flag => DataType::Boolean,
    };
    ArrowField::new(name, of, true)
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
    let array = |column: &Column<R>| -> ArrayRef {
        match column.cell {
            Cell::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            Cell::Count(of) => Arc::new(rows.iter().map(of).collect::<UInt64Array>()),
            Cell::Figure(of) => Arc::new(rows.iter().map(of).collect::<Float64Array>()),
            Cell::Flag(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
        }
    };
    columns.iter().map(|column| (arrow_field(column.name, column.kind()), array(column))).collect()
}

/// Converts a cell of a Python row.
fn from_python(kind: Kind, cell: &Bound<'_, PyAny>) -> PyResult<OwnedCell> {
    Ok(match kind {
        Kind::Text => OwnedCell::Text(cell.extract()?),
        Kind::Count => OwnedCell::Count(cell.extract()?),
        Kind::Figure => OwnedCell::Figure(cell.extract()?),
        Kind::Flag => OwnedCell::Flag(cell.extract()?),
    })
}

/// Columns of rows whose cells were kept; missing rows have null cells.
pub fn kept_columns(fields: &[Field], rows: &[Option<&[OwnedCell]>]) -> Vec<(ArrowField, ArrayRef)> {
    /// Cells of a column, which all have the same kind.
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
            Kind::Text => array!(StringArray, OwnedCell::Text, at),
            Kind::Count => array!(UInt64Array, OwnedCell::Count, at),
            Kind::Figure => array!(Float64Array, OwnedCell::Figure, at),
            Kind::Flag => array!(BooleanArray, OwnedCell::Flag, at),
        };
        (arrow_field(&field.name, field.kind), array)
    };
    fields.iter().enumerate().map(column).collect()
}

/// One row as a Python dict, by column name.
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
    /// A table of Python rows, which map the names of all fields to values or `None`. Raises `TypeError` or
    /// `OverflowError` for a value of the wrong kind.
    #[new]
    fn of_rows(fields: Vec<PyRef<'_, Field>>, rows: &Bound<'_, PyAny>) -> PyResult<Table> {
        let fields: Vec<Field> = fields.iter().map(|field| Field::clone(field)).collect();
        let mut kept = Vec::new();
        for row in rows.try_iter()? {
            let row = row?;
            let cell = |field: &Field| from_python(field.kind, &row.get_item(&field.name)?);
            kept.push(fields.iter().map(cell).collect::<PyResult<Vec<OwnedCell>>>()?);
        }
        let rows: Vec<_> = kept.iter().map(|cells| Some(cells.as_slice())).collect();
        Ok(Table::new(kept_columns(&fields, &rows)))
    }

    /// Exports the table as an Arrow C stream. A requested schema is ignored, as the protocol permits.
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

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}
