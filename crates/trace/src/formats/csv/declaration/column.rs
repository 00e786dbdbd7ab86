//! [`Column`] and [`Base`]: a column, and the unit of its values.

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(super) place: ColumnPlace,
    /// Whether some files lack it.
    pub(super) is_optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnPlace {
    /// Index from 0.
    Number(usize),
    /// Name in the header, in any case.
    Name(String),
}

/// Base of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base {
    Unix,
    Recording,
}

/// Largest number of columns of a file that are considered.
pub(super) const COLUMNS_MAX: usize = 1_000;
/// Largest sector or other unit of addresses.
pub(super) const UNIT_BYTES_MAX: u32 = 1 << 20;
