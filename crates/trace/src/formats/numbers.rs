//! Reads numbers in binary records.

use crate::text::BYTES_END;

/// Returns the little-endian number of `N` bytes, at most 8, at `at`.
#[inline]
pub(crate) fn little_endian<const N: usize>(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&record[at..at + N]);
    u64::from_le_bytes(bytes)
}

/// Returns the big-endian 4-byte number at `at`.
#[inline]
pub(crate) fn big_endian(record: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&record[at..at + 4]);
    u32::from_be_bytes(bytes)
}

/// Returns the offset in bytes of a request that begins at `block`; `None` if the request does not end below 2^63.
pub(crate) fn offset_bytes(block: u64, block_bytes: u32, length_bytes: u32) -> Option<u64> {
    let offset = block.checked_mul(u64::from(block_bytes))?;
    (offset.checked_add(u64::from(length_bytes))? < BYTES_END).then_some(offset)
}
