//! [`FlashCache`], [`MediaCache`] and [`Shingles`]: additional memories and media of some drives.

use serde::{Deserialize, Serialize};

/// A NAND flash read cache within the drive (Seagate's TurboBoost).
///
/// The cache admits blocks that random reads request again. The disk keeps its copy, so a write only has to drop the
/// copy in flash. A fill uses data that a read has just delivered, so it needs no arm movement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCache {
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Unit of admission and eviction; a smaller read brings in the rest of its block in the same pass.
    pub block_bytes: u32,
    /// Latency from the firmware's decision to the first byte; several reads may overlap in this time.
    pub latency_ns: u64,
    /// Time per byte read from or written to the flash.
    pub ns_per_byte: f64,
    /// Maximum rate of admission in bytes per second, which limits wear.
    pub fill_bytes_per_s: f64,
    /// Number of blocks whose last read is remembered.
    pub history_blocks: u64,
    /// Whether a block is admitted on its first read rather than on its second.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_first_read: bool,
    /// Whether a write updates the cached copy; otherwise it drops the copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_written: bool,
    /// Length in bytes from which a run of reads counts as sequential and is not admitted.
    pub sequential_bytes: u64,
}

/// A part of the media at the outer rim that stores writes in order of arrival until they are moved to their home
/// location (Seagate's Advanced Write Cache; the persistent cache of drive-managed shingled drives).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCache {
    /// Capacity in bytes, in addition to the exported capacity of the drive.
    pub size_bytes: u64,
    /// Maximum number of extents that the cache maps.
    pub extents_max: u32,
    /// Maximum number of bytes of completed writes that are only in the buffer; 0 if a write completes when it is on
    /// the media.
    pub dram_bytes: u64,
    /// Whether this part of the buffer survives a power loss. If so, it is used even when the volatile write cache is
    /// off, and a flush does not wait for it.
    pub dram_is_protected: bool,
    /// Length in bytes from which a run of writes counts as sequential and goes directly to its home location.
    pub sequential_bytes: u64,
    /// Idle time of the host before the cache is cleaned.
    pub idle_ns: u64,
    /// Share of used bytes or of used extents above which the cache is cleaned while the host waits.
    pub busy_share: f64,
    /// Bytes of the cache that one sweep over the drive moves home; a shingled drive rewrites a band instead.
    pub sweep_bytes: u64,
    /// Number of accesses of a sweep that are queued at once, in ascending order. 2 preserves this order; with more,
    /// the queue may reorder them.
    pub sweep_window: u32,
}

/// Overlapping tracks: the drive can only write whole bands (drive-managed shingled recording). Requires a media cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingles {
    /// Size of a band, which must be written as a whole, in bytes.
    pub band_bytes: u64,
}
