//! [`PoolDescription`]: a virtual array, whose segments are placed on their first write.

use serde::{Deserialize, Serialize};

/// The disks of a virtual array and how segments are placed on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolDescription {
    /// Unit of allocation, mirroring and migration; always 256 KiB in HP's VA 7000 series.
    pub segment_bytes: u64,
    /// Disks; an odd number is allowed.
    pub members: u32,
    /// Capacity of each.
    pub member_bytes: u64,
    /// Raw space kept free for rebuilding after a failure (VA 7100: the largest disk's capacity), spread over all
    /// members.
    pub spare_bytes: u64,
    /// Time of the controller to allocate one segment. The map has no time of its own: its caller charges this.
    pub allocation_ns: u64,
    /// How segments are protected.
    pub classes: Classes,
}

/// The redundancy classes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Classes {
    /// Only RAID 1+0.
    Mirrored,
    /// RAID 1+0 for recent writes, double parity (RAID 5DP) for segments that have not been written for long: AutoRAID
    /// (Wilkes et al. 1996).
    Migrating {
        /// Disks of a stripe, its two parities included.
        parity_width: u32,
        /// Demotion begins when less raw space than this is free for mirrored segments.
        low_free_bytes: u64,
        /// Free space at which demotion ends, and background promotion begins.
        high_free_bytes: u64,
    },
}
