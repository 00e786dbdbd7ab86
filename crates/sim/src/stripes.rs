//! [`StripeWrite`]: a request of a layer to an array to write stripes of a row as Linux md does.

use crate::array::levels::ChunkRange;

/// A write of the same range of several chunks of a row. The parity of the range is written with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeWrite {
    /// First byte of the row, by the addresses of the array.
    pub offset_bytes: u64,
    /// The chunks, and the range in each.
    pub chunks: ChunkRange,
}

impl StripeWrite {
    /// Whether `other` writes the same chunks, after the range of this write.
    pub fn continues_in(&self, other: &StripeWrite) -> bool {
        self.offset_bytes == other.offset_bytes
            && self.chunks.units == other.chunks.units
            && self.chunks.to_bytes == other.chunks.from_bytes
    }
}
