//! Retries, recalibration and background scans: their cost, and that they cost nothing when off.

use crate::common;
use crate::common::*;
use headstack_sim::drive::Drive;
use headstack_sim::drive::description::{BackgroundScan, Policy, Recalibration, Retries, SlowProcesses};
use headstack_workload::{Arrivals, Think};

const REQUESTS: u64 = 50_000;

/// The mean number of failed passes: sum of p^k for k from 1 to the most, p/(1 - p) where there is no limit.
#[test]
fn retries_add_turns_by_the_geometric_law() {
    let bare = run_closed(&bare_drive(), line(512, 100.0, 100.0), 1, REQUESTS).mean_latency_ns();
    for (probability, passes_max) in [(0.1, 100), (0.5, 100), (0.5, 2), (0.9, 3)] {
        let mut description = bare_drive();
        description.slow.retries = Some(Retries { probability, passes_max });
        let result = run_closed(&description, line(512, 100.0, 100.0), 1, REQUESTS);
        let expected: f64 = (1..=passes_max.min(60)).map(|k| probability.powi(k as i32)).sum();
        let what = format!("probability {probability}, at most {passes_max}");
        assert_close(counter(&result, "retries") as f64 / REQUESTS as f64, expected, 4.0, &what);
        let lost_turns = (result.mean_latency_ns() - bare) / TURN_NS as f64;
        assert_close(lost_turns, expected, 5.0, &what);
    }
}

#[test]
fn retries_differ_by_seed_and_repeat_by_seed() {
    let mut description = bare_drive();
    description.slow.retries = Some(Retries { probability: 0.3, passes_max: 10 });
    let commands: Vec<_> = (0..50).map(|i| (i * 100 * MS, read(i * 7_777, 1))).collect();
    let times = |seed| -> Vec<u64> {
        let mut drive = Drive::new(&description, seed).unwrap();
        serve_all(&mut drive, &commands).iter().map(|completion| completion.at_ns).collect()
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

#[test]
fn recalibration_takes_its_share() {
    let line = line(512, 100.0, 100.0);
    for (queue_depth, interval_ns, duration_ns) in
        [(1, 100 * MS, 20 * MS), (1, 1_000 * MS, 500 * MS), (4, 100 * MS, 20 * MS)]
    {
        let mut description = queueing_drive(Policy::Fcfs, 4);
        let bare = run_closed(&description, line.clone(), queue_depth, REQUESTS).throughput_per_s();
        description.slow.recalibration = Some(Recalibration { interval_ns, duration_ns });
        let rate = run_closed(&description, line.clone(), queue_depth, REQUESTS).throughput_per_s();
        let share = duration_ns as f64 / interval_ns as f64;
        assert_close(rate, (1.0 - share) * bare, 1.0, &format!("{duration_ns} of {interval_ns} ns"));
    }
    // A command that arrives while the arm is occupied waits for it.
    let mut description = bare_drive();
    description.slow.recalibration = Some(Recalibration { interval_ns: 600 * MS, duration_ns: 60 * MS });
    let mut drive = Drive::new(&description, 0).unwrap();
    assert_ns(serve(&mut drive, 606 * MS, &read(10, 1)), (54 * MS + 11 * SECTOR_NS) as f64, "waits for the arm");
}

#[test]
fn a_background_scan_pauses_on_a_busy_drive() {
    let mut description = bare_drive();
    let line = line(512, 100.0, 100.0);
    let bare = run_closed(&description, line.clone(), 1, 5_000);
    description.slow.scan = Some(BackgroundScan { idle_ns: 1, step_sectors: 2_000 });
    assert_eq!(outcome(&run_closed(&description, line.clone(), 1, 5_000)), outcome(&bare), "never idle");
    // Idle for 50 ms after each request: those that arrive during a step of 20 turns wait for its end.
    let pausing = Arrivals::Closed { queue_depth: 1, think: Think::Fixed(50 * MS) };
    let scanned = run_spec(&spec(&description, workload(line.clone(), pausing, 2_000)));
    let undisturbed = run_spec(&spec(&bare_drive(), workload(line, pausing, 2_000)));
    assert!(scanned.mean_latency_ns() > undisturbed.mean_latency_ns() + 10.0 * MS as f64);
    assert!(scanned.quantile_ns(1.0).unwrap() > 100 * MS);
    // A scan that needs a longer rest than it ever gets.
    description.slow.scan = Some(BackgroundScan { idle_ns: 51 * MS, step_sectors: 2_000 });
    let resting = run_spec(&spec(&description, workload(common::line(512, 100.0, 100.0), pausing, 2_000)));
    assert_eq!(outcome(&resting), outcome(&undisturbed));
}

#[test]
fn all_is_off_by_default() {
    assert_eq!(
        SlowProcesses::default(),
        SlowProcesses { retries: None, recalibration: None, scan: None, write_verify: false }
    );
    let line = line(4096, 50.0, 100.0);
    let bare = run_closed(&bare_drive(), line.clone(), 4, 5_000);
    let mut description = bare_drive();
    description.slow.retries = Some(Retries { probability: 0.0, passes_max: 10 });
    assert_eq!(outcome(&run_closed(&description, line, 4, 5_000)), outcome(&bare));
    assert!(bare.notes.iter().any(|note| note.contains("excludes retries")), "a note names what the tail lacks");
}
