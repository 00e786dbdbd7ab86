//! Table `[ceph]`: a cluster with the defaults of a version and of its drives.

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{
    CephDescription, ClusterNetwork, ErasureCode, FailureDomain, OsdCpu, OsdScheduler, Recovery, Redundancy,
};
use headstack_workload::InputError;
use headstack_workload::quantity::Rate;

use super::Completer;
use super::ceph_table::{CephTable, CephVersion, Profile};
use super::protocols::PAYLOAD_SHARE;

/// Defaults that depend on the kind of drive (`global.yaml.in`, options `_hdd` and `_ssd`).
struct DriveDefaults {
    prefer_deferred_bytes: u32,
    deferred_batch: u32,
    /// 128 MiB of `bluestore_throttle_deferred_bytes` divided by `bluestore_throttle_cost_per_io` and 4 KiB.
    deferred_max: u32,
    cores: u32,
    capacity_iops: u64,
    bandwidth: f64,
    recovery_active: u32,
}

const DISK: DriveDefaults = DriveDefaults {
    prefer_deferred_bytes: 64 << 10,
    deferred_batch: 64,
    deferred_max: ((128 << 20) / (670_000 + 4096)) as u32,
    cores: 2,
    capacity_iops: 315,
    bandwidth: 150.0 * 1048576.0,
    recovery_active: 3,
};

const SSD: DriveDefaults = DriveDefaults {
    prefer_deferred_bytes: 0,
    deferred_batch: 16,
    deferred_max: ((128 << 20) / (4000 + 4096)) as u32,
    cores: 10,
    capacity_iops: 21_500,
    bandwidth: 1200.0 * 1048576.0,
    recovery_active: 10,
};

/// Processor time of a 4 KiB read and of a write of one copy: 7,500 reads and 3,500 writes with three copies a used
/// core (ceph.io blog, 2022-11, Pacific on EPYC 7742).
const READ_CPU_NS: u64 = 133_000;
const WRITE_CPU_NS: u64 = 95_000;
/// Processor time of a read for another OSD: half of that of a client's read, without the work for the client. Assumed.
const SHARD_READ_CPU_NS: u64 = 66_500;
/// Bytes that a core copies and checks per second. Assumed; 1 to 4 GB/s.
const CPU_BYTES_PER_S: u64 = 2_000_000_000;
/// Time in software besides processor time: fitted to depth 1 of a cluster of Intel S4510 with two copies, Ceph 15.2.4
/// (vitastor comparison1: a read in 0.57 ms, a write in 1.0 ms). Three copies on PM983 with Ceph 17.2.5 need
/// 74 us for a write. Range: 50 to 700 us.
const READ_DELAY_NS: u64 = 295_000;
const WRITE_DELAY_NS: u64 = 608_000;
/// Round trip of a message through kernel TCP: 25 to 39 us of ping at 100 Gbit/s (blog 2022-11), 44 us of Vitastor with
/// its software at 25 Gbit/s.
const ROUND_TRIP_NS: u64 = 40_000;
/// Bytes of a transaction's record in the log: object, extents and placement group log. Assumed; 1 to 6 KiB.
const RECORD_BYTES: u32 = 2048;

/// Returns the fewest hosts with the same number of OSDs, at most six, that hold copies on different hosts.
fn default_hosts(osds: u32, failure_domain: FailureDomain, width: u32) -> u32 {
    let copies = match failure_domain {
        FailureDomain::Host => width,
        FailureDomain::Osd => 1,
    };
    let fewest = osds.div_ceil(6).max(copies);
    (fewest..osds).find(|&hosts| osds.is_multiple_of(hosts)).unwrap_or(osds.max(1))
}

impl Completer<'_> {
    pub(super) fn ceph(&mut self, below: &[SystemDescription]) -> Result<CephDescription, InputError> {
        let table = &self.file.ceph;
        let Some(osds) = table.osds else {
            return Err(self.missing("ceph.osds", "the number of OSDs, for example 12"));
        };
        let Some(Rate(bytes_per_s)) = table.speed else {
            return Err(self.missing("ceph.speed", "for example 25Gb/s"));
        };
        let is_disk = |device: &&DeviceDescription| matches!(device, DeviceDescription::Disk(_));
        let drive = if below[0].device_kinds().iter().any(is_disk) { DISK } else { SSD };
        let rule = "default of Ceph";
        let failure_domain = self.or_default("ceph.failure_domain", table.failure_domain, FailureDomain::Host, rule);
        let version = self.or_default("ceph.version", table.version, CephVersion::Reef, "in wide use");
        let redundancy = self.redundancy(table, version)?;
        let hosts = default_hosts(osds, failure_domain, redundancy.width());
        let hosts =
            self.or_default("ceph.hosts", table.hosts, hosts, "at most six OSDs a host, one host for each copy");
        let kind = "default of Ceph for this kind of drive";
        let fitted = "fitted to S4510 with two copies, Ceph 15.2.4; 50 to 700 us by processor and version";
        let measured = "7,500 reads and 3,500 writes with three copies a core (ceph.io blog, 2022-11)";
        let description = CephDescription {
            capacity_bytes: 0,
            osds,
            hosts,
            osds_per_db: self.osds_per_db(table, osds, hosts)?,
            failure_domain,
            redundancy,
            prefer_deferred_bytes: self.bytes_u32(
                "ceph.prefer_deferred",
                table.prefer_deferred,
                drive.prefer_deferred_bytes,
                kind,
            )?,
            deferred_batch: drive.deferred_batch,
            deferred_max: drive.deferred_max,
            defer_interval_ns: 3_000_000_000,
            record_bytes: RECORD_BYTES,
            network: ClusterNetwork {
                round_trip_ns: self.duration(
                    "ceph.round_trip",
                    table.round_trip,
                    ROUND_TRIP_NS,
                    "kernel TCP; 25 to 44 us measured",
                )?,
                bytes_per_s: (bytes_per_s * PAYLOAD_SHARE) as u64,
                clients: self.or_default("ceph.clients", table.clients, 1, "one client host"),
            },
            cpu: OsdCpu {
                threads: self.or_default("ceph.cores", table.cores, drive.cores, "usual for this kind of drive"),
                read_ns: self.duration("ceph.read_cpu", table.read_cpu, READ_CPU_NS, measured)?,
                shard_read_ns: SHARD_READ_CPU_NS,
                write_ns: self.duration("ceph.write_cpu", table.write_cpu, WRITE_CPU_NS, measured)?,
                bytes_per_s: CPU_BYTES_PER_S,
            },
            read_delay_ns: self.duration("ceph.read_delay", table.read_delay, READ_DELAY_NS, fitted)?,
            write_delay_ns: self.duration("ceph.write_delay", table.write_delay, WRITE_DELAY_NS, fitted)?,
            scheduler: self.scheduler(table, version, &drive),
            recovery: None,
        };
        self.sized(description, below, &drive)
    }

    fn redundancy(&mut self, table: &CephTable, version: CephVersion) -> Result<Redundancy, InputError> {
        let Some(text) = &table.erasure else {
            if table.stripe_unit.is_some() {
                return Err(self.document.error("ceph.stripe_unit", "only with ceph.erasure"));
            }
            let copies = self.or_default("ceph.copies", table.copies, 3, "default of Ceph (osd_pool_default_size)");
            return Ok(Redundancy::Copies(copies));
        };
        if table.copies.is_some() {
            return Err(self.document.error("ceph.copies", "with ceph.erasure; a pool has copies or erasure coding"));
        }
        let shards = text.split_once('+').and_then(|(data, parity)| Some((data.parse().ok()?, parity.parse().ok()?)));
        let Some((data, parity)) = shards else {
            let message = format!("{text:?} is not data and parity shards; write for example \"4+2\"");
            return Err(self.document.error("ceph.erasure", message));
        };
        let (access, unit) = version.erasure();
        let rule = "default of ceph.version";
        let stripe_unit_bytes = self.bytes_u32("ceph.stripe_unit", table.stripe_unit, unit as u32, rule)?;
        Ok(Redundancy::Erasure(ErasureCode { data, parity, stripe_unit_bytes, access }))
    }

    fn osds_per_db(&mut self, table: &CephTable, osds: u32, hosts: u32) -> Result<Option<u32>, InputError> {
        match (&table.db, table.osds_per_db) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.missing("ceph.db", "the DB device that OSDs share")),
            (Some(_), stated) => {
                let on_host = (osds / hosts.max(1)).max(1);
                Ok(Some(self.or_default("ceph.osds_per_db", stated, on_host, "one DB device for each host")))
            }
        }
    }

    fn scheduler(&mut self, table: &CephTable, version: CephVersion, drive: &DriveDefaults) -> OsdScheduler {
        let profile = self.or_default("ceph.profile", table.profile, Profile::of(version), "default of ceph.version");
        let (client, recovery) = profile.shares(version);
        let rule = "default of Ceph for this kind of drive";
        let capacity_iops = self.or_default("ceph.capacity_iops", table.capacity_iops, drive.capacity_iops, rule);
        // Pacific counts operations; that of 4 MiB as 1,024 of 4 KiB is inferred from recovery at its limit, 320, 480
        // and 635 MiB/s on four OSDs at 100, 150 and 200 % of 21,500 (ceph.io blog, 2021).
        let (bandwidth, rule) = match version.limits_recovery() {
            true => (capacity_iops as f64 * 4096.0, "4 KiB for each of ceph.capacity_iops"),
            false => (drive.bandwidth, rule),
        };
        let bandwidth = self.or_default("ceph.bandwidth", table.bandwidth, Rate(bandwidth), rule).0;
        OsdScheduler { client, recovery, capacity_iops, bandwidth_bytes_per_s: bandwidth as u64 }
    }

    /// Sets the size of the image, and recovery if it is on.
    fn sized(
        &mut self,
        description: CephDescription,
        below: &[SystemDescription],
        drive: &DriveDefaults,
    ) -> Result<CephDescription, InputError> {
        let table = &self.file.ceph;
        let below_bytes: Vec<u64> = below.iter().map(SystemDescription::capacity_bytes).collect();
        let usable = description.usable_bytes(&below_bytes);
        let capacity_bytes = self.bytes("ceph.size", table.size, usable, "the pool, filled to its full ratio of 95 %");
        if table.recovery_active.is_some() && table.recovery != Some(true) {
            return Err(self.document.error("ceph.recovery_active", "only with ceph.recovery = true"));
        }
        let recovery = (table.recovery == Some(true)).then(|| {
            let rule = "default of Ceph for this kind of drive";
            let active_max =
                self.or_default("ceph.recovery_active", table.recovery_active, drive.recovery_active, rule);
            // The other OSDs recover the full one that was lost.
            let of_osd = below_bytes[0] / description.redundancy.shard_bytes();
            Recovery { active_max, objects: of_osd.div_ceil(u64::from(description.osds.max(2) - 1)) }
        });
        Ok(CephDescription { capacity_bytes, recovery, ..description })
    }
}
