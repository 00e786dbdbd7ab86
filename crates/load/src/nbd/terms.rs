//! [`Terms`]: size and abilities of an export.

/// Payload that every server accepts if it states no limit (doc/proto.md).
const MAXIMUM_BYTES: u32 = 32 << 20;

/// A server's terms for an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// Abilities ([`transmission`](headstack_nbd::transmission)).
    pub flags: u16,
    /// Offsets and lengths must be multiples of this.
    pub minimum_bytes: u32,
    /// Preferred multiple of offsets and lengths.
    pub preferred_bytes: u32,
    /// The longest payload.
    pub maximum_bytes: u32,
}

impl Default for Terms {
    /// The terms of a server that states none.
    fn default() -> Terms {
        Terms { capacity_bytes: 0, flags: 0, minimum_bytes: 1, preferred_bytes: 4096, maximum_bytes: MAXIMUM_BYTES }
    }
}
