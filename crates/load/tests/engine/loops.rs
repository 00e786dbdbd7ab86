//! The loops, against a target that answers after a fixed time: how many requests, when, and what is said of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{
    KIB, MS, alone, assert_sound, bytes, closed, count, counter, errors, generated, job, measure, null_job, open,
    requests, spec, time, workload,
};
use headstack_load::{EngineKind, Job, LoadError, Log, run, run_logged};
use headstack_result::RunResult;
use headstack_workload::jobs::Limits;
use serde_json::json;

fn response(result: &RunResult) -> &headstack_result::LatencyHistogram {
    &result.kinds.read.response
}

#[test]
fn a_run_of_so_many_requests_makes_exactly_these() {
    for (outstanding, wanted) in [(1, 1), (1, 10_000), (7, 10_001), (32, 5), (64, 100_000), (4096, 4097)] {
        for service_ns in [0, 1_000] {
            let result =
                measure(vec![null_job(service_ns, workload(4096, 100.0, &closed(outstanding)), requests(wanted))]);
            assert_eq!((count(&result), bytes(&result)), (wanted, 4096 * wanted), "{outstanding} outstanding");
            assert!(result.depth.max <= outstanding);
            assert_eq!(result.ended_early, None);
        }
    }
}

#[test]
fn a_run_of_so_many_bytes_ends_with_the_request_that_reaches_them() {
    let limits = Limits { bytes: Some(1_000_000), ..Limits::default() };
    for outstanding in [1, 32] {
        let result = measure(vec![null_job(0, workload(4096, 100.0, &closed(outstanding)), limits)]);
        assert_eq!(count(&result), 1_000_000 / 4096 + 1);
    }
    // The first limit that is reached ends it.
    let both = Limits { requests: Some(10), time_ns: Some(3_600_000 * MS), ..limits };
    assert_eq!(count(&measure(vec![null_job(0, workload(4096, 100.0, &closed(4)), both)])), 10);
}

#[test]
fn a_run_of_so_much_time_lasts_exactly_so_long() {
    let _alone = alone();
    for form in [closed(4), open(2_000.0, "poisson")] {
        let start = Instant::now();
        let result = measure(vec![null_job(MS, workload(4096, 100.0, &form), time(300 * MS))]);
        assert_eq!(result.duration_ns, 300 * MS, "what comes later is not counted");
        assert!((300..600).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
        assert!((300..=1_200).contains(&count(&result)), "{}", count(&result));
    }
}

#[test]
fn the_run_length_of_the_workload_holds_where_nothing_else_is_said() {
    let length = json!({"run_length": {"requests": 1_234}});
    assert_eq!(count(&measure(vec![null_job(0, workload(512, 100.0, &length), Limits::default())])), 1_234);
}

#[test]
fn a_warm_up_is_left_out() {
    let _alone = alone();
    let mut form = closed(8);
    form["warm_up"] = json!({"requests": 500, "time": "0s"});
    let mut warm = null_job(100_000, workload(4096, 100.0, &form), requests(1_000));
    let result = measure(vec![warm.clone()]);
    assert_eq!(count(&result), 1_000);
    assert!(result.start_ns >= 500 / 8 * 100_000, "{}", result.start_ns);
    form["warm_up"] = json!({"requests": 10, "time": "200ms"});
    warm.workload = workload(4096, 100.0, &form);
    let result = measure(vec![warm]);
    assert_eq!(count(&result), 1_000);
    assert!((200 * MS..300 * MS).contains(&result.start_ns), "{}", result.start_ns);
}

#[test]
fn a_log_has_each_request_of_the_measured_part_and_no_other() {
    let mut changes = closed(1);
    changes["warm_up"] = json!({"requests": 5});
    let job = |seed| Job { seed, ..null_job(MS, workload(4 * KIB, 50.0, &changes), requests(20)) };
    let jobs = vec![job(1), job(2)];
    let log = Arc::new(Log::default());
    let result = run_logged(&spec(jobs.clone()), Some(&log), &mut |_| true).unwrap();
    let logged = log.take();
    assert!(log.take().is_empty());
    assert_eq!(logged.len() as u64, count(&result));
    for (number, job) in (0..).zip(&jobs) {
        let own: Vec<_> = logged.iter().filter(|one| one.job == number).collect();
        assert_eq!(own.len(), 20);
        let made = own.iter().map(|one| (one.kind, one.offset_bytes, one.length_bytes));
        let asked = generated(job, 25).into_iter().skip(5);
        assert!(made.eq(asked.map(|request| (request.kind, request.offset_bytes, request.length_bytes))));
        assert!(own.windows(2).all(|pair| pair[0].intended_ns <= pair[1].intended_ns));
        assert!(own.iter().all(|one| one.response_ns >= MS && !one.failed));
    }
    let sum_ns: u128 = logged.iter().map(|one| u128::from(one.response_ns)).sum();
    assert_eq!(sum_ns, result.response().sum_ns());
}

#[test]
fn a_run_ends_when_its_mean_is_known() {
    // Batches of three: a look at certain numbers of completions only would hardly ever take place.
    for outstanding in [1, 3, 1_000] {
        let mut form = closed(outstanding);
        form["run_length"] = json!({"confidence": {"percent": 5.0, "max_requests": 20_000_000}});
        let result = measure(vec![null_job(1_000, workload(4096, 100.0, &form), Limits::default())]);
        let half_ns = result.mean_response_half_width_ns.unwrap();
        assert!(half_ns <= 0.05 * response(&result).mean_ns(), "{outstanding}: {half_ns}");
        assert!(count(&result) < 20_000_000, "{outstanding}");
    }
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let _alone = alone();
    let result = measure(vec![null_job(2 * MS, workload(4096, 100.0, &closed(8)), time(400 * MS))]);
    assert_eq!(result.depth.max, 8);
    assert!((7.9..=8.0).contains(&result.depth.mean), "{}", result.depth.mean);
    let per_s = count(&result) as f64 / (result.duration_ns as f64 / 1e9);
    assert!((3_200.0..=4_000.0).contains(&per_s), "8 in 2 ms are 4,000 a second: {per_s}");
    assert!(!result.saturated && result.offered_per_s.is_none() && result.late_arrivals == 0);
}

#[test]
fn clients_think() {
    let _alone = alone();
    for think in [json!({"fixed": "3ms"}), json!({"exponential": "3ms"})] {
        let form = json!({"arrivals": {"closed": {"outstanding": 4, "think": think}}});
        let result = measure(vec![null_job(MS, workload(4096, 100.0, &form), time(1_000 * MS))]);
        // Four clients, each with a request every 4 ms.
        let per_s = count(&result) as f64;
        assert!((850.0..=1_080.0).contains(&per_s), "{think}: {per_s}");
        // Who thinks has nothing outstanding.
        assert!((0.85..1.25).contains(&result.depth.mean), "{think}: {}", result.depth.mean);
        assert!(response(&result).mean_ns() < 1.3e6);
    }
    // Iometer's pause before each burst.
    let form = json!({"arrivals": {"closed": {"outstanding": 1}}, "line": {"delay": "10ms", "burst": 5}});
    let result = measure(vec![null_job(0, workload(4096, 100.0, &form), time(505 * MS))]);
    assert!((220..=255).contains(&count(&result)), "{}", count(&result));
}

#[test]
fn clients_that_think_make_exactly_so_many_requests_and_do_not_spin_for_the_last() {
    let form = json!({"arrivals": {"closed": {"outstanding": 64, "think": {"fixed": "1us"}}}});
    let result = measure(vec![null_job(400 * MS, workload(4096, 100.0, &form), requests(2))]);
    assert_eq!(count(&result), 2);
    let cpu_ns = counter(&result, "cpu_user_ns") + counter(&result, "cpu_system_ns");
    assert!(cpu_ns < 100 * MS, "{cpu_ns}");
}

/// Mean wait of M/D/1: rho / 2 (1 - rho) service times.
#[test]
fn poisson_arrivals_at_one_server_wait_as_queueing_theory_says() {
    let _alone = alone();
    let (service_ns, rho) = (MS, 0.6);
    let theory_ns = service_ns as f64 * (1.0 + rho / (2.0 * (1.0 - rho)));
    let form = open(600.0, "poisson");
    let mut one = null_job(service_ns, workload(4096, 100.0, &form), requests(4_000));
    one.slots = 1;
    let result = measure(vec![one]);
    let mean_ns = response(&result).mean_ns();
    assert!((0.85..1.25).contains(&(mean_ns / theory_ns)), "{mean_ns} against {theory_ns}");
    let service = result.kinds.read.service.mean_ns();
    assert!((1e6..1.15e6).contains(&service), "{service}");
    assert!(!result.saturated);
    let late = result.late_arrivals as f64 / 4_000.0;
    assert!((0.5..0.75).contains(&late), "the chance to find it busy is its load: {late}");
    assert!(
        counter(&result, "issue_lateness_p50_ns") < 100_000,
        "who waits for the target is not late by this program"
    );
}

#[test]
fn fixed_arrivals_below_capacity_wait_for_nobody() {
    let _alone = alone();
    let mut one = null_job(MS, workload(4096, 100.0, &open(500.0, "fixed")), requests(500));
    one.slots = 1;
    let result = measure(vec![one]);
    assert!((1e6..1.2e6).contains(&response(&result).mean_ns()), "{}", response(&result).mean_ns());
    assert!((0.95..1.1).contains(&(result.duration_ns as f64 / 1e9)), "500 at 500 a second");
    assert_eq!(result.offered_per_s, Some(500.0));
    assert!(counter(&result, "issue_lateness_p50_ns") < 100_000);
}

#[test]
fn an_overload_is_said_in_seconds_and_words() {
    let _alone = alone();
    let mut one = null_job(2 * MS, workload(4096, 100.0, &open(1_000.0, "poisson")), time(3_000 * MS));
    one.slots = 1;
    let result = measure(vec![one]);
    assert!(result.saturated);
    let done = count(&result);
    assert!((1_300..=1_500).contains(&done), "500 a second: {done}");
    let backlog = 3_000 - done;
    assert!(result.backlog.abs_diff(backlog) < 250, "{} of about {backlog}", result.backlog);
    // A request that completes at t arrived at t / 2: the mean wait is a quarter of the run, the longest half of it.
    let seconds = |ns: f64| ns / 1e9;
    assert!((0.6..0.95).contains(&seconds(response(&result).mean_ns())), "{}", response(&result).mean_ns());
    assert!((1.3..1.8).contains(&seconds(response(&result).max_ns() as f64)));
    let service = &result.kinds.read.service;
    assert!((2e6..2.3e6).contains(&service.mean_ns()), "{}", service.mean_ns());
    assert!(result.late_arrivals > 2_600, "{}", result.late_arrivals);
    assert!(u64::from(result.depth.max) >= result.backlog);
}

#[test]
fn an_overload_with_a_warm_up_counts_from_its_end() {
    let _alone = alone();
    let mut form = open(1_000.0, "fixed");
    form["warm_up"] = json!({"requests": 0, "time": "500ms"});
    let mut one = null_job(2 * MS, workload(4096, 100.0, &form), time(1_000 * MS));
    one.slots = 1;
    let result = measure(vec![one]);
    assert!(result.saturated);
    assert!((440..=500).contains(&count(&result)), "{}", count(&result));
    // Those that had piled up before wait still: 250 then, 750 at the end.
    assert!((740..=830).contains(&result.backlog), "{}", result.backlog);
    assert!((900..=1_001).contains(&result.late_arrivals), "{}", result.late_arrivals);
}

#[test]
fn jobs_run_side_by_side_and_are_reported_by_name() {
    let _alone = alone();
    let mut jobs = Vec::new();
    for (name, kind, seed) in [("reader", 100.0, 1), ("reader", 100.0, 2), ("writer", 0.0, 3)] {
        let mut one = null_job(MS, workload(4096, kind, &closed(2)), requests(300));
        (one.name, one.seed) = (name.into(), seed);
        jobs.push(one);
    }
    let result = measure(jobs);
    let kinds = &result.kinds;
    assert_eq!((kinds.read.count, kinds.write.count), (600, 300));
    let streams: Vec<_> = result.streams.iter().map(|one| (one.name.as_str(), one.kinds.read.count)).collect();
    assert_eq!(streams, [("reader", 600), ("writer", 0)]);
    assert!((150.0..260.0).contains(&(result.duration_ns as f64 / 1e6)), "at the same time: {}", result.duration_ns);
    assert_eq!(result.depth.max, 6);
}

#[test]
fn a_job_that_begins_later_is_reported_for_the_intervals_it_ran_in() {
    let _alone = alone();
    let first = null_job(MS, workload(4096, 100.0, &closed(1)), time(400 * MS));
    let mut second = null_job(MS, workload(4096, 0.0, &closed(1)), time(200 * MS));
    second.start_delay_ns = 400 * MS;
    let mut both = spec(vec![first, second]);
    both.interval_ns = Some(100 * MS);
    let result = run(&both, &mut |_| true).unwrap();
    assert_sound(&result);
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), count(&result));
    let full: Vec<_> = result.intervals.iter().filter(|interval| interval.count > 20).collect();
    assert_eq!(full.len(), 6, "{:?}", result.intervals.iter().map(|one| (one.start_ns, one.count)).collect::<Vec<_>>());
    assert!(full.iter().all(|interval| interval.count <= 101), "none is counted for another's time");
    assert!(full.windows(2).all(|pair| pair[0].start_ns < pair[1].start_ns));
}

#[test]
fn whoever_stops_a_run_keeps_its_results() {
    let _alone = alone();
    for form in [closed(4), open(1_000.0, "poisson"), open(9_000.0, "poisson")] {
        let mut one = null_job(MS, workload(4096, 100.0, &form), time(3_600_000 * MS));
        one.slots = 4;
        let start = Instant::now();
        let mut seen = 0;
        let result = run(&spec(vec![one]), &mut |progress| {
            seen = progress.completed;
            start.elapsed() < Duration::from_millis(300)
        });
        let result = result.unwrap();
        assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
        assert_sound(&result);
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        // The last report has seen those come back, too, that the end found under way.
        assert!((seen - 4..=seen).contains(&count(&result)) && seen > 100, "{} of {seen}", count(&result));
        assert!((250 * MS..600 * MS).contains(&result.duration_ns), "{}", result.duration_ns);
    }
}

#[test]
fn a_run_is_stopped_while_a_request_hangs() {
    let _alone = alone();
    for form in [
        closed(2),
        open(100.0, "fixed"),
        json!({"arrivals": {"closed": {"outstanding": 1, "think": {"fixed": "1ms"}}}}),
    ] {
        let one = null_job(1_500 * MS, workload(4096, 100.0, &form), requests(1_000));
        let start = Instant::now();
        let result = run(&spec(vec![one]), &mut |_| start.elapsed() < Duration::from_millis(200)).unwrap();
        assert_sound(&result);
        assert_eq!(count(&result), 0);
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        assert!(result.duration_ns < 500 * MS, "what is measured ends when somebody says so: {}", result.duration_ns);
    }
}

#[test]
fn a_run_of_so_much_time_ends_while_a_request_hangs_and_gives_it_up() {
    let start = Instant::now();
    let one = null_job(3_600_000 * MS, workload(4096, 100.0, &closed(3)), time(100 * MS));
    let result = run(&spec(vec![one]), &mut |_| true).unwrap();
    assert!((10..13).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!((count(&result), result.backlog, result.duration_ns), (0, 3, 100 * MS));
    assert!(!result.checks[0].passed && result.checks[1].passed, "{:?}", result.checks);
    assert!(result.notes.iter().any(|note| note.starts_with("3 requests had not come back 10 s after")));
}

#[test]
fn a_job_that_waits_for_its_start_is_stopped_too() {
    let mut late = null_job(0, workload(4096, 100.0, &closed(1)), requests(10));
    late.start_delay_ns = u64::MAX;
    let start = Instant::now();
    let result = run(&spec(vec![late]), &mut |_| start.elapsed() < Duration::from_millis(100)).unwrap();
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!((count(&result), result.ended_early.as_deref()), (0, Some("stopped by hand")));
}

#[test]
fn progress_is_told_up_to_the_end() {
    let _alone = alone();
    let mut told = Vec::new();
    let one = null_job(MS, workload(4096, 100.0, &closed(1)), time(400 * MS));
    let result = run(&spec(vec![one]), &mut |progress| {
        told.push(*progress);
        true
    });
    assert!(told.len() >= 5, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0].completed <= pair[1].completed && pair[0].share <= pair[1].share));
    assert!(told[told.len() / 2].share > 0.2 && told[told.len() / 2].share < 0.9);
    let (last, counted) = (told.last().unwrap(), count(&result.unwrap()));
    assert_eq!(last.share, 1.0);
    // The last report is of all, that which the end found under way too.
    assert!((counted..=counted + 1).contains(&last.completed), "{} of {counted}", last.completed);
    assert_eq!(last.bytes, 4096 * last.completed);
}

#[test]
fn memory_does_not_grow_with_depth_times_size_nor_with_a_backlog() {
    let _alone = alone();
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before_kib = peak_kib();
    for depth in [4_096, 65_536] {
        let result = measure(vec![null_job(0, workload(1 << 20, 100.0, &closed(depth)), requests(200_000))]);
        assert_eq!((count(&result), result.depth.max), (200_000, depth));
    }
    let mut flood = null_job(MS, workload(4096, 100.0, &open(1e7, "fixed")), time(200 * MS));
    flood.slots = 1;
    let mut inside_kib = 0;
    let result = run(&spec(vec![flood]), &mut |_| {
        inside_kib = inside_kib.max(peak_kib());
        true
    });
    let result = result.unwrap();
    assert!(result.saturated && result.backlog > 500_000, "{}", result.backlog);
    assert!(inside_kib < before_kib + 300_000, "{before_kib} KiB grew to {inside_kib} KiB");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    let refusal = |change: &dyn Fn(&mut headstack_load::Job)| {
        let mut one = null_job(0, workload(4096, 100.0, &closed(1)), requests(1));
        change(&mut one);
        let error: LoadError = run(&spec(vec![one]), &mut |_| true).unwrap_err();
        error.to_string()
    };
    let has = |line: String, words: &str| assert!(line.contains(words) && !line.contains('\n'), "{line:?}: {words}");
    has(refusal(&|one| one.targets.clear()), "has no target");
    has(refusal(&|one| one.workload = workload(4096, 100.0, &closed(0))), "1 to 65536 is allowed");
    has(
        refusal(&|one| {
            one.workload = workload(4096, 100.0, &open(10.0, "fixed"));
            one.slots = 0;
        }),
        "0 requests at a time; 1 to 65536 are allowed",
    );
    has(refusal(&|one| one.workload = workload(4096, 100.0, &open(-1.0, "fixed"))), "-1 is out of range");
    has(refusal(&|one| one.engine = EngineKind::Ring), "the engine null or auto is allowed");
    has(refusal(&|one| one.workload = workload(1 << 31, 100.0, &closed(1))), "have no room");
    let outside = headstack_workload::Span { start_bytes: 1 << 29, length_bytes: 1 << 30 };
    has(refusal(&|one| one.span = Some(outside)), "it has 1073741824 bytes");
}

#[test]
fn the_null_target_needs_no_engine_to_be_named() {
    let target = std::sync::Arc::new(headstack_load::Target::null(1 << 30));
    let result = measure(vec![job(&[target], EngineKind::Auto, workload(4096, 50.0, &closed(4)), requests(1_000))]);
    assert_eq!((count(&result), errors(&result)), (1_000, 0));
    assert!(result.notes[0].contains("null engine"), "{:?}", result.notes);
}
