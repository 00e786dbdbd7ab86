//! Notes for users on effects that a simulated system does not include.

use headstack_result::RunResult;
use headstack_workload::Workload;

use crate::description::array::{ArrayDescription, CacheWrites, Group};
use crate::description::device::DeviceDescription;
use crate::description::drive::{SlowProcesses, WriteCache};
use crate::description::system::SystemDescription;

/// Returns a note on misaligned requests of a workload, for a drive whose sectors are larger than its blocks (512e).
pub fn note_of_alignment(system: &SystemDescription, workload: &Workload) -> Option<String> {
    match system {
        SystemDescription::Drive(DeviceDescription::Disk(drive)) => {
            let geometry = &drive.geometry;
            workload.note_of_alignment(geometry.logical_block_bytes, geometry.physical_sector_bytes)
        }
        // SSDs and volumes have no physical sectors, and arrays no single size of them.
        SystemDescription::Drive(DeviceDescription::Ssd(_) | DeviceDescription::Volume(_))
        | SystemDescription::Array(_) => None,
    }
}

/// The note on the tail of latencies of disks whose slow processes are off, as this version writes it and as results of
/// earlier versions hold it.
pub const NOTES_OF_TAIL: [&str; 2] = [
    "p99.9 excludes retries, recalibration and background scans; add them in [slow] of the drive's file",
    "beyond p99 the tail is geometry and queueing only: retries, recalibration and scans are off",
];

/// Returns a note on latencies of a system that has no tail of its own.
pub fn note_of_tail(system: &SystemDescription) -> Option<String> {
    let quiet = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.slow == SlowProcesses::default(),
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => false,
    };
    let quiet = match system {
        SystemDescription::Drive(device) => quiet(device),
        SystemDescription::Array(array) => array.devices.iter().all(quiet),
    };
    quiet.then(|| NOTES_OF_TAIL[0].to_owned())
}

/// The note on pools of OpenZFS.
pub const NOTE_OF_OPENZFS: &str = "only the layout of RAIDZ and dRAID is modelled, not ARC, transaction groups, ZIL or \
                                   compression: a real pool serves cached reads and asynchronous writes many times faster";

/// Returns a note on behaviour of OpenZFS that its levels here do not model.
pub fn note_of_openzfs(system: &SystemDescription) -> Option<String> {
    let SystemDescription::Array(array) = system else { return None };
    let has_records = array.groups.iter().any(|group| group.level.rules().has_records);
    has_records.then(|| NOTE_OF_OPENZFS.to_owned())
}

/// Returns a note on the cost of flushes and forced writes where the model assumes it; docs/accuracy.md has the
/// measured cost of devices of the class with one writer.
pub fn note_of_flushes(system: &SystemDescription) -> Option<String> {
    let devices = match system {
        SystemDescription::Drive(device) => std::slice::from_ref(device),
        SystemDescription::Array(array) if acknowledges_writes(array) => return None,
        SystemDescription::Array(array) => &array.devices[..],
    };
    let assumed = devices.iter().find_map(|device| match device {
        DeviceDescription::Ssd(ssd) if ssd.buffer.power_loss_protected => {
            Some("assumed to be free, since the SSD has capacitors; such SSDs measured 1,600 to 64,000 synchronous writes/s")
        }
        DeviceDescription::Ssd(_) => {
            Some("assumed to be one program of the buffer; SSDs without capacitors measured 150 to 3,000 synchronous writes/s")
        }
        DeviceDescription::Disk(disk) if disk.buffer.write_cache == WriteCache::Protected => {
            Some("assumed to be free, since the write cache is described as protected; without protection each takes a revolution or more")
        }
        DeviceDescription::Disk(_) | DeviceDescription::Volume(_) => None,
    })?;
    Some(format!("this drive has no measured flush cost: {assumed}"))
}

/// Whether a controller's cache acknowledges writes and flushes for the members.
fn acknowledges_writes(array: &ArrayDescription) -> bool {
    let is_back = |writes: CacheWrites| match writes {
        CacheWrites::Back => true,
        CacheWrites::Through | CacheWrites::Around => false,
    };
    array.controller.cache.as_ref().is_some_and(|cache| is_back(cache.writes))
}

/// Warns about a rebuild onto drive-managed shingled (SMR) drives. Rebuilds write the spare in ascending order, which
/// such a drive accepts at its full rate; resilvers of file systems do not, and take many times as long.
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
