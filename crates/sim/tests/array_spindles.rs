//! Independent spindles: the wait of a request to several disks, compared with order statistics. The mean of the
//! largest of n waits that are uniform within a turn is n/(n+1) turns.

use crate::common::arrays::{array, group, run_array_seeded};
use crate::common::{TURN_NS, assert_close, bare_drive, read, zone};
use headstack_sim::array::Array;
use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind, Level, SmallWrites, Spindles};
use headstack_sim::device::DeviceDescription;
use headstack_sim::disk::Disk;
use headstack_sim::drive::description::{DriveDescription, SeekCurve};
use headstack_sim::drive::mechanics::SpindleVariation;
use serde_json::{Value, json};

/// Time of every seek.
const SEEK_NS: f64 = 4e6;
/// Sectors of a track: chunks of 4 KiB never cross one.
const TRACK: u64 = 128;
/// Chunk size, and size of a small request.
const CHUNK: u64 = 4096;
const TURN: f64 = TURN_NS as f64;
/// Time of a chunk under the head.
const TRANSFER_NS: f64 = TURN / TRACK as f64 * (CHUNK / 512) as f64;
/// Bytes of a member that its group uses.
const MEMBER_BYTES: u64 = 200_000_000 / CHUNK * CHUNK;

fn constant_seek_drive() -> DriveDescription {
    let mut drive = bare_drive();
    drive.mechanics.seek = SeekCurve::Constant(SEEK_NS as u64);
    (drive.geometry.heads, drive.geometry.logical_blocks) = (4, 1000 * 4 * TRACK);
    drive.geometry.zones = vec![zone(0, 999, TRACK as u32)];
    drive
}

fn constant_seek_array(level: Level, members: u32, spindles: Spindles) -> ArrayDescription {
    let mut group = group(level, 0..members, 1);
    (group.chunk_bytes, group.member_bytes) = (CHUNK, MEMBER_BYTES);
    group.small_writes = SmallWrites::ReadModifyWrite;
    let capacity_bytes = group.capacity_bytes();
    let mut array = array(group, capacity_bytes);
    (array.devices, array.spindles) = (vec![DeviceDescription::Disk(constant_seek_drive())], spindles);
    array
}

/// Returns the mean of the largest of `n` uniform waits.
fn largest_wait_ns(n: u32) -> f64 {
    TURN * f64::from(n) / f64::from(n + 1)
}

fn line(size_bytes: u64, read_percent: u32) -> Value {
    let size = format!("{size_bytes}B");
    json!({"size": size, "align": size, "read_percent": read_percent, "random_percent": 100})
}

/// Mean latency at queue depth 1, over seeds.
fn mean_latency_ns(array: &ArrayDescription, line: &Value, seeds: std::ops::Range<u64>, requests: u64) -> f64 {
    let count = seeds.end - seeds.start;
    let mean = |seed| run_array_seeded(array, line.clone(), 1, requests, 0, seed).mean_latency_ns();
    seeds.map(mean).sum::<f64>() / count as f64
}

/// Speeds so different that each run sees many relative phases.
const DRIFTING: Spindles = Spindles { synchronized: false, speed_tolerance: 0.005 };

fn assert_drifting(array: &ArrayDescription, line: &Value, expected_ns: f64, what: &str) {
    assert_close(mean_latency_ns(array, line, 0..4, 4000), expected_ns, 2.0, what);
}

#[test]
fn raid_1_writes_wait_for_the_largest_of_all_rotational_waits() {
    for members in 2..=8 {
        let expected_ns = SEEK_NS + largest_wait_ns(members) + TRANSFER_NS;
        let array = constant_seek_array(Level::Raid1, members, DRIFTING);
        assert_drifting(&array, &line(CHUNK, 0), expected_ns, &format!("RAID 1 of {members}, speeds apart"));
        // At one speed only the phases differ; each seed draws new ones.
        let equal_speeds = Spindles { synchronized: false, speed_tolerance: 0.0 };
        let array = constant_seek_array(Level::Raid1, members, equal_speeds);
        let found_ns = mean_latency_ns(&array, &line(CHUNK, 0), 0..80, 120);
        assert_close(found_ns, expected_ns, 2.0, &format!("RAID 1 of {members}, phases apart"));
    }
}

#[test]
fn synchronized_spindles_wait_as_one() {
    for members in [2, 5, 8] {
        let array = constant_seek_array(Level::Raid1, members, Spindles::SYNCHRONIZED);
        let expected_ns = SEEK_NS + largest_wait_ns(1) + TRANSFER_NS;
        assert_drifting(&array, &line(CHUNK, 0), expected_ns, &format!("synchronized RAID 1 of {members}"));
    }
}

#[test]
fn raid_10_writes_wait_for_the_largest_of_the_copies_they_touch() {
    for members in [2, 4, 6, 8] {
        let array = constant_seek_array(Level::Raid10, members, DRIFTING);
        let of = |waits| SEEK_NS + largest_wait_ns(waits) + TRANSFER_NS;
        assert_drifting(&array, &line(CHUNK, 0), of(2), &format!("RAID 10 of {members}, one chunk"));
        let stripe = CHUNK * u64::from(members / 2);
        assert_drifting(&array, &line(stripe, 0), of(members), &format!("RAID 10 of {members}, a stripe"));
        assert_drifting(&array, &line(CHUNK, 100), of(1), &format!("RAID 10 of {members}, reads"));
    }
}

#[test]
fn raid_5_waits_for_the_largest_of_the_members_it_touches() {
    for members in 3..=8 {
        let array = constant_seek_array(Level::Raid5, members, DRIFTING);
        // Old data and old parity are read; a turn after the later of the two began, both are written.
        let small_ns = SEEK_NS + largest_wait_ns(2) + TURN + TRANSFER_NS;
        assert_drifting(&array, &line(CHUNK, 0), small_ns, &format!("RAID 5 of {members}, small writes"));
        let stripe_ns = SEEK_NS + largest_wait_ns(members) + TRANSFER_NS;
        let stripe = line(CHUNK * u64::from(members - 1), 0);
        assert_drifting(&array, &stripe, stripe_ns, &format!("RAID 5 of {members}, full stripes"));
        // One read in `members` is for the missing member, and waits for all others.
        let mut degraded = array;
        degraded.incidents = vec![Incident { at_ns: 0, what: IncidentKind::MemberFails { member: 0 } }];
        let missing = 1.0 / f64::from(members);
        let wait_ns = (1.0 - missing) * largest_wait_ns(1) + missing * largest_wait_ns(members - 1);
        let expected_ns = SEEK_NS + wait_ns + TRANSFER_NS;
        assert_drifting(&degraded, &line(CHUNK, 100), expected_ns, &format!("RAID 5 of {members}, degraded reads"));
    }
}

#[test]
fn phases_and_speeds_depend_only_on_seed_and_member() {
    let spindles = Spindles { synchronized: false, speed_tolerance: 0.001 };
    let of = |seed| spindles.variations(seed).take(100).collect::<Vec<_>>();
    assert_eq!(of(7), of(7));
    // A neighbouring seed is no shifted copy.
    assert!(of(7).iter().all(|one| !of(8).contains(one)));
    let drawn = of(7);
    assert!(drawn.iter().all(|one| (0.999..=1.001).contains(&one.speed)));
    let count = drawn.iter().filter(|one| one.phase >> 62 == 0).count();
    assert!((12..=40).contains(&count), "{count} of 100 phases are in the first quarter of a turn");
}

/// Actuators share a spindle: equal accesses at their halves of a disk end together, whatever its phase.
#[test]
fn actuators_of_a_disk_share_its_spindle() {
    let mut drive = constant_seek_drive();
    drive.actuators = 2;
    let half = drive.geometry.logical_blocks / 2;
    let answers_ns = |phase| {
        let mut disk = Disk::new(&drive, 1).expect("two heads for each of two actuators");
        disk.vary_spindle(SpindleVariation { phase, speed: 1.0 });
        disk.submit(0, 0, &read(17, 8));
        disk.submit(0, 1, &read(half + 17, 8));
        let mut done = vec![];
        disk.advance(2 * TURN_NS, |completion| done.push(completion.at_ns));
        done
    };
    let [first_ns, second_ns] = answers_ns(0)[..] else { panic!("two reads") };
    assert_eq!(first_ns, second_ns);
    // A quarter of a turn ahead, the sectors come that much earlier.
    let ahead_ns = answers_ns(1 << 62);
    assert_eq!(ahead_ns[0], ahead_ns[1]);
    assert_eq!((first_ns + TURN_NS - ahead_ns[0]) % TURN_NS, TURN_NS / 4);
}

#[test]
fn spindles_beyond_a_tolerance_are_refused() {
    for tolerance in [-0.001, 0.021, f64::NAN] {
        let spindles = Spindles { synchronized: false, speed_tolerance: tolerance };
        let error = Array::new(&constant_seek_array(Level::Raid1, 2, spindles), 1).expect_err("out of range");
        assert_eq!(error.key, "spindles.speed_tolerance");
    }
}
