//! [`FlashCache`], [`MediaCache`] and [`Shingles`]: memories and media that some drives have between the host and the arm.

use serde::{Deserialize, Serialize};

/// A read cache of NAND flash within the drive (Seagate's TurboBoost).
///
/// It caches blocks that random reads request repeatedly. The disk's copy remains, so a write only has to drop the copy
/// in flash, and the data of a fill are those of the read: filling needs no arm movement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCache {
    /// How much it holds.
    pub size_bytes: u64,
    /// Unit of filling and dropping; a smaller read reads the rest of its block in the same pass.
    pub block_bytes: u32,
    /// From the firmware's decision to the first byte; reads overlap in it.
    pub latency_ns: u64,
    /// Time of one byte out of the flash, or into it.
    pub ns_per_byte: f64,
    /// Bytes that are taken in a second at most, to spare the flash.
    pub fill_bytes_per_s: f64,
    /// Blocks whose last read is remembered.
    pub history_blocks: u64,
    /// Whether a block is cached on its first read instead of the second.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_first_read: bool,
    /// A write brings the copy up to date; otherwise it ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_written: bool,
    /// A run of reads that has gone on for so long is sequential, and is not taken in.
    pub sequential_bytes: u64,
}

/// A part of the media at the outer rim that takes writes in order of their arrival, one behind the other, until they are
/// moved home (Seagate's Advanced Write Cache; the persistent cache of drive-managed shingled drives).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCache {
    /// Its size, in addition to the drive's own capacity.
    pub size_bytes: u64,
    /// Extents whose place the drive can remember.
    pub extents_max: u32,
    /// Writes that may be complete while they are only in the buffer; 0 if a write is complete once it is on the media.
    pub dram_bytes: u64,
    /// Whether that part of the buffer survives a power failure: it is then used with or without the volatile write
    /// cache, and a flush does not wait for it.
    pub dram_is_protected: bool,
    /// A run of writes that has gone on for so long is sequential and goes home directly.
    pub sequential_bytes: u64,
    /// Idle time of the host after which the cache is cleaned.
    pub idle_ns: u64,
    /// Beyond this share of its size or of its extents the cache is cleaned while the host waits.
    pub busy_share: f64,
    /// How much of the cache is moved home in one sweep over the drive; a shingled drive sweeps over a band instead.
    pub sweep_bytes: u64,
    /// Accesses of a sweep that are queued at once, in ascending order; 2 keep that order, more let the queue choose.
    pub sweep_window: u32,
}

/// Tracks that overlap: only whole bands can be written home (drive-managed shingled recording). Needs a media cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingles {
    /// Unit that must be written in one piece.
    pub band_bytes: u64,
}
