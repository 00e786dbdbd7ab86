//! Tables of a drive file for caches between port and mechanism.

use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

/// `[flash_cache]`: all but its size has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashCacheTable {
    /// How much it holds.
    pub size: Option<Bytes>,
    /// Unit of caching.
    pub block: Option<Bytes>,
    /// To the first byte.
    pub latency: Option<DurationNs>,
    /// Rate of the flash.
    pub rate: Option<Rate>,
    /// Time of a byte, in place of the rate.
    pub ns_per_byte: Option<f64>,
    /// Bytes taken in a second at most.
    pub fill_rate: Option<Rate>,
    /// Blocks whose last read is remembered.
    pub history_blocks: Option<u64>,
    /// Whether a block is cached on its first read; by default on the second.
    pub on_first_read: Option<bool>,
    /// Whether a write updates the copy; by default it invalidates it.
    pub keeps_written: Option<bool>,
    /// Length of a run of reads from which on it is sequential, and not cached.
    pub sequential: Option<Bytes>,
}

/// `[media_cache]`: all but its size has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheTable {
    /// How much it holds.
    pub size: Option<Bytes>,
    /// Extents whose place the drive can remember.
    pub extents_max: Option<u32>,
    /// Writes that may be complete only in the buffer.
    pub dram: Option<Bytes>,
    /// The buffer's part survives a power failure.
    pub dram_is_protected: Option<bool>,
    /// Length of a run of writes from which on it is sequential, and goes home directly.
    pub sequential: Option<Bytes>,
    /// Idle time before the cache is cleaned.
    pub idle: Option<DurationNs>,
    /// Share in use from which on it is cleaned while the host waits.
    pub busy_share: Option<f64>,
    /// How much is moved home in one sweep.
    pub sweep: Option<Bytes>,
    /// Accesses of a sweep that are queued at once.
    pub sweep_window: Option<u32>,
}

/// `[shingles]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShinglesTable {
    /// Unit that must be written in one piece.
    pub band: Bytes,
}
