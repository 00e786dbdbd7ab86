//! Tables `[bcache]`, `[dm_cache]` and `[dm_writecache]` of a stack file.

use headstack_sim::array::description::CachePolicy;
use headstack_sim::stack::description::{CacheMode, WhenFull};
use headstack_workload::quantity::{Bytes, DurationNs};
use serde::{Deserialize, Serialize};

/// Table `[bcache]`; missing values are the defaults of bcache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BcacheTable {
    /// Cache device, named as `stack.over`.
    pub device: Option<String>,
    /// `cache_mode`.
    pub mode: Option<CacheMode>,
    /// `cache_replacement_policy`.
    pub policy: Option<CachePolicy>,
    /// Size of a bucket.
    pub bucket: Option<Bytes>,
    /// Space of the journal.
    pub metadata: Option<Bytes>,
    /// `sequential_cutoff`.
    pub sequential_cutoff: Option<Bytes>,
    /// `congested_read_threshold_us`.
    pub congested_read: Option<DurationNs>,
    /// `congested_write_threshold_us`.
    pub congested_write: Option<DurationNs>,
    /// `writeback_percent`.
    pub writeback_percent: Option<u32>,
    /// `writeback_delay`.
    pub writeback_delay: Option<DurationNs>,
    /// `writeback_rate_update_seconds`.
    pub writeback_rate_update: Option<DurationNs>,
    /// `writeback_rate_minimum`, in sectors per second.
    pub writeback_rate_minimum: Option<u32>,
    /// `cutoff_writeback`, in percent.
    pub cutoff_writeback: Option<u32>,
    /// `cutoff_writeback_sync`, in percent.
    pub cutoff_writeback_sync: Option<u32>,
    /// Whether writes are synchronous, as with O_DIRECT.
    pub synchronous: Option<bool>,
    /// `journal_delay_ms`.
    pub commit: Option<DurationNs>,
    /// Processor time of a request.
    pub request: Option<DurationNs>,
    /// Cores that take requests.
    pub cores: Option<u32>,
}

/// Table `[dm_cache]`; missing values are the defaults of lvmcache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmCacheTable {
    /// Cache device, named as `stack.over`.
    pub device: Option<String>,
    /// `--cachemode`.
    pub mode: Option<CacheMode>,
    /// `--chunksize`.
    pub block: Option<Bytes>,
    /// Space of the metadata.
    pub metadata: Option<Bytes>,
    /// `migration_threshold`.
    pub migration_threshold: Option<Bytes>,
    /// Use of a block at which it is copied to the cache.
    pub promote_after: Option<u32>,
    /// Time without requests after which dirty blocks are written back.
    pub idle: Option<DurationNs>,
    /// Time after which metadata are committed without a flush.
    pub commit: Option<DurationNs>,
    /// Processor time of a request.
    pub request: Option<DurationNs>,
    /// Cores that take requests.
    pub cores: Option<u32>,
}

/// Table `[dm_writecache]`; missing values are the defaults of dm-writecache on a block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmWritecacheTable {
    /// Cache device, named as `stack.over`.
    pub device: Option<String>,
    /// `block_size`.
    pub block: Option<Bytes>,
    /// Space of the metadata.
    pub metadata: Option<Bytes>,
    /// `high_watermark`, in percent.
    pub high_watermark: Option<u32>,
    /// `low_watermark`, in percent.
    pub low_watermark: Option<u32>,
    /// `autocommit_blocks`.
    pub autocommit_blocks: Option<u32>,
    /// `writeback_jobs`.
    pub writeback_jobs: Option<u32>,
    /// Target of a write when no block is free.
    pub when_full: Option<WhenFull>,
    /// `autocommit_time`.
    pub commit: Option<DurationNs>,
    /// Processor time of a request.
    pub request: Option<DurationNs>,
    /// Cores that take requests.
    pub cores: Option<u32>,
}
