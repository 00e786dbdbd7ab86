//! Block caches with the defaults of their products.

use headstack_sim::SystemDescription;
use headstack_sim::array::description::CachePolicy;
use headstack_sim::stack::description::{
    BcacheRules, BlockCacheDescription, CacheMode, CacheSoftware, DmCacheRules, DmWritecacheRules, WhenFull,
};
use headstack_workload::InputError;

use super::Completer;
use super::file::LayerName;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

const BCACHE: &str = "default of bcache (admin-guide/bcache.rst, drivers/md/bcache)";
const LVMCACHE: &str = "default of lvmcache(7) and dm-cache";
const WRITECACHE: &str = "default of dm-writecache on a block device";
const BCACHE_TIME: &str =
    "226,094 writes per second at most, on unnamed hardware (linux-bcache, message 13188); 2 to 10 us";
const DM_TIME: &str =
    "127 more requests for each 512 KiB took 242 us on a ramdisk (Linux commit dcd195071f); 0.5 to 5 us";

/// Returns the space of bcache's journal: one bucket of 128, 2 to 256 (`SB_JOURNAL_BUCKETS`).
fn journal_bytes(cache_bytes: u64, bucket_bytes: u64) -> u64 {
    (cache_bytes / bucket_bytes.max(1) / 128).clamp(2, 256) * bucket_bytes
}

/// Returns the chunk size of lvmcache: 64 KiB, or more for at most a million chunks.
fn chunk_bytes(cache_bytes: u64) -> u64 {
    (cache_bytes / 1_000_000).next_multiple_of(64 * KIB).max(64 * KIB)
}

impl Completer<'_> {
    /// Returns the name of the cache or journal device of a layer.
    pub(super) fn cache_device(&self, name: LayerName) -> Result<Option<&str>, InputError> {
        let device = match name {
            LayerName::Bcache => &self.file.bcache.device,
            LayerName::DmCache => &self.file.dm_cache.device,
            LayerName::DmWritecache => &self.file.dm_writecache.device,
            LayerName::MdJournal => &self.file.md_journal.device,
            LayerName::PageCache
            | LayerName::Ext4
            | LayerName::Xfs
            | LayerName::Zfs
            | LayerName::Ceph
            | LayerName::Network
            | LayerName::Instance => return Ok(None),
        };
        match device {
            Some(device) => Ok(Some(device)),
            None => Err(self.missing(&format!("{}.device", name.key()), "for example pm9a3-1920gb")),
        }
    }

    pub(super) fn bcache(&mut self, cache: &SystemDescription) -> Result<BlockCacheDescription, InputError> {
        let table = &self.file.bcache;
        let bucket_bytes = self.bytes("bcache.bucket", table.bucket, 512 * KIB, BCACHE);
        let journal = journal_bytes(cache.capacity_bytes(), bucket_bytes);
        let is_direct = !self.file.stack.layers.contains(&LayerName::PageCache);
        let direct = "O_DIRECT writes are synchronous, write-back of a page cache is not";
        let rules = BcacheRules {
            sequential_bytes: self.bytes("bcache.sequential_cutoff", table.sequential_cutoff, 4 * MIB, BCACHE),
            congested_read_ns: self.duration("bcache.congested_read", table.congested_read, 2 * MS, BCACHE)?,
            congested_write_ns: self.duration("bcache.congested_write", table.congested_write, 20 * MS, BCACHE)?,
            writeback_percent: self.or_default("bcache.writeback_percent", table.writeback_percent, 10, BCACHE),
            writeback_delay_ns: self.duration("bcache.writeback_delay", table.writeback_delay, 30_000 * MS, BCACHE)?,
            update_interval_ns: self.duration(
                "bcache.writeback_rate_update",
                table.writeback_rate_update,
                5_000 * MS,
                BCACHE,
            )?,
            minimum_sectors_per_s: self.or_default(
                "bcache.writeback_rate_minimum",
                table.writeback_rate_minimum,
                8,
                BCACHE,
            ),
            cutoff_percent: self.or_default("bcache.cutoff_writeback", table.cutoff_writeback, 40, BCACHE),
            cutoff_sync_percent: self.or_default(
                "bcache.cutoff_writeback_sync",
                table.cutoff_writeback_sync,
                70,
                BCACHE,
            ),
            synchronous_writes: self.or_default("bcache.synchronous", table.synchronous, is_direct, direct),
        };
        Ok(BlockCacheDescription {
            mode: self.or_default("bcache.mode", table.mode, CacheMode::Writethrough, BCACHE),
            policy: self.or_default("bcache.policy", table.policy, CachePolicy::Lru, BCACHE),
            bucket_bytes,
            metadata_bytes: self.bytes("bcache.metadata", table.metadata, journal, BCACHE),
            request_ns: self.duration("bcache.request", table.request, 4_400, BCACHE_TIME)?,
            cores: self.or_default("bcache.cores", table.cores, 1, BCACHE_TIME),
            commit_interval_ns: self.duration("bcache.commit", table.commit, 100 * MS, BCACHE)?,
            software: CacheSoftware::Bcache(rules),
        })
    }

    pub(super) fn dm_cache(&mut self, cache: &SystemDescription) -> Result<BlockCacheDescription, InputError> {
        let table = &self.file.dm_cache;
        let cache_bytes = cache.capacity_bytes();
        let metadata = (cache_bytes / 1_000).next_multiple_of(MIB).max(8 * MIB);
        let bucket_bytes = self.bytes("dm_cache.block", table.block, chunk_bytes(cache_bytes), LVMCACHE);
        // 2,048 sectors, or eight chunks, which lvm2 sets for larger ones.
        let threshold = MIB.max(8 * bucket_bytes);
        let smq = "in place of smq's levels: the second use within max(blocks / 4, 1,024) recently used blocks";
        let rules = DmCacheRules {
            migration_bytes: self.bytes("dm_cache.migration_threshold", table.migration_threshold, threshold, LVMCACHE),
            promote_after: self.or_default("dm_cache.promote_after", table.promote_after, 2, smq),
            idle_ns: self.duration("dm_cache.idle", table.idle, 1_000 * MS, "dm-cache-target.c: one second")?,
        };
        Ok(BlockCacheDescription {
            mode: self.or_default("dm_cache.mode", table.mode, CacheMode::Writethrough, LVMCACHE),
            policy: CachePolicy::Slru,
            bucket_bytes,
            metadata_bytes: self.bytes("dm_cache.metadata", table.metadata, metadata, LVMCACHE),
            request_ns: self.duration("dm_cache.request", table.request, 1_900, DM_TIME)?,
            cores: self.or_default("dm_cache.cores", table.cores, 4, "estimate; its locks are held briefly"),
            commit_interval_ns: self.duration("dm_cache.commit", table.commit, 1_000 * MS, LVMCACHE)?,
            software: CacheSoftware::DmCache(rules),
        })
    }

    pub(super) fn dm_writecache(&mut self, cache: &SystemDescription) -> Result<BlockCacheDescription, InputError> {
        let table = &self.file.dm_writecache;
        let bucket_bytes = self.bytes("dm_writecache.block", table.block, 4 * KIB, WRITECACHE);
        // An entry has 16 bytes.
        let entries = cache.capacity_bytes() / (bucket_bytes + 16);
        let metadata = (entries * 16).next_multiple_of(MIB);
        let queue = "unlimited in dm-writecache; the queue of a block device (nr_requests) holds 256";
        let rules = DmWritecacheRules {
            high_percent: self.or_default("dm_writecache.high_watermark", table.high_watermark, 50, WRITECACHE),
            low_percent: self.or_default("dm_writecache.low_watermark", table.low_watermark, 45, WRITECACHE),
            autocommit_blocks: self.or_default(
                "dm_writecache.autocommit_blocks",
                table.autocommit_blocks,
                65_536,
                WRITECACHE,
            ),
            writeback_jobs: self.or_default("dm_writecache.writeback_jobs", table.writeback_jobs, 256, queue),
            when_full: self.or_default(
                "dm_writecache.when_full",
                table.when_full,
                WhenFull::Origin,
                "Linux 5.12 and later (d53f1fafec9d)",
            ),
        };
        Ok(BlockCacheDescription {
            mode: CacheMode::Writeback,
            policy: CachePolicy::Fifo,
            bucket_bytes,
            metadata_bytes: self.bytes("dm_writecache.metadata", table.metadata, metadata, WRITECACHE),
            request_ns: self.duration("dm_writecache.request", table.request, 1_900, DM_TIME)?,
            cores: self.or_default("dm_writecache.cores", table.cores, 1, "one lock (wc_lock)"),
            commit_interval_ns: self.duration("dm_writecache.commit", table.commit, 1_000 * MS, WRITECACHE)?,
            software: CacheSoftware::DmWritecache(rules),
        })
    }
}
