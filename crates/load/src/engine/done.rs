//! [`Completion`]: the completion of a request.

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Slot of the request.
    pub slot: u32,
    /// Bytes transferred, or the negative error number.
    pub result: i32,
}
