//! [`Sheet`]: seek times of a data sheet.

/// Nanoseconds per millisecond.
pub const MS_TO_NS: f64 = 1e6;

/// Seek times of a data sheet, in ns.
pub struct Sheet {
    /// Mean seek time over random pairs of blocks.
    pub average: f64,
    /// Seek time to the next cylinder.
    pub single_cylinder: f64,
    /// Seek time over all cylinders.
    pub full_stroke: Option<f64>,
}
