//! Tables of a drive file for the caches and media between port and mechanism.

use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

/// `[flash_cache]`: all but its size has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCacheTable {
    /// Capacity.
    pub size: Option<Bytes>,
    /// Unit of admission.
    pub block: Option<Bytes>,
    /// Latency to the first byte.
    pub latency: Option<DurationNs>,
    /// Rate of the flash.
    pub rate: Option<Rate>,
    /// Time per byte, in place of the rate.
    pub ns_per_byte: Option<f64>,
    /// Most bytes admitted a second.
    pub fill_rate: Option<Rate>,
    /// Blocks whose last read is remembered.
    pub history_blocks: Option<u64>,
    /// Whether a block is admitted on its first read; by default on its second.
    pub on_first_read: Option<bool>,
    /// Whether a write updates the copy; by default it drops it.
    pub keeps_written: Option<bool>,
    /// Length of a run of reads from which on it is sequential, and not admitted.
    pub sequential: Option<Bytes>,
}

/// `[media_cache]`: all but its size has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheTable {
    /// Capacity.
    pub size: Option<Bytes>,
    /// Extents whose place the drive can remember.
    pub extents_max: Option<u32>,
    /// Bytes of writes that may be complete while they are only in the buffer.
    pub dram: Option<Bytes>,
    /// Whether that part of the buffer survives a power loss.
    pub dram_is_protected: Option<bool>,
    /// Length of a run of writes from which on it is sequential, and goes home directly.
    pub sequential: Option<Bytes>,
    /// Idle time before the cache is cleaned.
    pub idle: Option<DurationNs>,
    /// Share in use above which it is cleaned while the host waits.
    pub busy_share: Option<f64>,
    /// Bytes that one sweep moves home.
    pub sweep: Option<Bytes>,
    /// Accesses of a sweep that are queued at once.
    pub sweep_window: Option<u32>,
}

/// `[shingles]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShinglesTable {
    /// Bytes that must be written in one piece.
    pub band: Bytes,
}
