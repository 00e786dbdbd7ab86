//! Media errors of disks and SSDs: their cost, which requests fail, and the effect of a write.

use crate::common::bench::{Bench, unreadable};
use crate::common::flash::{PROGRAM_NS, READ_NS, UNIT, small_ssd};
use crate::common::*;
use headstack_sim::Failed;
use headstack_sim::drive::description::{
    AfterReadWrite, DriveDescription, MediaCache, Policy, ReadAhead, Shingles, WriteCache,
};
use headstack_sim::media_defects::{Delay, MediaDefect};
use headstack_workload::{Kind, Span};

/// Returns weak sectors: read after additional turns.
fn weak(from: u64, to: u64, turns: u32) -> MediaDefect {
    MediaDefect { fails: false, delay: Delay::Turns(turns), healed_by_write: false, ..unreadable(from, to) }
}

/// The buffered drive, with read-ahead.
fn reading_ahead() -> DriveDescription {
    let mut drive = bare_drive();
    (drive.buffer.segments, drive.buffer.read_ahead) = (2, ReadAhead::Segment);
    (drive.buffer.keep_passing_sectors, drive.buffer.read_ahead_on_hit) = (true, true);
    drive
}

/// A write cache of 16 extents.
fn caching() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Fcfs, 32);
    (drive.buffer.write_cache, drive.buffer.dirty_extents_max) = (WriteCache::On, 16);
    drive
}

/// The test drive as two actuators of two surfaces each.
fn split() -> DriveDescription {
    let mut drive = bare_drive();
    (drive.actuators, drive.geometry.logical_blocks) = (2, CYLINDERS * CYLINDER);
    drive
}

fn shingled() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Sptf, 32);
    drive.geometry.logical_blocks -= 8000;
    drive.overheads.write_miss_ns = AfterReadWrite { after_read: 100 * US, after_write: 100 * US };
    drive.shingles = Some(Shingles { band_bytes: 2000 * 512 });
    drive.media_cache = Some(MediaCache {
        size_bytes: 8000 * 512,
        extents_max: 100_000,
        dram_bytes: 0,
        dram_is_protected: false,
        sequential_bytes: 256 << 10,
        idle_ns: 200 * MS,
        busy_share: 0.9,
        sweep_bytes: 1 << 20,
        sweep_window: 2,
    });
    drive
}

#[test]
fn a_weak_sector_costs_exactly_its_turns() {
    for drive in [bare_drive(), queueing_drive(Policy::Sptf, 8), split(), shingled()] {
        for turns in [1, 3, 40] {
            for (sector, sectors) in [(5000, 1), (4990, 30), (4900, 250)] {
                let well_ns = Bench::from(&drive).takes_ns(&read(sector, sectors));
                let mut bench = Bench::from(&drive).with(None, &[weak(5000, 5001, turns)]);
                assert_eq!(bench.takes_ns(&read(sector, sectors)), well_ns + u64::from(turns) * TURN_NS);
                assert_eq!(bench.health()[0].retried_passes, u64::from(turns));
                let mut beside = Bench::from(&drive).with(None, &[weak(5300, 5301, turns)]);
                assert_eq!(beside.takes_ns(&read(sector, sectors)), well_ns, "others pay nothing");
            }
        }
    }
}

/// The mechanism is occupied, not only the request: queued requests wait longer too.
#[test]
fn two_requests_behind_a_retrying_arm_wait() {
    let finish = |media_defects: &[MediaDefect]| {
        let mut bench = Bench::from(&queueing_drive(Policy::Fcfs, 8)).with(None, media_defects);
        for sector in [5000, 70_000, 200_000] {
            bench.submit(&read(sector, 1));
        }
        bench.settle().iter().map(|completion| completion.at_ns).collect::<Vec<u64>>()
    };
    let (well, retried) = (finish(&[]), finish(&[weak(5000, 5001, 20)]));
    let later: Vec<u64> = well.iter().zip(&retried).map(|(well, retried)| retried - well).collect();
    assert_eq!(later, [20 * TURN_NS; 3]);
}

#[test]
fn a_hard_error_takes_its_time_and_then_fails() {
    for delay in [Delay::Turns(10), Delay::Ns(7_000 * MS)] {
        let delay_ns = if let Delay::Ns(ns) = delay { ns } else { 10 * TURN_NS };
        let mut bench = Bench::from(&bare_drive()).with(None, &[MediaDefect { delay, ..unreadable(5000, 5010) }]);
        // The sectors before it are read: the pass ends at the first that fails.
        let well_ns = Bench::from(&bare_drive()).takes_ns(&read(4990, 11));
        let id = 1;
        let expected = Failed { id, at_bytes: 5000 * 512, write: false };
        assert_eq!(bench.serve(&read(4990, 30)), (well_ns + delay_ns, vec![expected]));
        assert_eq!(bench.serve(&read(5004, 1)).1[0].at_bytes, 5004 * 512, "again, and elsewhere");
        bench.takes_ns(&read(4990, 10));
        let health = &bench.health()[0];
        assert_eq!((health.uncorrectable_errors, health.pending_sectors, health.reallocated_sectors), (2, 2, 0));
    }
}

/// A write remaps the sectors that it touches to spares after the last block; reads over them go there and come back.
#[test]
fn a_write_heals_and_later_accesses_pay_the_way() {
    let mut bench = Bench::from(&bare_drive()).with(None, &[unreadable(5000, 5002)]);
    assert_eq!(bench.serve(&read(5000, 1)).1.len(), 1);
    bench.takes_ns(&write(5000, 1));
    let health = &bench.health()[0];
    assert_eq!((health.uncorrectable_errors, health.pending_sectors, health.reallocated_sectors), (1, 0, 1));
    assert_eq!(bench.serve(&read(5000, 2)).1[0].at_bytes, 5001 * 512, "the other one is as bad as before");
    // From the same place: read as the last block is, which its spare lies behind.
    let (mut healed, mut well) = (bench.clone(), bench.clone());
    let last = CYLINDERS * CYLINDER - 1;
    assert_eq!(healed.takes_ns(&read(5000, 1)), well.takes_ns(&read(last, 1)));
    // In the middle of a run: there and back, at least two long seeks.
    let (mut healed, mut well) = (bench.clone(), bench.clone());
    let (healed_ns, well_ns) = (healed.takes_ns(&read(4990, 11)), well.takes_ns(&read(4990, 10)));
    assert!(healed_ns > well_ns + 9 * MS, "{healed_ns} {well_ns}");
    let mut there_and_back = bench.clone();
    bench.takes_ns(&write(5001, 1));
    there_and_back.takes_ns(&write(5001, 1));
    assert!(bench.takes_ns(&read(4990, 30)) > there_and_back.takes_ns(&read(4950, 30)) + 2 * 9 * MS);
}

#[test]
fn a_write_fault_fails_writes_to_bad_sectors() {
    let fault = MediaDefect { reads: false, writes: true, healed_by_write: false, ..unreadable(5000, 5001) };
    let mut bench = Bench::from(&bare_drive()).with(None, &[fault]);
    let (_, failed) = bench.serve(&write(4999, 3));
    assert_eq!(failed, [Failed { id: 1, at_bytes: 5000 * 512, write: true }]);
    bench.takes_ns(&read(4999, 3));
    // With a write cache the flush reports it, once.
    let mut bench = Bench::from(&caching()).with(None, &[fault]);
    bench.takes_ns(&write(4999, 3));
    let (_, failed) = bench.serve(&flush());
    assert_eq!(failed, [Failed { id: 2, at_bytes: 5000 * 512, write: true }]);
    assert_eq!(bench.serve(&flush()).1, []);
}

/// Cache hits meet no media defect: the dirty data of the write cache, and data that were in the buffer before.
#[test]
fn caches_meet_no_media_defect() {
    let mut bench = Bench::from(&caching()).with(None, &[unreadable(5000, 5001)]);
    bench.submit(&write(300_000, 200));
    bench.submit(&write(5000, 1));
    bench.submit(&read(5000, 1));
    bench.settle();
    assert_eq!(bench.failed(), [], "dirty, or healed by then");
    let mut bench = Bench::from(&reading_ahead());
    bench.takes_ns(&read(5000, 10));
    bench.system.set_media_defects(None, vec![unreadable(5000, 5001)], 1).unwrap();
    bench.takes_ns(&read(5000, 10));
}

/// Read-ahead and passing sectors add nothing unreadable to the buffer.
#[test]
fn read_ahead_ends_at_a_media_defect() {
    for before in [read(4980, 5), read(5003, 5)] {
        let mut bench = Bench::from(&reading_ahead()).with(None, &[unreadable(5000, 5001)]);
        bench.takes_ns(&before);
        bench.run_to(bench.now_ns + 100 * MS);
        assert_eq!(bench.serve(&read(5000, 1)).1.len(), 1, "{before:?}");
    }
}

#[test]
fn the_seed_selects_the_share_of_failing_accesses() {
    let outcome = |seed: u64| {
        let mut bench = Bench::from(&bare_drive());
        bench.system.set_media_defects(None, vec![MediaDefect { share: 0.3, ..unreadable(0, 400_000) }], seed).unwrap();
        (0..200).map(|at| bench.serve(&read(at * 1999, 8)).1.len()).collect::<Vec<usize>>()
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
    assert!((40..80).contains(&outcome(1).iter().sum::<usize>()));
}

#[test]
fn the_second_actuator_has_its_own_media() {
    let half = CYLINDERS * CYLINDER / 2;
    let mut bench = Bench::from(&split()).with(None, &[unreadable(half + 100, half + 101)]);
    bench.takes_ns(&read(100, 1));
    let (_, failed) = bench.serve(&read(half + 95, 20));
    assert_eq!(failed, [Failed { id: 2, at_bytes: (half + 100) * 512, write: false }]);
}

/// The media cache accepts the new data; when its band is rewritten they are at home, on spares.
#[test]
fn a_shingled_drive_heals_through_its_media_cache() {
    let mut bench = Bench::from(&shingled()).with(None, &[unreadable(5000, 5002)]);
    let (_, failed) = bench.serve(&read(4999, 3));
    assert_eq!(failed, [Failed { id: 1, at_bytes: 5000 * 512, write: false }]);
    bench.takes_ns(&write(5000, 1));
    bench.takes_ns(&read(5000, 1));
    bench.settle();
    bench.takes_ns(&read(5000, 1));
    assert_eq!(bench.serve(&read(5001, 1)).1.len(), 1, "what was not written is not healed");
    assert_eq!(bench.health()[0].reallocated_sectors, 1);
}

#[test]
fn flash_retries_fails_and_is_healed() {
    let media_defect = |fails: bool, delay: Delay| MediaDefect {
        span: Span { start_bytes: 10 * UNIT, length_bytes: UNIT },
        fails,
        delay,
        ..unreadable(0, 1)
    };
    let (read, write) = (request(Kind::Read, 10 * UNIT, UNIT), request(Kind::Write, 10 * UNIT, UNIT));
    let mut well = Bench::from(&small_ssd());
    // A whole row, so that it leaves the buffer.
    let row = request(Kind::Write, 8 * UNIT, 8 * UNIT);
    well.takes_ns(&row);
    well.settle();
    let written = well.clone();
    let well_ns = well.takes_ns(&read);
    for (delay, delay_ns) in [(Delay::Turns(3), 3 * READ_NS), (Delay::Ns(77_000), 77_000)] {
        let mut weak = written.clone().with(None, &[media_defect(false, delay)]);
        assert_eq!(weak.takes_ns(&read), well_ns + delay_ns);
        let mut bad = written.clone().with(None, &[media_defect(true, delay)]);
        assert_eq!(bad.serve(&read), (well_ns + delay_ns, vec![Failed { id: 2, at_bytes: 10 * UNIT, write: false }]));
        bad.takes_ns(&write);
        bad.takes_ns(&read);
        bad.takes_ns(&row);
        bad.settle();
        assert_eq!(bad.takes_ns(&read), well_ns, "flash has no way to spares");
        assert_eq!(bad.health()[0].reallocated_sectors, UNIT / 512);
    }
    // A longer program occupies its die.
    let slow = MediaDefect { reads: false, writes: true, ..media_defect(false, Delay::Turns(2)) };
    let end = |media_defects: &[MediaDefect]| {
        let mut bench = Bench::from(&small_ssd()).with(None, media_defects);
        bench.takes_ns(&row);
        bench.settle();
        bench.now_ns
    };
    assert_eq!(end(&[slow]), end(&[]) + 2 * PROGRAM_NS);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut bench = Bench::from(&bare_drive());
    let mut refusal =
        |member, media_defect| bench.system.set_media_defects(member, vec![media_defect], 1).unwrap_err().to_string();
    assert_eq!(refusal(Some(1), unreadable(0, 1)), "member 1; 0 to 0 are allowed");
    assert!(refusal(None, unreadable(0, 400_001)).contains("204800000"));
    assert!(refusal(None, MediaDefect { share: 1.5, ..unreadable(0, 1) }).contains("share 1.5; 0 to 1"));
}
