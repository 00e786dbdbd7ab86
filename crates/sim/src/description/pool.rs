//! [`PoolDescription`]: a virtual array, whose segments are placed when they are first written.

use serde::{Deserialize, Serialize};

/// The disks of a virtual array, and how segments are placed on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolDescription {
    /// Unit of allocation, mirroring and migration; always 256 KiB in HP's VA 7000 series.
    pub segment_bytes: u64,
    /// Number of disks; may be odd.
    pub members: u32,
    /// Bytes of each disk.
    pub member_bytes: u64,
    /// Raw space kept free for a rebuild after a failure (VA 7100: the capacity of the largest disk), spread over all
    /// members.
    pub spare_bytes: u64,
    /// Controller time to allocate a segment, in ns. The map takes no time itself; its caller accounts for this time.
    pub allocation_ns: u64,
    /// Redundancy classes of segments.
    pub classes: Classes,
}

/// The redundancy classes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Classes {
    /// RAID 1+0 only.
    Mirrored,
    /// RAID 1+0 for recently written segments, and double parity (RAID 5DP) for segments that were not written for
    /// long: AutoRAID (Wilkes et al. 1996).
    Migrating {
        /// Number of disks of a stripe, including its two parities.
        parity_width: u32,
        /// Raw space free for mirrored segments below which demotion begins.
        low_free_bytes: u64,
        /// Raw space free for mirrored segments at which demotion ends and background promotion begins.
        high_free_bytes: u64,
    },
}
