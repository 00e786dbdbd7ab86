//! Properties of a disk as the kernel sees them.

/// Size and limits of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size in bytes, a multiple of the block size.
    pub capacity_bytes: u64,
    /// Block size in bytes: a power of two from 512 up to a page.
    pub block_bytes: u32,
    /// Whether the disk is rotational.
    pub is_rotational: bool,
    /// Whether the disk is read-only.
    pub is_read_only: bool,
    /// Maximum number of requests in flight.
    pub depth: u16,
    /// Maximum length of a read or write, in bytes.
    pub longest_bytes: u32,
    /// Maximum length of a discard or a write of zeros, in bytes.
    pub longest_cleared_bytes: u32,
}
