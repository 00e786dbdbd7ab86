//! Runs: warm-up, length, open and closed loops, and the laws of queueing.

use crate::common::*;
use headstack_sim::drive::description::{DriveDescription, Policy, SeekCurve};
use headstack_sim::{RunSpec, SimError, run, run_all};
use headstack_workload::{ArrivalProcess, Arrivals, RunLength, Span, Think};

fn random_reads() -> headstack_workload::AccessLine {
    line(512, 100.0, 100.0)
}

fn open(rate_per_s: f64, process: ArrivalProcess) -> Arrivals {
    Arrivals::Open { rate_per_s, process }
}

#[test]
fn the_warm_up_is_left_out() {
    let of = |warm_up, requests| {
        let mut workload = workload(random_reads(), closed(1), requests);
        workload.warm_up.requests = warm_up;
        run_spec(&spec(&bare_drive(), workload))
    };
    let (whole, first, rest) = (of(0, 1_500), of(0, 500), of(500, 1_000));
    assert_eq!((whole.start_ns, rest.start_ns, rest.count()), (0, first.duration_ns, 1_000));
    assert_eq!(first.duration_ns + rest.duration_ns, whole.duration_ns);
    let sum = |result: &headstack_result::RunResult| result.kinds.read.latency.sum_ns();
    assert_eq!(sum(&first) + sum(&rest), sum(&whole));
    assert_eq!(counter(&first, "seek_ns") + counter(&rest, "seek_ns"), counter(&whole, "seek_ns"));
}

#[test]
fn the_warm_up_lasts_for_its_time() {
    let mut workload = workload(random_reads(), closed(3), 1_000);
    workload.warm_up.time_ns = 2_000 * MS;
    let result = run_spec(&spec(&bare_drive(), workload));
    assert!((2_000 * MS..2_030 * MS).contains(&result.start_ns), "{}", result.start_ns);
}

#[test]
fn a_run_of_a_time_lasts_that_time() {
    for arrivals in [closed(1), closed(8), open(50.0, ArrivalProcess::Poisson), open(2.0, ArrivalProcess::Fixed)] {
        let mut workload = workload(random_reads(), arrivals, 1);
        workload.run_length = RunLength::TimeNs(5_000 * MS);
        let result = run_spec(&spec(&bare_drive(), workload));
        assert_eq!(result.duration_ns, 5_000 * MS, "{arrivals:?}");
        assert!(result.count() > 5);
    }
}

/// Runs until the mean is known within 2 %: the interval must nearly always cover the long-run mean.
#[test]
fn a_confidence_run_reaches_its_interval() {
    let long = run_closed(&queueing_drive(Policy::Sptf, 8), random_reads(), 8, 400_000).mean_latency_ns();
    let mut covered = 0;
    for seed in 100..120 {
        let mut workload = workload(random_reads(), closed(8), 1);
        workload.run_length = RunLength::Confidence { percent: 2.0, max_requests: 200_000 };
        workload.warm_up.requests = 100;
        let result = run_spec(&RunSpec { seed, ..spec(&queueing_drive(Policy::Sptf, 8), workload) });
        let (low_ns, high_ns) = result.sampling.mean.between_ns().unwrap();
        assert!((high_ns - low_ns) / 2.0 <= 0.02 * result.mean_latency_ns());
        assert!(result.count() < 200_000, "stopped early");
        covered += u32::from((low_ns..=high_ns).contains(&long));
    }
    assert!(covered >= 16, "{covered} of 20 intervals of 95 % cover {long}");
    let mut workload = workload(random_reads(), closed(8), 1);
    workload.run_length = RunLength::Confidence { percent: 0.001, max_requests: 3_000 };
    assert_eq!(run_spec(&spec(&bare_drive(), workload)).count(), 3_000, "the limit holds");
}

/// Response time law of a closed loop: throughput = requests / (latency + think time).
#[test]
fn throughput_follows_the_response_time_law() {
    for think in [Think::Fixed(30 * MS), Think::Exponential(30 * MS)] {
        for queue_depth in [1, 4, 16] {
            let mut workload = workload(random_reads(), Arrivals::Closed { queue_depth, think }, 40_000);
            workload.warm_up.requests = 500;
            let result = run_spec(&spec(&bare_drive(), workload));
            let cycle_s = (result.mean_latency_ns() + 30e6) / 1e9;
            assert_close(result.throughput_per_s(), f64::from(queue_depth) / cycle_s, 1.0, &format!("{think:?}"));
        }
    }
}

/// One request at a time whose service is a constant seek, a wait uniform over the turn, and a sector.
fn simple_server() -> DriveDescription {
    let mut description = bare_drive();
    (description.mechanics.seek, description.mechanics.head_switch_ns) = (SeekCurve::Constant(3 * MS), 3 * MS);
    description
}

/// Pollaczek and Khinchine: waiting time = rate * mean square of the service / 2 (1 - utilization).
#[test]
fn open_loop_response_is_that_of_an_m_g_1_queue() {
    let turn = TURN_NS as f64;
    let mean = 3e6 + turn / 2.0 + SECTOR_NS as f64;
    let mean_square = mean * mean + turn * turn / 12.0;
    for utilization in [0.3, 0.6, 0.8] {
        let rate = utilization / mean;
        let mut workload = workload(random_reads(), open(rate * 1e9, ArrivalProcess::Poisson), 300_000);
        workload.warm_up.requests = 1_000;
        let result = run_spec(&spec(&simple_server(), workload));
        let expected = mean + rate * mean_square / (2.0 * (1.0 - utilization));
        assert_close(result.mean_latency_ns(), expected, 3.0, &format!("utilization {utilization}"));
        assert_close(result.utilization(&result.components[0]), utilization, 1.5, "utilization of the mechanism");
        assert!(!result.saturated);
    }
}

/// Reads that hit the buffer queue for the interface, which serves each in the same time: an M/D/1 queue.
#[test]
fn hits_in_an_open_loop_are_an_m_d_1_queue() {
    let mut description = queueing_drive(Policy::Fcfs, 256);
    // Enough for the sixteen places, some of which are read several times before they are in the buffer.
    description.buffer.segments = 300;
    description.interface.read_ns_per_byte = 250.0;
    let service = 8.0 * 512.0 * 250.0;
    for utilization in [0.4, 0.8] {
        let rate_per_s = utilization / service * 1e9;
        let aligned = headstack_workload::AccessLine { align_bytes: Some(4096), ..line(4096, 100.0, 100.0) };
        let mut workload = workload(aligned, open(rate_per_s, ArrivalProcess::Poisson), 200_000);
        workload.warm_up.requests = 2_000;
        let span = Some(Span { start_bytes: 0, length_bytes: 16 * 4096 });
        let result = run_spec(&RunSpec { span, ..spec(&description, workload) });
        assert_eq!(counter(&result, "read_misses") + counter(&result, "read_partial_hits"), 0);
        let expected = service * (1.0 + utilization / (2.0 * (1.0 - utilization)));
        assert_close(result.mean_latency_ns(), expected, 2.0, &format!("utilization {utilization}"));
        assert_close(result.utilization(&result.components[1]), utilization, 1.0, "utilization of the interface");
    }
}

#[test]
fn more_than_the_drive_can_do_is_called_saturated() {
    let capacity = run_closed(&simple_server(), random_reads(), 1, 20_000).throughput_per_s();
    let at = |share: f64, process| {
        let mut workload = workload(random_reads(), open(share * capacity, process), 20_000);
        workload.warm_up.requests = 200;
        run_spec(&spec(&simple_server(), workload))
    };
    for process in [ArrivalProcess::Fixed, ArrivalProcess::Poisson] {
        let over = at(1.5, process);
        assert!(over.saturated);
        assert_close(over.throughput_per_s(), capacity, 1.0, "achieved");
        assert_close(over.offered_per_s.unwrap(), 1.5 * capacity, 1e-9, "offered");
        // Half as many as were served wait at the end.
        assert_close(over.backlog as f64, 0.5 * 20_200.0, 5.0, "backlog");
        // Latency counts from the intended arrival: it grows with the backlog.
        assert!(over.mean_latency_ns() > 100.0 * over.kinds.read.service.mean_ns());
        let half = at(0.5, process);
        assert!(!half.saturated && half.backlog < 30);
        assert_close(half.throughput_per_s(), 0.5 * capacity, 2.0, "achieved at half load");
    }
}

#[test]
fn an_overloaded_run_ends_when_as_many_requests_wait_as_are_measured() {
    let capacity = run_closed(&simple_server(), random_reads(), 1, 20_000).throughput_per_s();
    let at = |times: f64, length, warm_up| {
        let mut workload = workload(random_reads(), open(times * capacity, ArrivalProcess::Poisson), 1);
        (workload.run_length, workload.warm_up.requests) = (length, warm_up);
        run_spec(&spec(&simple_server(), workload))
    };
    for (requests, most) in [(500, 1 << 16), (100_000, 100_000)] {
        let result = at(1_000.0, RunLength::Requests(requests), 0);
        assert!(result.saturated && result.count() < 110, "{}", result.count());
        assert_eq!(result.backlog, most + 1);
        assert!(result.ended_early.unwrap().starts_with(&format!("more than {most} requests wait")));
        assert!(result.checks.iter().all(|check| check.passed));
    }
    // A warm-up that would never end does end, in time to measure something.
    let cold = at(1_000.0, RunLength::Requests(500), 10_000);
    assert!((25..40).contains(&cold.count()), "{}", cold.count());
    assert_close(cold.throughput_per_s(), capacity, 5.0, "achieved");
    // A run of fixed time has no number of requests: a million are too many for any memory.
    let long = at(10_000.0, RunLength::TimeNs(u64::MAX / 2), 0);
    assert_eq!((long.saturated, long.backlog), (true, (1 << 20) + 1));
    // Twice the drive's rate is allowed.
    let twice = at(1.9, RunLength::Requests(70_000), 0);
    assert_eq!((twice.saturated, twice.count(), twice.ended_early), (true, 70_000, None));
    // A closed loop of any depth has exactly as many outstanding as requested.
    let deep = run_closed(&simple_server(), random_reads(), 40_000, 100);
    assert_eq!((deep.saturated, deep.count(), deep.ended_early), (false, 100, None));
}

#[test]
fn late_arrivals_waited_for_a_tag() {
    let with = |depth| {
        let workload = workload(random_reads(), open(100.0, ArrivalProcess::Poisson), 5_000);
        run_spec(&spec(&queueing_drive(Policy::Fcfs, depth), workload))
    };
    let (one, many) = (with(1), with(256));
    assert!(one.late_arrivals > 1_000 && one.late_arrivals < 5_100, "{}", one.late_arrivals);
    assert_eq!(many.late_arrivals, 0);
    // First come, first served either way: the wait is the same wherever it is spent.
    assert_eq!(one.kinds.read.latency, many.kinds.read.latency);
}

#[test]
fn intervals_add_up_to_the_whole() {
    let mut spec = spec(&bare_drive(), workload(random_reads(), closed(4), 5_000));
    spec.interval_ns = Some(1_000 * MS);
    let result = run_spec(&spec);
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), result.count());
    assert_eq!(result.intervals.iter().map(|interval| interval.bytes).sum::<u64>(), result.bytes());
    let mut next_ns = result.start_ns;
    for interval in &result.intervals {
        assert_eq!(interval.start_ns, next_ns);
        next_ns += interval.duration_ns;
    }
    assert_eq!(next_ns, result.start_ns + result.duration_ns);
}

#[test]
fn a_run_stays_in_its_span() {
    let mut spec = spec(&bare_drive(), workload(random_reads(), closed(1), 2_000));
    spec.span = Some(Span { start_bytes: 300 * CYLINDER * 512, length_bytes: CYLINDER * 512 });
    let result = run_spec(&spec);
    // Within a cylinder nothing takes longer than the head switch, after the first seek.
    assert!(counter(&result, "seek_ns") < 10 * MS + 2_000 * MS);
    spec.span = Some(Span { start_bytes: CYLINDERS * CYLINDER * 512, length_bytes: 512 });
    assert!(matches!(run(&spec, &|_| true), Err(SimError::Range(_))));
}

#[test]
fn a_run_can_be_stopped() {
    let spec = spec(&bare_drive(), workload(random_reads(), closed(1), 1 << 20));
    assert!(matches!(run(&spec, &|_| false), Err(SimError::Stopped)));
}

#[test]
fn a_panic_fails_only_its_own_run() {
    let specs = vec![spec(&bare_drive(), workload(random_reads(), closed(1), 1 << 20)); 3];
    let hear = |index: usize, _| {
        assert_ne!(index, 1, "the second run breaks down");
        false
    };
    let results = run_all(&specs, &hear);
    assert!(matches!(results[0], Err(SimError::Stopped)));
    assert!(matches!(&results[1], Err(SimError::Panicked(words)) if words.contains("the second run breaks down")));
    assert!(matches!(results[2], Err(SimError::Stopped)));
}

#[test]
fn many_runs_are_the_same_on_any_number_of_threads() {
    let specs: Vec<RunSpec> = (1..=6)
        .map(|queue_depth| {
            spec(&queueing_drive(Policy::Sptf, 32), workload(random_reads(), closed(queue_depth), 2_000))
        })
        .collect();
    let json = |result: Result<headstack_result::RunResult, SimError>| result.unwrap().to_json().unwrap();
    let alone: Vec<String> = specs.iter().map(|spec| json(run(spec, &|_| true))).collect();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let together = pool.install(|| run_all(&specs, &|_, _| true));
        assert_eq!(together.into_iter().map(json).collect::<Vec<_>>(), alone, "{threads} threads");
    }
}
