//! What an export is.

/// Payload that every server takes, where it does not say how much (doc/proto.md).
const MAXIMUM_BYTES: u32 = 32 << 20;

/// What a server says of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its size.
    pub capacity_bytes: u64,
    /// What it can do ([`transmission`](headstack_nbd::transmission)).
    pub flags: u16,
    /// What offsets and lengths are multiples of.
    pub minimum_bytes: u32,
    /// What they had better be multiples of.
    pub preferred_bytes: u32,
    /// The longest payload.
    pub maximum_bytes: u32,
}

impl Default for Terms {
    /// Those of a server that tells nothing.
    fn default() -> Terms {
        Terms { capacity_bytes: 0, flags: 0, minimum_bytes: 1, preferred_bytes: 4096, maximum_bytes: MAXIMUM_BYTES }
    }
}
