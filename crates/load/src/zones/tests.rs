//! Tests of the zone rules on zone tables without devices.

use headstack_workload::Kind;

use super::course::{Course, SkippedBytes, ZoneRequest};
use super::zone_table::{Step, Zone, ZoneKind, ZoneTable};

const ZONE: u64 = 1 << 20;
const BLOCK: u64 = 4096;

fn zone(index: u64, kind: ZoneKind, capacity: u64) -> Zone {
    let start_bytes = index * ZONE;
    let capacity_end_bytes = start_bytes + capacity;
    let pointer_bytes = if kind == ZoneKind::Conventional { capacity_end_bytes } else { start_bytes };
    Zone { kind, start_bytes, pointer_bytes, capacity_end_bytes, is_open: false, is_busy: false, job: 0 }
}

fn zone_table(count: u64, capacity: u64) -> ZoneTable {
    ZoneTable::new((0..count).map(|index| zone(index, ZoneKind::Sequential, capacity)).collect(), ZONE)
}

fn course(zone_table: &mut ZoneTable, is_sequential: bool, open_max: usize) -> Course {
    Course {
        job: zone_table.begin(),
        is_sequential,
        writes: true,
        least_bytes: BLOCK,
        writes_remainder: false,
        reads_beyond_pointer: false,
        open_max,
        job_open_max: usize::MAX,
        range: 0..zone_table.zones().len(),
        stride: 1,
        zone_bytes: ZONE,
        passed: SkippedBytes::default(),
    }
}

fn want(course: &mut Course, kind: Kind, drawn_bytes: u64, length_bytes: u64) -> ZoneRequest {
    // No draws are merged, since any of them may wait.
    course.draw(kind, drawn_bytes, length_bytes as u32, Some(0))
}

/// Writes at once, after any preparatory steps. Returns offset, length, and the zones that were reset.
fn write(
    zone_table: &mut ZoneTable,
    course: &mut Course,
    drawn_bytes: u64,
    length_bytes: u64,
) -> (u64, u32, Vec<usize>) {
    let mut want = want(course, Kind::Write, drawn_bytes, length_bytes);
    let mut resets = Vec::new();
    loop {
        match zone_table.step(course, &mut want) {
            Step::Go { zone, offset_bytes, length_bytes } => {
                zone_table.came_back(zone, length_bytes.into());
                return (offset_bytes, length_bytes, resets);
            }
            Step::Reset(zone) => {
                zone_table.was_reset(zone);
                resets.push(zone);
            }
            Step::Finish(zone) => zone_table.was_finished(zone),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_sequential_job_fills_the_capacity_of_each_zone_and_skips_the_rest() {
    let capacity = ZONE / 4 * 3;
    let mut zone_table = zone_table(3, capacity);
    let mut course = course(&mut zone_table, true, usize::MAX);
    let written: Vec<u64> = (0..3 * capacity / BLOCK)
        .map(|index| {
            let (offset, length, resets) = write(&mut zone_table, &mut course, index * BLOCK, BLOCK);
            assert_eq!((length as u64, resets.len()), (BLOCK, 0));
            offset
        })
        .collect();
    let expected: Vec<u64> =
        (0..3).flat_map(|zone| (0..capacity / BLOCK).map(move |block| zone * ZONE + block * BLOCK)).collect();
    assert_eq!(written, expected);
    // Another pass begins with a reset.
    let (offset, _, resets) = write(&mut zone_table, &mut course, 3 * capacity, BLOCK);
    assert_eq!((offset, resets), (0, vec![0]));
}

#[test]
fn a_sequential_job_continues_at_the_write_pointer() {
    let mut zone_table = zone_table(2, ZONE);
    zone_table.set_pointer(0, 8 * BLOCK);
    let mut course = course(&mut zone_table, true, usize::MAX);
    assert_eq!(write(&mut zone_table, &mut course, 0, BLOCK).0, 8 * BLOCK);
    assert_eq!(write(&mut zone_table, &mut course, BLOCK, BLOCK).0, 9 * BLOCK);
}

#[test]
fn waiting_requests_continue_after_skipped_bytes() {
    let mut zone_table = zone_table(3, 2 * BLOCK);
    let mut course = course(&mut zone_table, true, usize::MAX);
    let mut wants: Vec<ZoneRequest> =
        (0..6).map(|index| want(&mut course, Kind::Write, index * BLOCK, BLOCK)).collect();
    let mut written = Vec::new();
    while !wants.is_empty() {
        let mut under_way = Vec::new();
        wants.retain_mut(|want| match zone_table.step(&mut course, want) {
            Step::Go { zone, offset_bytes, .. } => {
                under_way.push(zone);
                written.push(offset_bytes);
                false
            }
            Step::Wait => true,
            other => panic!("{other:?}"),
        });
        under_way.into_iter().for_each(|zone| zone_table.came_back(zone, BLOCK));
    }
    written.sort_unstable();
    assert_eq!(written, [0, BLOCK, ZONE, ZONE + BLOCK, 2 * ZONE, 2 * ZONE + BLOCK]);
}

#[test]
fn skipped_zones_are_left_out() {
    let mut zone_table = zone_table(4, ZONE);
    let mut course = Course { stride: 2, ..course(&mut zone_table, true, usize::MAX) };
    let zones = (0..4).map(|half| write(&mut zone_table, &mut course, half * ZONE / 2, ZONE / 2).0 / ZONE);
    assert_eq!(zones.collect::<Vec<_>>(), [0, 0, 2, 2]);
}

#[test]
fn one_write_of_a_zone_is_under_way_at_a_time() {
    let mut zone_table = zone_table(2, ZONE);
    let mut course = course(&mut zone_table, false, usize::MAX);
    let mut first = want(&mut course, Kind::Write, 0, BLOCK);
    let Step::Go { zone, offset_bytes: 0, .. } = zone_table.step(&mut course, &mut first) else { panic!() };
    let mut second = want(&mut course, Kind::Write, BLOCK, BLOCK);
    assert_eq!(zone_table.step(&mut course, &mut second), Step::Wait);
    let mut trim = want(&mut course, Kind::Trim, 0, ZONE);
    assert_eq!(zone_table.step(&mut course, &mut trim), Step::Wait, "a reset waits for the write");
    let mut elsewhere = want(&mut course, Kind::Write, ZONE, BLOCK);
    assert!(matches!(zone_table.step(&mut course, &mut elsewhere), Step::Go { zone: 1, .. }));
    zone_table.came_back(zone, BLOCK);
    assert!(matches!(zone_table.step(&mut course, &mut second), Step::Go { zone: 0, offset_bytes: BLOCK, .. }));
}

#[test]
fn what_is_left_of_a_zone_takes_a_shorter_write_or_is_finished() {
    let mut zone_table = zone_table(2, ZONE);
    let mut course = Course { least_bytes: 3 * BLOCK, ..course(&mut zone_table, false, usize::MAX) };
    // 256 blocks allow 85 writes of 3 blocks, and one block is left.
    for _ in 0..85 {
        assert_eq!(write(&mut zone_table, &mut course, 0, 3 * BLOCK).0 / ZONE, 0);
    }
    let mut next = want(&mut course, Kind::Write, 0, 3 * BLOCK);
    assert_eq!(zone_table.step(&mut course, &mut next), Step::Finish(0));
    zone_table.was_finished(0);
    assert!(matches!(zone_table.step(&mut course, &mut next), Step::Go { zone: 1, .. }));

    let mut zone_table = self::zone_table(2, ZONE);
    let mut course =
        Course { least_bytes: 3 * BLOCK, writes_remainder: true, ..self::course(&mut zone_table, false, usize::MAX) };
    let last = (0..86).map(|_| write(&mut zone_table, &mut course, 0, 3 * BLOCK)).last().unwrap();
    assert_eq!((last.0, last.1 as u64), (255 * BLOCK, BLOCK));
}

#[test]
fn reads_stay_below_write_pointers_unless_they_may_go_beyond() {
    let mut zone_table = zone_table(4, ZONE);
    let mut course = course(&mut zone_table, false, usize::MAX);
    zone_table.set_pointer(2, 2 * ZONE + 5 * BLOCK);
    for drawn in (0..4 * ZONE).step_by(BLOCK as usize) {
        let mut read = want(&mut course, Kind::Read, drawn, 2 * BLOCK);
        let Step::Go { zone: 2, offset_bytes, length_bytes } = zone_table.step(&mut course, &mut read) else {
            panic!()
        };
        assert!(offset_bytes >= 2 * ZONE && offset_bytes + u64::from(length_bytes) <= 2 * ZONE + 5 * BLOCK);
    }
    let mut beyond = Course { reads_beyond_pointer: true, ..course.clone() };
    let mut read = want(&mut beyond, Kind::Read, 3 * ZONE, BLOCK);
    assert!(
        matches!(zone_table.step(&mut beyond, &mut read), Step::Go { offset_bytes, .. } if offset_bytes == 3 * ZONE)
    );
}

#[test]
fn without_data_a_reader_ends_and_a_mixed_job_writes_first() {
    let mut zone_table = zone_table(2, ZONE);
    let mut mixed = course(&mut zone_table, false, usize::MAX);
    let mut reader = Course { writes: false, ..mixed.clone() };
    let mut read = want(&mut reader, Kind::Read, 0, BLOCK);
    assert_eq!(zone_table.step(&mut reader, &mut read), Step::Nothing);
    assert!(matches!(zone_table.step(&mut mixed, &mut read), Step::Go { offset_bytes: 0, .. }));
    assert_eq!(read.kind, Kind::Write);
    let mut trim = want(&mut mixed, Kind::Trim, ZONE, ZONE);
    assert_eq!(zone_table.step(&mut mixed, &mut trim), Step::Wait, "the write in flight will leave data to trim");
    zone_table.came_back(0, BLOCK);
    assert_eq!(zone_table.step(&mut mixed, &mut trim), Step::Trim(0), "the zone has data");
}

#[test]
fn conventional_zones_need_no_rules_and_offline_ones_are_skipped() {
    let kinds = [ZoneKind::Conventional, ZoneKind::Lost, ZoneKind::Sequential];
    let zones = kinds.iter().zip(0..).map(|(kind, index)| zone(index, *kind, ZONE)).collect();
    let mut zone_table = ZoneTable::new(zones, ZONE);
    let mut course = course(&mut zone_table, false, 1);
    assert_eq!(write(&mut zone_table, &mut course, 7 * BLOCK, BLOCK).0, 7 * BLOCK);
    assert_eq!(write(&mut zone_table, &mut course, ZONE - BLOCK, 2 * BLOCK).1 as u64, BLOCK, "cut at the zone's end");
    assert_eq!(write(&mut zone_table, &mut course, ZONE + 7 * BLOCK, BLOCK).0, 2 * ZONE);
}

#[test]
fn what_a_job_that_is_over_left_open_makes_room() {
    let mut zone_table = zone_table(4, ZONE);
    let first = Course { range: 0..2, ..course(&mut zone_table, false, 2) };
    let mut second = Course { range: 2..4, ..course(&mut zone_table, false, 2) };
    let mut own = first.clone();
    write(&mut zone_table, &mut own, 0, BLOCK);
    write(&mut zone_table, &mut own, ZONE, BLOCK);
    let mut next = want(&mut second, Kind::Write, 0, BLOCK);
    assert_eq!(zone_table.step(&mut second, &mut next), Step::Wait, "an active job needs the open zones");
    zone_table.end(first.job);
    assert!(matches!(zone_table.step(&mut second, &mut next), Step::Finish(0 | 1)));
}

/// A reproducible pseudo-random generator.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }
}

/// Simulates a device that enforces zone rules, under two jobs whose requests complete in any order.
#[test]
fn no_write_misses_its_pointer_and_no_limit_is_passed() {
    for seed in 0..200 {
        let mut dice = TestRandom(seed);
        let capacity = ZONE - dice.below(3) * 5 * BLOCK;
        let open_max = 1 + dice.below(4) as usize;
        let mut zone_table = zone_table(8, capacity);
        let mut pointers: Vec<u64> = (0..8).map(|index| index * ZONE).collect();
        let mut courses =
            [false, dice.below(2) == 0].map(|is_sequential| course(&mut zone_table, is_sequential, open_max));
        let mut under_way: Vec<(usize, u64)> = Vec::new();
        let mut drawn = [0u64; 2];
        let (mut writes, mut moves) = (0u64, 0);
        while moves < 4_000 {
            moves += 1;
            if dice.below(2) == 0 && !under_way.is_empty() {
                let (zone, bytes) = under_way.swap_remove(dice.below(under_way.len() as u64) as usize);
                pointers[zone] += bytes;
                zone_table.came_back(zone, bytes);
                continue;
            }
            let number = dice.below(2) as usize;
            let course = &mut courses[number];
            let place = match course.is_sequential {
                true => {
                    drawn[number] += 16 * BLOCK;
                    drawn[number] - 16 * BLOCK
                }
                false => dice.below(8 * ZONE / BLOCK) * BLOCK,
            };
            let kind = [Kind::Write, Kind::Write, Kind::Read, Kind::Trim][dice.below(4) as usize];
            let mut want = want(course, kind, place, 16 * BLOCK);
            loop {
                match zone_table.step(course, &mut want) {
                    Step::Go { zone, offset_bytes, length_bytes } if want.kind == Kind::Write => {
                        assert_eq!(offset_bytes, pointers[zone], "a write is at the write pointer");
                        assert!(offset_bytes + u64::from(length_bytes) <= zone as u64 * ZONE + capacity);
                        assert!(under_way.iter().all(|(busy, _)| *busy != zone), "one write at a time");
                        under_way.push((zone, length_bytes.into()));
                        writes += 1;
                    }
                    Step::Go { zone, offset_bytes, length_bytes } => {
                        assert!(offset_bytes >= zone as u64 * ZONE && length_bytes > 0);
                        assert!(
                            offset_bytes + u64::from(length_bytes) <= pointers[zone],
                            "reads stay below the write pointer"
                        );
                    }
                    Step::Reset(zone) => {
                        assert!(under_way.iter().all(|(busy, _)| *busy != zone), "no reset overtakes a write");
                        pointers[zone] = zone as u64 * ZONE;
                        zone_table.was_reset(zone);
                        continue;
                    }
                    Step::Trim(zone) => {
                        assert!(under_way.iter().all(|(busy, _)| *busy != zone), "no reset overtakes a write");
                        pointers[zone] = zone as u64 * ZONE;
                        zone_table.was_reset(zone);
                    }
                    Step::Finish(zone) => {
                        pointers[zone] = zone as u64 * ZONE + capacity;
                        zone_table.was_finished(zone);
                        continue;
                    }
                    Step::Wait => assert!(!under_way.is_empty(), "a request waits only while another is in flight"),
                    Step::Nothing => assert_ne!(want.kind, Kind::Write, "there is always a zone to write"),
                }
                break;
            }
            let known = zone_table.zones().iter().filter(|zone| zone.is_open).count();
            assert!(known <= open_max, "{known} open, {open_max} allowed");
            let open = (0..8).filter(|&zone| {
                let (start, pointer) = (zone as u64 * ZONE, pointers[zone]);
                (pointer > start && pointer < start + capacity) || under_way.iter().any(|(busy, _)| *busy == zone)
            });
            assert!(open.count() <= open_max, "the device has no more open zones than allowed");
        }
        assert!(writes > 300, "{writes} writes of seed {seed}");
        let valid: u64 = pointers.iter().enumerate().map(|(zone, pointer)| pointer - zone as u64 * ZONE).sum();
        assert_eq!(zone_table.valid_bytes(), valid);
    }
}
