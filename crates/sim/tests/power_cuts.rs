//! Power cuts: which data are lost, which remain, and how a system comes back.

use crate::common;
use crate::common::arrays::{UNIT, array, capacity, group, of};
use crate::common::bench::{Bench, unreadable};
use crate::common::flash::{ROW, UNIT as PAGE, small_ssd};
use crate::common::*;
use headstack_sim::SystemDescription;
use headstack_sim::array::description::{ArrayDescription, IncidentKind, Level};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::{DriveDescription, Policy, WriteCache};
use headstack_sim::gauges::{DeviceState, GroupHealth};
use headstack_sim::system::System;
use headstack_workload::Kind;

/// A write cache of 16 extents.
fn caching() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Fcfs, 32);
    (drive.buffer.write_cache, drive.buffer.dirty_extents_max) = (WriteCache::On, 16);
    drive
}

fn caching_array(level: Level, members: u32) -> ArrayDescription {
    let mut description = of(level, members);
    description.devices = vec![DeviceDescription::Disk(caching())];
    description
}

/// Cached writes are lost until their destage ends, oldest destage first; a flush leaves nothing.
#[test]
fn undestaged_writes_are_lost_at_a_power_cut() {
    let mut bench = Bench::from(&caching());
    let sectors: Vec<u64> = (0..8).map(|at| 10_000 * (at + 1)).collect();
    sectors.iter().for_each(|&sector| _ = bench.submit(&write(sector, 8)));
    let spans = |from: usize| -> Vec<(u64, u64)> {
        sectors[from..].iter().map(|&sector| (sector * 512, (sector + 8) * 512)).collect()
    };
    assert_eq!(bench.volatile(), spans(0));
    for destaged in 1..=8 {
        // In order of arrival: a step of the arm brings one home.
        let before = bench.volatile().len();
        while bench.volatile().len() == before {
            bench.run_to(bench.system.next_event_ns());
        }
        assert_eq!(bench.volatile(), spans(destaged));
    }
    bench.submit(&write(5000, 8));
    bench.takes_ns(&flush());
    assert_eq!(bench.volatile(), []);
    let mut part = vec![];
    bench.submit(&write(5000, 8));
    let span = headstack_workload::Span { start_bytes: 5002 * 512, length_bytes: 512 };
    bench.system.volatile(bench.now_ns, &[span], &mut part);
    assert_eq!(part, [span], "cut to what is asked for");
}

#[test]
fn only_volatile_caches_lose() {
    assert!(Bench::from(&caching()).system.may_lose_data());
    assert!(!Bench::from(&bare_drive()).system.may_lose_data());
    assert!(!Bench::from(&of(Level::Raid5, 4)).system.may_lose_data());
    assert!(Bench::from(&caching_array(Level::Raid5, 4)).system.may_lose_data());
    let mut ssd = small_ssd();
    let write = request(Kind::Write, 0, PAGE);
    let mut bench = Bench::from(&ssd);
    bench.takes_ns(&write);
    assert_eq!((bench.volatile(), bench.system.may_lose_data()), (vec![], false));
    ssd.buffer.power_loss_protected = false;
    let mut bench = Bench::from(&ssd);
    bench.takes_ns(&write);
    assert_eq!((bench.volatile(), bench.system.may_lose_data()), (vec![(0, PAGE)], true));
    bench.takes_ns(&flush());
    assert_eq!(bench.volatile(), []);
    bench.system.set_write_cache(None, false).unwrap();
    bench.takes_ns(&write);
    assert_eq!((bench.volatile(), bench.system.may_lose_data()), (vec![], false));
    let mut bench = Bench::from(&caching());
    bench.system.set_write_cache(None, false).unwrap();
    bench.submit(&common::write(5000, 8));
    assert_eq!((bench.volatile(), bench.system.may_lose_data()), (vec![], false));
    bench.system.set_write_cache(None, true).unwrap();
    assert!(bench.system.may_lose_data());
}

/// Losses of members' caches, in addresses of the array; copies are lost together.
#[test]
fn an_array_loses_the_writes_of_its_members() {
    for (level, members) in [(Level::Raid0, 4), (Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 4)] {
        let mut bench = Bench::from(&caching_array(level, members));
        let (from, length) = (UNIT - 4096, 8192);
        let id = bench.submit(&common::arrays::request(Kind::Write, from, length));
        // Just acknowledged: all of it is lost.
        while !bench.run_to(bench.system.next_event_ns()).iter().any(|completion| completion.id == id) {}
        let lost = bench.volatile();
        let bytes: u64 = lost.iter().map(|(from, to)| to - from).sum();
        assert!(bytes > 0 && bytes <= length, "{level:?}: {lost:?}");
        assert!(lost.iter().all(|&(begin, end)| begin >= from && end <= from + length), "{level:?}: {lost:?}");
        bench.settle();
        assert_eq!(bench.volatile(), [], "{level:?}");
    }
}

#[test]
fn a_power_cut_empties_queues_and_caches_and_leaves_the_media() {
    let mut bench = Bench::from(&caching()).with(None, &[unreadable(5000, 5002)]);
    bench.takes_ns(&write(5000, 1));
    bench.settle();
    for sector in [70_000, 80_000, 90_000] {
        bench.submit(&write(sector, 8));
        bench.submit(&read(sector + 100, 8));
    }
    bench.now_ns += 1;
    bench.run_to(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    assert_eq!((bench.volatile(), bench.settle()), (vec![], vec![]), "outstanding requests are gone");
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!((gauges.outstanding, gauges.devices[0].queue, gauges.devices[0].dirty_bytes), (0, 0, 0));
    assert_eq!(bench.health()[0].reallocated_sectors, 1);
    assert_eq!(bench.health()[0].power_cycles, 2);
    assert_eq!(bench.serve(&read(5001, 1)).1.len(), 1, "the media defect is still there");
    bench.takes_ns(&read(5000, 1));
}

#[test]
fn a_disk_is_ready_once_its_spindle_turns() {
    let mut drive = caching();
    let power: headstack_sim::description::power::Power = serde_json::from_value(serde_json::json!({
        "electronics_w": 2.0, "spindle_w": 3.0, "seek_w": 8.0, "transfer_w": 7.0, "standby_w": 1.0,
        "spin_down": {"ns": 1_000_000_000u64, "joules": 1.0}, "spin_up": {"ns": 4_000_000_000u64, "joules": 60.0},
        "idle_timeout_ns": null, "ambient_celsius": 25.0, "airflow_k_per_w": 2.0,
    }))
    .unwrap();
    drive.power = Some(power);
    let mut bench = Bench::from(&drive);
    bench.run_to(1_000 * MS);
    bench.system.power_cycle(bench.now_ns);
    let (from_ns, took_ns) = (bench.now_ns, bench.takes_ns(&read(0, 1)));
    assert!((4_000 * MS..4_000 * MS + 2 * TURN_NS).contains(&took_ns), "{from_ns}: {took_ns}");
    assert!(bench.takes_ns(&read(0, 1)) <= 2 * TURN_NS);
}

/// The map of the flash survives: written units are read from the flash, unwritten ones are not.
#[test]
fn flash_keeps_its_map() {
    for protected in [false, true] {
        let mut ssd = small_ssd();
        ssd.buffer.power_loss_protected = protected;
        let mut bench = Bench::from(&ssd);
        let (first, last) = (request(Kind::Read, 0, PAGE), request(Kind::Read, 700 << 20, PAGE));
        bench.takes_ns(&request(Kind::Write, 0, ROW));
        bench.settle();
        let (flash_ns, nothing_ns) = (bench.takes_ns(&first), bench.takes_ns(&last));
        assert!(flash_ns > nothing_ns);
        (0..40).for_each(|at| _ = bench.submit(&request(Kind::Write, at * 3 * PAGE, PAGE)));
        bench.run_to(bench.now_ns + 30 * US);
        bench.system.power_cycle(bench.now_ns);
        assert_eq!((bench.volatile(), bench.settle().len()), (vec![], 0));
        assert_eq!((bench.takes_ns(&first), bench.takes_ns(&last)), (flash_ns, nothing_ns), "{protected}");
        bench.takes_ns(&request(Kind::Write, 0, 64 * PAGE));
    }
}

/// A rebuild resumes, a failed member stays away, and earlier requests are gone.
#[test]
fn an_array_restarts_degraded_and_rebuilding() {
    let mut with_spare = group(Level::Raid5, 0..4, 1);
    with_spare.spares = vec![4];
    let mut bench = Bench::from(&array(with_spare, capacity(Level::Raid5, 4, 1)));
    bench.system.strike(0, IncidentKind::MemberFails { member: 1 }).unwrap();
    bench.run_to(500 * MS);
    (0..20).for_each(|at| _ = bench.submit(&common::arrays::request(Kind::Write, at * UNIT, 4096)));
    bench.run_to(520 * MS);
    let before = bench.system.gauges(bench.now_ns);
    bench.system.power_cycle(bench.now_ns);
    let after = bench.system.gauges(bench.now_ns);
    assert_eq!(before.groups[0].rebuilt_bytes, after.groups[0].rebuilt_bytes);
    assert!(after.groups[0].rebuilt_bytes > 0);
    assert_eq!((after.outstanding, after.devices[1].state), (0, DeviceState::Missing));
    assert_eq!(bench.settle(), []);
    let gauges = bench.system.gauges(bench.now_ns);
    assert_eq!(gauges.groups[0].state, GroupHealth::Healthy);
    assert!(bench.health()[1].missing);
    (0..20).for_each(|at| _ = bench.takes_ns(&common::arrays::request(Kind::Write, at * UNIT, 4096)));
}

#[test]
fn a_torn_write_stops_at_the_end_of_a_track_a_page_or_a_chunk() {
    let disk = Bench::from(&bare_drive()).system;
    assert_eq!([0, 512, 99 * 512, 100 * 512].map(|at| disk.tear_bound(at)), [51_200, 51_200, 51_200, 102_400]);
    let last = CYLINDERS * CYLINDER * 512;
    assert_eq!(disk.tear_bound(last - 1), last);
    let ssd = Bench::from(&small_ssd()).system;
    assert_eq!(ssd.tear_bound(16_384 + 5), 32_768);
    assert_eq!(Bench::from(&of(Level::Raid5, 4)).system.tear_bound(UNIT + 5), 2 * UNIT);
    assert_eq!(Bench::from(&of(Level::Raid1, 2)).system.tear_bound(5), 51_200);
}

/// Equal cuts lose equal bytes.
#[test]
fn cuts_are_deterministic() {
    let serve = || {
        let description = SystemDescription::Array(caching_array(Level::Raid5, 4));
        let mut bench = Bench::new(&description);
        let mut seen = vec![];
        for at in 0..300u64 {
            bench.submit(&common::arrays::request(Kind::Write, at * 37 % 190 * UNIT, 4096));
            seen.extend(
                bench.run_to(bench.now_ns + 20 * MS).iter().map(|completion| (completion.at_ns, completion.id)),
            );
            if at % 100 == 99 {
                seen.extend(bench.volatile().iter().map(|&(from, to)| (from, to as u32)));
                bench.system.power_cycle(bench.now_ns);
            }
        }
        seen
    };
    let seen = serve();
    assert_eq!(seen, serve());
    assert!(seen.len() > 100);
    assert!(System::new(&SystemDescription::Array(of(Level::Raid5, 4)), 1).is_ok());
}
