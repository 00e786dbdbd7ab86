//! Seek figures of a data sheet.

/// Nanoseconds of a millisecond.
pub const MS_TO_NS: f64 = 1e6;

/// The figures of a sheet, in ns.
pub struct Sheet {
    /// Mean over random pairs of blocks.
    pub average: f64,
    /// To the next cylinder.
    pub single_cylinder: f64,
    /// Over all cylinders.
    pub full_stroke: Option<f64>,
}
