//! [`Terms`]: the size and abilities of an export.

/// Maximum payload that every server accepts if it does not state a limit (doc/proto.md), in bytes.
const MAXIMUM_BYTES: u32 = 32 << 20;

/// A server's terms for an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Size of the export, in bytes.
    pub capacity_bytes: u64,
    /// Transmission flags ([`transmission`](headstack_nbd::transmission)).
    pub flags: u16,
    /// Unit of offsets and lengths, in bytes; both must be multiples of it.
    pub minimum_bytes: u32,
    /// Preferred unit of offsets and lengths, in bytes.
    pub preferred_bytes: u32,
    /// Maximum payload, in bytes.
    pub maximum_bytes: u32,
}

impl Default for Terms {
    /// Returns the terms of a server that does not state any.
    fn default() -> Terms {
        Terms { capacity_bytes: 0, flags: 0, minimum_bytes: 1, preferred_bytes: 4096, maximum_bytes: MAXIMUM_BYTES }
    }
}
