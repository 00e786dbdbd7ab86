//! Tables as lists of [`Column`]s. A column is a name and a function of a row, so all representations of a table
//! (Arrow, Python, HTML) show the same figures.

use std::fmt;

use serde::Serialize;

/// Type of a column's cells. Every cell may be empty.
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
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Text, Kind::Count, Kind::Figure, Kind::Flag];
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

/// Function that computes a column's cell from a row. Every cell may be empty.
#[derive(Clone, Copy, Debug)]
pub enum Cell<R> {
    /// A name or a label.
    Text(fn(&R) -> Option<String>),
    /// A whole number.
    Count(fn(&R) -> Option<u64>),
    /// A measured or computed figure.
    Figure(fn(&R) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&R) -> Option<bool>),
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column<R> {
    /// Name, with the unit.
    pub name: &'static str,
    /// Unit of the cells; empty if they have none.
    pub unit: &'static str,
    /// Meaning of the cells.
    pub meaning: &'static str,
    /// Function that computes a cell from a row.
    pub cell: Cell<R>,
}

impl<R> Column<R> {
    /// Returns the type of the column's cells.
    pub fn kind(&self) -> Kind {
        match self.cell {
            Cell::Text(_) => Kind::Text,
            Cell::Count(_) => Kind::Count,
            Cell::Figure(_) => Kind::Figure,
            Cell::Flag(_) => Kind::Flag,
        }
    }

    /// Returns the cell of a row.
    pub fn of(&self, row: &R) -> OwnedCell {
        match self.cell {
            Cell::Text(of) => OwnedCell::Text(of(row)),
            Cell::Count(of) => OwnedCell::Count(of(row)),
            Cell::Figure(of) => OwnedCell::Figure(of(row)),
            Cell::Flag(of) => OwnedCell::Flag(of(row)),
        }
    }
}

/// The value of a cell, stored without its row, which may be large.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OwnedCell {
    /// A name or a label.
    Text(Option<String>),
    /// A whole number.
    Count(Option<u64>),
    /// A measured or computed figure.
    Figure(Option<f64>),
    /// Yes or no.
    Flag(Option<bool>),
}

/// Returns all cells of one row.
pub fn kept_cells<R>(columns: &[Column<R>], row: &R) -> Vec<OwnedCell> {
    columns.iter().map(|column| column.of(row)).collect()
}

/// Returns a column of names or labels.
pub const fn text<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<String>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Text(of) }
}

/// Returns a column of whole numbers.
pub const fn count<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<u64>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Count(of) }
}

/// Returns a column of measured or computed figures.
pub const fn figure<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<f64>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Figure(of) }
}

/// Returns a column of flags.
pub const fn flag<R>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&R) -> Option<bool>,
) -> Column<R> {
    Column { name, unit, meaning, cell: Cell::Flag(of) }
}
