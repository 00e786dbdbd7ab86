//! Faults and power cuts in runs and replays: a failed request is an error without a latency, and the run continues.

use crate::common::*;
use headstack_catalogue::{Changes, load_system, scenarios};
use headstack_replay::{Replay, ReplayMode, in_memory};
use headstack_result::{RunResult, StreamResult};
use headstack_sim::drive::description::{DriveDescription, Policy, WriteCache};
use headstack_sim::faults::Schedule;
use headstack_sim::replay::{ReplaySpec, replay};
use headstack_sim::{Observed, RunSpec, SimError, record};
use headstack_workload::scenario::{Scenario, ScenarioLength};
use headstack_workload::{Arrivals, Recorded, Request, RunLength};
use serde_json::json;

const S: u64 = 1_000 * MS;

/// Returns a schedule of these faults.
fn schedule(faults: serde_json::Value) -> Schedule {
    serde_json::from_value(json!({ "seed": 5, "fault": faults })).unwrap()
}

/// Returns a run of reads and writes of 4 KiB, half of each, at queue depth 8.
fn mixed(drive: &DriveDescription, requests: u64, faults: Option<Schedule>) -> RunSpec {
    RunSpec { faults, ..spec(drive, workload(line(4096, 50.0, 100.0), closed(8), requests)) }
}

/// A drive with a write cache that a power cut empties.
fn caching() -> DriveDescription {
    let mut drive = queueing_drive(Policy::Sptf, 32);
    (drive.buffer.write_cache, drive.buffer.dirty_extents_max) = (WriteCache::On, 32);
    drive
}

/// Returns a replay at the recorded times, by the trace's own clock.
fn timed(drive: &DriveDescription, seed: u64, start_ns: u64) -> ReplaySpec {
    let replay = Replay { start_ns, ..Replay::new("recording", ReplayMode::Timed { time_scale: 1.0 }) };
    let (system_name, system) = (String::new(), drive.clone().into());
    ReplaySpec { system_name, system, replay, seed, interval_ns: None, faults: None }
}

fn errors(result: &RunResult) -> u64 {
    result.kinds.all().iter().map(|(_, kind)| kind.errors).sum()
}

fn observed(spec: &RunSpec) -> (RunResult, Vec<Observed>) {
    let mut all = Vec::new();
    let result = record(spec, &|_| true, &mut |observed| all.push(*observed)).unwrap();
    (result, all)
}

#[test]
fn a_schedule_without_faults_changes_nothing() {
    for drive in [queueing_drive(Policy::Sptf, 32), caching()] {
        let plain = run_spec(&mixed(&drive, 3_000, None));
        let scheduled = run_spec(&mixed(&drive, 3_000, Some(Schedule::default())));
        assert_eq!(plain, scheduled);
        let open = |faults| {
            let arrivals = Arrivals::Open { rate_per_s: 90.0, process: headstack_workload::ArrivalProcess::Poisson };
            RunSpec { faults, ..spec(&drive, workload(line(4096, 50.0, 100.0), arrivals, 3_000)) }
        };
        assert_eq!(run_spec(&open(None)), run_spec(&open(Some(Schedule::default()))));
    }
}

#[test]
fn what_fails_is_an_error_and_no_latency() {
    let drive = queueing_drive(Policy::Sptf, 32);
    let faults = json!([{ "at": "1s", "for": "20s", "what": "media-error", "time": "300ms", "permanent": true,
        "percent": 20.0 }]);
    // A place is needed: everywhere but the first blocks.
    let mut faults = faults;
    faults[0]["ranges"] = json!([{ "offset": "1MiB", "length": "100MiB" }]);
    let result = run_spec(&mixed(&drive, 4_000, Some(schedule(faults))));
    let [struck] = &result.faults[..] else { panic!("one fault: {:?}", result.faults) };
    assert!(struck.failed > 10 && struck.met > 3 * struck.failed, "{struck:?}");
    assert_eq!((struck.at_ns, struck.until_ns), (S, Some(21 * S)));
    // One may be in flight when the fault ends.
    assert!((0..=1).contains(&(errors(&result) - struck.failed)), "{struck:?}");
    assert_eq!((result.kinds.read.errors, result.kinds.write.errors), (errors(&result), 0));
    // A run of so many requests makes exactly these.
    assert_eq!(result.count() + errors(&result), 4_000);
    assert_eq!(result.kinds.read.latency.count(), result.kinds.read.count);
    assert!(struck.uncorrectable_errors.is_some_and(|counted| counted.abs_diff(struck.failed) <= 1), "{struck:?}");
    assert!(result.passed(), "{:?}", result.checks);
}

#[test]
fn a_run_continues_after_power_loss_and_counts_lost_writes() {
    let cut = json!([{ "at": "2s", "for": "5s", "what": "power-cut" }]);
    for (drive, loses) in [(caching(), true), (queueing_drive(Policy::Sptf, 32), false)] {
        let (result, all) = observed(&mixed(&drive, 3_000, Some(schedule(cut.clone()))));
        let vanished = all.iter().filter(|one| one.recorded.completion_ns.is_none()).count();
        assert_eq!((errors(&result), vanished), (8, 8 + result.backlog as usize), "what was under way");
        assert_eq!(result.count(), 3_000 - 8);
        let longest_ns = result.quantile_ns(1.0).unwrap();
        assert!(longest_ns < 2 * S, "five seconds without power are nobody's latency: {longest_ns}");
        // While there is no power, no request is issued or answered.
        let dark = |ns: u64| (2 * S..7 * S).contains(&ns);
        assert!(!all.iter().any(|one| dark(one.recorded.arrival_ns) || one.recorded.completion_ns.is_some_and(dark)));
        assert!(all.iter().any(|one| one.recorded.arrival_ns > 7 * S && one.recorded.completion_ns.is_some()));
        let loss = result.faults[0].loss.as_ref().expect("a power cut");
        assert_eq!(loss.lost_writes > 0, loses, "{loss:?}");
        assert_eq!(loss.lost_bytes > 0, loses, "{loss:?}");
        assert!(loss.under_way <= 8 && loss.absent + loss.whole + loss.torn >= loss.under_way, "{loss:?}");
        assert!(result.passed(), "{:?}", result.checks);
    }
}

#[test]
fn forced_writes_are_not_lost() {
    let faults = schedule(json!([{ "at": "1s", "for": "1s", "what": "power-cut" }]));
    let lost_writes = |forces: bool| {
        let forced =
            |number: u64| Request { force_unit_access: forces, ..write(number * 379 % CYLINDERS * CYLINDER, 8) };
        let at = |number: u64| Recorded {
            arrival_ns: number * 2 * MS,
            completion_ns: None,
            request: forced(number),
            pre_flush: false,
        };
        let spec = ReplaySpec { faults: Some(faults.clone()), ..timed(&caching(), 1, 0) };
        let result = replay::<SimError>(&spec, &mut in_memory((0..600).map(at)), &|_| true, None).unwrap();
        result.faults[0].loss.clone().unwrap().lost_writes
    };
    assert!(lost_writes(false) > 0);
    assert_eq!(lost_writes(true), 0, "forced writes are on the media when they are acknowledged");
}

#[test]
fn a_fault_that_never_ends_ends_the_run() {
    for what in ["drop-out", "hang", "power-cut"] {
        let faults = schedule(json!([{ "at": "2s", "what": what }]));
        let result = run_spec(&mixed(&queueing_drive(Policy::Sptf, 32), 3_000, Some(faults.clone())));
        assert!(result.ended_early.as_deref().is_some_and(|why| why.contains("a permanent fault")), "{what}");
        assert!(result.count() > 100 && result.count() < 3_000 && errors(&result) == 0, "{what}");
        assert_eq!((result.backlog, result.passed()), (8, true), "{what}");
        // A run of fixed time ends in time.
        let mut timed = mixed(&queueing_drive(Policy::Sptf, 32), 1, Some(faults));
        let headstack_sim::Demand::Workload(workload) = &mut timed.demand else { panic!("a workload") };
        workload.run_length = RunLength::TimeNs(4 * S);
        let result = run_spec(&timed);
        assert_eq!((result.duration_ns, result.ended_early), (4 * S, None), "{what}");
    }
}

/// A command that meets a broken link is sent again after each time-out; commands sent after the end of the fault pass.
#[test]
fn link_errors_end_with_the_fault() {
    let faults = schedule(json!([
        { "at": "2s", "for": "1s", "what": "link-errors", "percent": 100.0, "time-out": "400ms" },
    ]));
    let result = run_spec(&mixed(&queueing_drive(Policy::Sptf, 32), 3_000, Some(faults)));
    let record = &result.faults[0];
    assert!(record.met > 0, "{record:?}");
    // Sent at 2.0, 2.4 and 2.8 s at the earliest, and at 3.2 s with success: nothing is given up after six sendings.
    assert_eq!((record.failed, errors(&result)), (0, 0), "{record:?}");
    assert!(result.latency().max_ns() < 1_700_000_000, "{} ns", result.latency().max_ns());
}

#[test]
fn clients_of_a_scenario_hear_of_errors_too() {
    let entry = scenarios().iter().find(|entry| entry.id == "serverbench").expect("the catalogue has it");
    let mut scenario = Scenario::from_toml(entry.file_name, entry.text).unwrap();
    scenario.run_length = ScenarioLength::Requests(5_000);
    (scenario.warm_up.requests, scenario.warm_up.time_ns) = (0, 0);
    let system = load_system("compaq-raid5-7", &Changes::default()).unwrap().description();
    let faults = schedule(json!([{ "at": "1s", "for": "1s", "what": "drop-out" }]));
    let result = run_spec(&RunSpec {
        system,
        demand: scenario.into(),
        faults: Some(faults),
        ..mixed(&queueing_drive(Policy::Sptf, 32), 1, None)
    });
    let of_streams = |stream: &StreamResult| stream.kinds.all().iter().map(|(_, kind)| kind.errors).sum::<u64>();
    assert_eq!(result.streams.iter().map(of_streams).sum::<u64>(), errors(&result));
    assert!(errors(&result) > 0 && result.count() + errors(&result) >= 5_000);
}

/// A trace of a run with faults, replayed under the same schedule, meets the same faults, to the nanosecond.
#[test]
fn a_recorded_run_with_faults_is_replayed_to_the_nanosecond() {
    let faults = schedule(json!([
        { "at": "100ms", "what": "latency-spike", "time": "7ms", "distribution": "exponential", "percent": 30.0 },
        { "at": "500ms", "for": "2s", "what": "weak-sectors", "turns": 3, "percent": 40.0 },
        { "at": "1s", "for": "300ms", "what": "hang" },
        { "at": "2s", "for": "400ms", "what": "drop-out" },
        { "at": "3s", "for": "200ms", "what": "link-resets", "time": "30ms", "every": "70ms" },
        { "at": "4s", "for": "600ms", "what": "power-cut" },
        { "at": "5s", "what": "link-errors", "percent": 4.0, "time-out": "40ms" },
    ]));
    let drive = caching();
    // Arrivals of their own, in no event's instant.
    let arrivals = Arrivals::Open { rate_per_s: 60.0, process: headstack_workload::ArrivalProcess::Poisson };
    let run =
        RunSpec { faults: Some(faults.clone()), ..spec(&drive, workload(line(4096, 50.0, 100.0), arrivals, 900)) };
    let (result, live) = observed(&run);
    assert!(errors(&result) > 20 && result.faults.len() == 7, "{:?}", result.faults);
    let again = |faults: Option<Schedule>| {
        let spec = ReplaySpec { faults, ..timed(&drive, run.seed, live[0].recorded.arrival_ns) };
        let (mut replayed, records) = (Vec::new(), live.iter().map(|one| one.recorded));
        let mut hear = |observed: &Observed| replayed.push(*observed);
        let result = replay::<SimError>(&spec, &mut in_memory(records), &|_| true, Some(&mut hear)).unwrap();
        (result, replayed)
    };
    let (replay_result, replayed) = again(Some(faults.clone()));
    assert_eq!(live.len(), replayed.len());
    // Requests in flight when the run ended are answered after its end.
    let end_ns = result.start_ns + result.duration_ns;
    let until_end = |one: &Observed| one.recorded.completion_ns.filter(|&ns| ns <= end_ns);
    let differs = live.iter().zip(&replayed).find(|(live, replayed)| until_end(live) != until_end(replayed));
    assert_eq!(differs, None);
    assert!(errors(&replay_result) >= errors(&result));
    let without = again(None).1;
    assert!(live.iter().zip(&without).any(|(live, other)| live.recorded.completion_ns != other.recorded.completion_ns));
    let other_seed = again(Some(Schedule { seed: 6, ..faults })).1;
    assert_ne!(replayed, other_seed, "another seed draws otherwise");
}

#[test]
fn a_fault_that_cannot_strike_is_refused_in_a_line() {
    let faults = schedule(json!([{ "at": "1s", "what": "member-fails", "member": "d1" }]));
    let refused = headstack_sim::run(&mixed(&bare_drive(), 10, Some(faults)), &|_| true).unwrap_err().to_string();
    assert_eq!(refused, "fault[0].member: the system is not an array; omit this key");
}
