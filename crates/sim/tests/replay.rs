//! Replay: a trace recorded on a simulated system is reproduced on it, and behaves as expected on another.

use crate::common::*;
use headstack_catalogue::{Changes, load_system, scenarios};
use headstack_replay::{Outside, Replay, ReplayError, ReplayMode, in_memory};
use headstack_result::{Fidelity, RunResult};
use headstack_sim::drive::description::{AfterReadWrite, DriveDescription, Policy, SeekCurve, WriteCache};
use headstack_sim::replay::{ReplaySpec, replay};
use headstack_sim::{Observed, RunSpec, SimError, SystemDescription, record};
use headstack_workload::scenario::Scenario;
use headstack_workload::{ArrivalProcess, Arrivals, Kind, Recorded, Request, RunLength, Think};
use proptest::prelude::*;

const TIMED: ReplayMode = ReplayMode::Timed { time_scale: 1.0 };

/// A replay with the seed of [`spec`]'s runs: the spindles of an array turn as they did.
fn replay_spec(system: &SystemDescription, mode: ReplayMode) -> ReplaySpec {
    ReplaySpec {
        system_name: "test".to_owned(),
        system: system.clone(),
        replay: Replay::new("recording", mode),
        seed: 7,
        interval_ns: None,
        faults: None,
    }
}

/// Replays with the run's own checks; returns the observed requests too.
fn observe(spec: &ReplaySpec, records: &[Recorded]) -> Result<(RunResult, Vec<Observed>), SimError> {
    let mut observed = Vec::new();
    let mut hear = |request: &Observed| observed.push(*request);
    let result = replay::<SimError>(spec, &mut in_memory(records.iter().copied()), &|_| true, Some(&mut hear))?;
    assert!(result.passed(), "{:?}", result.checks);
    assert_eq!(result.count(), observed.len() as u64);
    Ok((result, observed))
}

fn fidelity(result: &RunResult) -> &Fidelity {
    result.fidelity.as_ref().expect("replays have one")
}

fn recording(spec: &RunSpec) -> (RunResult, Vec<Observed>) {
    let mut observed = Vec::new();
    let mut hear = |request: &Observed| observed.push(*request);
    let result = record(spec, &|_| true, &mut hear).unwrap();
    assert!(result.passed());
    (result, observed)
}

fn recorded(observed: &[Observed]) -> Vec<Recorded> {
    observed.iter().map(|request| request.recorded).collect()
}

/// Asserts that every request with a recorded completion arrived, began and completed at exactly the same time.
fn assert_same(found: &[Observed], expected: &[Observed], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let times =
            |observed: &Observed| (observed.recorded.arrival_ns, observed.recorded.completion_ns, observed.wait_ns);
        if expected.recorded.completion_ns.is_some() {
            assert_eq!(times(found), times(expected), "{what}, request {number}");
        }
        assert_eq!(found.recorded.request, expected.recorded.request, "{what}, request {number}");
    }
}

/// Returns a drive with a queue and a write cache, without overheads except for cached writes.
fn busy_drive() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Sptf, 8);
    drive.interface.host_elevator = Policy::CLook;
    drive.buffer.write_cache = WriteCache::Appending;
    (drive.buffer.segments, drive.buffer.dirty_extents_max) = (4, 10);
    drive.overheads.write_hit_ns = AfterReadWrite { after_read: 130_001, after_write: 90_007 };
    drive
}

fn systems() -> Vec<(&'static str, SystemDescription)> {
    let stored = |id| load_system(id, &Changes::default()).unwrap().description();
    vec![
        ("a drive", busy_drive().into()),
        ("cheetah-x15-36lp", stored("cheetah-x15-36lp")),
        ("dc-s3700-400gb", stored("dc-s3700-400gb")),
        ("compaq-raid5-7", stored("compaq-raid5-7")),
        ("va-7100", stored("va-7100")),
    ]
}

fn mixed(system: &SystemDescription, arrivals: Arrivals, requests: u64) -> RunSpec {
    let mut workload = workload(line(4096, 67.0, 80.0), arrivals, requests);
    (workload.flush_every, workload.warm_up.requests) = (50, 100);
    RunSpec { system: system.clone(), ..spec(&bare_drive(), workload) }
}

fn thinking(queue_depth: u32, think: Think) -> Arrivals {
    Arrivals::Closed { queue_depth, think }
}

fn loads() -> [Arrivals; 5] {
    [
        closed(1),
        closed(16),
        thinking(5, Think::Fixed(3 * MS)),
        thinking(7, Think::Exponential(10 * MS)),
        Arrivals::Open { rate_per_s: 60.0, process: ArrivalProcess::Poisson },
    ]
}

#[test]
fn a_recording_replayed_timed_on_its_system_is_the_same_to_the_nanosecond() {
    for (name, system) in systems() {
        for load in loads() {
            let (_, observed) = recording(&mixed(&system, load, 1_500));
            assert!(observed.len() >= 1_600, "the warm-up is recorded too");
            let mut spec = replay_spec(&system, TIMED);
            spec.replay.start_ns = observed[0].recorded.arrival_ns;
            let (result, replayed) = observe(&spec, &recorded(&observed)).unwrap();
            assert_same(&replayed, &observed, &format!("{name} under {load:?}"));
            let fidelity = fidelity(&result);
            assert_eq!((fidelity.lateness_max_ns, fidelity.early, fidelity.reordered), (0, 0, 0));
            assert_eq!((fidelity.causality_violations, fidelity.rate_ratio), (0, Some(1.0)));
        }
    }
}

#[test]
fn closed_loop_replays_agree_in_every_dependent_mode() {
    // The drive without overheads completes a flush and the write before it at the same moment, and a trace does not
    // record which was first.
    for (name, system) in systems().into_iter().skip(1) {
        for load in &loads()[..4] {
            let (_, observed) = recording(&mixed(&system, *load, 1_000));
            for mode in [ReplayMode::Closed, ReplayMode::DEPENDENT] {
                let mut spec = replay_spec(&system, mode);
                spec.replay.start_ns = observed[0].recorded.arrival_ns;
                let (_, replayed) = observe(&spec, &recorded(&observed)).unwrap();
                let what = format!("{name} under {load:?}, {}", mode.name());
                assert_same(&replayed, &observed, &what);
            }
        }
    }
}

#[test]
fn as_fast_as_possible_repeats_a_closed_loop_without_think_time() {
    for (name, system) in systems() {
        for depth in [1, 4, 16] {
            let (result, observed) = recording(&mixed(&system, closed(depth), 1_000));
            let (again, replayed) =
                observe(&replay_spec(&system, ReplayMode::Asap { depth }), &recorded(&observed)).unwrap();
            assert_same(&replayed, &observed, name);
            assert_eq!(again.depth.max, depth);
            assert!(result.count() <= again.count());
        }
    }
}

/// Returns the bare drive at another speed.
fn turning(rpm: f64) -> SystemDescription {
    let mut drive = bare_drive();
    drive.mechanics.rpm = rpm;
    drive.into()
}

/// Returns the bare drive with longer seeks by a factor.
fn seeking(times: f64) -> SystemDescription {
    let mut drive = bare_drive();
    let scaled = |ms: f64| (ms * times * MS as f64) as u64;
    drive.mechanics.seek = SeekCurve::Points(vec![(1, scaled(1.5)), (200, scaled(4.0)), (999, scaled(10.0))]);
    drive.into()
}

#[test]
fn on_other_drives_waiting_stretches_and_schedules_do_not() {
    let mut random = workload(line(4096, 67.0, 100.0), thinking(3, Think::Fixed(5 * MS)), 3_000);
    random.warm_up.requests = 0;
    let (_, observed) = recording(&RunSpec { system: seeking(1.0), ..spec(&bare_drive(), random) });
    let records = recorded(&observed);
    let replayed = |times, mode| observe(&replay_spec(&seeking(times), mode), &records).unwrap().0;
    let recorded_ns = fidelity(&replayed(1.0, TIMED)).recorded_duration_ns as f64;
    for mode in [ReplayMode::Closed, ReplayMode::DEPENDENT] {
        for (times, shares) in [(3.0, 1.8..2.6), (0.3, 0.5..0.8)] {
            let result = replayed(times, mode);
            let fidelity = fidelity(&result);
            let share = fidelity.replayed_duration_ns as f64 / recorded_ns;
            println!("{} with {times} times the seek: {share:.3} times as long", mode.name());
            assert!(shares.contains(&share), "{} with {times} times the seek: {share}", mode.name());
            assert_close(fidelity.rate_ratio.unwrap(), 1.0 / share, 0.01, "rates over durations");
            assert_eq!(fidelity.lateness_p50_ns > 0, times > 1.0);
            assert_eq!(fidelity.early * 2 > fidelity.replayed_requests, times < 1.0);
        }
    }
    // Within a window, dependent requests keep every order of the trace.
    let within = ReplayMode::Dependent { min_ns: 0, max_ns: Some(100 * MS) };
    assert_eq!(fidelity(&replayed(3.0, within)).causality_violations, 0);
    let timed = replayed(3.0, TIMED);
    let held = fidelity(&timed);
    assert_eq!((held.replayed_duration_ns, held.lateness_max_ns), (held.recorded_duration_ns, 0));
    assert!(held.causality_violations > 500, "a slower drive is overtaken: {}", held.causality_violations);
    assert!(timed.mean_latency_ns() > replayed(3.0, ReplayMode::Closed).mean_latency_ns());
}

#[test]
fn a_time_scale_stretches_only_the_schedule() {
    let (_, observed) = recording(&mixed(&turning(10_000.0), loads()[4], 500));
    let records = recorded(&observed);
    let first_ns = records[0].arrival_ns;
    for scale in [0.5, 2.0, 3.25] {
        let spec = replay_spec(&turning(10_000.0), ReplayMode::Timed { time_scale: scale });
        let (result, replayed) = observe(&spec, &records).unwrap();
        for (recorded, replayed) in records.iter().zip(&replayed) {
            let expected_ns = ((recorded.arrival_ns - first_ns) as f64 * scale).round() as u64;
            assert_eq!(replayed.recorded.arrival_ns, expected_ns);
        }
        let fidelity = fidelity(&result);
        assert_eq!(fidelity.lateness_max_ns, 0);
        assert_close(fidelity.rate_ratio.unwrap(), 1.0, 1e-6, "rate");
        assert_close(result.offered_per_s.unwrap(), fidelity.recorded_per_s.unwrap() / scale, 1e-9, "offered");
    }
    let flooded = replay_spec(&turning(10_000.0), ReplayMode::Timed { time_scale: 0.1 });
    let (result, _) = observe(&flooded, &records).unwrap();
    assert!(result.saturated && result.late_arrivals > 400, "one tag does not hold what 10 times the load piles up");
}

#[test]
fn a_pre_flush_writes_the_cache_before_its_write() {
    let write = |number: u64| Request { kind: Kind::Write, ..read(number * 9_973, 8) };
    let written = |number: u64| Recorded { request: write(number), ..numbered(number, number * 100_000, None) };
    let request = Request { force_unit_access: true, ..write(9) };
    let commit = Recorded { request, pre_flush: true, ..numbered(9, MS, None) };
    let spec = replay_spec(&busy_drive().into(), TIMED);
    let recording: Vec<Recorded> = (0..8).map(written).chain([commit]).collect();
    let (result, observed) = observe(&spec, &recording).unwrap();
    assert_eq!((result.kinds.flush.count, result.kinds.write.count), (1, 9));
    let [.., flush, last] = observed.as_slice() else { panic!("ten requests, not {}", observed.len()) };
    assert_eq!((flush.recorded.request.kind, last.recorded.request), (Kind::Flush, commit.request));
    assert_eq!(Some(last.recorded.arrival_ns), flush.recorded.completion_ns);
    let is_done = |request: &Observed| request.recorded.completion_ns.unwrap() - observed[0].recorded.arrival_ns;
    assert!(is_done(flush) > 5 * MS, "the disk writes what its cache holds: {} ns", is_done(flush));
    // The observed requests include the flush, and their replay agrees to the nanosecond.
    let mut again = replay_spec(&busy_drive().into(), TIMED);
    again.replay.start_ns = observed[0].recorded.arrival_ns;
    assert_same(&observe(&again, &recorded(&observed)).unwrap().1, &observed, "again");
}

/// Returns a read of one block that encodes its number.
fn numbered(number: u64, arrival_ns: u64, completion_ns: Option<u64>) -> Recorded {
    Recorded { arrival_ns, completion_ns, request: read(number * 97 % 300_000, 1), pre_flush: false }
}

prop_compose! {
    /// Generates a trace of up to 60 requests, some without completion, many at the same moments.
    fn any_recording()(
        requests in prop::collection::vec((0u64..12, prop::option::weighted(0.9, 0u64..40)), 1..60)
    ) -> Vec<Recorded> {
        let mut now_ns = 1_000_000;
        requests.iter().enumerate().map(|(number, &(gap, response))| {
            now_ns += gap.saturating_sub(4) * MS;
            numbered(number as u64, now_ns, response.map(|ms| now_ns + ms * MS))
        }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_mode_keeps_its_books(
        records in any_recording(),
        mode in prop_oneof![
            (0.1f64..3.0).prop_map(|time_scale| ReplayMode::Timed { time_scale }),
            (1u32..9).prop_map(|depth| ReplayMode::Asap { depth }),
            Just(ReplayMode::Closed),
            Just(ReplayMode::DEPENDENT),
            (0u64..20, 0u64..50).prop_map(|(min, more)| {
                ReplayMode::Dependent { min_ns: min * MS, max_ns: Some((min + more) * MS) }
            }),
        ],
        shift in 0u64..400_000_000,
        kinds in prop::collection::vec((prop::sample::select(Kind::ALL.to_vec()), 0u32..70_000), 60),
        outside in prop::sample::select(vec![Outside::Fold, Outside::Drop]),
    ) {
        let records: Vec<Recorded> = records.iter().zip(kinds).map(|(record, (kind, length_bytes))| {
            let offset_bytes = record.request.offset_bytes + shift;
            Recorded { request: Request { kind, offset_bytes, length_bytes, ..record.request }, ..*record }
        }).collect();
        let mut spec = replay_spec(&busy_drive().into(), mode);
        spec.replay.outside = outside;
        let waits = matches!(mode, ReplayMode::Closed | ReplayMode::Dependent { .. });
        let (result, _) = match observe(&spec, &records) {
            Ok(done) => done,
            Err(error) => {
                // All requests with a completion may have been left out.
                prop_assert!(waits && error.to_string().contains("recorded completion"), "{}", error);
                return Ok(());
            }
        };
        let fidelity = fidelity(&result);
        prop_assert_eq!(fidelity.recorded_requests, records.len() as u64);
        prop_assert_eq!(fidelity.replayed_requests + fidelity.dropped, records.len() as u64);
        prop_assert_eq!((result.backlog, result.count()), (0, fidelity.replayed_requests));
        prop_assert!(fidelity.lateness_p50_ns <= fidelity.lateness_p90_ns && fidelity.lateness_p99_ns <= fidelity.lateness_max_ns);
        let moves = [fidelity.folded, fidelity.dropped];
        prop_assert_eq!(moves[usize::from(outside == Outside::Fold)], 0);
        prop_assert!(result.to_json().is_ok());
    }
}

#[test]
fn unplayable_traces_are_refused_with_the_message_of_the_player() {
    let refused = |mode, record| {
        observe(&replay_spec(&turning(10_000.0), mode), &[numbered(0, 10, Some(20)), record]).unwrap_err().to_string()
    };
    let outside = Recorded { request: read(399_999, 2), ..numbered(1, 15, None) };
    assert_eq!(
        refused(TIMED, outside),
        "request 2: 1024 bytes at 204799488; the system ends at 204800000; outside: use fold to move such requests into it, \
         drop to omit them"
    );
    let none = refused(ReplayMode::Asap { depth: 0 }, outside);
    assert_eq!(none, "replay: depth must be at least 1, not 0");
}

/// An error of the source.
#[derive(Debug, PartialEq)]
enum Failure {
    Simulation(String),
    Source,
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        SimError::from(error).into()
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure::Simulation(error.to_string())
    }
}

#[test]
fn a_source_may_fail_and_a_replay_be_stopped() {
    let spec = replay_spec(&turning(10_000.0), ReplayMode::Asap { depth: 4 });
    let mut batches = 0;
    let mut failing = |batch: &mut Vec<Recorded>| {
        batches += 1;
        batch.extend((0..10).map(|number| numbered(number, batches * 100 + number, None)));
        if batches < 4 { Ok(true) } else { Err(Failure::Source) }
    };
    assert_eq!(replay(&spec, &mut failing, &|_| true, None).unwrap_err(), Failure::Source);
    let mut endless = |batch: &mut Vec<Recorded>| {
        batch.push(numbered(0, 0, None));
        Ok::<bool, Failure>(true)
    };
    assert_eq!(replay(&spec, &mut endless, &|_| false, None).unwrap_err(), Failure::Simulation("stopped".to_owned()));
}

#[test]
fn scenarios_are_recorded_with_clients_and_streams() {
    let scenario = scenarios().iter().find(|entry| entry.id == "serverbench");
    let entry = scenario.expect("the catalogue has it");
    let mut scenario = Scenario::from_toml(entry.file_name, entry.text).unwrap();
    scenario.run_length = headstack_workload::scenario::ScenarioLength::Requests(2_000);
    let system = load_system("compaq-raid5-7", &Changes::default()).unwrap().description();
    let spec =
        RunSpec { system, demand: scenario.into(), ..spec(&bare_drive(), workload(line(512, 0.0, 0.0), closed(1), 1)) };
    let (result, observed) = recording(&spec);
    let complete = observed.iter().filter(|observed| observed.recorded.completion_ns.is_some()).count() as u64;
    assert!(complete >= result.count() && observed.len() as u64 - complete <= result.backlog);
    assert!(observed.is_sorted_by_key(|observed| observed.recorded.arrival_ns));
    assert!(observed.iter().any(|observed| observed.client > 0));
    let run = headstack_sim::run(&spec, &|_| true).unwrap();
    assert_eq!(run.to_json().unwrap(), result.to_json().unwrap(), "a run is the same whether recorded or not");
}

/// 32 requests always in flight, each followed by another at once: a drive that completes them in another order keeps
/// nearly as many in flight, until some of the 32 chains end before others. A window mistakes chance for cause, and
/// delays most of them.
#[test]
fn dependent_requests_keep_the_depth_of_a_closed_loop() {
    const DEPTH: u32 = 32;
    let choosing = |rpm: f64| -> SystemDescription {
        let mut drive = bare_drive();
        drive.mechanics.rpm = rpm;
        (drive.queue.depth, drive.queue.policy) = (DEPTH, Policy::Sptf);
        drive.interface.host_tags = DEPTH;
        drive.into()
    };
    let (_, observed) = recording(&mixed(&choosing(10_000.0), closed(DEPTH), 20_000));
    let records = recorded(&observed);
    let on_another = |mode| observe(&replay_spec(&choosing(7_200.0), mode), &records).unwrap().0;
    let result = on_another(ReplayMode::DEPENDENT);
    let of_loop = on_another(ReplayMode::Asap { depth: DEPTH });
    let within = on_another(ReplayMode::Dependent { min_ns: 0, max_ns: Some(100 * MS) });
    let rates = [&result, &of_loop, &within].map(|result| fidelity(result).achieved_per_s.unwrap());
    let depths = [&result, &of_loop, &within].map(|result| result.depth.mean);
    println!("IOPS {rates:.1?}, in flight {depths:.1?}");
    assert!(rates[0] > 0.85 * rates[1] && depths[0] > 0.93 * depths[1], "{rates:?}, {depths:?}");
    assert!(rates[2] < 0.8 * rates[1] && depths[2] < 0.5 * depths[1], "{rates:?}, {depths:?}");
    let fidelity = fidelity(&result);
    assert_eq!(fidelity.recorded_depth_max, Some(u64::from(DEPTH)));
    assert_close(fidelity.recorded_depth_mean.unwrap(), f64::from(DEPTH), 0.5, "in flight as recorded");
}

#[test]
fn a_replay_names_its_trace_and_is_deterministic() {
    let (_, observed) = recording(&mixed(&turning(10_000.0), closed(4), 200));
    let mut spec = replay_spec(&turning(7_200.0), ReplayMode::DEPENDENT);
    (spec.replay.name, spec.seed, spec.interval_ns) = ("day.parquet".to_owned(), 9, Some(100 * MS));
    let run = || observe(&spec, &recorded(&observed)).unwrap().0;
    let result = run();
    assert_eq!(result.to_json().unwrap(), run().to_json().unwrap());
    assert_eq!(result.workload["name"], "day.parquet");
    assert!(result.workload["mode"]["dependent"]["max_ns"].is_null());
    assert_eq!((result.seed, result.start_ns), (9, 0));
    assert_eq!(serde_json::from_value::<Replay>(result.workload.clone()).unwrap(), spec.replay);
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), result.count());
    assert!(result.components.iter().any(|component| component.busy_ns > 0));
}

#[test]
fn a_recorded_trace_includes_pending_requests() {
    let mut load = workload(line(4096, 100.0, 100.0), closed(6), 1);
    load.run_length = RunLength::TimeNs(500 * MS);
    let (result, observed) = recording(&spec(&bare_drive(), load));
    let open: Vec<_> = observed.iter().filter(|observed| observed.recorded.completion_ns.is_none()).collect();
    assert_eq!((open.len() as u64, result.backlog), (6, 6));
    assert!(open.iter().all(|observed| observed.wait_ns.is_none()));
    assert_eq!(observed.len() as u64, result.count() + 6);
}
