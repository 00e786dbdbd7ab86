//! [`CephDescription`]: an RBD image in a pool of a Ceph cluster. See docs/design/stacks.md.
//!
//! Sources of the constants: ceph/ceph `src/common/options/global.yaml.in`@001c8347, `mclock-config-ref.rst`@07382775
//! and `doc/dev/bluestore.rst`@527c7ca1; measured values as named.

use serde::{Deserialize, Serialize};

use super::PoolShape;
use crate::error::{InvalidDescription, fault, require};

/// Size of an object of an RBD image: 2^22 bytes (`rbd_default_order`).
pub const OBJECT_BYTES: u64 = 4 << 20;
/// Part of an OSD that may be filled: `mon_osd_full_ratio` 0.95, in percent.
const FULL_PERCENT: u64 = 95;
/// Part of an OSD's device for RocksDB if it has no DB device: 1/25, the 4 % that Ceph's documentation recommends.
const DB_PART: u64 = 25;
/// Length of the write-ahead log of RocksDB (`max_total_wal_size` in `bluestore_rocksdb_options`), in bytes.
const LOG_BYTES: u64 = 1 << 30;
/// Blocks in which BlueFS appends to the log, and in which BlueStore stores checksums (`csum_block_size`), in bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Most OSDs of a cluster. Each has its own device in memory.
const OSDS_MAX: u32 = 1024;

/// An RBD image in a pool of a Ceph cluster. The first system below is the data device of each OSD, the second, if
/// `osds_per_db` is set, the DB device that OSDs share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CephDescription {
    /// Bytes of the image. All of them count as written once.
    pub capacity_bytes: u64,
    /// OSDs of the cluster, spread evenly over the hosts.
    pub osds: u32,
    /// Hosts with OSDs.
    pub hosts: u32,
    /// OSDs that share a DB device, which holds RocksDB and its log; `None` if these are on the data device.
    pub osds_per_db: Option<u32>,
    /// Units on which the copies or shards of an object must differ.
    pub failure_domain: FailureDomain,
    /// Copies or shards of each object.
    pub redundancy: Redundancy,
    /// Writes that are shorter go through the log of RocksDB first (`bluestore_prefer_deferred_size`), in bytes.
    pub prefer_deferred_bytes: u32,
    /// Deferred writes that an OSD collects before it writes them to their places (`bluestore_deferred_batch_ops`).
    pub deferred_batch: u32,
    /// Most deferred writes of an OSD that are not in their places: `bluestore_throttle_deferred_bytes` 128 MiB divided
    /// by `bluestore_throttle_cost_per_io`.
    pub deferred_max: u32,
    /// Time after which fewer deferred writes are written to their places (`bluestore_max_defer_interval`), in ns.
    pub defer_interval_ns: u64,
    /// Bytes that a write adds to the log besides deferred data: object, extents and placement group log.
    pub record_bytes: u32,
    /// Network of the hosts and clients.
    pub network: ClusterNetwork,
    /// Processor of an OSD.
    pub cpu: OsdCpu,
    /// Time of a read in software, of client and primary OSD, besides processor time, in ns.
    pub read_delay_ns: u64,
    /// Time of a write in software besides processor time, in ns.
    pub write_delay_ns: u64,
    /// How OSDs share their processor between clients and recovery.
    pub scheduler: OsdScheduler,
    /// Recovery that runs beside the clients.
    pub recovery: Option<Recovery>,
}

/// Units on which copies or shards of an object must differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureDomain {
    /// Different hosts.
    Host,
    /// Different OSDs, which may be on one host.
    Osd,
}

/// Redundancy of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Redundancy {
    /// Whole copies.
    Copies(u32),
    /// Erasure coding.
    Erasure(ErasureCode),
}

/// Erasure coding of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureCode {
    /// Data shards (k).
    pub data: u32,
    /// Parity shards (m).
    pub parity: u32,
    /// Consecutive bytes of an object on one shard (`stripe_unit`).
    pub stripe_unit_bytes: u32,
    /// Shards that a small request reads and writes.
    pub access: ErasureAccess,
}

/// Shards that a request smaller than a stripe uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErasureAccess {
    /// Whole stripes: a read reads all data shards, a write also writes all shards (before Tentacle).
    WholeStripes,
    /// The shards with the requested bytes, and for writes the parity. The parity is computed from the other data
    /// shards, or from the old data and parity if these are fewer (`allow_ec_optimizations`, from Tentacle on).
    ChangedShards,
}

impl Redundancy {
    /// Returns the number of copies or shards of an object.
    pub fn width(&self) -> u32 {
        match self {
            Redundancy::Copies(copies) => *copies,
            Redundancy::Erasure(code) => code.data + code.parity,
        }
    }

    /// Returns the bytes of one copy or shard of an object.
    pub fn shard_bytes(&self) -> u64 {
        match self {
            Redundancy::Copies(_) => OBJECT_BYTES,
            Redundancy::Erasure(code) => {
                let unit = u64::from(code.stripe_unit_bytes).max(1);
                OBJECT_BYTES.div_ceil(unit * u64::from(code.data).max(1)) * unit
            }
        }
    }

    /// Returns how many OSDs are read to recover one copy or shard.
    pub fn recovery_reads(&self) -> u32 {
        match self {
            Redundancy::Copies(_) => 1,
            Redundancy::Erasure(code) => code.data,
        }
    }
}

/// Network between clients and OSD hosts. Every host and client has one interface; a switch joins them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNetwork {
    /// Time of a message without payload to another host and back.
    pub round_trip_ns: u64,
    /// Payload rate of each direction of an interface, in bytes per second.
    pub bytes_per_s: u64,
    /// Client hosts; they take turns.
    pub clients: u32,
}

impl ClusterNetwork {
    /// Returns the time that a payload occupies one direction of an interface.
    pub fn wire_ns(&self, bytes: u64) -> u64 {
        per_rate_ns(bytes, self.bytes_per_s)
    }
}

/// Returns the time for `amount` at a rate per second, rounded.
fn per_rate_ns(amount: u64, per_s: u64) -> u64 {
    let rate = u128::from(per_s.max(1));
    ((u128::from(amount) * 1_000_000_000 + rate / 2) / rate) as u64
}

/// Processor of an OSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OsdCpu {
    /// Operations that are processed at the same time: cores, at most the threads of the OSD.
    pub threads: u32,
    /// Processor time of a read by a client, at the primary.
    pub read_ns: u64,
    /// Processor time of a read for another OSD, as with erasure coding.
    pub shard_read_ns: u64,
    /// Processor time of a write of one copy or shard.
    pub write_ns: u64,
    /// Bytes per second that a core copies and checks, besides these times.
    pub bytes_per_s: u64,
}

impl OsdCpu {
    /// Returns the processor time of the payload of an operation.
    pub fn payload_ns(&self, bytes: u64) -> u64 {
        per_rate_ns(bytes, self.bytes_per_s)
    }
}

/// Parameters of the mclock scheduler of an OSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OsdScheduler {
    /// Share of clients.
    pub client: Share,
    /// Share of recovery.
    pub recovery: Share,
    /// Writes of 4 KiB per second of an OSD (`osd_mclock_max_capacity_iops_*`).
    pub capacity_iops: u64,
    /// Sequential bandwidth of an OSD (`osd_mclock_max_sequential_bandwidth_*`), in bytes per second.
    pub bandwidth_bytes_per_s: u64,
}

/// Share of a class in an OSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Reserved part of the OSD's bandwidth, in percent.
    pub reservation_percent: u32,
    /// Weight for what is left.
    pub weight: u32,
    /// Most that the class gets, in percent of the OSD's bandwidth; `None` without a limit.
    pub limit_percent: Option<u32>,
}

impl OsdScheduler {
    /// Returns the cost of an operation: its bytes, and at least the bandwidth divided by the IOPS
    /// (`osd_bandwidth_cost_per_io` in mClockScheduler.cc).
    pub fn cost_bytes(&self, bytes: u64) -> u64 {
        bytes.max(self.bandwidth_bytes_per_s / self.capacity_iops.max(1))
    }

    /// Returns the time that a reservation takes for a cost; `None` without a reservation.
    pub fn reservation_ns(&self, share: Share, cost_bytes: u64) -> Option<u64> {
        let per_s = self.bandwidth_bytes_per_s * u64::from(share.reservation_percent) / 100;
        (per_s > 0).then(|| per_rate_ns(cost_bytes, per_s))
    }

    /// Returns the time that a cost takes at the limit; 0 without a limit.
    pub fn limit_ns(&self, share: Share, cost_bytes: u64) -> u64 {
        let per_s = share.limit_percent.map(|percent| self.bandwidth_bytes_per_s * u64::from(percent) / 100);
        per_s.map_or(0, |per_s| per_rate_ns(cost_bytes, per_s))
    }
}

/// Recovery: OSDs copy objects to each other from the first request of a run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Objects that each OSD recovers at the same time (`osd_recovery_max_active`).
    pub active_max: u32,
    /// Objects that each OSD recovers in all.
    pub objects: u64,
}

/// Layout of an OSD's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OsdLayout {
    /// Slots for copies or shards of objects.
    pub slots: u64,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// First slot that lies behind the log, if that is on the data device.
    pub behind_log: u64,
    /// First byte of the log on its device, for the first OSD that uses the device.
    pub log_start_bytes: u64,
    /// Distance of the logs of OSDs that share a device, in bytes.
    pub log_stride_bytes: u64,
    /// Length of the log, in bytes.
    pub log_bytes: u64,
}

impl OsdLayout {
    /// Returns the first byte of a slot on the data device.
    pub fn slot_start(&self, slot: u64) -> u64 {
        debug_assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        let behind = if slot >= self.behind_log { self.log_stride_bytes } else { 0 };
        slot * self.slot_bytes + behind
    }
}

impl CephDescription {
    /// Returns the system below whose device holds a part of the cluster: the OSDs, then the DB devices.
    pub(crate) fn ports(&self) -> impl Iterator<Item = usize> {
        let dbs = self.osds_per_db.map_or(0, |per_db| self.osds.div_ceil(per_db.max(1)));
        (0..self.osds).map(|_| 0).chain((0..dbs).map(|_| 1))
    }

    /// Returns the layout of an OSD over devices of these sizes.
    pub(crate) fn layout(&self, below_bytes: &[u64]) -> OsdLayout {
        let slot_bytes = self.redundancy.shard_bytes();
        let whole = |bytes: u64| bytes / BLOCK_BYTES * BLOCK_BYTES;
        match (self.osds_per_db, below_bytes.get(1)) {
            (Some(per_db), Some(db_bytes)) => {
                let stride = whole(db_bytes / u64::from(per_db.max(1)));
                OsdLayout {
                    slots: below_bytes[0] / slot_bytes,
                    slot_bytes,
                    behind_log: u64::MAX,
                    log_start_bytes: 0,
                    log_stride_bytes: stride,
                    log_bytes: stride.min(LOG_BYTES),
                }
            }
            // mkfs placed BlueFS in the middle of the device.
            (None, _) | (Some(_), None) => {
                let stride = whole(below_bytes[0] / DB_PART);
                let slots = below_bytes[0].saturating_sub(stride) / slot_bytes;
                OsdLayout {
                    slots,
                    slot_bytes,
                    behind_log: slots / 2,
                    log_start_bytes: slots / 2 * slot_bytes,
                    log_stride_bytes: stride,
                    log_bytes: stride.min(LOG_BYTES),
                }
            }
        }
    }

    /// Returns the bytes of the largest image over devices of these sizes: the pool filled to `mon_osd_full_ratio`.
    pub fn usable_bytes(&self, below_bytes: &[u64]) -> u64 {
        let layout = self.layout(below_bytes);
        let rounds = layout.slots * FULL_PERCENT / 100 / u64::from(self.redundancy.width()).max(1);
        rounds * u64::from(self.osds) * OBJECT_BYTES
    }

    /// Returns the number of units on which the copies of an object differ.
    pub(crate) fn domains(&self) -> u32 {
        match self.failure_domain {
            FailureDomain::Host => self.hosts,
            FailureDomain::Osd => self.osds,
        }
    }

    /// Name of a system below.
    pub(super) fn port_name(&self, port: usize) -> String {
        match (port as u64).checked_sub(u64::from(self.osds)) {
            Some(db) => format!("db {db}"),
            None => format!("osd {port}"),
        }
    }
}

/// Rejects impossible clusters over systems of these shapes.
pub(super) fn check(ceph: &CephDescription, below: &[PoolShape]) -> Result<(), InvalidDescription> {
    let below_bytes: Vec<u64> = below.iter().map(PoolShape::bytes).collect();
    let needed = if ceph.osds_per_db.is_some() { 2 } else { 1 };
    require(below.len() == needed, "stack.below", || {
        format!("{} systems below `ceph`; must be {needed}: the drive of an OSD, and its DB device", below.len())
    })?;
    check_cluster(ceph)?;
    check_redundancy(&ceph.redundancy)?;
    let (width, domains) = (ceph.redundancy.width(), ceph.domains());
    if width > domains {
        let (unit, key) = match ceph.failure_domain {
            FailureDomain::Host => ("hosts", "ceph.hosts"),
            FailureDomain::Osd => ("OSDs", "ceph.osds"),
        };
        return fault(key, format!("{domains} {unit} for {width} copies or shards; must be {width} or more"));
    }
    let layout = ceph.layout(&below_bytes);
    let log_min = 1 << 20;
    require(layout.log_bytes >= log_min, "ceph.db", || {
        format!("{} bytes for the log of each OSD; must be {log_min} or more", layout.log_bytes)
    })?;
    let usable = ceph.usable_bytes(&below_bytes);
    require((BLOCK_BYTES..=usable).contains(&ceph.capacity_bytes), "ceph.size", || {
        format!("{} bytes; must be {BLOCK_BYTES} to {usable}, the usable bytes of the pool", ceph.capacity_bytes)
    })?;
    let reads = ceph.redundancy.recovery_reads();
    require(ceph.recovery.is_none() || ceph.osds > reads, "ceph.recovery", || {
        format!("{} OSDs; recovery needs {} or more", ceph.osds, reads + 1)
    })
}

fn check_cluster(ceph: &CephDescription) -> Result<(), InvalidDescription> {
    let at_least_1 = |value: u64, key: &str| {
        require(value >= 1, &format!("ceph.{key}"), || format!("{value} is out of range; must be 1 or more"))
    };
    require((1..=OSDS_MAX).contains(&ceph.osds), "ceph.osds", || {
        format!("{} is out of range; must be 1 to {OSDS_MAX}", ceph.osds)
    })?;
    at_least_1(u64::from(ceph.hosts), "hosts")?;
    require(ceph.osds.is_multiple_of(ceph.hosts), "ceph.hosts", || {
        format!("{} hosts for {} OSDs; each host must have the same number of OSDs", ceph.hosts, ceph.osds)
    })?;
    at_least_1(u64::from(ceph.osds_per_db.unwrap_or(1)), "osds_per_db")?;
    at_least_1(ceph.network.bytes_per_s, "speed")?;
    at_least_1(u64::from(ceph.network.clients), "clients")?;
    at_least_1(u64::from(ceph.cpu.threads), "cores")?;
    at_least_1(ceph.cpu.bytes_per_s, "cpu_rate")?;
    at_least_1(u64::from(ceph.deferred_batch), "deferred_batch")?;
    at_least_1(u64::from(ceph.deferred_max), "deferred_max")?;
    at_least_1(ceph.scheduler.capacity_iops, "capacity_iops")?;
    at_least_1(ceph.scheduler.bandwidth_bytes_per_s, "bandwidth")?;
    at_least_1(u64::from(ceph.scheduler.client.weight), "client.weight")?;
    at_least_1(u64::from(ceph.scheduler.recovery.weight), "recovery.weight")?;
    at_least_1(u64::from(ceph.recovery.map_or(1, |recovery| recovery.active_max)), "recovery_active")?;
    for share in [ceph.scheduler.client, ceph.scheduler.recovery] {
        require(share.reservation_percent <= 100, "ceph.profile", || {
            format!("a reservation of {} %; must be 0 to 100", share.reservation_percent)
        })?;
        let limit = share.limit_percent.unwrap_or(100);
        require(limit >= share.reservation_percent.max(1), "ceph.profile", || {
            format!("a limit of {limit} %; must be the reservation of {} % or more", share.reservation_percent)
        })?;
    }
    Ok(())
}

fn check_redundancy(redundancy: &Redundancy) -> Result<(), InvalidDescription> {
    match redundancy {
        Redundancy::Copies(copies) => {
            require((1..=10).contains(copies), "ceph.copies", || format!("{copies} is out of range; must be 1 to 10"))
        }
        Redundancy::Erasure(code) => {
            require((2..=32).contains(&code.data) && (1..=16).contains(&code.parity), "ceph.erasure", || {
                format!("{}+{} is out of range; must be 2 to 32 data and 1 to 16 parity shards", code.data, code.parity)
            })?;
            let unit = u64::from(code.stripe_unit_bytes);
            let allowed = BLOCK_BYTES..=1 << 20;
            require(allowed.contains(&unit) && unit.is_multiple_of(BLOCK_BYTES), "ceph.stripe_unit", || {
                format!("{unit} bytes; must be a multiple of {BLOCK_BYTES} up to 1 MiB")
            })
        }
    }
}
