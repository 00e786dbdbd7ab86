//! Tables of a drive file for caches and media between the interface and the mechanics.

use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

/// Table `[flash_cache]`; every key except `size` has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCacheTable {
    /// Capacity of the flash.
    pub size: Option<Bytes>,
    /// Unit in which data is admitted.
    pub block: Option<Bytes>,
    /// Latency to the first byte.
    pub latency: Option<DurationNs>,
    /// Rate of the flash.
    pub rate: Option<Rate>,
    /// Time per byte, in ns; replaces the rate.
    pub ns_per_byte: Option<f64>,
    /// Maximum rate of admissions.
    pub fill_rate: Option<Rate>,
    /// Number of blocks whose last read is remembered.
    pub history_blocks: Option<u64>,
    /// Whether a block is admitted at its first read; by default at its second.
    pub on_first_read: Option<bool>,
    /// Whether a write updates the cached copy; by default it drops the copy.
    pub keeps_written: Option<bool>,
    /// Length from which a run of reads is sequential and therefore not admitted.
    pub sequential: Option<Bytes>,
}

/// Table `[media_cache]`; every key except `size` has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheTable {
    /// Capacity of the media cache.
    pub size: Option<Bytes>,
    /// Maximum number of extents in the map.
    pub extents_max: Option<u32>,
    /// Size of the buffer part that can hold completed writes.
    pub dram: Option<Bytes>,
    /// Whether this part of the buffer survives a power loss.
    pub dram_is_protected: Option<bool>,
    /// Length from which a run of writes is sequential and therefore bypasses the cache.
    pub sequential: Option<Bytes>,
    /// Idle time before the cache is cleaned.
    pub idle: Option<DurationNs>,
    /// Used fraction above which the cache is cleaned while the host waits.
    pub busy_share: Option<f64>,
    /// Number of bytes that one sweep moves to their final location.
    pub sweep: Option<Bytes>,
    /// Number of accesses of a sweep that are queued at once.
    pub sweep_window: Option<u32>,
}

/// Table `[shingles]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShinglesTable {
    /// Size of a band, which must be written in one piece.
    pub band: Bytes,
}
