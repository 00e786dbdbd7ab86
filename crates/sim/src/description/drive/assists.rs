//! [`FlashCache`], [`MediaCache`] and [`Shingles`]: memories and media between the host and the arm of some drives.

use serde::{Deserialize, Serialize};

/// A read cache of NAND flash within the drive (Seagate's TurboBoost).
///
/// It admits blocks that random reads request again. The disk's copy stays, so a write only has to drop the copy in
/// flash, and the data of a fill are those that the read has brought anyway: filling needs no arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCache {
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Unit of admission and eviction; a smaller read brings the rest of its block in the same pass.
    pub block_bytes: u32,
    /// Latency from the firmware's decision to the first byte; reads overlap in it.
    pub latency_ns: u64,
    /// Time of one byte read from the flash, or written to it.
    pub ns_per_byte: f64,
    /// Most bytes that are admitted a second, to limit wear.
    pub fill_bytes_per_s: f64,
    /// Blocks whose last read is remembered.
    pub history_blocks: u64,
    /// Whether a block is admitted on its first read, rather than on the second.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_first_read: bool,
    /// Whether a write updates the copy; otherwise it drops it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_written: bool,
    /// A run of reads this long counts as sequential, and is not admitted.
    pub sequential_bytes: u64,
}

/// A part of the media at the outer rim that takes writes in order of their arrival, one after the other, until they
/// are moved home (Seagate's Advanced Write Cache; the persistent cache of drive-managed shingled drives).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCache {
    /// Capacity in bytes, in addition to the drive's own.
    pub size_bytes: u64,
    /// Most extents whose place the drive can remember.
    pub extents_max: u32,
    /// Bytes of writes that may be complete while they are only in the buffer; 0 where a write is complete once it is
    /// on the media.
    pub dram_bytes: u64,
    /// Whether that part of the buffer survives a power loss: it is used whether or not the volatile write cache is on,
    /// and a flush does not wait for it.
    pub dram_is_protected: bool,
    /// A run of writes this long counts as sequential and goes home directly.
    pub sequential_bytes: u64,
    /// Idle time of the host before the cache is cleaned.
    pub idle_ns: u64,
    /// Above this share of its size or of its extents the cache is cleaned while the host waits.
    pub busy_share: f64,
    /// How much of the cache one sweep over the drive moves home; a shingled drive rewrites a band instead.
    pub sweep_bytes: u64,
    /// Accesses of a sweep that are queued at once, in ascending order; 2 preserves that order, more lets the queue
    /// choose.
    pub sweep_window: u32,
}

/// Overlapping tracks: only whole bands can be written home (drive-managed shingled recording). Requires a media cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingles {
    /// Bytes that must be written in one piece.
    pub band_bytes: u64,
}
