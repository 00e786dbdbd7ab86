//! Replay: what was recorded on a simulated system comes out the same on it, and as it should on another.

mod common;

use common::*;
use headstack_catalogue::{Changes, load_system, scenarios};
use headstack_result::{Fidelity, RunResult};
use headstack_sim::drive::description::{AfterReadWrite, DriveDescription, Policy, SeekCurve, WriteCache};
use headstack_sim::replay::{Outside, Replay, ReplayMode, ReplaySpec, in_memory, replay};
use headstack_sim::{Observed, RunSpec, SimError, SystemDescription, record};
use headstack_workload::scenario::Scenario;
use headstack_workload::{ArrivalProcess, Arrivals, Kind, Recorded, Request, RunLength, Think};
use proptest::prelude::*;

const TIMED: ReplayMode = ReplayMode::Timed { time_scale: 1.0 };

fn replay_spec(system: &SystemDescription, mode: ReplayMode) -> ReplaySpec {
    ReplaySpec {
        system_name: "test".to_owned(),
        system: system.clone(),
        replay: Replay::new("recording", mode),
        seed: 1,
        interval_ns: None,
    }
}

/// A replay that keeps its books, with what was observed of it.
fn observe(spec: &ReplaySpec, records: &[Recorded]) -> Result<(RunResult, Vec<Observed>), SimError> {
    let mut observed = Vec::new();
    let mut hear = |request: &Observed| observed.push(*request);
    let result = replay(spec, &mut in_memory(records.iter().copied()), &|_| true, Some(&mut hear))?;
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

/// Every request that the recording saw complete came, began and was complete at the very same time.
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

/// A drive with a queue and a write cache, without overheads but for cached writes.
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

fn thinking(outstanding: u32, think: Think) -> Arrivals {
    Arrivals::Closed { outstanding, think }
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
fn a_closed_loop_comes_out_the_same_in_every_mode_that_keeps_its_waiting() {
    // The drive without overheads ends a flush and the write before it in one moment, and a recording does not tell whose
    // answer came first.
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

/// The bare drive at another speed.
fn turning(rpm: f64) -> SystemDescription {
    let mut drive = bare_drive();
    drive.mechanics.rpm = rpm;
    drive.into()
}

/// The bare drive with an arm that takes so many times as long.
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
    // Dependent requests keep every order that the recording shows within its window.
    assert_eq!(fidelity(&replayed(3.0, ReplayMode::DEPENDENT)).causality_violations, 0);
    let timed = replayed(3.0, TIMED);
    let held = fidelity(&timed);
    assert_eq!((held.replayed_duration_ns, held.lateness_max_ns), (held.recorded_duration_ns, 0));
    assert!(held.causality_violations > 500, "a slower drive is overtaken: {}", held.causality_violations);
    assert!(timed.mean_response_ns() > replayed(3.0, ReplayMode::Closed).mean_response_ns());
}

#[test]
fn a_time_scale_stretches_the_schedule_alone() {
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

/// A read of the one block that tells which request it is.
fn numbered(number: u64, arrival_ns: u64, completion_ns: Option<u64>) -> Recorded {
    Recorded { arrival_ns, completion_ns, request: read(number * 97 % 300_000, 1) }
}

/// Issue and completion of each request of a replay, by its place in the recording, whose requests are `numbered`.
fn times_of(observed: &[Observed], records: &[Recorded]) -> Vec<(u64, u64)> {
    let of = |record: &Recorded| {
        let found = observed.iter().find(|observed| observed.recorded.request == record.request).unwrap();
        (found.recorded.arrival_ns, found.recorded.completion_ns.unwrap())
    };
    records.iter().map(of).collect()
}

#[test]
fn requests_before_their_causes_are_counted() {
    // One at a time as recorded; two at a time, each but the first comes before its predecessor is complete.
    let records: Vec<_> = (0..50).map(|i| numbered(i, i * 20 * MS, Some(i * 20 * MS + 10 * MS))).collect();
    let count = |mode| {
        let (result, _) = observe(&replay_spec(&turning(10_000.0), mode), &records).unwrap();
        (fidelity(&result).causality_violations, fidelity(&result).reordered)
    };
    assert_eq!(count(ReplayMode::Asap { depth: 1 }), (0, 0));
    assert_eq!(count(ReplayMode::Asap { depth: 2 }), (49, 0));
    assert_eq!(count(ReplayMode::Closed), (0, 0));
}

#[test]
fn two_clients_keep_their_own_pace() {
    // Client a: 0-10, 30-40, 60-70 ms; client b: 5-45, 50-55: the request at 50 follows b's, which was complete last.
    let ms = |number, from: u64, to: u64| numbered(number, from * MS, Some(to * MS));
    let records = [ms(0, 0, 10), ms(1, 5, 45), ms(2, 30, 40), ms(3, 50, 55), ms(4, 60, 70)];
    let (_, observed) = observe(&replay_spec(&turning(10_000.0), ReplayMode::Closed), &records).unwrap();
    let times = times_of(&observed, &records);
    let after = |before: usize, think_ms: u64| times[before].1 + think_ms * MS;
    let issues: Vec<u64> = times.iter().map(|time| time.0).collect();
    assert_eq!(issues, [0, 5 * MS, after(0, 20), after(1, 5), after(3, 5)]);
}

#[test]
fn a_request_waits_for_all_that_it_waited_for() {
    // 3 waits for 1 and 2, which waited for 0; 4 comes 200 ms after anything else and waits for nothing.
    let ms = |number, from: u64, to: u64| numbered(number, from * MS, Some(to * MS));
    let records = [ms(0, 0, 10), ms(1, 12, 20), ms(2, 12, 30), ms(3, 33, 40), ms(4, 240, 250)];
    let (_, observed) = observe(&replay_spec(&turning(10_000.0), ReplayMode::DEPENDENT), &records).unwrap();
    let times = times_of(&observed, &records);
    let second = times[0].1 + 2 * MS;
    let third = times[1].1.max(times[2].1) + 3 * MS;
    let issues: Vec<u64> = times.iter().map(|time| time.0).collect();
    assert_eq!(issues, [0, second, second, third, 240 * MS]);
}

/// What [`ReplayMode::Closed`] and [`ReplayMode::Dependent`] say, word for word: the requests that each one waits for.
fn parents(records: &[Recorded], mode: ReplayMode) -> Vec<Vec<usize>> {
    let completion = |index: usize| records[index].completion_ns.unwrap_or(u64::MAX);
    let mut taken = vec![false; records.len()];
    let in_flight =
        |upto: usize, at_ns: u64| (0..=upto).filter(|&i| completion(i) != u64::MAX && completion(i) > at_ns).count();
    let mut most = 0;
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let age_ns = |earlier: usize| record.arrival_ns.checked_sub(completion(earlier));
        let chosen = match mode {
            ReplayMode::Closed => {
                let free = (0..index).filter(|&i| age_ns(i).is_some() && !taken[i]);
                let last = free.max_by_key(|&i| (completion(i), std::cmp::Reverse(i)));
                last.iter().for_each(|&i| taken[i] = true);
                last.into_iter().collect()
            }
            ReplayMode::Dependent { min_ns, max_ns } => {
                let within = |age: Option<u64>| age.is_some_and(|age| (min_ns..=max_ns).contains(&age));
                let near: Vec<usize> = (0..index).filter(|&i| within(age_ns(i))).collect();
                let waited = |later: usize, earlier: usize| {
                    earlier < later && completion(earlier) + min_ns <= records[later].arrival_ns
                };
                let mut kept: Vec<usize> =
                    near.iter().copied().filter(|&i| !near.iter().any(|&later| waited(later, i))).collect();
                kept.sort_by_key(|&i| (completion(i), i));
                assert!(min_ns > 0 || kept.len() <= most + 1, "without a least time no more are ever in flight");
                kept
            }
            _ => unreachable!("the other modes wait for nothing"),
        };
        most = most.max(in_flight(index, record.arrival_ns));
        all.push(chosen);
    }
    all
}

prop_compose! {
    /// Any recording of up to 60 requests, some without completion, many at the same moments.
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
    fn waiting_is_as_it_is_defined(
        mut records in any_recording(),
        mode in prop_oneof![
            Just(ReplayMode::Closed),
            Just(ReplayMode::DEPENDENT),
            (0u64..30).prop_map(|max| ReplayMode::Dependent { min_ns: 0, max_ns: max * MS }),
        ],
        rpm in prop::sample::select(vec![3_000.0, 10_000.0, 100_000.0]),
        batch in 1usize..5,
    ) {
        let first_ns = records[0].arrival_ns;
        records[0].completion_ns = records[0].completion_ns.or(Some(first_ns));
        let spec = replay_spec(&turning(rpm), mode);
        let (result, observed) = observe(&spec, &records).unwrap();
        let times = times_of(&observed, &records);
        for (index, parents) in parents(&records, mode).into_iter().enumerate() {
            let arrival_ns = records[index].arrival_ns;
            let replayed = parents.iter().map(|&i| times[i].1).max();
            let recorded = parents.iter().filter_map(|&i| records[i].completion_ns).max();
            let expected_ns = match (replayed, recorded) {
                (Some(replayed_ns), Some(recorded_ns)) => replayed_ns + arrival_ns - recorded_ns,
                _ => arrival_ns - first_ns,
            };
            prop_assert_eq!(times[index].0, expected_ns, "request {} waits for {:?}", index, parents);
        }
        // What is counted of it, by definition.
        let before = |early: usize, late: usize| {
            records[early].completion_ns.is_some_and(|at_ns| (at_ns, early) < (records[late].arrival_ns, late))
        };
        let early = |&late: &usize| (0..late).any(|early| before(early, late) && times[early].1 > times[late].0);
        prop_assert_eq!(fidelity(&result).causality_violations, (0..records.len()).filter(early).count() as u64);
        let number = |o: &Observed| records.iter().position(|record| record.request == o.recorded.request).unwrap();
        let order: Vec<usize> = observed.iter().map(number).collect();
        let overtaken = |&at: &usize| order[..at].iter().any(|&before| before > order[at]);
        prop_assert_eq!(fidelity(&result).reordered, (0..order.len()).filter(overtaken).count() as u64);
        // However the recording comes, it is the same.
        let mut rest = &records[..];
        let mut pieces = |into: &mut Vec<Recorded>| {
            let (piece, others) = rest.split_at(batch.min(rest.len()));
            (*into, rest) = (piece.to_vec(), others);
            Ok::<bool, SimError>(!piece.is_empty())
        };
        let again = replay(&spec, &mut pieces, &|_| true, None).unwrap();
        prop_assert_eq!(again.to_json().unwrap(), result.to_json().unwrap());
    }

    #[test]
    fn every_mode_keeps_its_books(
        records in any_recording(),
        mode in prop_oneof![
            (0.1f64..3.0).prop_map(|time_scale| ReplayMode::Timed { time_scale }),
            (1u32..9).prop_map(|depth| ReplayMode::Asap { depth }),
            Just(ReplayMode::Closed),
            (0u64..20, 0u64..50).prop_map(|(min, more)| ReplayMode::Dependent { min_ns: min * MS, max_ns: (min + more) * MS }),
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
                // Those with a completion may all have been left out.
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

fn refused(spec: &ReplaySpec, records: &[Recorded]) -> String {
    let error = observe(spec, records).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1);
    error
}

#[test]
fn requests_are_made_to_fit() {
    let capacity = CYLINDERS * CYLINDER * 512;
    let at = |kind, offset_bytes, length_bytes| Recorded {
        arrival_ns: 7,
        completion_ns: Some(7),
        request: Request { force_unit_access: true, ..request(kind, offset_bytes, length_bytes) },
    };
    let fitted = |outside, record| {
        let mut spec = replay_spec(&turning(10_000.0), TIMED);
        spec.replay.outside = outside;
        let (result, observed) = observe(&spec, &[record]).unwrap();
        let fidelity = fidelity(&result);
        assert_eq!(
            result.notes.len(),
            1 + [fidelity.folded, fidelity.dropped, fidelity.rounded].iter().filter(|n| **n > 0).count()
        );
        let place = observed.first().map(|observed| {
            let request = observed.recorded.request;
            assert!(request.force_unit_access);
            (request.offset_bytes, request.length_bytes)
        });
        (place, fidelity.folded, fidelity.dropped, fidelity.rounded)
    };
    let (refuse, fold, drop) = (Outside::Refuse, Outside::Fold, Outside::Drop);
    assert_eq!(fitted(refuse, at(Kind::Read, 512, 1024)), (Some((512, 1024)), 0, 0, 0));
    assert_eq!(fitted(refuse, at(Kind::Write, 700, 1)), (Some((512, 512)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Write, 1023, 2)), (Some((512, 1024)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Trim, 1024, 0)), (Some((1024, 512)), 0, 0, 1));
    assert_eq!(fitted(refuse, at(Kind::Flush, 77, 0)), (Some((0, 0)), 0, 0, 0));
    assert_eq!(fitted(refuse, at(Kind::Read, capacity - 512, 512)), (Some((capacity - 512, 512)), 0, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, capacity + 5120, 512)), (Some((5120, 512)), 1, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, 3 * capacity - 512, 1024)), (Some((capacity - 1024, 1024)), 1, 0, 0));
    assert_eq!(fitted(fold, at(Kind::Read, capacity + 1, 512)), (Some((0, 1024)), 1, 0, 1));
    assert_eq!(fitted(drop, at(Kind::Read, capacity, 512)), (None, 0, 1, 0));
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_number() {
    let spec = |mode| replay_spec(&turning(10_000.0), mode);
    let good = numbered(0, 10, Some(20));
    let with = |record| refused(&spec(TIMED), &[good, record]);
    let place = |offset_bytes, length_bytes| Recorded {
        request: Request { offset_bytes, length_bytes, ..good.request },
        ..good
    };
    assert_eq!(with(place(204_799_488, 1024)), "request 2: 1024 bytes at 204799488; the system ends at 204800000");
    assert_eq!(with(place(u64::MAX, 1)), "request 2: 1 bytes at 18446744073709551615: its end must fit 64 bits");
    assert_eq!(with(place(0, u32::MAX)), "request 2: 4294967295 bytes at 0: must be shorter than 4 GiB");
    assert_eq!(with(numbered(1, 9, None)), "request 2: arrives before the one before it");
    assert_eq!(with(numbered(1, 15, Some(14))), "request 2: is complete before it arrives");
    assert_eq!(with(numbered(1, u64::MAX, None)), "request 2: comes more than 73 years after the first");
    assert_eq!(with(numbered(1, 15, Some(u64::MAX))), "request 2: comes more than 73 years after the first");
    let mut folding = spec(TIMED);
    folding.replay.outside = Outside::Fold;
    let longer = refused(&folding, &[place(0, 204_800_512)]);
    assert_eq!(longer, "request 1: 204800512 bytes at 0; the system ends at 204800000");
    assert_eq!(refused(&spec(TIMED), &[]), "replay: there is no request in the recording");
    assert_eq!(
        refused(&spec(ReplayMode::Timed { time_scale: f64::NAN }), &[good]),
        "replay: time_scale must be above 0 and finite, not NaN"
    );
    let stretched = refused(&spec(ReplayMode::Timed { time_scale: 1e300 }), &[good, numbered(1, 15, None)]);
    assert_eq!(stretched, "request 2: comes more than 73 years after the first");
    assert_eq!(refused(&spec(ReplayMode::Asap { depth: 0 }), &[good]), "replay: depth must be at least 1, not 0");
    let backwards = ReplayMode::Dependent { min_ns: 2, max_ns: 1 };
    assert_eq!(refused(&spec(backwards), &[good]), "replay: min_ns must be at most max_ns, not 2 of 1");
    for mode in [ReplayMode::Closed, ReplayMode::DEPENDENT] {
        assert_eq!(
            refused(&spec(mode), &[numbered(0, 10, None)]),
            "replay: none of 1 requests has a recorded completion to infer waiting from; replay it timed or asap"
        );
    }
}

/// An error of a source of one's own.
#[derive(Debug, PartialEq)]
enum Failure {
    Simulation(String),
    Source,
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
fn a_part_of_a_recording_is_replayed() {
    let records: Vec<_> = (0..100).map(|number| numbered(number, 50 + number * MS, None)).collect();
    let count = |requests_max, time_max_ns| {
        let mut spec = replay_spec(&turning(10_000.0), TIMED);
        (spec.replay.requests_max, spec.replay.time_max_ns) = (requests_max, time_max_ns);
        let (result, _) = observe(&spec, &records).unwrap();
        assert_eq!(fidelity(&result).recorded_requests, result.count());
        result.count()
    };
    assert_eq!(count(None, None), 100);
    assert_eq!(count(Some(30), None), 30);
    assert_eq!(count(None, Some(20 * MS)), 21);
    assert_eq!(count(Some(30), Some(20 * MS)), 21);
    assert_eq!(count(Some(1_000), Some(u64::MAX)), 100);
}

#[test]
fn a_client_ends_with_a_request_whose_end_is_not_known() {
    // Two clients; the second request of the first has no completion, so that what follows is all the second's.
    let ms = |number, from: u64, to: Option<u64>| numbered(number, from * MS, to.map(|to| to * MS));
    let records = [ms(0, 0, Some(10)), ms(1, 5, Some(15)), ms(2, 16, None), ms(3, 18, Some(30)), ms(4, 40, Some(50))];
    let (result, observed) = observe(&replay_spec(&turning(10_000.0), ReplayMode::Closed), &records).unwrap();
    let times = times_of(&observed, &records);
    assert_eq!(times[2].0, times[1].1 + MS, "the client whose request was complete last");
    assert_eq!(times[3].0, times[0].1 + 8 * MS, "the other");
    assert_eq!(times[4].0, times[3].1 + 10 * MS, "who is alone now");
    assert_eq!(fidelity(&result).without_completion, 1);
    assert!(result.notes.iter().any(|note| note == "1 of 5 requests recorded without their completion"));
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

#[test]
fn a_replay_names_what_was_replayed_and_repeats_itself() {
    let (_, observed) = recording(&mixed(&turning(10_000.0), closed(4), 200));
    let mut spec = replay_spec(&turning(7_200.0), ReplayMode::DEPENDENT);
    (spec.replay.name, spec.seed, spec.interval_ns) = ("day.parquet".to_owned(), 9, Some(100 * MS));
    let run = || observe(&spec, &recorded(&observed)).unwrap().0;
    let result = run();
    assert_eq!(result.to_json().unwrap(), run().to_json().unwrap());
    assert_eq!(result.workload["name"], "day.parquet");
    assert_eq!(result.workload["mode"]["dependent"]["max_ns"], 100_000_000);
    assert_eq!((result.seed, result.start_ns), (9, 0));
    assert_eq!(serde_json::from_value::<Replay>(result.workload.clone()).unwrap(), spec.replay);
    assert_eq!(result.intervals.iter().map(|interval| interval.count).sum::<u64>(), result.count());
    assert!(result.components.iter().any(|component| component.busy_ns > 0));
}

#[test]
fn a_recording_ends_with_what_was_under_way() {
    let mut load = workload(line(4096, 100.0, 100.0), closed(6), 1);
    load.run_length = RunLength::TimeNs(500 * MS);
    let (result, observed) = recording(&spec(&bare_drive(), load));
    let open: Vec<_> = observed.iter().filter(|observed| observed.recorded.completion_ns.is_none()).collect();
    assert_eq!((open.len() as u64, result.backlog), (6, 6));
    assert!(open.iter().all(|observed| observed.wait_ns.is_none()));
    assert_eq!(observed.len() as u64, result.count() + 6);
}
