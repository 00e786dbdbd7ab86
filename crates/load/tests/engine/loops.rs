//! Tests of the load loops on a target with a fixed service time: how many requests are issued, when, and how they are
//! reported. Queueing laws and times are checked in virtual time, to the nanosecond.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::support::{
    KIB, MS, arrivals, assert_sound, at_one_server, bytes, closed, count, counter, errors, generated, job, measure,
    null_job, null_job_in, open, requests, spec, time, virtual_job, workload,
};
use headstack_jobfiles::Limits;
use headstack_load::{EngineKind, Job, LoadError, Log, Target, Time, run, run_logged};
use headstack_result::RunResult;
use serde_json::json;

fn response(result: &RunResult) -> &headstack_result::LatencyHistogram {
    &result.kinds.read.latency
}

#[test]
fn a_request_limit_is_exact() {
    for (queue_depth, wanted) in [(1, 1), (1, 10_000), (7, 10_001), (32, 5), (64, 100_000), (4096, 4097)] {
        for service_ns in [0, 1_000] {
            let result =
                measure(vec![null_job(service_ns, workload(4096, 100.0, &closed(queue_depth)), requests(wanted))]);
            assert_eq!((count(&result), bytes(&result)), (wanted, 4096 * wanted), "queue depth {queue_depth}");
            assert!(result.depth.max <= queue_depth);
            assert_eq!(result.ended_early, None);
        }
    }
}

#[test]
fn a_byte_limit_ends_with_the_reaching_request() {
    let limits = Limits { bytes: Some(1_000_000), ..Limits::default() };
    for queue_depth in [1, 32] {
        let result = measure(vec![null_job(0, workload(4096, 100.0, &closed(queue_depth)), limits)]);
        assert_eq!(count(&result), 1_000_000 / 4096 + 1);
    }
    // The first limit that is reached ends the run.
    let both = Limits { requests: Some(10), time_ns: Some(3_600_000 * MS), ..limits };
    assert_eq!(count(&measure(vec![null_job(0, workload(4096, 100.0, &closed(4)), both)])), 10);
}

#[test]
fn a_time_limit_is_exact() {
    let result = measure(vec![virtual_job(MS, workload(4096, 100.0, &closed(4)), time(300 * MS))]);
    assert_eq!((result.duration_ns, count(&result)), (300 * MS, 4 * 299), "completions at the end are not counted");
    let one = virtual_job(MS, workload(4096, 100.0, &open(2_000.0, "poisson")), time(300 * MS));
    let in_time = arrivals(&one).take_while(|at_ns| at_ns + MS < 300 * MS).count() as u64;
    let result = measure(vec![one]);
    assert_eq!((result.duration_ns, count(&result)), (300 * MS, in_time));
    // Also in wall-clock time.
    let start = Instant::now();
    let result = measure(vec![null_job(MS, workload(4096, 100.0, &closed(4)), time(50 * MS))]);
    assert_eq!(result.duration_ns, 50 * MS);
    assert!(start.elapsed().as_millis() >= 50 && count(&result) <= 4 * 50, "{}", count(&result));
}

#[test]
fn the_workloads_run_length_is_the_default() {
    let length = json!({"run_length": {"requests": 1_234}});
    assert_eq!(count(&measure(vec![null_job(0, workload(512, 100.0, &length), Limits::default())])), 1_234);
}

#[test]
fn a_warm_up_is_left_out() {
    let mut form = closed(8);
    form["warm_up"] = json!({"requests": 500, "time": "0s"});
    let mut warm = virtual_job(100_000, workload(4096, 100.0, &form), requests(1_000));
    let result = measure(vec![warm.clone()]);
    // Eight requests complete every 100 us.
    assert_eq!((count(&result), result.start_ns), (1_000, 500u64.div_ceil(8) * 100_000));
    form["warm_up"] = json!({"requests": 10, "time": "200ms"});
    warm.workload = workload(4096, 100.0, &form);
    let result = measure(vec![warm]);
    assert_eq!((count(&result), result.start_ns), (1_000, 200 * MS));
}

#[test]
fn a_log_has_each_request_of_the_measured_part_and_no_other() {
    let mut changes = closed(1);
    changes["warm_up"] = json!({"requests": 5});
    let job = |seed| Job { seed, ..virtual_job(MS, workload(4 * KIB, 50.0, &changes), requests(20)) };
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
        assert!(own.iter().all(|one| one.response_ns == MS && !one.failed));
    }
    let sum_ns: u128 = logged.iter().map(|one| u128::from(one.response_ns)).sum();
    assert_eq!(sum_ns, result.latency().sum_ns());
}

#[test]
fn a_run_ends_when_its_mean_is_known() {
    let known = |mut form: serde_json::Value, slots| {
        form["run_length"] = json!({"confidence": {"percent": 5.0, "max_requests": 20_000_000}});
        let one = Job { slots, ..virtual_job(MS, workload(4096, 100.0, &form), Limits::default()) };
        let result = measure(vec![one]);
        let half_ns = result.sampling.mean.half_width_ns().unwrap();
        assert!(half_ns <= 0.05 * response(&result).mean_ns(), "{half_ns}");
        count(&result)
    };
    // With batches of three requests, checks only at certain numbers of completions would hardly ever take place. A
    // batch of the mean must be longer than one round of all outstanding requests.
    for queue_depth in [1, 3, 1_000] {
        let counted = known(closed(queue_depth), 64);
        assert!(
            counted < 10_000.max(300 * u64::from(queue_depth)),
            "all responses are equal: {counted} of {queue_depth} at a time"
        );
    }
    let varied = known(open(800.0, "poisson"), 1);
    assert!((10_000..1_000_000).contains(&varied), "{varied}");
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let result = measure(vec![virtual_job(2 * MS, workload(4096, 100.0, &closed(8)), time(400 * MS))]);
    assert_eq!((result.depth.max, result.depth.mean), (8, 8.0));
    assert_eq!(count(&result), 8 * 199, "8 in 2 ms, except those that complete at the end");
    assert_eq!((response(&result).min_ns(), response(&result).max_ns()), (2 * MS, 2 * MS));
    assert!(!result.saturated && result.offered_per_s.is_none() && result.late_arrivals == 0);
}

#[test]
fn clients_think() {
    let thinking = |think| {
        let form = json!({"arrivals": {"closed": {"queue_depth": 4, "think": think}}});
        measure(vec![virtual_job(MS, workload(4096, 100.0, &form), time(1_000 * MS))])
    };
    // Four clients issue a request every 4 ms each. A thinking client has no request outstanding.
    let fixed = thinking(json!({"fixed": "3ms"}));
    assert_eq!((count(&fixed), fixed.depth.mean, fixed.depth.max), (4 * 249, 1.0, 4));
    assert_eq!((response(&fixed).min_ns(), response(&fixed).max_ns()), (MS, MS));
    // The result is the same on average: with a thousand think times, the mean is known to 3 %.
    let exponential = thinking(json!({"exponential": "3ms"}));
    assert!((900..1_100).contains(&count(&exponential)), "{}", count(&exponential));
    assert!((0.9..1.1).contains(&exponential.depth.mean), "{}", exponential.depth.mean);
    assert_eq!(response(&exponential).max_ns(), MS);
    // Corresponds to Iometer's pause before each burst.
    let form = json!({"arrivals": {"closed": {"queue_depth": 1}}, "line": {"delay": "10ms", "burst": 5}});
    let result = measure(vec![virtual_job(0, workload(4096, 100.0, &form), time(505 * MS))]);
    assert_eq!(count(&result), 50 * 5);
}

#[test]
fn thinking_clients_make_the_exact_number_of_requests_without_spinning() {
    let form = json!({"arrivals": {"closed": {"queue_depth": 64, "think": {"fixed": "1us"}}}});
    let result = measure(vec![null_job(400 * MS, workload(4096, 100.0, &form), requests(2))]);
    assert_eq!(count(&result), 2);
    let cpu_ns = counter(&result, "cpu_user_ns") + counter(&result, "cpu_system_ns");
    assert!(cpu_ns < 100 * MS, "{cpu_ns}");
}

/// Checks the mean wait of M/D/1, rho / 2 (1 - rho) service times.
#[test]
fn poisson_arrivals_wait_as_in_m_d_1() {
    let (rho, wanted) = (0.6, 4_000);
    let theory_ns = MS as f64 * (1.0 + rho / (2.0 * (1.0 - rho)));
    let one = Job { slots: 1, ..virtual_job(MS, workload(4096, 100.0, &open(600.0, "poisson")), requests(wanted)) };
    let exact: Vec<_> = at_one_server(&one, MS).take(wanted as usize).collect();
    let result = measure(vec![one]);
    assert_eq!(response(&result).sum_ns(), exact.iter().map(|(at_ns, end_ns)| u128::from(end_ns - at_ns)).sum());
    assert_eq!(result.duration_ns, exact.last().unwrap().1);
    let mean_ns = response(&result).mean_ns();
    assert!((0.9..1.1).contains(&(mean_ns / theory_ns)), "{mean_ns} against {theory_ns}");
    let service = &result.kinds.read.service;
    assert_eq!((service.min_ns(), service.max_ns()), (MS, MS));
    assert!(!result.saturated);
    let late = result.late_arrivals as f64 / wanted as f64;
    assert!((0.57..0.63).contains(&late), "the probability that the target is busy equals its load: {late}");
    assert_eq!(
        counter(&result, "issue_lateness_p50_ns"),
        0,
        "requests that wait for the target are not late because of headstack"
    );
}

#[test]
fn fixed_arrivals_below_capacity_do_not_wait() {
    let one = Job { slots: 1, ..virtual_job(MS, workload(4096, 100.0, &open(500.0, "fixed")), requests(500)) };
    let result = measure(vec![one]);
    assert_eq!((response(&result).min_ns(), response(&result).max_ns()), (MS, MS));
    assert_eq!(result.duration_ns, 1_001 * MS, "500 requests at 500/s");
    assert_eq!((result.offered_per_s, result.late_arrivals), (Some(500.0), 0));
    assert_eq!(counter(&result, "issue_lateness_p50_ns"), 0);
}

#[test]
fn lateness_of_this_program_counts_and_is_reported() {
    let late_ns = 3 * MS;
    let load = workload(4096, 100.0, &open(10.0, "fixed"));
    let result = measure(vec![null_job_in(Time::Virtual { late_ns }, MS, load, requests(50))]);
    // Requests are issued late, and the end is noticed late.
    let (response, service) = (response(&result), &result.kinds.read.service);
    assert_eq!((response.min_ns(), response.max_ns()), (2 * late_ns + MS, 2 * late_ns + MS));
    assert_eq!((service.min_ns(), service.max_ns()), (late_ns + MS, late_ns + MS));
    assert!(counter(&result, "issue_lateness_p50_ns").abs_diff(late_ns) < late_ns / 20);
    assert!(
        result.notes.iter().any(|note| note.starts_with("headstack issued 1 % of the requests")),
        "{:?}",
        result.notes
    );
    // The lateness of one request does not delay the next.
    assert_eq!(result.duration_ns, 50 * 100 * MS + 2 * late_ns + MS);
    assert_eq!(result.late_arrivals, 0);
}

#[test]
fn what_arrives_after_the_end_is_nobodys_backlog() {
    let load = workload(4096, 100.0, &open(1_000.0, "fixed"));
    let late = Time::Virtual { late_ns: 40 * MS };
    let result = measure(vec![null_job_in(late, MS, load, time(100 * MS))]);
    assert!(count(&result) + result.backlog <= 100, "{} and {}", count(&result), result.backlog);
}

#[test]
fn an_overload_is_reported_with_its_lateness() {
    let load = workload(4096, 100.0, &open(1_000.0, "poisson"));
    let one = Job { slots: 1, ..virtual_job(2 * MS, load, time(3_000 * MS)) };
    let arrived = arrivals(&one).take_while(|&at_ns| at_ns < 3_000 * MS).count() as u64;
    let exact: Vec<_> = at_one_server(&one, 2 * MS).take_while(|&(_, end_ns)| end_ns < 3_000 * MS).collect();
    let result = measure(vec![one]);
    assert!(result.saturated);
    let done = exact.len() as u64;
    assert_eq!(count(&result), done, "500 requests/s");
    assert_eq!(result.backlog, arrived - done - 1, "all but the one in flight");
    let waits: Vec<_> = exact.iter().map(|(at_ns, end_ns)| end_ns - at_ns).collect();
    assert_eq!(response(&result).max_ns(), *waits.iter().max().unwrap());
    assert_eq!(response(&result).sum_ns(), waits.iter().map(|&ns| u128::from(ns)).sum());
    // A request that completes at time t arrived at about t / 2, so the mean wait is a quarter of the run.
    assert!((0.6..0.95).contains(&(response(&result).mean_ns() / 1e9)), "{}", response(&result).mean_ns());
    assert_eq!(result.kinds.read.service.max_ns(), 2 * MS);
    assert!(result.late_arrivals > 2_600, "{}", result.late_arrivals);
    assert!(u64::from(result.depth.max) >= result.backlog);
}

#[test]
fn an_overload_with_a_warm_up_counts_from_its_end() {
    let mut form = open(1_000.0, "fixed");
    form["warm_up"] = json!({"requests": 0, "time": "500ms"});
    let one = Job { slots: 1, ..virtual_job(2 * MS, workload(4096, 100.0, &form), time(1_000 * MS)) };
    let result = measure(vec![one]);
    assert!(result.saturated);
    assert_eq!((count(&result), result.start_ns), (500, 500 * MS));
    // 1,499 requests had arrived before the end, and one is in flight; those that had piled up before the start still
    // wait.
    assert_eq!(result.backlog, 1_499 - 749 - 1);
    assert_eq!(result.late_arrivals, 1_000);
}

#[test]
fn jobs_run_side_by_side_and_are_reported_by_name() {
    let mut jobs = Vec::new();
    for (name, kind, seed) in [("reader", 100.0, 1), ("reader", 100.0, 2), ("writer", 0.0, 3)] {
        let mut one = virtual_job(MS, workload(4096, kind, &closed(2)), requests(300));
        (one.name, one.seed) = (name.into(), seed);
        jobs.push(one);
    }
    let result = measure(jobs);
    let kinds = &result.kinds;
    assert_eq!((kinds.read.count, kinds.write.count), (600, 300));
    let streams: Vec<_> = result.streams.iter().map(|one| (one.name.as_str(), one.kinds.read.count)).collect();
    assert_eq!(streams, [("reader", 600), ("writer", 0)]);
    assert_eq!((result.duration_ns, result.depth.max), (150 * MS, 6), "both jobs run at the same time");
}

#[test]
fn runs_in_virtual_time_are_the_same_each_time() {
    let run = || {
        let mut form = open(3_000.0, "poisson");
        form["warm_up"] = json!({"requests": 100});
        let mut jobs = vec![
            Job { slots: 2, ..virtual_job(MS, workload(4096, 50.0, &form), time(200 * MS)) },
            virtual_job(700_000, workload(4096, 100.0, &closed(3)), time(200 * MS)),
        ];
        jobs[1].start_delay_ns = 30 * MS;
        let mut result = measure(jobs);
        // Processor time and context switches differ between runs.
        result.counters.retain(|counter| !counter.name.contains("cpu_") && !counter.name.contains("switches"));
        result.counters.retain(|counter| !counter.name.contains("faults"));
        result.streams.iter_mut().for_each(|stream| stream.facts.clear());
        serde_json::to_value(&result).unwrap()
    };
    let first = run();
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}

#[test]
fn targets_of_one_run_keep_one_time() {
    let in_time = |time| Arc::new(Target::null_in(time, 1 << 30));
    let targets = [in_time(Time::Wall), in_time(Time::Virtual { late_ns: 0 })];
    let one = job(&targets, EngineKind::Null { service_ns: 0 }, workload(4096, 100.0, &closed(1)), requests(1));
    let line = run(&spec(vec![one]), &mut |_| true).unwrap_err().to_string();
    assert!(line.contains("uses another clock"), "{line}");
}

#[test]
fn a_job_that_begins_later_is_reported_for_the_intervals_it_ran_in() {
    let first = virtual_job(MS, workload(4096, 100.0, &closed(1)), time(400 * MS));
    let mut second = virtual_job(MS, workload(4096, 0.0, &closed(1)), time(200 * MS));
    second.start_delay_ns = 400 * MS;
    let mut both = spec(vec![first, second]);
    both.interval_ns = Some(100 * MS);
    let result = run(&both, &mut |_| true).unwrap();
    assert_sound(&result);
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), count(&result));
    let full: Vec<_> = result.intervals.iter().map(|interval| (interval.start_ns / MS, interval.count)).collect();
    // A completion at the end of an interval belongs to the next interval; at the end of a job, to none.
    assert_eq!(full, [(0, 99), (100, 100), (200, 100), (300, 100), (400, 99), (500, 100)]);
}

#[test]
fn whoever_stops_a_run_keeps_its_results() {
    for form in [closed(4), open(1_000.0, "poisson"), open(9_000.0, "poisson")] {
        let mut one = virtual_job(MS, workload(4096, 100.0, &form), time(3_600_000 * MS));
        one.slots = 4;
        let mut seen = 0;
        let result = run(&spec(vec![one]), &mut |progress| {
            seen = progress.completed;
            progress.elapsed_ns < 300 * MS
        });
        let result = result.unwrap();
        assert_sound(&result);
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        // The last report also includes requests that were in flight at the end.
        assert!((seen - 4..=seen).contains(&count(&result)) && seen > 100, "{} of {seen}", count(&result));
        assert!((300 * MS..310 * MS).contains(&result.duration_ns), "{}", result.duration_ns);
    }
}

#[test]
fn a_run_is_stopped_while_a_request_hangs() {
    for form in [
        closed(2),
        open(100.0, "fixed"),
        json!({"arrivals": {"closed": {"queue_depth": 1, "think": {"fixed": "1ms"}}}}),
    ] {
        let one = virtual_job(1_500 * MS, workload(4096, 100.0, &form), requests(1_000));
        let result = run(&spec(vec![one]), &mut |progress| progress.elapsed_ns < 200 * MS).unwrap();
        assert_sound(&result);
        assert_eq!(count(&result), 0);
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        assert!(result.duration_ns <= 300 * MS, "the measured part ends with the stop request: {}", result.duration_ns);
    }
}

#[test]
fn a_timed_run_abandons_a_hung_request() {
    let one = virtual_job(3_600_000 * MS, workload(4096, 100.0, &closed(3)), time(100 * MS));
    let mut elapsed_ns = 0;
    let result = run(&spec(vec![one]), &mut |progress| {
        elapsed_ns = progress.elapsed_ns;
        true
    });
    let result = result.unwrap();
    assert!((10_100 * MS..10_300 * MS).contains(&elapsed_ns), "{elapsed_ns}");
    assert_eq!((count(&result), result.backlog, result.duration_ns), (0, 3, 100 * MS));
    assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
    assert_eq!(result.checks[0].detail, "3 in, 0 out, 3 given up");
    assert_eq!(result.ended_early.as_deref(), Some("requests never completed"));
    assert!(result.notes.iter().any(|note| note.starts_with("3 requests had not completed 10 s after")));
}

#[test]
fn a_job_that_waits_for_its_start_is_stopped_too() {
    let mut late = virtual_job(0, workload(4096, 100.0, &closed(1)), requests(10));
    late.start_delay_ns = u64::MAX;
    let mut elapsed_ns = 0;
    let result = run(&spec(vec![late]), &mut |progress| {
        elapsed_ns = progress.elapsed_ns;
        elapsed_ns < 100 * MS
    });
    assert!(elapsed_ns <= 300 * MS, "{elapsed_ns}");
    let result = result.unwrap();
    assert_eq!((count(&result), result.ended_early.as_deref()), (0, Some("stopped by hand")));
}

#[test]
fn progress_is_reported_up_to_the_end() {
    let mut told = Vec::new();
    let one = virtual_job(MS, workload(4096, 100.0, &closed(1)), time(400 * MS));
    let result = run(&spec(vec![one]), &mut |progress| {
        told.push(*progress);
        true
    });
    assert!(told.iter().map(|one| one.elapsed_ns).eq((1..=told.len() as u64).map(|number| number * 50 * MS)));
    assert_eq!(told.len(), 8, "seven during the run, and one at the end: {told:?}");
    for one in &told[..7] {
        // The share is updated every 10 ms.
        let share = one.elapsed_ns as f64 / 400e6;
        assert!((share - 0.03..=share).contains(&one.share), "{one:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].completed <= pair[1].completed && pair[0].share <= pair[1].share));
    let (last, counted) = (told.last().unwrap(), count(&result.unwrap()));
    assert_eq!(last.share, 1.0);
    // The last report includes everything, even the request that was in flight at the end.
    assert_eq!((last.completed, last.bytes), (counted + 1, 4096 * (counted + 1)));
}

/// Runs in a separate process, whose memory no other test uses.
#[test]
fn memory_does_not_grow_with_depth_times_size_nor_with_a_backlog() {
    const ALONE: &str = "HEADSTACK_MEMORY_OF_LOOPS";
    if std::env::var_os(ALONE).is_none() {
        let name = "engine::loops::memory_does_not_grow_with_depth_times_size_nor_with_a_backlog";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let done = child.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let resident_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before_kib = resident_kib();
    for depth in [4_096, 65_536] {
        let result = measure(vec![null_job(0, workload(1 << 20, 100.0, &closed(depth)), requests(200_000))]);
        assert_eq!((count(&result), result.depth.max), (200_000, depth));
    }
    let mut flood = virtual_job(MS, workload(4096, 100.0, &open(1e7, "fixed")), time(200 * MS));
    flood.slots = 1;
    let mut inside_kib = 0;
    let result = run(&spec(vec![flood]), &mut |_| {
        inside_kib = inside_kib.max(resident_kib());
        true
    });
    let result = result.unwrap();
    assert!(result.saturated && result.backlog > 1_900_000, "{}", result.backlog);
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
    has(refusal(&|one| one.workload = workload(4096, 100.0, &closed(0))), "must be 1 to 65536");
    has(
        refusal(&|one| {
            one.workload = workload(4096, 100.0, &open(10.0, "fixed"));
            one.slots = 0;
        }),
        "queue depth 0; must be 1 to 65536",
    );
    has(refusal(&|one| one.workload = workload(4096, 100.0, &open(-1.0, "fixed"))), "-1 is out of range");
    has(refusal(&|one| one.engine = EngineKind::Ring), "use the engine null or auto");
    has(refusal(&|one| one.workload = workload(1 << 31, 100.0, &closed(1))), "requests of 2147483648 bytes");
    let outside = headstack_workload::Span { start_bytes: 1 << 29, length_bytes: 1 << 30 };
    has(refusal(&|one| one.span = Some(outside)), "its size is 1073741824 bytes");
}

#[test]
fn the_null_target_needs_no_engine_to_be_named() {
    let target = std::sync::Arc::new(headstack_load::Target::null(1 << 30));
    let result = measure(vec![job(&[target], EngineKind::Auto, workload(4096, 50.0, &closed(4)), requests(1_000))]);
    assert_eq!((count(&result), errors(&result)), (1_000, 0));
    assert!(result.method_notes[0].contains("null engine"), "{:?}", result.method_notes);
}
