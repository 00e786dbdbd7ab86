//! Arrays with faults: media errors of members, data loss, members that fail, return and are replaced.

use crate::common::arrays::{ROWS, UNIT, array, capacity, group, of, request};
use crate::common::bench::{Bench, unreadable};
use crate::common::{MS, TURN_NS};
use headstack_sim::Failed;
use headstack_sim::array::description::{
    ArrayDescription, Cache, CachePolicy, CacheWrites, Destage, Incident, IncidentKind, Level,
};
use headstack_sim::gauges::{DeviceState, GroupHealth};
use headstack_sim::media_defects::MediaDefect;
use headstack_workload::{Kind, Request};

fn read(offset_bytes: u64, length_bytes: u64) -> Request {
    request(Kind::Read, offset_bytes, length_bytes)
}

fn write(offset_bytes: u64, length_bytes: u64) -> Request {
    request(Kind::Write, offset_bytes, length_bytes)
}

/// Returns the first sectors of a member as a media defect.
fn bad_start() -> MediaDefect {
    unreadable(2, 4)
}

fn with_spare(level: Level, members: u32) -> ArrayDescription {
    let mut with_spare = group(level, 0..members, 1);
    with_spare.spares = vec![members];
    array(with_spare, capacity(level, members.into(), 1))
}

fn with_cache(level: Level, members: u32) -> ArrayDescription {
    let mut description = of(level, members);
    description.controller.cache = Some(Cache {
        memory_bytes: 64 * UNIT,
        data_bytes: 64 * UNIT,
        dirty_bytes_max: 32 * UNIT,
        page_bytes: 64 << 10,
        writes: CacheWrites::Back,
        mirror_link: None,
        battery: true,
        keeps_reads: true,
        fill_bytes: 64 << 10,
        prefetch: None,
        policy: CachePolicy::Lru,
        destage: Destage::Sorted,
        high_water: 0.8,
        low_water: 0.2,
        destages_max: 4,
        flash_members: vec![],
    });
    description
}

fn strike(bench: &mut Bench, what: IncidentKind) {
    bench.system.strike(bench.now_ns, what).unwrap();
}

fn fail(bench: &mut Bench, member: u32) {
    strike(bench, IncidentKind::MemberFails { member });
}

/// Returns the slot that holds the first bytes of a layout.
fn first_slot(level: Level) -> u32 {
    // Two parities, left-symmetric: those of row 0 are on the last slot and the first.
    u32::from(level == Level::Raid6)
}

#[test]
fn redundancy_makes_up_for_a_bad_sector_and_heals_it() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 4), (Level::Raid6, 5)] {
        let mut description = of(level, members);
        description.groups[0].mirror_reads = headstack_sim::array::description::MirrorReads::Primary;
        let slot = first_slot(level);
        let mut bench = Bench::from(&description).with(Some(slot), &[bad_start()]);
        let well_ns = Bench::from(&description).takes_ns(&read(0, 4096));
        let first_ns = bench.takes_ns(&read(0, 4096));
        assert!(first_ns > well_ns + 10 * TURN_NS, "{level:?}: the retries come first");
        let health = &bench.health()[slot as usize];
        assert_eq!((health.uncorrectable_errors, health.reallocated_sectors, health.pending_sectors), (1, 2, 0));
        bench.settle();
        bench.takes_ns(&read(0, 4096));
        assert_eq!(bench.health()[slot as usize].uncorrectable_errors, 1, "{level:?}: healed");
    }
}

#[test]
fn without_redundancy_the_request_fails() {
    let healthy: [(ArrayDescription, &[u32]); 5] = [
        (of(Level::Raid0, 4), &[]),
        (of(Level::Concat, 2), &[]),
        (of(Level::Raid5, 4), &[2]),
        (of(Level::Raid1, 2), &[1]),
        (with_cache(Level::Raid0, 4), &[]),
    ];
    for (description, missing) in healthy {
        let level = description.groups[0].level;
        let mut bench = Bench::from(&description).with(Some(0), &[bad_start()]);
        missing.iter().for_each(|&member| fail(&mut bench, member));
        let (_, failed) = bench.serve(&read(0, 4096));
        let id = 1;
        assert_eq!(failed, [Failed { id, at_bytes: 1024, write: false }], "{level:?}");
        bench.takes_ns(&read(0, 1024));
        bench.takes_ns(&read(2048, 4096));
        // A whole row, so that the old data are not needed for its parity.
        bench.takes_ns(&write(0, 3 * UNIT));
        bench.serve(&request(Kind::Flush, 0, 0));
        bench.settle();
        bench.takes_ns(&read(0, 4096));
    }
}

/// Unreadable old parity: it is computed from the rest of the row, and the write renews it.
#[test]
fn a_small_write_survives_bad_parity() {
    let parity_slot = 5;
    let mut bench = Bench::from(&of(Level::Raid5, 6)).with(Some(parity_slot), &[bad_start()]);
    bench.takes_ns(&write(0, 4096));
    let health = &bench.health()[parity_slot as usize];
    assert_eq!((health.uncorrectable_errors, health.reallocated_sectors), (1, 2));
    let mut degraded = Bench::from(&of(Level::Raid5, 6)).with(Some(parity_slot), &[bad_start()]);
    fail(&mut degraded, 1);
    let (_, failed) = degraded.serve(&write(0, 4096));
    assert_eq!((failed.len(), failed[0].write), (1, true), "nothing is left to compute the parity from");
}

#[test]
fn a_write_fault_is_covered_by_redundancy_or_reported() {
    let fault = MediaDefect { reads: false, writes: true, healed_by_write: false, ..bad_start() };
    let mut bench = Bench::from(&of(Level::Raid0, 4)).with(Some(0), &[fault]);
    assert_eq!(bench.serve(&write(0, 4096)).1, [Failed { id: 1, at_bytes: 1024, write: true }]);
    assert_eq!(bench.serve(&read(0, 4096)).1, [Failed { id: 2, at_bytes: 1024, write: false }], "not what was written");
    bench.system.set_media_defects(Some(0), vec![], 1).unwrap();
    bench.takes_ns(&write(0, 4096));
    bench.takes_ns(&read(0, 4096));
    let mut bench = Bench::from(&of(Level::Raid5, 4)).with(Some(0), &[fault]);
    bench.takes_ns(&write(0, 4096));
    bench.takes_ns(&read(0, 4096));
}

/// A bad sector of a member during a rebuild of another: the step continues, the bytes that needed it are lost until
/// they are written, and so is the sector itself.
#[test]
fn a_bad_sector_during_a_rebuild_is_lost_and_reported() {
    let mut bench = Bench::from(&with_spare(Level::Raid5, 4)).with(Some(1), &[unreadable(1000, 1002)]);
    fail(&mut bench, 0);
    bench.run_to(bench.now_ns + MS);
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!((gauges.groups[0].state, gauges.groups[0].of_bytes), (GroupHealth::Rebuilding, ROWS * UNIT));
    assert_eq!(gauges.devices[0].state, DeviceState::Missing);
    assert_eq!(gauges.devices[4].state, DeviceState::Rebuilding);
    bench.settle();
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!((gauges.groups[0].state, gauges.groups[0].lost_bytes), (GroupHealth::Healthy, 1024));
    // Sector 1000 is in row 7 (of 128 sectors), where data begin on slot 1 and slot 0 holds the parity.
    let row = 7 * 3 * UNIT;
    let within = (1000 - 7 * 128) * 512;
    let units: Vec<Vec<Failed>> = (0..3).map(|unit| bench.serve(&read(row + unit * UNIT, UNIT)).1).collect();
    let failed: Vec<&Failed> = units.iter().flatten().collect();
    assert!(!failed.is_empty() && failed.len() <= 2, "{failed:?}");
    assert!(failed.iter().all(|failed| failed.at_bytes % UNIT == within));
    bench.takes_ns(&write(row, 3 * UNIT));
    bench.takes_ns(&read(row, 3 * UNIT));
    assert_eq!(bench.system.gauges(bench.now_ns).groups[0].lost_bytes, 0);
}

#[test]
fn raid6_rebuilds_past_a_bad_sector() {
    let mut bench = Bench::from(&with_spare(Level::Raid6, 5)).with(Some(1), &[unreadable(1000, 1002)]);
    fail(&mut bench, 0);
    bench.settle();
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!((gauges.groups[0].state, gauges.groups[0].lost_bytes), (GroupHealth::Healthy, 0));
    assert_eq!(bench.health()[1].reallocated_sectors, 2);
}

/// After a data loss every request is answered: requests that the remaining members can serve succeed, the others fail.
#[test]
fn readable_data_are_served_after_a_data_loss() {
    for (level, members, gone) in [
        (Level::Raid0, 4, vec![1]),
        (Level::Concat, 4, vec![1]),
        (Level::Raid1, 2, vec![0, 1]),
        (Level::Raid10, 4, vec![2, 3]),
        (Level::Raid5, 4, vec![0, 2]),
        (Level::Raid6, 5, vec![0, 1, 2]),
    ] {
        for cached in [false, true] {
            let description = if cached { with_cache(level, members) } else { of(level, members) };
            let mut bench = Bench::from(&description);
            let total = description.luns[0].length_bytes;
            // In flight when the members fail.
            let under_way: Vec<u32> = (0..8)
                .map(|at| bench.submit(&[read(at * 5 * UNIT, 3 * UNIT), write(at * 5 * UNIT, 4096)][at as usize % 2]))
                .collect();
            bench.run_to(2 * MS);
            gone.iter().for_each(|&member| fail(&mut bench, member));
            assert!(bench.system.data_loss().is_some(), "{level:?}");
            let mut ids: Vec<u32> = bench.settle().iter().map(|completion| completion.id).collect();
            ids.sort_unstable();
            assert!(ids.iter().all(|id| under_way.contains(id)) && ids.len() <= under_way.len());
            bench.failed();
            let outcome: Vec<bool> = (0..64)
                .map(|at| (at * total / 64 + at / 4 % 4 * UNIT) % total)
                .flat_map(|offset| [read(offset, 4096), write(offset, 4096)])
                .map(|request| bench.serve(&request).1.is_empty())
                .collect();
            let served = outcome.iter().filter(|&&served| served).count();
            assert_eq!(served == 0, level == Level::Raid1 && !cached, "{level:?} {cached}: {served}");
            if !cached {
                assert!(served < outcome.len(), "{level:?}");
            }
            let flush = bench.serve(&request(Kind::Flush, 0, 0)).1;
            assert!(cached || flush.is_empty());
            // Without sources nothing is rebuilt.
            strike(&mut bench, IncidentKind::MemberReturns { member: gone[0] });
            bench.settle();
            assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Failed);
        }
    }
}

#[test]
fn a_member_that_returns_is_rebuilt() {
    let mut bench = Bench::from(&of(Level::Raid5, 4));
    fail(&mut bench, 2);
    bench.settle();
    assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Degraded);
    assert!(bench.health()[2].missing);
    strike(&mut bench, IncidentKind::MemberReturns { member: 2 });
    assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Rebuilding);
    bench.settle();
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!((gauges.groups[0].state, gauges.groups[0].of_bytes), (GroupHealth::Healthy, 0));
    assert_eq!(bench.health()[2].written_bytes, ROWS * UNIT, "all of it");
}

/// An added spare behaves like one of the description.
#[test]
fn an_added_spare_takes_a_missing_slot() {
    let rebuilt = |mut bench: Bench, adds: bool| {
        if adds {
            strike(&mut bench, IncidentKind::SpareAdded { group: 0 });
        }
        fail(&mut bench, 1);
        bench.settle();
        assert_eq!(bench.system.gauges(bench.now_ns).groups[0].state, GroupHealth::Healthy);
        assert_eq!(bench.health().len(), 5);
        bench.now_ns
    };
    let added = rebuilt(Bench::from(&of(Level::Raid5, 4)), true);
    assert_eq!(added, rebuilt(Bench::from(&with_spare(Level::Raid5, 4)), false));
    let mut late = Bench::from(&of(Level::Raid5, 4));
    fail(&mut late, 1);
    strike(&mut late, IncidentKind::SpareAdded { group: 0 });
    late.settle();
    assert_eq!(late.system.gauges(late.now_ns).groups[0].state, GroupHealth::Healthy);
}

/// An injected incident equals the same incident in a description, completion by completion.
#[test]
fn a_strike_equals_the_same_incident() {
    let serve = |bench: &mut Bench, until_ms: u64| {
        let mut all = vec![];
        while bench.now_ns < until_ms * MS {
            let at = bench.now_ns / MS;
            let kind = if at.is_multiple_of(3) { Kind::Write } else { Kind::Read };
            bench.submit(&request(kind, at * 7 % 190 * UNIT, 4096));
            all.extend(bench.run_to(bench.now_ns + MS));
        }
        all
    };
    let at_ns = 100 * MS;
    let mut description = with_spare(Level::Raid5, 4);
    let mut struck = Bench::from(&description);
    description.incidents = vec![Incident { at_ns, what: IncidentKind::MemberFails { member: 1 } }];
    let mut described = Bench::from(&description);
    let mut all = serve(&mut struck, 100);
    fail(&mut struck, 1);
    all.extend(serve(&mut struck, 400));
    all.extend(struck.settle());
    let mut expected = serve(&mut described, 400);
    expected.extend(described.settle());
    assert_eq!(all, expected);
    assert_eq!(all.len(), 400);
}

#[test]
fn what_cannot_strike_is_refused() {
    let mut bench = Bench::from(&of(Level::Raid5, 4));
    let mut refusal = |what| bench.system.strike(0, what).unwrap_err().to_string();
    assert_eq!(refusal(IncidentKind::MemberFails { member: 4 }), "member 4; 0 to 3 are allowed");
    assert!(refusal(IncidentKind::MemberReturns { member: 1 }).contains("a failed member is allowed"));
    assert!(refusal(IncidentKind::SpareAdded { group: 1 }).contains("0 to 0 are allowed"));
    assert!(refusal(IncidentKind::BatteryFails).contains("no cache with a battery"));
    fail(&mut bench, 1);
    assert!(bench.system.strike(0, IncidentKind::MemberFails { member: 1 }).is_err());
}
