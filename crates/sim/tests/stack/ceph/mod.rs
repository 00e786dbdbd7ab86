//! Ceph RBD as a layer: closed forms, erasure coding, deferred writes, recovery, power cuts and measured cases.

mod cases;
mod paths;
mod power;
mod recovery;

use headstack_result::Counter;
use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::SsdDescription;
use headstack_sim::stack::description::{
    CephDescription, ClusterNetwork, ErasureAccess, ErasureCode, FailureDomain, LayerDescription, OsdCpu, OsdScheduler,
    Redundancy, Share,
};

use super::over;
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const SECOND: u64 = 1_000_000_000;

/// A cluster whose network and processors cost nothing.
pub fn free(osds: u32, hosts: u32, redundancy: Redundancy) -> CephDescription {
    let share = Share { reservation_percent: 50, weight: 1, limit_percent: None };
    CephDescription {
        capacity_bytes: 64 * MIB,
        osds,
        hosts,
        osds_per_db: None,
        failure_domain: FailureDomain::Host,
        redundancy,
        prefer_deferred_bytes: 0,
        deferred_batch: 16,
        deferred_max: 200,
        defer_interval_ns: 3 * SECOND,
        record_bytes: 2048,
        network: ClusterNetwork { round_trip_ns: 0, bytes_per_s: u64::MAX, clients: 1 },
        cpu: OsdCpu { threads: 16, read_ns: 0, shard_read_ns: 0, write_ns: 0, bytes_per_s: u64::MAX },
        read_delay_ns: 0,
        write_delay_ns: 0,
        scheduler: OsdScheduler {
            client: share,
            recovery: share,
            capacity_iops: 21_500,
            bandwidth_bytes_per_s: 1200 * MIB,
        },
        recovery: None,
    }
}

/// Erasure coding with a stripe unit in KiB.
pub fn erasure(data: u32, parity: u32, unit_kib: u64, access: ErasureAccess) -> Redundancy {
    Redundancy::Erasure(ErasureCode { data, parity, stripe_unit_bytes: (unit_kib * KIB) as u32, access })
}

pub fn ceph(description: &CephDescription, below: &[SystemDescription]) -> SystemDescription {
    over(LayerDescription::Ceph(Box::new(description.clone())), below)
}

pub fn drive(ssd: SsdDescription) -> SystemDescription {
    SystemDescription::Drive(DeviceDescription::Ssd(ssd))
}

pub fn ssd() -> SystemDescription {
    drive(small_ssd())
}

/// An SSD whose cache loses data at a power cut.
pub fn forgetful() -> SystemDescription {
    let mut ssd = small_ssd();
    ssd.buffer.power_loss_protected = false;
    drive(ssd)
}

/// A counter of the system since it was created.
pub fn count(bench: &Bench, name: &str) -> u64 {
    let (_, counters) = bench.system.snapshot().since(&Default::default());
    let counter = counters.iter().find(|counter: &&Counter| counter.name == name);
    counter.unwrap_or_else(|| panic!("no counter {name}")).value
}
