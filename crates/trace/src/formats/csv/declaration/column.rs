//! [`Column`] and [`Base`]: a column of a table, and the origin of times.

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(super) place: ColumnPlace,
    /// Whether the column may be missing in a file.
    pub(super) is_optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnPlace {
    /// Column index from 0.
    Number(usize),
    /// Column name in the header, in any case.
    Name(String),
}

/// Origin of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base {
    Unix,
    Recording,
}

/// Maximum column number.
pub(super) const COLUMNS_MAX: usize = 1_000;
/// Maximum size of a sector or other unit of addresses, in bytes.
pub(super) const UNIT_BYTES_MAX: u32 = 1 << 20;
