//! OpenZFS as a layer: closed forms, invariants, data that survive power cuts, and measured cases.

mod cases;
mod groups;
mod log;
mod memory;
mod power;
mod scan_rates;
mod scans;

use headstack_catalogue::load_device;
use headstack_result::Counter;
use headstack_sim::SystemDescription;
use headstack_sim::array::description::Level;
use headstack_sim::device::DeviceDescription;
use headstack_sim::ssd::description::SsdDescription;
use headstack_sim::stack::description::{LayerDescription, ZfsDescription, ZfsParameters};
use headstack_sim::volume::description::{Accounting, Counts, Latency, Limit, LimitScope, VolumeDescription};

use super::over;
use crate::common::US;
use crate::common::arrays;
use crate::common::bench::Bench;
use crate::common::flash::small_ssd;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const SECOND: u64 = 1_000_000_000;
pub const RECORD: u64 = 128 * KIB;

/// OpenZFS 2.4 with 128 MiB of dirty data and 64 MiB of ARC, whose syncs take no processor time.
pub fn small(capacity_bytes: u64) -> ZfsDescription {
    ZfsDescription {
        dirty_data_max_bytes: 128 * MIB,
        arc_max_bytes: 64 * MIB,
        arc_metadata_share: 0.0,
        sync_record_ns: 0,
        ..ZfsDescription::new(ZfsParameters::v2_4(), 1 << 30, capacity_bytes)
    }
}

pub fn zfs(zfs: &ZfsDescription, below: &[SystemDescription]) -> SystemDescription {
    over(LayerDescription::Zfs(Box::new(zfs.clone())), below)
}

pub fn ssd() -> SystemDescription {
    drive(small_ssd())
}

pub fn drive(ssd: SsdDescription) -> SystemDescription {
    SystemDescription::Drive(DeviceDescription::Ssd(ssd))
}

/// A device that transfers `bytes_per_s` and answers after `latency_ns`, whatever it holds.
pub fn sink(capacity_bytes: u64, bytes_per_s: u64, latency_ns: u64) -> SystemDescription {
    let latency = Latency { floor_ns: latency_ns, median_ns: latency_ns + 1, p99_ns: latency_ns + 2 };
    let limit = Limit { counts: Counts::Bytes, of: LimitScope::Both, per_s: bytes_per_s, burst: None };
    SystemDescription::Drive(DeviceDescription::Volume(VolumeDescription {
        name: "sink".to_owned(),
        capacity_bytes,
        block_bytes: 512,
        accounting: Accounting { unit_bytes: None, merges: false, whole_units: false },
        limits: vec![limit],
        read: latency,
        write: latency,
        queue_depth: 1024,
        slack_ns: 0,
        read_crowding_ppm: 0,
    }))
}

/// A sink that is fast.
pub fn fast() -> SystemDescription {
    sink(16 << 30, 10_000_000_000, 20 * US)
}

/// A counter of the system since it was created.
pub fn count(bench: &Bench, name: &str) -> u64 {
    let (_, counters) = bench.system.snapshot().since(&Default::default());
    let counter = counters.iter().find(|counter: &&Counter| counter.name == name);
    counter.unwrap_or_else(|| panic!("no counter {name}")).value
}

/// An array of a catalogue drive.
pub fn array_of(drive: &str, level: Level, members: u32, chunk_bytes: u64, record_bytes: u64) -> SystemDescription {
    let device = load_device(drive).unwrap().description();
    let mut group = arrays::group(level, 0..members, 1);
    (group.chunk_bytes, group.record_bytes, group.rebuild.step_bytes) = (chunk_bytes, record_bytes, 4 * chunk_bytes);
    group.member_bytes = device.capacity_bytes() / MIB * MIB;
    let mut array = arrays::array(group, 0);
    array.devices = vec![device];
    array.luns[0].length_bytes = array.groups[0].capacity_bytes();
    SystemDescription::Array(array)
}
