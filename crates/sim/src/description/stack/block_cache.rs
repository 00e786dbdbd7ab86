//! [`BlockCacheDescription`]: a cache on a fast device in front of a slow one: bcache, dm-cache or dm-writecache.

use headstack_cache::CachePolicy;
use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, fault, require};

/// A cache of blocks. The first system below is the origin, which has the address space; the second is the cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockCacheDescription {
    /// Which requests use the cache.
    pub mode: CacheMode,
    /// Which bucket is evicted. Policies that remember evicted blocks are not allowed.
    pub policy: CachePolicy,
    /// Unit of allocation and eviction: a bucket of bcache, a block of dm-cache or dm-writecache.
    pub bucket_bytes: u64,
    /// Bytes at the start of the cache device that hold the journal or the metadata.
    pub metadata_bytes: u64,
    /// Processor time of a read, write or trim.
    pub request_ns: u64,
    /// Cores that take requests.
    pub cores: u32,
    /// Time after which changed metadata are written without a flush.
    pub commit_interval_ns: u64,
    /// The software, with its own values.
    pub software: CacheSoftware,
}

/// Which requests use the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum CacheMode {
    /// Writes go to the origin and to the cache.
    Writethrough,
    /// Writes go to the cache, and later to the origin.
    Writeback,
    /// Writes go to the origin and drop cached data (bcache).
    Writearound,
    /// Everything goes to the origin.
    Passthrough,
}

impl CacheMode {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            CacheMode::Writethrough => "writethrough",
            CacheMode::Writeback => "writeback",
            CacheMode::Writearound => "writearound",
            CacheMode::Passthrough => "passthrough",
        }
    }
}

/// The software of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheSoftware {
    /// bcache: extents in buckets that are written in order.
    Bcache(BcacheRules),
    /// dm-cache: whole blocks that are copied to the cache once they are used again.
    DmCache(DmCacheRules),
    /// dm-writecache: only writes.
    DmWritecache(DmWritecacheRules),
}

/// Rules of bcache (`drivers/md/bcache`; values of `writeback.h`, `super.c` and `Documentation/admin-guide/bcache.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BcacheRules {
    /// Length of a sequential stream from which on requests bypass the cache: `sequential_cutoff`; 0 for never.
    pub sequential_bytes: u64,
    /// Latency of a read of the cache device above which it counts as congested; 0 for never.
    pub congested_read_ns: u64,
    /// The same of a write.
    pub congested_write_ns: u64,
    /// Dirty part of the cache that the controller aims at: `writeback_percent`.
    pub writeback_percent: u32,
    /// Pause before the first write-back and after each pass over the index: `writeback_delay`.
    pub writeback_delay_ns: u64,
    /// Period of the controller of the write-back rate.
    pub update_interval_ns: u64,
    /// Least rate of write-back, in sectors of 512 bytes per second.
    pub minimum_sectors_per_s: u32,
    /// Dirty part above which only synchronous writes are written back later: `CUTOFF_WRITEBACK`.
    pub cutoff_percent: u32,
    /// Dirty part above which none is: `CUTOFF_WRITEBACK_SYNC`.
    pub cutoff_sync_percent: u32,
    /// Whether writes are marked as synchronous, as those with O_DIRECT are. They do not bypass a write-back cache.
    pub synchronous_writes: bool,
}

/// Rules of dm-cache (`drivers/md/dm-cache-target.c`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmCacheRules {
    /// Most bytes that are copied between the devices at a time: `migration_threshold`.
    pub migration_bytes: u64,
    /// Use of a block at which it is copied to the cache, counted while the block is among the recently used ones.
    pub promote_after: u32,
    /// Time without requests after which dirty blocks are written back.
    pub idle_ns: u64,
}

/// Rules of dm-writecache (`drivers/md/dm-writecache.c`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmWritecacheRules {
    /// Used part of the cache at which write-back starts.
    pub high_percent: u32,
    /// Used part at which it ends.
    pub low_percent: u32,
    /// Blocks after which metadata are committed without a flush.
    pub autocommit_blocks: u32,
    /// Most copies to the origin at a time.
    pub writeback_jobs: u32,
    /// Behavior of a write of a new block when no block is free.
    pub when_full: WhenFull,
}

/// Behavior of a write when no block of dm-writecache is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum WhenFull {
    /// It waits for a free block, as before Linux 5.12.
    Wait,
    /// It goes to the origin, as since Linux 5.12 (d53f1fafec9d).
    Origin,
}

impl BlockCacheDescription {
    /// Returns the name of the software.
    pub fn name(&self) -> &'static str {
        match self.software {
            CacheSoftware::Bcache(_) => "bcache",
            CacheSoftware::DmCache(_) => "dm-cache",
            CacheSoftware::DmWritecache(_) => "dm-writecache",
        }
    }

    /// Returns the key of its table in stack files.
    fn key(&self) -> &'static str {
        match self.software {
            CacheSoftware::Bcache(_) => "bcache",
            CacheSoftware::DmCache(_) => "dm_cache",
            CacheSoftware::DmWritecache(_) => "dm_writecache",
        }
    }

    /// Returns the block size that it exports over an origin with blocks of `below_bytes`.
    pub(crate) fn block_bytes(&self, below_bytes: u32) -> u32 {
        match self.software {
            CacheSoftware::Bcache(_) | CacheSoftware::DmCache(_) => below_bytes,
            CacheSoftware::DmWritecache(_) => below_bytes.max(self.bucket_bytes as u32),
        }
    }

    /// Returns the buckets on a cache device of this size.
    pub(crate) fn buckets(&self, cache_bytes: u64) -> u64 {
        (cache_bytes.saturating_sub(self.metadata_bytes) / self.bucket_bytes).min(u64::from(u32::MAX / 2))
    }
}

/// Least buckets of a cache.
const BUCKETS_MIN: u64 = 16;

pub(super) fn check(cache: &BlockCacheDescription, below_bytes: &[u64]) -> Result<(), InvalidDescription> {
    let key = |name: &str| format!("{}.{name}", cache.key());
    let &[_, cache_bytes] = below_bytes else {
        let message =
            format!("{} systems below `{}`; must be 2, the origin and the cache", below_bytes.len(), cache.name());
        return fault("stack.below", message);
    };
    let bucket_bytes = cache.bucket_bytes;
    let unit = match cache.software {
        CacheSoftware::Bcache(_) => "bucket",
        CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) => "block",
    };
    require((4096..=1 << 30).contains(&bucket_bytes) && bucket_bytes.is_multiple_of(4096), &key(unit), || {
        format!("{bucket_bytes} bytes are not allowed; must be a multiple of 4 KiB, up to 1 GiB")
    })?;
    require(cache.metadata_bytes >= 1 << 20 && cache.metadata_bytes.is_multiple_of(4096), &key("metadata"), || {
        format!("{} bytes are not allowed; must be 1 MiB or more, in steps of 4 KiB", cache.metadata_bytes)
    })?;
    require(cache.buckets(cache_bytes) >= BUCKETS_MIN, &key("device"), || {
        format!("{cache_bytes} bytes hold fewer than {BUCKETS_MIN} blocks of {bucket_bytes} bytes besides the metadata")
    })?;
    require(cache.cores >= 1, &key("cores"), || "0 is out of range; must be 1 or more".to_owned())?;
    require(cache.commit_interval_ns >= 1, &key("commit"), || "0 is out of range; must be above 0".to_owned())?;
    let remembers = match cache.policy {
        CachePolicy::Lru
        | CachePolicy::Fifo
        | CachePolicy::Clock
        | CachePolicy::Sieve
        | CachePolicy::Slru
        | CachePolicy::Lfu => false,
        CachePolicy::Arc | CachePolicy::S3Fifo | CachePolicy::Lirs | CachePolicy::TwoQ | CachePolicy::WTinyLfu => true,
    };
    require(!remembers, &key("policy"), || {
        format!("{:?} is not allowed; must be lru, fifo, clock, sieve, slru or lfu", cache.policy)
    })?;
    check_mode(cache, &key("mode"))?;
    match &cache.software {
        CacheSoftware::Bcache(rules) => check_bcache(rules),
        CacheSoftware::DmCache(rules) => check_dm_cache(rules, bucket_bytes),
        CacheSoftware::DmWritecache(rules) => check_dm_writecache(rules),
    }
}

fn check_mode(cache: &BlockCacheDescription, key: &str) -> Result<(), InvalidDescription> {
    let (allowed, names): (&[CacheMode], _) = match cache.software {
        CacheSoftware::Bcache(_) => return Ok(()),
        CacheSoftware::DmCache(_) => (
            &[CacheMode::Writethrough, CacheMode::Writeback, CacheMode::Passthrough],
            "writethrough, writeback or passthrough",
        ),
        CacheSoftware::DmWritecache(_) => (&[CacheMode::Writeback], "writeback"),
    };
    require(allowed.contains(&cache.mode), key, || {
        format!("`{}` is not a mode of {}; must be {names}", cache.mode.name(), cache.name())
    })
}

fn check_bcache(rules: &BcacheRules) -> Result<(), InvalidDescription> {
    require(rules.writeback_percent <= 40, "bcache.writeback_percent", || {
        format!("{} is out of range; must be 0 to 40", rules.writeback_percent)
    })?;
    let (cutoff, sync) = (rules.cutoff_percent, rules.cutoff_sync_percent);
    require(cutoff <= sync && sync <= 100, "bcache.cutoff_writeback", || {
        format!("{cutoff} and {sync} % are not allowed; the first must be at most the second, up to 100 %")
    })?;
    require(rules.minimum_sectors_per_s >= 1, "bcache.writeback_rate_minimum", || {
        "0 is out of range; must be 1 or more".to_owned()
    })?;
    require(rules.update_interval_ns >= 1_000_000_000, "bcache.writeback_rate_update", || {
        "below 1 s is not allowed; must be 1 s or more".to_owned()
    })
}

fn check_dm_cache(rules: &DmCacheRules, block_bytes: u64) -> Result<(), InvalidDescription> {
    require(block_bytes >= 32 << 10 && block_bytes.is_multiple_of(32 << 10), "dm_cache.block", || {
        format!("{block_bytes} bytes are not allowed; must be a multiple of 32 KiB, up to 1 GiB")
    })?;
    require(rules.migration_bytes >= block_bytes, "dm_cache.migration_threshold", || {
        format!("{} bytes are less than a block of {block_bytes}; no block would be copied", rules.migration_bytes)
    })?;
    require(rules.promote_after >= 1, "dm_cache.promote_after", || "0 is out of range; must be 1 or more".to_owned())
}

fn check_dm_writecache(rules: &DmWritecacheRules) -> Result<(), InvalidDescription> {
    let (high, low) = (rules.high_percent, rules.low_percent);
    require(low <= high && high <= 100, "dm_writecache.high_watermark", || {
        format!("{low} and {high} % are not allowed; the low one must be at most the high one, up to 100 %")
    })?;
    for (value, key) in [(rules.autocommit_blocks, "autocommit_blocks"), (rules.writeback_jobs, "writeback_jobs")] {
        require(value >= 1, &format!("dm_writecache.{key}"), || "0 is out of range; must be 1 or more".to_owned())?;
    }
    Ok(())
}
