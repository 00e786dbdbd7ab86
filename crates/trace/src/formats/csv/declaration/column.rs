//! Which column, and what its values count.

/// Which column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(super) place: ColumnPlace,
    /// Some files have it and some do not.
    pub(super) is_optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnPlace {
    /// From 0.
    Number(usize),
    /// As in the header, in any case.
    Name(String),
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base {
    Unix,
    Recording,
}

/// Most columns of a file that are looked at.
pub(super) const COLUMNS_MAX: usize = 1_000;
/// A sector or other unit of addresses is not larger.
pub(super) const UNIT_BYTES_MAX: u32 = 1 << 20;
