//! Notes for users about effects that a simulated system does not include.

use std::fmt;

use headstack_result::RunResult;
use headstack_workload::Workload;

use crate::description::array::{ArrayDescription, CacheWrites, Group};
use crate::description::device::DeviceDescription;
use crate::description::drive::{SlowProcesses, WriteCache};
use crate::description::stack::{HostCacheDescription, HostCacheMode, LayerDescription, ZfsDescription};
use crate::description::system::SystemDescription;

/// Returns a note if requests of a workload are misaligned on a drive whose physical sectors are larger than its blocks
/// (512e).
pub fn note_of_alignment(system: &SystemDescription, workload: &Workload) -> Option<String> {
    match system {
        SystemDescription::Drive(DeviceDescription::Disk(drive)) => {
            let geometry = &drive.geometry;
            workload.note_of_alignment(geometry.logical_block_bytes, geometry.physical_sector_bytes)
        }
        // SSDs and volumes have no physical sectors, an array has no single sector size, and a layer changes addresses.
        SystemDescription::Drive(DeviceDescription::Ssd(_) | DeviceDescription::Volume(_))
        | SystemDescription::Array(_)
        | SystemDescription::Stack(_) => None,
    }
}

/// Notes on tail latency of disks without slow processes. The first is current; the second occurs in results of earlier
/// versions.
pub const NOTES_OF_TAIL: [&str; 2] = [
    "p99.9 excludes retries, recalibration and background scans; add them in [slow] of the drive's file",
    "beyond p99 the tail is geometry and queueing only: retries, recalibration and scans are off",
];

/// Returns a note on tail latency if all devices are disks without slow processes.
pub fn note_of_tail(system: &SystemDescription) -> Option<String> {
    let quiet = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.slow == SlowProcesses::default(),
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => false,
    };
    let quiet = system.device_kinds().into_iter().all(quiet);
    quiet.then(|| NOTES_OF_TAIL[0].to_owned())
}

/// Note on what the model of OpenZFS pools leaves out.
pub const NOTE_OF_OPENZFS: &str = "only the layout of RAIDZ and dRAID is modelled; with ARC, transaction groups and ZIL a pool \
                                   is often many times faster: run a stack over it (headstack catalog stacks list)";

/// Returns a note on OpenZFS behavior that the model leaves out, if the array has RAIDZ or dRAID groups.
pub fn note_of_openzfs(system: &SystemDescription) -> Option<String> {
    let SystemDescription::Array(array) = system else { return None };
    let has_records = array.groups.iter().any(|group| group.level.rules().has_records);
    has_records.then(|| NOTE_OF_OPENZFS.to_owned())
}

/// Part of a pool above which OpenZFS slows down as free space fragments, in percent (OpenZFS documentation, Workload
/// Tuning).
const FULL_PERCENT: u64 = 80;

/// Returns the part of a pool that a dataset fills, in percent.
fn fill_percent(zfs: &ZfsDescription, below: &[SystemDescription]) -> u64 {
    let pool = below.get(zfs.data_port() as usize).map_or(0, SystemDescription::capacity_bytes);
    (u128::from(zfs.capacity_bytes) * 100).checked_div(u128::from(pool)).unwrap_or(0) as u64
}

/// Returns a note on what decides answers of real stacks and is left out of the layers of this one.
pub fn note_of_layers(system: &SystemDescription) -> Option<String> {
    let mut left_out: Vec<&str> = Vec::new();
    let mut below = system;
    while let SystemDescription::Stack(stack) = below {
        left_out.push(match &stack.layer {
            LayerDescription::InstanceLimit(_) => "other tenants",
            LayerDescription::HostCache(_) => "other disks that share the host cache",
            LayerDescription::Network(_) => "packet loss and other traffic",
            LayerDescription::Journal(_) => "fragmentation, directories and the processor time of the file system",
            LayerDescription::PageCache(_) => "memory pressure and other files",
            LayerDescription::BlockCache(_) => "locks and garbage collection of the block cache",
            LayerDescription::MdJournal(_) => "the time to replay the journal, checksums and locks of md",
            LayerDescription::Zfs(zfs) => match fill_percent(zfs, &stack.below) > FULL_PERCENT {
                true => "fragmentation of the pool, which is over 80 % full; processor contention",
                false => "processor contention",
            },
            LayerDescription::Ceph(_) => "compaction of RocksDB, missed onodes, uneven placement, scrubs",
        });
        below = &stack.below[0];
    }
    (!left_out.is_empty()).then(|| format!("not modelled: {}", left_out.join("; ")))
}

/// Requests per second that volumes of OpenZFS were measured to reach: 250,000 to 350,000 (commit 72f0521a).
const ZFS_MEASURED_PER_S: f64 = 350_000.0;
/// Utilization of the processors of OSDs above which threads and locks of Ceph lengthen latencies (assumed).
const CONTENTION_SHARE: f64 = 0.5;

/// Returns a note if processors decide the answer: more requests than OpenZFS was measured to serve, or busy OSDs.
pub fn note_of_processors(system: &SystemDescription, result: &RunResult) -> Option<String> {
    let mut below = system;
    while let SystemDescription::Stack(stack) = below {
        match &stack.layer {
            LayerDescription::Zfs(_) if result.throughput_per_s() > ZFS_MEASURED_PER_S => {
                let note =
                    "not modelled: CPU contention and locks; OpenZFS was measured to 350,000 requests/s, not above";
                return Some(note.to_owned());
            }
            LayerDescription::Ceph(_) => return note_of_osd_cpu(result),
            LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_)
            | LayerDescription::Zfs(_) => below = &stack.below[0],
        }
    }
    None
}

/// Returns a note on a host cache: how many reads it answered, and what is assumed; if writes came faster than the cache
/// flushed them, the limit of longer runs.
pub fn note_of_host_cache(system: &SystemDescription, result: &RunResult) -> Option<String> {
    let mut below = system;
    let cache = loop {
        let SystemDescription::Stack(stack) = below else { return None };
        match &stack.layer {
            LayerDescription::HostCache(cache) => break cache,
            LayerDescription::InstanceLimit(_)
            | LayerDescription::Network(_)
            | LayerDescription::Journal(_)
            | LayerDescription::PageCache(_)
            | LayerDescription::Zfs(_)
            | LayerDescription::BlockCache(_)
            | LayerDescription::MdJournal(_)
            | LayerDescription::Ceph(_) => below = &stack.below[0],
        }
    };
    let count = |name: &str| result.counters.iter().find(|counter| counter.name == name).map_or(0, |found| found.value);
    let written = result.kinds.write.bytes;
    let flushed = count("host_cache_flushed_pages") * HostCacheDescription::PAGE_BYTES;
    if cache.mode == HostCacheMode::ReadWrite && flushed < written {
        let percent = 100 * (written - flushed) / written;
        return Some(format!(
            "{percent} % of the written data were not flushed to the volume during the run: once the host cache is full of \
             them, writes wait for the volume; flush interval and latency of the cache are assumed"
        ));
    }
    let (hits, misses) = (count("host_cache_hits"), count("host_cache_misses"));
    let percent = (100 * hits).checked_div(hits + misses)?;
    Some(format!(
        "{percent} % of reads hit the host cache, which starts empty (warm it with --preload); its latency and eviction (LRU) \
         are assumed"
    ))
}

fn note_of_osd_cpu(result: &RunResult) -> Option<String> {
    let cpu = result.components.iter().find(|component| component.name == "osd CPU")?;
    let utilization = result.utilization(cpu);
    (utilization > CONTENTION_SHARE).then(|| {
        let percent = (utilization * 100.0).round();
        format!("not modelled: CPU contention; OSD processors are {percent:.0} % busy, so expect fewer IOPS (see ceph.cores)")
    })
}

/// Synchronous writes per second of one writer: the 90 % prediction interval for an SSD of a class, from the measured
/// single drives of that class. It assumes that the logarithms of the rates are normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncWrites {
    /// Lower end of the interval.
    pub low_per_s: u32,
    /// Upper end of the interval.
    pub high_per_s: u32,
    /// Number of measured drives.
    pub drives: u32,
}

impl fmt::Display for SyncWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both ends are below a million.
        let grouped = |per_s: u32| match per_s {
            0..1_000 => per_s.to_string(),
            _ => format!("{},{:03}", per_s / 1_000, per_s % 1_000),
        };
        write!(f, "{} to {} synchronous writes/s", grouped(self.low_per_s), grouped(self.high_per_s))
    }
}

/// SSDs without power-loss protection: geometric mean 678, one standard deviation a factor of 2.35. Left out one by
/// one, 22 of the 25 are inside the interval of the others (fio and scripts with fsync, TheJJ/ceph-diskbench and
/// others, 2013 to 2026).
pub const SYNC_WRITES_UNPROTECTED: SyncWrites = SyncWrites { low_per_s: 150, high_per_s: 3_000, drives: 25 };
/// SSDs with power-loss protection, whether or not they report a volatile write cache: geometric mean 10,400, one
/// standard deviation a factor of 3.2. Left out one by one, 10 of the 12 are inside the interval of the others.
pub const SYNC_WRITES_PROTECTED: SyncWrites = SyncWrites { low_per_s: 1_200, high_per_s: 90_000, drives: 12 };

/// Returns a note if the model assumes the cost of flushes and forced writes. docs/accuracy.md has measured costs of
/// such devices with one writer.
pub fn note_of_flushes(system: &SystemDescription) -> Option<String> {
    let devices = match system {
        SystemDescription::Array(array) if acknowledges_writes(array) => return None,
        SystemDescription::Drive(_) | SystemDescription::Array(_) | SystemDescription::Stack(_) => {
            system.device_kinds()
        }
    };
    let assumed = devices.iter().find_map(|device| match device {
        DeviceDescription::Ssd(ssd) if ssd.buffer.power_loss_protected => Some(format!(
            "flushes are assumed free because the SSD has capacitors; 90 % of such SSDs do {SYNC_WRITES_PROTECTED}, \
                 those that report a volatile write cache least (check queue/write_cache)"
        )),
        DeviceDescription::Ssd(_) => Some(format!(
            "a flush is assumed to program the buffer, and every second one the map; 90 % of SSDs without capacitors \
                 do {SYNC_WRITES_UNPROTECTED} (measure yours with headstack measure fsync)"
        )),
        DeviceDescription::Disk(disk) if disk.buffer.write_cache == WriteCache::Protected => Some(
            "flushes are assumed free because the write cache is described as protected; without protection, each \
                 takes a revolution or more"
                .to_owned(),
        ),
        DeviceDescription::Disk(_) | DeviceDescription::Volume(_) => None,
    })?;
    Some(format!("this drive has no measured flush cost: {assumed}"))
}

/// Whether a controller's write-back cache acknowledges writes and flushes for the members.
fn acknowledges_writes(array: &ArrayDescription) -> bool {
    let is_back = |writes: CacheWrites| match writes {
        CacheWrites::Back => true,
        CacheWrites::Through | CacheWrites::Around => false,
    };
    array.controller.cache.as_ref().is_some_and(|cache| is_back(cache.writes))
}

/// Returns a warning if a rebuild writes to drive-managed shingled (SMR) drives. A rebuild writes the spare in
/// ascending order, which such a drive accepts at full speed. File system resilvers do not write in order, and take
/// many times as long.
pub fn note_of_shingled_rebuild(system: &SystemDescription, result: &RunResult) -> Option<String> {
    let array = system.base_array()?;
    let is_shingled = |&member: &u32| match array.device(member) {
        DeviceDescription::Disk(drive) => drive.shingles.is_some(),
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => false,
    };
    let fills = |group: &Group| group.spares.iter().chain(&group.members).any(is_shingled);
    let rebuilds = result.counters.iter().any(|counter| counter.name == "rebuild_commands" && counter.value > 0);
    let note = "rebuild of shingled (SMR) drives: simulated as one ascending stream of writes; a measured RAIDZ resilver of \
                such a drive took over 9 days instead of 16 h, so do not plan with this rebuild time";
    (rebuilds && array.groups.iter().any(fills)).then(|| note.to_owned())
}
