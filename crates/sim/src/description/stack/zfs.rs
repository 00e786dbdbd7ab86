//! [`ZfsDescription`]: OpenZFS over a pool of devices, with a dataset or volume that fills it. See
//! docs/design/stacks.md.
//!
//! Sources of the constants: openzfs/zfs at the tags 2.1.16, 2.2.0, 2.2.9, 2.3.9 and 2.4.0, files under `module/zfs`.

use serde::{Deserialize, Serialize};

use crate::description::level::Level;
use crate::error::{InvalidDescription, fault, require};

/// Smallest `recordsize` (SPA_MINBLOCKSIZE) and largest (SPA_MAXBLOCKSIZE), in bytes.
const RECORD_BYTES: std::ops::RangeInclusive<u32> = 512..=16 << 20;
/// Part of a pool that stays free for deletions: 1/32 (`spa_slop_shift`, spa_misc.c; between 128 MiB and 128 GiB, which
/// matters for small and for very large pools only and is left out).
const SLOP_PART: u64 = 32;
/// Part of each top-level device that holds the embedded log: one metaslab of about 200 (`zfs_vdev_default_ms_count`,
/// vdev.c).
const LOG_PART: u64 = 200;
/// Part of each top-level device that holds metadata, at its start and at its end. Assumed: block pointers of 128 B for
/// records of 128 KiB.
const METADATA_PART: u64 = 1024;
/// Part of a special device that data of small blocks may fill; the rest is for metadata
/// (`zfs_special_class_metadata_reserve_pct` 25, metaslab.c).
const SPECIAL_SHARE: f64 = 0.75;

/// OpenZFS over a pool. The systems below are the pool (index 0), then those named by `log`, `cache` and `special`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZfsDescription {
    /// Parameters that depend on the version; see [`ZfsParameters`].
    pub parameters: ZfsParameters,
    /// Bytes that the dataset or volume exports. All of it counts as written once, in order of addresses.
    pub capacity_bytes: u64,
    /// Maximum block size: `recordsize` of a dataset (128 KiB by default), `volblocksize` of a volume.
    pub record_bytes: u32,
    /// Whether it is a volume (zvol), whose writes are one transaction each. A dataset has one for each record.
    pub is_volume: bool,
    /// Smallest allocation on a device: 2^ashift bytes, 4096 for ashift 12.
    pub sector_bytes: u32,
    /// Uncompressed size divided by compressed size; 1 without compression.
    pub compression_ratio: f64,
    /// Property `sync`.
    pub sync: Sync,
    /// Property `logbias`.
    pub log_bias: LogBias,
    /// Property `primarycache`.
    pub primary_cache: PrimaryCache,
    /// Largest block that goes to the special device (`special_small_blocks`); 0 for metadata only.
    pub special_small_blocks_bytes: u32,
    /// Index of the separate log device (SLOG) among the systems below.
    pub log: Option<u32>,
    /// Index of the cache device (L2ARC).
    pub cache: Option<u32>,
    /// Index of the special device.
    pub special: Option<u32>,
    /// Maximum bytes of dirty data (`zfs_dirty_data_max`).
    pub dirty_data_max_bytes: u64,
    /// Maximum bytes of the ARC (`zfs_arc_max`).
    pub arc_max_bytes: u64,
    /// Part of the ARC that metadata take. The model caches all metadata.
    pub arc_metadata_share: f64,
    /// Maximum memory of blocks that a scrub or resilver has queued (`zfs_scan_mem_lim_fact` 20: 5 % of the memory, at
    /// least 16 MiB).
    pub scan_memory_bytes: u64,
    /// Whether replaced members are filled in order of addresses, with a scrub after it (`zpool replace -s`): for
    /// mirrors. Distributed spare room is always filled so.
    pub sequential_resilver: bool,
    /// Processor time of a read, in ns.
    pub read_ns: u64,
    /// Processor time of a write, in ns.
    pub write_ns: u64,
    /// Time of a commit besides its I/O, in ns: half of it before the first write, half after the last flush. It is
    /// waiting for threads rather than processor time.
    pub commit_ns: u64,
    /// Time in which the thread that syncs the file prepares one record, in ns; 0 if it does not matter.
    pub sync_record_ns: u64,
    /// Processor cores that serve reads and writes.
    pub cores: u32,
}

impl ZfsDescription {
    /// Processor time of a read or write in the tests and by default: a thread wrote 85,000 synchronous blocks of
    /// 4 KiB a second to a volume on a Xeon Silver 4215 (commit e439ee83), at most 11.8 us each, commit included. Range:
    /// 3 to 12 us.
    pub const REQUEST_NS: u64 = 6_000;

    /// Time of a commit, fitted to two rows of d-uzlov/k8s-homelab `test-fsync.md`@a6721003, `fdatasync` on ZFS less
    /// that on the raw device: 70 us for a SATA SSD, and 79 us for an Optane M10, whose log block of 8 KiB takes 28 us
    /// more than 4 KiB at its 145 MB/s. Range: 10 us (as above) to 110 us, by processor and its power states.
    pub const COMMIT_NS: u64 = 75_000;

    /// Time of one record in a sync. One thread syncs all dirty records of a file or volume (`sync_dnodes_task`,
    /// `dbuf_sync_list`); that it is the limit is our reading. The model has one thread for the whole dataset. Fitted
    /// to one row of alc-kit/fio-zfs-performance-test @6d69040: random writes of 16 KiB to records of 16 KiB made 44,400
    /// IOPS on three mirrors of NVMe drives under LUKS (Xeon Gold 5412U, OpenZFS 2.4.0). None of the other rows with one
    /// file exceeds it: at most 43,700 records/s. Range: 10 to 30 us, by processor.
    pub const SYNC_RECORD_NS: u64 = 22_500;

    /// Returns a dataset with default properties and 4 KiB sectors on a machine with `memory_bytes` of memory.
    pub fn new(parameters: ZfsParameters, memory_bytes: u64, capacity_bytes: u64) -> ZfsDescription {
        ZfsDescription {
            capacity_bytes,
            record_bytes: 128 << 10,
            is_volume: false,
            sector_bytes: 4096,
            compression_ratio: 1.0,
            sync: Sync::Standard,
            log_bias: LogBias::Latency,
            primary_cache: PrimaryCache::All,
            special_small_blocks_bytes: 0,
            log: None,
            cache: None,
            special: None,
            dirty_data_max_bytes: dirty_data_max_bytes(memory_bytes),
            arc_max_bytes: parameters.arc_max_bytes(memory_bytes),
            arc_metadata_share: 0.1,
            scan_memory_bytes: (memory_bytes / 20).max(16 << 20),
            sequential_resilver: false,
            read_ns: Self::REQUEST_NS,
            write_ns: Self::REQUEST_NS,
            commit_ns: Self::COMMIT_NS,
            sync_record_ns: Self::SYNC_RECORD_NS,
            cores: 8,
            parameters,
        }
    }

    /// Returns the bytes of a compressed record on a device. A block is stored compressed only if it shrinks by 12.5 %
    /// (zio_compress.c).
    pub fn stored_bytes(&self) -> u32 {
        let compressed = (f64::from(self.record_bytes) / self.compression_ratio).ceil() as u32;
        if compressed > self.record_bytes - self.record_bytes / 8 {
            return self.record_bytes;
        }
        compressed.next_multiple_of(self.sector_bytes)
    }

    /// Index of the system below that holds the data: the special device if the records are small enough for it.
    pub fn data_port(&self) -> u32 {
        match self.special {
            Some(special) if self.stored_bytes() <= self.special_small_blocks_bytes => special,
            Some(_) | None => 0,
        }
    }

    /// Returns the bytes of a top-level device of `bytes` at its start that hold no records, and those at its end:
    /// embedded log and metadata.
    pub(crate) fn reserved_bytes(&self, bytes: u64) -> Reserved {
        let whole = |part: u64| part.next_multiple_of(u64::from(self.record_bytes));
        // At least what small pools of tests need to hold a few transaction groups.
        Reserved { log: whole((bytes / LOG_PART).max(16 << 20)), metadata: whole((bytes / METADATA_PART).max(4 << 20)) }
    }

    /// Name of a system below.
    pub(super) fn port_name(&self, port: usize) -> String {
        let ports = [(self.log, "log"), (self.cache, "cache"), (self.special, "special")];
        let name = ports.into_iter().find(|(index, _)| *index == Some(port as u32)).map(|(_, name)| name);
        name.map_or_else(|| format!("system {port}"), str::to_owned)
    }
}

/// A system below as ZFS sees it.
#[derive(Clone, Debug)]
pub(crate) struct PoolShape {
    /// Sizes of its top-level devices.
    pub vdev_bytes: Vec<u64>,
    /// Level and record size of its first group with records.
    pub records: Option<(Level, u64)>,
}

impl PoolShape {
    /// Returns its capacity.
    pub fn bytes(&self) -> u64 {
        self.vdev_bytes.iter().sum()
    }
}

/// Places of a top-level device without records, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    /// Embedded log, at its start.
    pub log: u64,
    /// Metadata, once after the log and once at its end.
    pub metadata: u64,
}

/// Property `sync`: which writes go through the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sync {
    /// Those that a flush covers, and writes with FUA.
    #[default]
    Standard,
    /// Every write.
    Always,
    /// None: a flush returns at once, and a power loss takes the last seconds.
    Disabled,
}

/// Property `logbias`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LogBias {
    /// Data go into the log, on the separate log device if there is one.
    #[default]
    Latency,
    /// Data go to their final place, and the log holds their addresses. The separate log device is not used.
    Throughput,
}

/// Property `primarycache`: what the ARC keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PrimaryCache {
    /// Data and metadata.
    #[default]
    All,
    /// Metadata only: each read of data goes to a device.
    Metadata,
    /// Nothing. The model reads no metadata, so that this equals `Metadata`.
    None,
}

/// Method that sizes log blocks before their contents are known (zil.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LogBlockSizes {
    /// The smallest of 4, 12, 36, 68 and 128 KiB that holds the largest of the last 16 commits (to 2.2.3).
    Fixed,
    /// The largest of the last 8 commits (from 2.2.4 on).
    Predicted,
}

/// When a log record holds an address instead of data, if no separate log device exists (zfs_log.c, zvol.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum IndirectRule {
    /// Writes of `zfs_immediate_write_sz` or more; on volumes, of `volblocksize` or more if that is larger than
    /// `zfs_immediate_write_sz` (before 2.4).
    BySize,
    /// Writes of `zfs_immediate_write_sz` or more that cover at least half a block (2.4 on).
    ByHalfBlock,
}

/// Default of the ARC's maximum on Linux (arc_os.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArcMaximum {
    /// Half of the memory (2.1, 2.2).
    Half,
    /// All but 1 GiB, at least 5/8 (2.3 on).
    AllButOneGib,
}

/// Parameters of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZfsParameters {
    /// Time from the start of a sync to the next (`zfs_txg_timeout`, 5 s), in ns.
    pub txg_timeout_ns: u64,
    /// Dirty data of the open group, in percent of the maximum, above which it syncs (`zfs_dirty_data_sync_percent`).
    pub dirty_sync_percent: u32,
    /// Dirty data in percent of the maximum above which writes are delayed (`zfs_delay_min_dirty_percent`).
    pub delay_min_dirty_percent: u32,
    /// Delay of a transaction in the middle between that and the maximum (`zfs_delay_scale`), in ns.
    pub delay_scale_ns: u64,
    /// Longest delay of a transaction (`zfs_delay_max_ns`).
    pub delay_max_ns: u64,
    /// Maximum logged bytes that no synced group covers, as a multiple of the dirty maximum (`zfs_wrlog_data_max`).
    pub write_log_factor: u32,
    /// Largest log block (`zil_maxblocksize`).
    pub log_block_max_bytes: u32,
    /// Size of log blocks.
    pub log_block_sizes: LogBlockSizes,
    /// Bytes of a commit above which further log blocks are written at asynchronous priority (`zil_slog_bulk`).
    pub slog_bulk_bytes: u64,
    /// Time that a log block waits for more records, in percent of the mean latency of log blocks, when several threads
    /// commit (`zfs_commit_timeout_pct`).
    pub commit_timeout_percent: u32,
    /// Waiting times of a log block below this are left out (5 us up to 2.2.3, 0 later), in ns.
    pub commit_timeout_min_ns: u64,
    /// Size from which a log record can hold an address (`zfs_immediate_write_sz`).
    pub immediate_write_bytes: u32,
    /// Rule for such records.
    pub indirect: IndirectRule,
    /// Whether the log goes to the special device if there is no separate log device (`zil_special_is_slog`, 2.4).
    pub special_is_slog: bool,
    /// Default of the ARC's maximum.
    pub arc_maximum: ArcMaximum,
    /// Bytes that a feed writes to the cache device (`l2arc_write_max`).
    pub l2arc_write_max_bytes: u64,
    /// Additional bytes until the ARC was full once (`l2arc_write_boost`).
    pub l2arc_write_boost_bytes: u64,
    /// Bytes of the ARC's ends that a feed looks at, in multiples of what it writes (`l2arc_headroom`).
    pub l2arc_headroom: u32,
    /// Distance to which a stream doubles its prefetch (`zfetch_min_distance`).
    pub prefetch_min_bytes: u64,
    /// Maximum distance of prefetch (`zfetch_max_distance`).
    pub prefetch_max_bytes: u64,
    /// Bytes on a device with one disk of data before the next top-level device is used (`metaslab_aliquot`).
    pub aliquot_bytes: u64,
    /// Default block size of a volume.
    pub volume_block_bytes: u32,
    /// Time that a scrub gets in each sync, at least (`zfs_scan_min_time_ms`; `zfs_scrub_min_time_ms` from 2.4 on).
    pub scrub_min_time_ns: u64,
    /// Time that a resilver gets (`zfs_resilver_min_time_ms`).
    pub resilver_min_time_ns: u64,
    /// Bytes that a scrub or resilver has in flight for each disk of a top-level device but the parities
    /// (`zfs_scan_vdev_limit`; 4 MiB before commit c0aea7cf of January 2023).
    pub scan_vdev_limit_bytes: u64,
    /// Bytes that a sequential rebuild has in flight for each disk (`zfs_rebuild_vdev_limit`, vdev_rebuild.c).
    pub rebuild_vdev_limit_bytes: u64,
}

impl ZfsParameters {
    /// OpenZFS 2.1.16.
    pub fn v2_1() -> ZfsParameters {
        ZfsParameters {
            txg_timeout_ns: 5_000_000_000,
            dirty_sync_percent: 20,
            delay_min_dirty_percent: 60,
            delay_scale_ns: 500_000,
            delay_max_ns: 100_000_000,
            write_log_factor: 2,
            log_block_max_bytes: 128 << 10,
            log_block_sizes: LogBlockSizes::Fixed,
            slog_bulk_bytes: 768 << 10,
            commit_timeout_percent: 5,
            commit_timeout_min_ns: 5_000,
            immediate_write_bytes: 32 << 10,
            indirect: IndirectRule::BySize,
            special_is_slog: false,
            arc_maximum: ArcMaximum::Half,
            l2arc_write_max_bytes: 8 << 20,
            l2arc_write_boost_bytes: 8 << 20,
            l2arc_headroom: 2,
            prefetch_min_bytes: 4 << 20,
            prefetch_max_bytes: 64 << 20,
            aliquot_bytes: 1 << 20,
            volume_block_bytes: 8 << 10,
            scrub_min_time_ns: 1_000_000_000,
            resilver_min_time_ns: 3_000_000_000,
            scan_vdev_limit_bytes: 16 << 20,
            rebuild_vdev_limit_bytes: 64 << 20,
        }
    }

    /// OpenZFS 2.2.9.
    pub fn v2_2() -> ZfsParameters {
        ZfsParameters {
            log_block_sizes: LogBlockSizes::Predicted,
            slog_bulk_bytes: 64 << 20,
            commit_timeout_percent: 10,
            commit_timeout_min_ns: 0,
            l2arc_write_max_bytes: 32 << 20,
            l2arc_write_boost_bytes: 32 << 20,
            l2arc_headroom: 8,
            volume_block_bytes: 16 << 10,
            ..ZfsParameters::v2_1()
        }
    }

    /// OpenZFS 2.3.9.
    pub fn v2_3() -> ZfsParameters {
        ZfsParameters { arc_maximum: ArcMaximum::AllButOneGib, ..ZfsParameters::v2_2() }
    }

    /// OpenZFS 2.4.0, with the times of scans of 2.4.1.
    pub fn v2_4() -> ZfsParameters {
        ZfsParameters {
            indirect: IndirectRule::ByHalfBlock,
            special_is_slog: true,
            aliquot_bytes: 2 << 20,
            scrub_min_time_ns: 750_000_000,
            resilver_min_time_ns: 1_500_000_000,
            ..ZfsParameters::v2_3()
        }
    }

    /// Returns the default maximum of the ARC (`zfs_arc_max`).
    pub fn arc_max_bytes(&self, memory_bytes: u64) -> u64 {
        match self.arc_maximum {
            ArcMaximum::Half => memory_bytes / 2,
            ArcMaximum::AllButOneGib => memory_bytes.saturating_sub(1 << 30).max(memory_bytes / 8 * 5),
        }
    }
}

/// Returns the default maximum of dirty data: 10 % of the memory, at most 4 GiB and at most 25 % of the memory
/// (`zfs_dirty_data_max`, `zfs_dirty_data_max_max`).
pub fn dirty_data_max_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / 10).min(4 << 30)
}

/// Rejects impossible values.
pub(super) fn check(zfs: &ZfsDescription, below: &[PoolShape]) -> Result<(), InvalidDescription> {
    check_ports(zfs, below)?;
    check_sizes(zfs)?;
    check_layout(zfs, below)?;
    let pool = below[zfs.data_port() as usize].bytes();
    let room = room_bytes(zfs, &below[zfs.data_port() as usize]);
    require(zfs.capacity_bytes > 0 && zfs.capacity_bytes <= room, "zfs.capacity", || {
        format!("{} bytes on {pool} bytes of devices are out of range; must be 1 to {room}", zfs.capacity_bytes)
    })
}

/// Bytes of records that a system can hold with slop, and with room for the copies of two transaction groups.
fn room_bytes(zfs: &ZfsDescription, data: &PoolShape) -> u64 {
    let usable = |bytes: u64| {
        let reserved = zfs.reserved_bytes(bytes);
        bytes.saturating_sub(reserved.log + 2 * reserved.metadata)
    };
    let usable: u64 = data.vdev_bytes.iter().copied().map(usable).sum();
    let usable = if zfs.data_port() == 0 { usable } else { (usable as f64 * SPECIAL_SHARE) as u64 };
    (usable - usable / SLOP_PART).saturating_sub(2 * zfs.dirty_data_max_bytes)
}

fn check_ports(zfs: &ZfsDescription, below: &[PoolShape]) -> Result<(), InvalidDescription> {
    let mut named: Vec<u32> = [zfs.log, zfs.cache, zfs.special].into_iter().flatten().collect();
    named.sort_unstable();
    if named != (1..below.len() as u32).collect::<Vec<_>>() {
        let text = "must name each system after the first once, and no other";
        return fault("zfs.ports", format!("log, cache and special are the systems {named:?} below; {text}"));
    }
    Ok(())
}

fn check_sizes(zfs: &ZfsDescription) -> Result<(), InvalidDescription> {
    let record = zfs.record_bytes;
    require(record.is_power_of_two() && RECORD_BYTES.contains(&record), "zfs.recordsize", || {
        format!("{record} bytes is not allowed; must be a power of two from 512 to 16777216")
    })?;
    let sector = zfs.sector_bytes;
    require(sector.is_power_of_two() && (512..=record).contains(&sector), "zfs.ashift", || {
        format!("sectors of {sector} bytes are not allowed; must be a power of two from 512 to the record size")
    })?;
    require(zfs.compression_ratio >= 1.0 && zfs.compression_ratio.is_finite(), "zfs.compression_ratio", || {
        format!("{} is out of range; must be 1 or more", zfs.compression_ratio)
    })?;
    require((0.0..=0.9).contains(&zfs.arc_metadata_share), "zfs.arc_metadata_share", || {
        format!("{} is out of range; must be 0 to 0.9", zfs.arc_metadata_share)
    })?;
    let least = 8 * u64::from(record);
    let at_least = |bytes: u64, key: &str| {
        require(bytes >= least, key, || format!("{bytes} bytes are too few; must hold 8 records, {least} bytes"))
    };
    at_least(zfs.dirty_data_max_bytes, "zfs.dirty_data_max")?;
    at_least(zfs.arc_max_bytes, "zfs.arc_max")?;
    require(zfs.cores >= 1, "zfs.cores", || "0 is out of range; must be 1 or more".to_owned())?;
    check_scans(zfs)?;
    let percent = zfs.parameters.delay_min_dirty_percent;
    require((1..100).contains(&percent), "zfs.delay_min_dirty_percent", || {
        format!("{percent} is out of range; must be 1 to 99")
    })?;
    let block = zfs.parameters.log_block_max_bytes;
    require(block >= 8192 && block.is_multiple_of(4096), "zfs.maxblocksize", || {
        format!("{block} bytes is not allowed; must be a multiple of 4096, at least 8192")
    })
}

fn check_scans(zfs: &ZfsDescription) -> Result<(), InvalidDescription> {
    let memory = zfs.scan_memory_bytes;
    require(memory >= 1 << 20, "zfs.scan_memory", || format!("{memory} bytes are too few; must be 1 MiB or more"))?;
    let ZfsParameters { scan_vdev_limit_bytes, rebuild_vdev_limit_bytes, .. } = zfs.parameters;
    require(scan_vdev_limit_bytes > 0, "zfs.scan_vdev_limit", || "0 is out of range; must be 1 or more".to_owned())?;
    require(rebuild_vdev_limit_bytes > 0, "zfs.rebuild_vdev_limit", || {
        "0 is out of range; must be 1 or more".to_owned()
    })
}

/// RAIDZ and dRAID place blocks by the record size of their array.
fn check_layout(zfs: &ZfsDescription, below: &[PoolShape]) -> Result<(), InvalidDescription> {
    for (port, system) in below.iter().enumerate() {
        let Some((level, record)) = system.records else { continue };
        let is_raidz = matches!(level, Level::Raidz { .. });
        require(!(is_raidz && zfs.sequential_resilver), "zfs.sequential_resilver", || {
            format!("true over {level}; only mirrors and dRAID can be rebuilt in order of addresses")
        })?;
        let is_pool = port == 0 || zfs.special == Some(port as u32);
        require(is_pool, "stack.below", || {
            format!("the {} cannot be {level}; must be a drive, a mirror or stripes", zfs.port_name(port))
        })?;
        let own = u64::from(zfs.record_bytes);
        require(record == own, "zfs.recordsize", || {
            format!("{own} bytes over an array with records of {record} bytes; must be equal")
        })?;
    }
    Ok(())
}
