//! [`Completion`]: the completion of a request.

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Its slot.
    pub slot: u32,
    /// Bytes transferred, or the negative error number.
    pub result: i32,
}
