//! Tables as lists of columns; a column is a name and a function of a row, so that whoever shows a table (Arrow, Python, a
//! page) shows the same figures.

use std::fmt;

use serde::Serialize;

/// Type of a column's cells. Every cell may be absent.
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
    /// All of them.
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

/// How the cell of a column follows from a row. Every cell may be absent.
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

/// A column; units are part of its name.
#[derive(Clone, Copy, Debug)]
pub struct Column<R> {
    /// Its name, with the unit.
    pub name: &'static str,
    /// The unit of its cells; empty where they have none.
    pub unit: &'static str,
    /// Meaning of its cells.
    pub meaning: &'static str,
    /// How they follow from rows.
    pub cell: Cell<R>,
}

impl<R> Column<R> {
    /// Type of its cells.
    pub fn kind(&self) -> Kind {
        match self.cell {
            Cell::Text(_) => Kind::Text,
            Cell::Count(_) => Kind::Count,
            Cell::Figure(_) => Kind::Figure,
            Cell::Flag(_) => Kind::Flag,
        }
    }

    /// The cell of a row.
    pub fn of(&self, row: &R) -> Kept {
        match self.cell {
            Cell::Text(of) => Kept::Text(of(row)),
            Cell::Count(of) => Kept::Count(of(row)),
            Cell::Figure(of) => Kept::Figure(of(row)),
            Cell::Flag(of) => Kept::Flag(of(row)),
        }
    }
}

/// A cell whose row is gone, which may be large.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Kept {
    /// A name or a label.
    Text(Option<String>),
    /// A whole number.
    Count(Option<u64>),
    /// A measured or computed figure.
    Figure(Option<f64>),
    /// Yes or no.
    Flag(Option<bool>),
}

/// The cells of one row.
pub fn kept_cells<R>(columns: &[Column<R>], row: &R) -> Vec<Kept> {
    columns.iter().map(|column| column.of(row)).collect()
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
