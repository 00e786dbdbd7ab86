//! The end of a request.

/// A request that the system is done with.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Which it was.
    pub slot: u32,
    /// Bytes transferred, or the negative error number.
    pub result: i32,
}
