//! The formula suite: which accesses to its members each RAID level takes, healthy and degraded.

use crate::common::MS;
use crate::common::arrays::{LEVELS, ROWS, UNIT, array, assert_answers_each_once, capacity, group, of, request, serve};
use headstack_sim::array::description::{ArrayDescription, Incident, IncidentKind, Level, SmallWrites};
use headstack_sim::array::{Array, ArrayCounters};
use headstack_workload::{Kind, Request};

fn counts(description: &ArrayDescription, request: Request) -> ArrayCounters {
    serve(description, 0, &[request]).0.counters()
}

/// Returns (data reads, parity reads, data writes, parity writes) of one write.
fn write_counts(description: &ArrayDescription, offset: u64, length: u64) -> (u64, u64, u64, u64) {
    let c = counts(description, request(Kind::Write, offset, length));
    (c.data_reads, c.parity_reads, c.data_writes, c.parity_writes)
}

fn read_counts(description: &ArrayDescription, offset: u64, length: u64) -> u64 {
    let c = counts(description, request(Kind::Read, offset, length));
    assert_eq!((c.parity_reads, c.data_writes, c.parity_writes), (0, 0, 0));
    c.data_reads
}

fn failed(mut description: ArrayDescription, members: &[u32]) -> ArrayDescription {
    let fail = |&member| Incident { at_ns: 0, what: IncidentKind::MemberFails { member } };
    description.incidents = members.iter().map(fail).collect();
    description
}

#[test]
fn small_reads_take_one_access_at_every_level() {
    for level in LEVELS {
        assert_eq!(read_counts(&of(level, 6), 3 * UNIT + 4096, 4096), 1, "{level:?}");
    }
}

#[test]
fn misaligned_reads_access_two_chunks() {
    for level in LEVELS {
        let one = matches!(level, Level::Concat | Level::Raid1);
        assert_eq!(read_counts(&of(level, 6), UNIT - 2048, 4096), if one { 1 } else { 2 }, "{level:?}");
    }
}

#[test]
fn long_reads_are_one_command_a_member() {
    assert_eq!(read_counts(&of(Level::Raid0, 4), 0, 16 * UNIT), 4);
    assert_eq!(read_counts(&of(Level::Raid1, 3), 0, 16 * UNIT), 1);
    // The four data units of a row of five are on all members, and the parity moves: rows join where units are
    // neighbours.
    assert_eq!(read_counts(&of(Level::Raid5, 5), 0, 4 * UNIT), 4);
}

#[test]
fn small_writes_cost_read_modify_write() {
    assert_eq!(write_counts(&of(Level::Raid0, 6), 4096, 4096), (0, 0, 1, 0));
    assert_eq!(write_counts(&of(Level::Raid1, 2), 4096, 4096), (0, 0, 2, 0));
    assert_eq!(write_counts(&of(Level::Raid1, 3), 4096, 4096), (0, 0, 3, 0));
    assert_eq!(write_counts(&of(Level::Raid10, 6), 4096, 4096), (0, 0, 2, 0));
    assert_eq!(write_counts(&of(Level::Raid10, 5), 4096, 4096), (0, 0, 2, 0));
    // Four accesses on RAID 5, six on RAID 6.
    assert_eq!(write_counts(&of(Level::Raid5, 6), 4096, 4096), (0, 2, 1, 1));
    assert_eq!(write_counts(&of(Level::Raid6, 8), 4096, 4096), (0, 3, 1, 2));
    // With three members the rest of the row is one unit: reading it is cheaper than old data and parity.
    assert_eq!(write_counts(&of(Level::Raid5, 3), 4096, 4096), (0, 1, 1, 1));
    let mut modify = of(Level::Raid5, 3);
    modify.groups[0].small_writes = SmallWrites::ReadModifyWrite;
    assert_eq!(write_counts(&modify, 4096, 4096), (0, 2, 1, 1));
    let mut reconstruct = of(Level::Raid5, 6);
    reconstruct.groups[0].small_writes = SmallWrites::Reconstruct;
    assert_eq!(write_counts(&reconstruct, 4096, 4096), (0, 4, 1, 1));
}

#[test]
fn large_writes_reconstruct_and_full_stripes_need_no_reads() {
    // Four of five data units: one unit is left to read, against five for read-modify-write.
    assert_eq!(write_counts(&of(Level::Raid5, 6), 0, 4 * UNIT), (0, 1, 4, 1));
    assert_eq!(write_counts(&of(Level::Raid5, 6), 0, 5 * UNIT), (0, 0, 5, 1));
    assert_eq!(write_counts(&of(Level::Raid6, 6), 0, 4 * UNIT), (0, 0, 4, 2));
    // Misaligned by half a unit: a full row is part of each of two rows.
    assert_eq!(write_counts(&of(Level::Raid5, 6), UNIT / 2, 5 * UNIT), (0, 1 + 2, 5 + 1, 2));
    // Two full rows and the rest of a third.
    let c = counts(&of(Level::Raid5, 6), request(Kind::Write, 0, 11 * UNIT));
    assert_eq!((c.full_rows, c.parity_reads, c.data_writes, c.parity_writes), (2, 2, 11, 3));
}

#[test]
fn a_write_across_two_units_of_a_row_shares_its_parity() {
    assert_eq!(write_counts(&of(Level::Raid5, 8), UNIT - 2048, 4096), (0, 3, 2, 1));
}

#[test]
fn raid_50_and_60_keep_to_one_span() {
    let raid50 = array(group(Level::Raid5, 0..8, 2), capacity(Level::Raid5, 8, 2));
    assert_eq!(write_counts(&raid50, 4096, 4096), (0, 2, 1, 1));
    assert_eq!(write_counts(&raid50, 0, 3 * UNIT), (0, 0, 3, 1));
    assert_eq!(write_counts(&raid50, 0, 6 * UNIT), (0, 0, 6, 2));
    let raid60 = array(group(Level::Raid6, 0..8, 2), capacity(Level::Raid6, 8, 2));
    assert_eq!(write_counts(&raid60, 0, 2 * UNIT), (0, 0, 2, 2));
}

#[test]
fn degraded_reads_read_the_rest_of_the_row() {
    // Left-symmetric, row 0: parity on the last member, data on 0, 1, ...
    assert_eq!(read_counts(&failed(of(Level::Raid5, 6), &[0]), 4096, 4096), 5);
    assert_eq!(read_counts(&failed(of(Level::Raid5, 6), &[1]), 4096, 4096), 1);
    assert_eq!(read_counts(&failed(of(Level::Raid6, 6), &[1]), 4096, 4096), 4);
    assert_eq!(read_counts(&failed(of(Level::Raid6, 6), &[1, 3]), 4096, 4096), 4);
    assert_eq!(read_counts(&failed(of(Level::Raid5, 6), &[0]), 0, 5 * UNIT), 5, "a full row is read once");
    assert_eq!(read_counts(&failed(of(Level::Raid1, 2), &[0]), 4096, 4096), 1);
    assert_eq!(read_counts(&failed(of(Level::Raid10, 6), &[0]), 4096, 4096), 1);
}

#[test]
fn degraded_writes_do_without_the_missing_member() {
    // Its data are missing: parity from the others' data.
    assert_eq!(write_counts(&failed(of(Level::Raid5, 6), &[0]), 4096, 4096), (0, 4, 0, 1));
    // Its parity is missing: only data. Row 0 has it on the last member.
    assert_eq!(write_counts(&failed(of(Level::Raid5, 6), &[5]), 4096, 4096), (0, 0, 1, 0));
    // Another unit is missing: read-modify-write does not need it.
    assert_eq!(write_counts(&failed(of(Level::Raid5, 6), &[3]), 4096, 4096), (0, 2, 1, 1));
    assert_eq!(write_counts(&failed(of(Level::Raid10, 6), &[1]), 4096, 4096), (0, 0, 1, 0));
    assert_eq!(write_counts(&failed(of(Level::Raid1, 3), &[1]), 4096, 4096), (0, 0, 2, 0));
}

#[test]
fn a_spare_is_filled_from_the_others_and_serves_then() {
    for (level, members, reads_a_step) in
        [(Level::Raid1, 2, 1), (Level::Raid10, 6, 1), (Level::Raid5, 5, 4), (Level::Raid6, 6, 4)]
    {
        let mut with_spare = group(level, 0..members, 1);
        with_spare.spares = vec![members];
        let mut description = array(with_spare, capacity(level, members.into(), 1));
        description.incidents = vec![Incident { at_ns: MS, what: IncidentKind::MemberFails { member: 1 } }];
        let mut array = Array::new(&description, 1).unwrap();
        let mut done = vec![];
        while array.next_event_ns() != u64::MAX {
            array.advance(array.next_event_ns(), &mut done);
        }
        let steps = ROWS / 4;
        assert_eq!(array.counters().rebuilt_bytes, ROWS * UNIT, "{level:?}");
        assert_eq!(array.counters().rebuild_commands, steps * (reads_a_step + 1), "{level:?}");
        let [took_ns] = array.rebuilds_ns() else { panic!("{level:?}: one rebuild ends") };
        // The spare's media need at least this long: 64 KiB are 128 of 100 sectors a turn of 6 ms.
        assert!(*took_ns > ROWS * 128 / 100 * 6 * MS, "{level:?}: {took_ns}");
        // Whole again: a read is one access.
        array.submit(10_000_000 * MS, 1, &request(Kind::Read, 0, 4096));
        while done.is_empty() {
            array.advance(array.next_event_ns(), &mut done);
        }
        assert_eq!(array.counters().data_reads, 1, "{level:?}");
    }
}

#[test]
fn a_rate_limit_sets_the_time_of_a_rebuild() {
    let mut with_spare = group(Level::Raid5, 0..5, 1);
    with_spare.spares = vec![5];
    with_spare.rebuild.rate_limit_bytes_per_s = Some(100_000.0);
    let mut description = array(with_spare, capacity(Level::Raid5, 5, 1));
    description.incidents = vec![Incident { at_ns: 0, what: IncidentKind::MemberFails { member: 1 } }];
    let mut array = Array::new(&description, 1).unwrap();
    while array.next_event_ns() != u64::MAX {
        array.advance(array.next_event_ns(), &mut vec![]);
    }
    let seconds = array.rebuilds_ns()[0] as f64 / 1e9;
    let expected = (ROWS * UNIT) as f64 / 100_000.0;
    assert!((seconds / expected - 1.0).abs() < 0.1, "{seconds} s, {expected} s expected");
}

#[test]
fn what_no_redundancy_survives_is_named() {
    let all = [
        (of(Level::Raid0, 4), vec![2], true),
        (of(Level::Concat, 4), vec![2], true),
        (of(Level::Raid1, 3), vec![0, 1], false),
        (of(Level::Raid1, 3), vec![0, 1, 2], true),
        (of(Level::Raid10, 6), vec![0, 2], false),
        (of(Level::Raid10, 6), vec![2, 3], true),
        (of(Level::Raid10, 6), vec![1, 2], false),
        (of(Level::Raid10, 5), vec![1, 2], true),
        (of(Level::Raid10, 5), vec![4, 0], true),
        (of(Level::Raid5, 5), vec![0, 3], true),
        (of(Level::Raid6, 5), vec![0, 3], false),
        (of(Level::Raid6, 5), vec![0, 3, 4], true),
        (array(group(Level::Raid5, 0..8, 2), capacity(Level::Raid5, 8, 2)), vec![0, 4], false),
        (array(group(Level::Raid5, 0..8, 2), capacity(Level::Raid5, 8, 2)), vec![0, 1], true),
    ];
    for (description, members, lost) in all {
        let level = description.groups[0].level;
        let mut array = Array::new(&failed(description, &members), 1).unwrap();
        array.advance(0, &mut vec![]);
        assert_eq!(array.data_loss().is_some(), lost, "{level:?} {members:?}");
        if let Some(text) = array.data_loss() {
            assert!(text.contains("group g lost d"), "{text}");
        }
    }
}

/// The member with the old data fails while they are read: parity then needs the rest of the row, which is read
/// instead.
#[test]
fn a_row_whose_reads_are_lost_is_planned_again() {
    let mut description = of(Level::Raid5, 6);
    description.incidents = vec![Incident { at_ns: 1, what: IncidentKind::MemberFails { member: 0 } }];
    assert_eq!(write_counts(&description, 4096, 4096), (0, 2 + 4, 0, 1));
}

/// Any member fails while requests are in flight: each of them is answered once, in order of time.
#[test]
fn failures_lose_no_request() {
    for level in [Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6] {
        for fails_ms in [1, 7, 20, 55, 300] {
            let mut with_spare = group(level, 0..6, 1);
            with_spare.spares = vec![6];
            let mut description = array(with_spare, capacity(level, 6, 1));
            description.controller.member_tags = 1;
            let member = 2;
            description.incidents = vec![Incident { at_ns: fails_ms * MS, what: IncidentKind::MemberFails { member } }];
            assert_answers_each_once(&description, &format!("{level:?}, failure at {fails_ms} ms"));
        }
    }
}
