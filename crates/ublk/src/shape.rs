//! Properties of a disk as the kernel sees them.

/// Size and limits of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its size, a multiple of its blocks.
    pub capacity_bytes: u64,
    /// Its block: a power of two from 512 up to a page.
    pub block_bytes: u32,
    /// It has spindles.
    pub is_rotational: bool,
    /// The device cannot be written to.
    pub is_read_only: bool,
    /// Requests that it has under way at the most.
    pub depth: u16,
    /// The longest read or write.
    pub longest_bytes: u32,
    /// The longest discard or write of zeros.
    pub longest_cleared_bytes: u32,
}
