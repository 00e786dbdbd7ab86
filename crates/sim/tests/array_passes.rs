//! Checks, repairs and resyncs of arrays: what they read, how long they take, and which stripes are resynced after a
//! power cut.

use crate::common::MS;
use crate::common::arrays::{ROWS, UNIT, array, capacity, group, of, request};
use crate::common::bench::Bench;
use headstack_sim::array::description::{ArrayDescription, Bitmap, IncidentKind, Level};
use headstack_sim::array::{PassKind, PassState};
use headstack_sim::gauges::PassGauge;
use headstack_workload::{Kind, Request};

const SLOT_BYTES: u64 = ROWS * UNIT;

fn write(offset_bytes: u64) -> Request {
    request(Kind::Write, offset_bytes, 4096)
}

fn pass(bench: &Bench) -> Option<PassGauge> {
    bench.system.gauges(bench.now_ns).groups[0].pass
}

fn read_bytes(bench: &Bench) -> Vec<u64> {
    bench.health().iter().map(|health| health.read_bytes).collect()
}

/// Cuts power for a second.
fn cut(bench: &mut Bench) {
    bench.system.power_fails(bench.now_ns);
    bench.now_ns += 1000 * MS;
    bench.system.power_cycle(bench.now_ns);
}

fn with_bitmap(chunk_bytes: u64) -> ArrayDescription {
    let mut with_bitmap = group(Level::Raid5, 0..4, 1);
    with_bitmap.bitmap = Some(Bitmap { chunk_bytes, daemon_ns: 5000 * MS, safe_mode_ns: 200 * MS });
    array(with_bitmap, capacity(Level::Raid5, 4, 1))
}

#[test]
fn a_scrub_reads_every_member_once() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 4), (Level::Raid6, 5)] {
        for repair in [false, true] {
            let mut bench = Bench::from(&of(level, members));
            bench.system.strike(0, IncidentKind::Scrub { group: 0, repair }).unwrap();
            let begun = pass(&bench).unwrap();
            assert_eq!((begun.state, begun.done_bytes, begun.of_bytes), (PassState::Running, 0, SLOT_BYTES));
            assert!(bench.system.strike(0, IncidentKind::Scrub { group: 0, repair }).is_err(), "one at a time");
            bench.settle();
            let kind = if repair { PassKind::Repair } else { PassKind::Check };
            let over = PassGauge { kind, state: PassState::Done, done_bytes: SLOT_BYTES, of_bytes: SLOT_BYTES };
            assert_eq!(pass(&bench), Some(over), "{level:?}");
            assert_eq!(read_bytes(&bench), vec![SLOT_BYTES; members as usize], "{level:?}");
        }
    }
}

#[test]
fn a_scrub_makes_way_for_requests_and_ends_with_a_member() {
    let alone = Bench::from(&of(Level::Raid5, 4)).takes_ns(&request(Kind::Read, 0, 4096));
    let mut bench = Bench::from(&of(Level::Raid5, 4));
    bench.system.strike(0, IncidentKind::Scrub { group: 0, repair: false }).unwrap();
    let beside = bench.takes_ns(&request(Kind::Read, 0, 4096));
    assert!(beside > alone, "somebody else uses the arms");
    bench.system.strike(bench.now_ns, IncidentKind::MemberFails { member: 1 }).unwrap();
    bench.settle();
    let stopped = pass(&bench).unwrap();
    assert!(stopped.state == PassState::Stopped && stopped.done_bytes < SLOT_BYTES, "{stopped:?}");
}

#[test]
fn a_power_cut_has_all_resynced_that_may_be_half_written() {
    let resynced = |bench: &Bench| pass(bench).map(|pass| (pass.kind, pass.of_bytes));
    let all = Some((PassKind::Resync, SLOT_BYTES));
    // In the middle of a write, and shortly after one.
    let mut bench = Bench::from(&of(Level::Raid5, 4));
    bench.submit(&write(0));
    bench.run_to(MS);
    cut(&mut bench);
    assert_eq!(resynced(&bench), all);
    // Another cut meanwhile: what was not covered yet is resynced then.
    cut(&mut bench);
    assert_eq!(resynced(&bench), all);
    bench.settle();
    assert_eq!(pass(&bench).unwrap().state, PassState::Done);
    bench.takes_ns(&write(0));
    cut(&mut bench);
    assert_eq!(resynced(&bench), all);
    bench.settle();
    // No write for a while: the array is clean.
    bench.takes_ns(&write(0));
    bench.run_to(bench.now_ns + 201 * MS);
    cut(&mut bench);
    assert_eq!(resynced(&bench), None);
    // A degraded array has nothing to resync with; it starts all the same.
    bench.takes_ns(&write(0));
    bench.system.strike(bench.now_ns, IncidentKind::MemberFails { member: 0 }).unwrap();
    cut(&mut bench);
    assert_eq!(resynced(&bench), None);
}

#[test]
fn a_bitmap_limits_the_resync() {
    let mut bench = Bench::from(&with_bitmap(4 * UNIT));
    // Rows have three units of data: these are in the first chunk of each member, and in the third.
    bench.takes_ns(&write(0));
    bench.takes_ns(&write(3 * 8 * UNIT));
    bench.run_to(bench.now_ns + 1000 * MS);
    let before = read_bytes(&bench);
    cut(&mut bench);
    bench.settle();
    assert_eq!(pass(&bench).unwrap().of_bytes, 8 * UNIT);
    let read: Vec<u64> = read_bytes(&bench).iter().zip(before).map(|(now, then)| now - then).collect();
    assert_eq!(read, [8 * UNIT; 4]);
}

#[test]
fn records_and_stripes_without_redundancy_are_not_scrubbed() {
    for level in [Level::Raid0, Level::Concat] {
        let mut bench = Bench::from(&of(level, 3));
        let refused = bench.system.strike(0, IncidentKind::Scrub { group: 0, repair: false }).unwrap_err();
        assert!(refused.to_string().contains("has no redundancy to scrub"), "{refused}");
        bench.submit(&write(0));
        cut(&mut bench);
        assert_eq!(pass(&bench), None);
    }
}
