//! Sizes of indirect blocks, which hold the addresses of records.

/// Block pointers in an indirect block: 128 KiB (`DN_MAX_INDBLKSHIFT` 17) of 128 B each.
pub(super) const POINTERS: u64 = 1024;
/// Compressed bytes of a block pointer: its checksum of 32 B, address, size and birth times do not compress. Derived;
/// range 40 to 90 B.
const POINTER_BYTES: u64 = 64;

/// Returns the bytes of an indirect block with pointers to `below` blocks, at most [`POINTERS`].
pub(super) fn indirect_bytes(below: u64, sector_bytes: u32) -> u32 {
    (below.min(POINTERS) * POINTER_BYTES).next_multiple_of(u64::from(sector_bytes)) as u32
}
