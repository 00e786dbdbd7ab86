//! [`FlashCache`], [`MediaCache`] and [`Shingles`]: memories and media that some drives have between the host and the arm.

use serde::{Deserialize, Serialize};

/// A read cache of NAND flash within the drive (Seagate's TurboBoost).
///
/// It takes in blocks that random reads ask for again. The disk's copy stays, so that a write has only to drop the copy
/// in flash, and the data of a fill are those that the read has brought anyway: filling needs no arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCache {
    /// How much it holds.
    pub size_bytes: u64,
    /// What is taken in and dropped as a whole; a smaller read brings the rest of its block in the same pass.
    pub block_bytes: u32,
    /// From the firmware's decision to the first byte; reads overlap in it.
    pub latency_ns: u64,
    /// Time of one byte out of the flash, or into it.
    pub ns_per_byte: f64,
    /// Bytes that are taken in a second at most, to spare the flash.
    pub fill_bytes_per_s: f64,
    /// Blocks whose last read is remembered.
    pub history_blocks: u64,
    /// A block is taken in when it is read for the first time, not for the second.
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
    /// How much it holds, beside the drive's own capacity.
    pub size_bytes: u64,
    /// Extents whose place the drive can remember.
    pub extents_max: u32,
    /// Writes that may be complete while they are in the buffer alone; 0 where a write is complete once it is on the
    /// media.
    pub dram_bytes: u64,
    /// That part of the buffer survives a power failure: it is used whether or not the volatile write cache is on, and a
    /// flush does not wait for it.
    pub dram_is_protected: bool,
    /// A run of writes that has gone on for so long is sequential and goes home directly.
    pub sequential_bytes: u64,
    /// The host must have left the drive alone for so long before the cache is cleaned.
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
    /// What must be written in one piece.
    pub band_bytes: u64,
}
