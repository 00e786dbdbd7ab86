//! The formula suite of erasure codes, RAIDZ and dRAID: which accesses to its members each takes, what it survives, and
//! how it is rebuilt.

use crate::common::MS;
use crate::common::arrays::{ROWS, UNIT, array, assert_answers_each_once, capacity, group, request, serve};
use crate::common::bench::Bench;
use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind, Level};
use headstack_sim::array::{Array, ArrayCounters};
use headstack_sim::gauges::GroupHealth;
use headstack_workload::{Kind, Request};

const KIB: u64 = 1 << 10;
const SECTOR: u64 = 4 * KIB;
/// A row of dRAID on one member.
const DRAID_ROW: u64 = 16 << 20;
/// Rows of dRAID that a member of the tests holds: it has 204.8 MB.
const DRAID_ROWS: u64 = 12;

fn erasure(data: u32, parity: u32, members: u32) -> ArrayDescription {
    let level = Level::Erasure { data, parity };
    array(group(level, 0..members, 1), capacity(level, members.into(), 1))
}

fn records(level: Level, members: u32, record_bytes: u64, member_bytes: u64) -> ArrayDescription {
    let mut group = group(level, 0..members, 1);
    (group.chunk_bytes, group.record_bytes, group.member_bytes) = (SECTOR, record_bytes, member_bytes);
    let capacity_bytes = group.capacity_bytes();
    array(group, capacity_bytes)
}

fn raidz(parity: u32, members: u32, record_bytes: u64) -> ArrayDescription {
    records(Level::Raidz { parity }, members, record_bytes, ROWS * UNIT)
}

fn draid(parity: u32, data: u32, spares: u32, members: u32) -> ArrayDescription {
    let record_bytes = u64::from(data) * 32 * KIB;
    let mut description = records(Level::Draid { parity, data, spares }, members, record_bytes, DRAID_ROWS * DRAID_ROW);
    (description.groups[0].rebuild.step_bytes, description.groups[0].rebuild.steps) = (DRAID_ROW, DRAID_ROWS as u32);
    description
}

fn counts(description: &ArrayDescription, request: Request) -> ArrayCounters {
    serve(description, 0, &[request]).0.counters()
}

/// Returns (data reads, parity reads, data writes, parity writes) of one write.
fn write_counts(description: &ArrayDescription, offset: u64, length: u64) -> (u64, u64, u64, u64) {
    let c = counts(description, request(Kind::Write, offset, length));
    (c.data_reads, c.parity_reads, c.data_writes, c.parity_writes)
}

/// Returns (reads, those that replace unreadable ones) of one read.
fn read_counts(description: &ArrayDescription, offset: u64, length: u64) -> (u64, u64) {
    let c = counts(description, request(Kind::Read, offset, length));
    assert_eq!((c.parity_reads, c.data_writes, c.parity_writes), (0, 0, 0));
    (c.data_reads, c.reconstruction_reads)
}

fn failed(mut description: ArrayDescription, members: &[u32]) -> ArrayDescription {
    let fail = |&member| Incident { at_ns: 0, what: IncidentKind::MemberFails { member } };
    description.incidents = members.iter().map(fail).collect();
    description
}

/// Returns all sets of `size` members.
fn subsets(members: u32, size: u32) -> Vec<Vec<u32>> {
    let all = (0u32..1 << members).filter(|set| set.count_ones() == size);
    all.map(|set| (0..members).filter(|member| set >> member & 1 == 1).collect()).collect()
}

fn loses(description: &ArrayDescription, members: &[u32]) -> bool {
    let mut array = Array::new(&failed(description.clone(), members), 1).unwrap();
    array.advance(0, &mut vec![]);
    array.data_loss().is_some()
}

/// Whether reads at regular distances are all served.
fn is_readable(bench: &mut Bench, capacity_bytes: u64, every_bytes: u64) -> bool {
    let mut reads = (0..capacity_bytes / every_bytes).map(|at| request(Kind::Read, at * every_bytes, 4 * KIB));
    reads.all(|read| bench.serve(&read).1.is_empty())
}

#[test]
fn erasure_codes_up_to_8_plus_8_match_the_cost_formula() {
    for data in 1..=8u64 {
        for parity in 1..=8u64 {
            let description = erasure(data as u32, parity as u32, (data + parity) as u32);
            assert_eq!(description.groups[0].capacity_bytes(), data * ROWS * UNIT);
            let small = write_counts(&description, 4096, 4096);
            assert_eq!(small, (0, (1 + parity).min(data - 1), 1, parity), "{data}+{parity}");
            assert_eq!(write_counts(&description, 0, data * UNIT), (0, 0, data, parity), "{data}+{parity}");
            assert_eq!(read_counts(&description, 4096, 4096), (1, 0), "{data}+{parity}");
            // Row 0 has its data on members from 0 on where parity wraps round from the last.
            let first = (0..data + parity)
                .find(|&member| read_counts(&failed(description.clone(), &[member as u32]), 4096, 4096).1 > 0);
            let with_first_missing = failed(description, &[first.expect("a member has the first unit") as u32]);
            assert_eq!(read_counts(&with_first_missing, 4096, 4096), (data, data), "{data}+{parity}");
        }
    }
}

#[test]
fn codes_are_dealt_over_groups_of_their_width() {
    let description = erasure(4, 2, 12);
    assert_eq!(description.groups[0].capacity_bytes(), 8 * ROWS * UNIT);
    // Two full rows, one of each group of six.
    assert_eq!(write_counts(&description, 0, 8 * UNIT), (0, 0, 8, 4));
    assert!(!loses(&description, &[0, 1, 6, 11]), "two of each");
    assert!(loses(&description, &[0, 1, 2]));
}

#[test]
fn codes_and_raidz_survive_as_many_failures_as_they_have_parities_and_no_more() {
    let all = [
        (erasure(2, 1, 3), 1),
        (erasure(1, 3, 4), 3),
        (erasure(3, 2, 5), 2),
        (erasure(4, 3, 7), 3),
        (raidz(1, 3, 128 * KIB), 1),
        (raidz(2, 5, 16 * KIB), 2),
        (raidz(3, 6, 12 * KIB), 3),
        (raidz(1, 2, 4 * KIB), 1),
    ];
    for (description, parity) in all {
        let members = description.members.len() as u32;
        for size in 1..=parity {
            for set in subsets(members, size) {
                assert!(!loses(&description, &set), "{} {set:?}", description.groups[0].level);
                let mut bench = Bench::from(&failed(description.clone(), &set));
                let capacity_bytes = description.luns[0].length_bytes;
                assert!(is_readable(&mut bench, capacity_bytes, capacity_bytes / 40 / 512 * 512), "{set:?}");
            }
        }
        for set in subsets(members, parity + 1) {
            assert!(loses(&description, &set), "{} {set:?}", description.groups[0].level);
        }
    }
}

#[test]
fn raidz_reads_and_writes_records() {
    // 32 sectors on four data columns.
    let z2 = raidz(2, 6, 128 * KIB);
    assert_eq!(read_counts(&z2, 0, 4 * KIB), (4, 0), "the checksum is of the record");
    // Eight rows of six sectors: the next record begins on the same member, and its columns continue where these end.
    assert_eq!(read_counts(&z2, 64 * KIB, 128 * KIB), (4, 0), "two records, joined");
    // 32 sectors on five data columns, six or seven rows each: two of the ten columns continue where a longer one
    // ended.
    assert_eq!(read_counts(&raidz(2, 7, 128 * KIB), 64 * KIB, 128 * KIB), (8, 0), "two records");
    assert_eq!(write_counts(&z2, 0, 128 * KIB), (0, 0, 4, 2));
    assert_eq!(write_counts(&z2, 0, 4 * KIB), (0, 4, 4, 2), "the record is read, and written whole");
    assert_eq!(counts(&z2, request(Kind::Write, 128 * KIB, 256 * KIB)).full_rows, 2);
    // A record of two sectors touches two members, and four when it is written.
    let small = raidz(2, 6, 8 * KIB);
    assert_eq!(read_counts(&small, 4 * KIB, 4 * KIB), (2, 0));
    assert_eq!(write_counts(&small, 0, 8 * KIB), (0, 0, 2, 2));
    // Of 4096 x 6 / 4 sectors 6 go to each record of 8 KiB: two of data, two of parity, two of padding.
    assert_eq!(small.groups[0].capacity_bytes(), ROWS * UNIT / SECTOR * 6 / 6 * 8 * KIB);
    // The first record has parity on members 0 and 1, data on 2 to 5.
    assert_eq!(read_counts(&failed(z2.clone(), &[0]), 0, 4 * KIB), (4, 0));
    assert_eq!(read_counts(&failed(z2.clone(), &[3]), 0, 4 * KIB), (4, 1));
    assert_eq!(read_counts(&failed(z2.clone(), &[3, 5]), 0, 4 * KIB), (4, 2));
    assert_eq!(write_counts(&failed(z2, &[3]), 0, 128 * KIB), (0, 0, 3, 2));
}

#[test]
fn raidz_capacity_depends_on_the_record_size() {
    let share = |parity, members, kib: u64| {
        let held = raidz(parity, members, kib * KIB).groups[0].capacity_bytes() as f64;
        (held / (f64::from(members) * (ROWS * UNIT) as f64) * 1000.0).round() / 10.0
    };
    // The members of the tests are small: a record that no longer fits is up to 1 % of them.
    for (parity, members, kib, percent) in
        [(1, 4, 4, 50.0), (1, 4, 128, 72.7), (2, 6, 8, 33.3), (2, 6, 128, 66.7), (2, 10, 16, 66.7), (3, 7, 64, 57.1)]
    {
        let held = share(parity, members, kib);
        assert!((held - percent).abs() < 0.8, "raidz{parity} x {members}, {kib} KiB: {held} %");
    }
}

#[test]
fn a_spare_is_rebuilt_from_the_survivors() {
    for (description, reads_a_step) in
        [(erasure(4, 2, 6), 4), (erasure(3, 3, 6), 3), (raidz(1, 4, 128 * KIB), 3), (raidz(2, 7, 128 * KIB), 6)]
    {
        let level = description.groups[0].level;
        let members = description.members.len() as u32;
        let mut with_spare = description.groups[0].clone();
        with_spare.spares = vec![members];
        let mut description = array(with_spare, description.luns[0].length_bytes);
        description.incidents = vec![Incident { at_ns: MS, what: IncidentKind::MemberFails { member: 1 } }];
        let mut array = Array::new(&description, 1).unwrap();
        while array.next_event_ns() != u64::MAX {
            array.advance(array.next_event_ns(), &mut vec![]);
        }
        assert_eq!(array.counters().rebuilt_bytes, ROWS * UNIT, "{level}");
        assert_eq!(array.counters().rebuild_commands, ROWS / 4 * (reads_a_step + 1), "{level}");
        assert_eq!(array.rebuilds_ns().len(), 1, "{level}");
        assert!(array.data_loss().is_none());
    }
}

#[test]
fn draid_reads_and_writes_records_of_its_groups() {
    let description = draid(2, 4, 1, 9);
    // (C - S) x D / (D + P) of the members: groups of 6 columns in 8 x 12.
    assert_eq!(description.groups[0].capacity_bytes(), 8 * DRAID_ROWS / 6 * 4 * DRAID_ROW);
    let record = 128 * KIB;
    assert_eq!(read_counts(&description, 0, 4 * KIB), (4, 0));
    assert_eq!(write_counts(&description, record, record), (0, 0, 4, 2));
    assert_eq!(write_counts(&description, 0, 4 * KIB), (0, 4, 4, 2));
}

/// As many as there are parities may always fail; more only if they share no group.
#[test]
fn draid_survives_failures_in_distinct_groups() {
    for (parity, data, spares, members) in [(1, 2, 1, 7), (2, 2, 1, 6), (1, 3, 0, 4)] {
        let description = draid(parity, data, spares, members);
        for size in 1..=parity {
            for set in subsets(members, size) {
                assert!(!loses(&description, &set), "{set:?}");
            }
        }
        let lost = subsets(members, parity + 1).iter().filter(|set| loses(&description, set)).count();
        let of = subsets(members, parity + 1).len();
        assert!(lost > of / 2 && (spares > 0 || lost == of), "{lost} of {of}");
        assert!(loses(&description, &(0..members).collect::<Vec<_>>()));
    }
}

/// Members fail one after the other, each rebuilt into the distributed spares before the next: data moved to a member
/// that fails are restored too, and one more may fail than there are spares.
#[test]
fn distributed_spares_replace_failed_drives_and_can_fail() {
    let description = draid(1, 3, 2, 7);
    for set in subsets(7, 2) {
        for (first, second) in [(set[0], set[1]), (set[1], set[0])] {
            let mut bench = Bench::from(&description);
            for member in [first, second] {
                bench.system.strike(bench.now_ns, IncidentKind::MemberFails { member }).unwrap();
                let gauge = &bench.system.gauges(bench.now_ns).groups[0];
                assert_eq!(gauge.state, GroupHealth::Rebuilding, "{first} {second}");
                bench.settle();
                assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Healthy, "{first} {second}");
            }
            assert!(is_readable(&mut bench, description.luns[0].length_bytes, 3 << 20), "{first} {second}");
            let third = (0..7).find(|member| !set.contains(member)).unwrap();
            bench.system.strike(bench.now_ns, IncidentKind::MemberFails { member: third }).unwrap();
            assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Degraded, "{first} {second}");
            assert!(is_readable(&mut bench, description.luns[0].length_bytes, 3 << 20), "{first} {second} {third}");
        }
    }
}

/// The remaining members share the work of a rebuild: eleven finish sooner than one.
#[test]
fn a_distributed_spare_is_filled_sooner_than_one_drive() {
    let took_ns = |spares: u32, hot: u32| {
        let mut description = draid(1, 1, spares, 12);
        for member in 12..12 + hot {
            description.members.push(description.members[0].clone());
            description.members.last_mut().unwrap().name = format!("d{member}");
            description.groups[0].spares.push(member);
        }
        description.incidents = vec![Incident { at_ns: 0, what: IncidentKind::MemberFails { member: 5 } }];
        let mut array = Array::new(&description, 1).unwrap();
        while array.next_event_ns() != u64::MAX {
            array.advance(array.next_event_ns(), &mut vec![]);
        }
        // Rows in which the member was spare space hold nothing.
        let rows = array.counters().rebuilt_bytes / DRAID_ROW;
        assert!((DRAID_ROWS - 3..=DRAID_ROWS).contains(&rows), "{rows} of {DRAID_ROWS} rows");
        array.rebuilds_ns()[0]
    };
    let (distributed, plain) = (took_ns(1, 0), took_ns(0, 1));
    assert!(distributed * 3 < plain * 2, "{distributed} ns against {plain} ns");
}

/// Any member fails while requests are in flight: each of them is answered once, in order of time, and all is whole in
/// the end.
#[test]
fn failures_lose_no_request() {
    let with_spare = |description: ArrayDescription| {
        let mut group = description.groups[0].clone();
        group.spares = vec![description.members.len() as u32];
        array(group, description.luns[0].length_bytes)
    };
    for description in [
        with_spare(erasure(4, 2, 6)),
        with_spare(raidz(2, 6, 16 * KIB)),
        with_spare(raidz(1, 5, 128 * KIB)),
        draid(1, 3, 1, 7),
    ] {
        for fails_ms in [1, 7, 55, 300] {
            let mut description = description.clone();
            description.controller.member_tags = 1;
            let member = 2;
            description.incidents = vec![Incident { at_ns: fails_ms * MS, what: IncidentKind::MemberFails { member } }];
            let level = description.groups[0].level;
            assert_answers_each_once(&description, &format!("{level}, failure at {fails_ms} ms"));
        }
    }
}
