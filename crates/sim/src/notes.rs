//! Notes for users on what a simulated system does not model.

use headstack_result::RunResult;
use headstack_workload::Workload;

use crate::description::array::{ArrayDescription, CacheWrites, Group};
use crate::description::device::DeviceDescription;
use crate::description::drive::{SlowProcesses, WriteCache};
use crate::description::system::SystemDescription;

/// A note on a workload's requests on a drive whose sectors are larger than its blocks (512e).
pub fn note_of_alignment(system: &SystemDescription, workload: &Workload) -> Option<String> {
    match system {
        SystemDescription::Drive(DeviceDescription::Disk(drive)) => {
            let geometry = &drive.geometry;
            workload.note_of_alignment(geometry.logical_block_bytes, geometry.physical_sector_bytes)
        }
        // Solid-state drives and volumes have no sectors of a medium, and arrays no one size of theirs.
        SystemDescription::Drive(DeviceDescription::Ssd(_) | DeviceDescription::Volume(_))
        | SystemDescription::Array(_) => None,
    }
}

/// A note on latencies of a system that has no tail of its own.
pub fn note_of_tail(system: &SystemDescription) -> Option<String> {
    let quiet = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.slow == SlowProcesses::default(),
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => false,
    };
    let quiet = match system {
        SystemDescription::Drive(device) => quiet(device),
        SystemDescription::Array(array) => array.devices.iter().all(quiet),
    };
    let note = "beyond p99 the tail is geometry and queueing only: retries, recalibration and scans are off";
    quiet.then(|| note.to_owned())
}

/// A note on what OpenZFS does and its levels here do not.
pub fn note_of_openzfs(system: &SystemDescription) -> Option<String> {
    let SystemDescription::Array(array) = system else { return None };
    let has_records = array.groups.iter().any(|group| group.level.rules().has_records);
    let note = "of OpenZFS only the layout of RAIDZ and dRAID is modelled: no ARC, no transaction groups, no ZIL, no compression; \
                a pool with them answers cached reads and asynchronous writes many times faster";
    has_records.then(|| note.to_owned())
}

/// A note on the cost of flushes and forced writes, where the model assumes it: what measured devices of the class do with
/// one writer is in docs/accuracy.md.
pub fn note_of_flushes(system: &SystemDescription) -> Option<String> {
    let devices = match system {
        SystemDescription::Drive(device) => std::slice::from_ref(device),
        SystemDescription::Array(array) if acknowledges_writes(array) => return None,
        SystemDescription::Array(array) => &array.devices[..],
    };
    let assumed = devices.iter().find_map(|device| match device {
        DeviceDescription::Ssd(ssd) if ssd.buffer.power_loss_protected => {
            Some("taken as free, since the SSD has capacitors; measured ones do 1,600 to 64,000 synchronous writes a second")
        }
        DeviceDescription::Ssd(_) => {
            Some("taken as one program of the buffer; measured SSDs without capacitors do 150 to 3,000 synchronous writes a second")
        }
        DeviceDescription::Disk(disk) if disk.buffer.write_cache == WriteCache::Protected => {
            Some("taken as free, since the write cache counts as protected; without protection each takes a turn of the disk or more")
        }
        DeviceDescription::Disk(_) | DeviceDescription::Volume(_) => None,
    })?;
    Some(format!("the flush cost of this drive is not known: {assumed}"))
}

/// Whether a controller's cache answers writes and flushes for the members.
fn acknowledges_writes(array: &ArrayDescription) -> bool {
    let is_back = |writes: CacheWrites| match writes {
        CacheWrites::Back => true,
        CacheWrites::Through | CacheWrites::Around => false,
    };
    array.controller.cache.as_ref().is_some_and(|cache| is_back(cache.writes))
}

/// Warning about a rebuild onto drive-managed shingled (SMR) drives. Rebuilds write the spare in ascending order, which such a
/// drive takes at its full rate; resilvers of file systems do not, and take many times as long.
pub fn note_of_shingled_rebuild(system: &SystemDescription, result: &RunResult) -> Option<String> {
    let SystemDescription::Array(array) = system else { return None };
    let is_shingled = |&member: &u32| match array.device(member) {
        DeviceDescription::Disk(drive) => drive.shingles.is_some(),
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => false,
    };
    let fills = |group: &Group| group.spares.iter().chain(&group.members).any(is_shingled);
    let rebuilds = result.counters.iter().any(|counter| counter.name == "rebuild_commands" && counter.value > 0);
    let note = "rebuild of shingled (SMR) drives: simulated as one ascending stream of writes; a RAIDZ resilver of such a drive was \
                measured at over 9 days against 16 h, so do not plan with this rebuild time";
    (rebuilds && array.groups.iter().any(fills)).then(|| note.to_owned())
}
