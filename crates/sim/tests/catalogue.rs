//! Every disk drive of the catalogue runs, passes its own checks, and turns at its stated speed.

use crate::common::arrays::{ROWS, UNIT, array, group, run_array};
use crate::common::*;
use headstack_catalogue::{disks, load_drive};
use headstack_sim::array::description::{Incident, IncidentKind, Level};
use headstack_sim::device::DeviceDescription;
use headstack_sim::disk::Disk;
use headstack_sim::drive::description::Retries;
use headstack_workload::Kind;
use serde_json::json;

#[test]
fn mean_latency_of_every_drive_is_half_a_turn() {
    for entry in disks() {
        let mut description = load_drive(entry.id).unwrap().description;
        description.buffer.segments = 0;
        // Single blocks: longer reads also wait for the skew where they cross tracks.
        let single = line(description.geometry.logical_block_bytes, 100.0, 100.0);
        let result = run_closed(&description, single, 1, 20_000);
        let half_a_turn_ns = 30e9 / description.mechanics.rpm;
        // Standard error of 20,000 uniform waits: 0.4 %.
        assert_close(counter(&result, "rotation_ns") as f64 / 20_000.0, half_a_turn_ns, 1.7, entry.id);
    }
}

#[test]
fn every_drive_keeps_its_books() {
    for entry in disks() {
        let description = load_drive(entry.id).unwrap().description;
        for (read_percent, random_percent, queue_depth) in [(67.0, 100.0, 32), (50.0, 10.0, 4), (0.0, 0.0, 1)] {
            let result = run_closed(&description, line(8192, read_percent, random_percent), queue_depth, 3_000);
            assert_eq!((result.count(), result.errors()), (3_000, 0), "{}", entry.id);
        }
    }
}

/// The last block of each drive, and requests over each zone's end.
#[test]
fn every_drive_reaches_its_ends() {
    for entry in disks() {
        let description = load_drive(entry.id).unwrap().description;
        let mut disk = Disk::new(&description, 0).unwrap();
        let (capacity, block) = (disk.capacity_bytes(), u64::from(description.geometry.logical_block_bytes));
        let last = request(Kind::Read, capacity - block, block);
        let everywhere = (0..200).map(|i| request(Kind::Write, capacity / 201 * i / block * block, 100 * block));
        let mut done = 0;
        for (id, request) in std::iter::once(last).chain(everywhere).enumerate() {
            disk.submit(0, id as u32, &request);
        }
        while !disk.is_idle() {
            disk.advance(disk.next_event_ns(), |_| done += 1);
        }
        assert_eq!(done, 201, "{}", entry.id);
    }
}

/// Returns the completions of 200 requests over the whole disk, each issued when the previous one is done.
fn completions(disk: &mut Disk) -> Vec<(u32, u64)> {
    let block = u64::from(disk.description().geometry.logical_block_bytes);
    let capacity = disk.capacity_bytes();
    let mut completions = Vec::new();
    for id in 0..200u32 {
        let at_bytes = u64::from(id) * 7_919 % 200 * (capacity / 201) / block * block;
        let kind = if id % 3 == 0 { Kind::Write } else { Kind::Read };
        let now_ns = completions.last().map_or(0, |&(_, at_ns)| at_ns);
        disk.submit(now_ns, id, &request(kind, at_bytes, 16 * block));
        let before = completions.len();
        while completions.len() == before {
            disk.advance(disk.next_event_ns(), |completion| completions.push((completion.id, completion.at_ns)));
        }
    }
    completions
}

/// It does not depend on the history of the disk that it shares data with, and has draws of its own.
#[test]
fn another_disk_of_a_kind_is_like_new() {
    for entry in disks() {
        let mut description = load_drive(entry.id).unwrap().description;
        description.slow.retries = Some(Retries { probability: 0.3, passes_max: 3 });
        let mut used = Disk::new(&description, 3).unwrap();
        let first = completions(&mut used);
        let of_another = completions(&mut used.another(7));
        assert_eq!(of_another, completions(&mut Disk::new(&description, 7).unwrap()), "{}", entry.id);
        assert_ne!(of_another, first, "{}", entry.id);
    }
}

/// The time to rebuild a shingled drive is that of a sequential stream, far from measured times of resilvers.
#[test]
fn a_rebuild_of_shingled_drives_warns_of_its_time() {
    let rebuilt = |id: &str| {
        let mut group = group(Level::Raid1, 0..2, 1);
        group.spares = vec![2];
        let mut description = array(group, ROWS * UNIT);
        description.devices = vec![DeviceDescription::Disk(load_drive(id).unwrap().description)];
        description.incidents = vec![Incident { at_ns: 0, what: IncidentKind::MemberFails { member: 0 } }];
        let line = json!({"size": "4KiB", "read_percent": 100, "random_percent": 100});
        run_array(&description, line, 1, 400, 0).notes
    };
    let warns = |notes: &[String]| notes.iter().any(|note| note.starts_with("rebuild of shingled (SMR) drives"));
    assert!(warns(&rebuilt("wd-red-4tb-smr")));
    assert!(!warns(&rebuilt("wd-red-plus-4tb")));
}
