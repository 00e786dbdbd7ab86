//! Tests of replays in wall-clock time: which requests are issued, in which order and when, and how they are reported.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use crate::bench::{LoopDevice, Scratch};
use headstack_jobfiles::Sync;
use headstack_load::{EngineKind, LoadError, Observed, Permission, ReplaySpec, Target, Time, Writes, replay};
use headstack_replay::{Due, Issue, Outside, Player, Replay, ReplayError, ReplayMode, in_memory};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::{Kind, Purpose, Random, Recorded, Request};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
const TIMED: ReplayMode = ReplayMode::Timed { time_scale: 1.0 };

#[derive(Debug)]
struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Failure(error.to_string())
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        Failure(error.to_string())
    }
}

fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

fn recorded(arrival_ns: u64, completion_ns: Option<u64>, request: Request) -> Recorded {
    Recorded { arrival_ns, completion_ns, request, pre_flush: false }
}

/// Returns reads of one block each, one every `every_ns`, each of which completes after `took_ns`.
fn regular(count: u64, every_ns: u64, took_ns: u64) -> Vec<Recorded> {
    let read = |number: u64| request(Kind::Read, number % 2_000 * 4096, 4096);
    (0..count).map(|number| recorded(number * every_ns, Some(number * every_ns + took_ns), read(number))).collect()
}

/// Returns requests of all kinds at random times, about `mean_ns` apart.
fn mixed(count: u64, mean_ns: u64) -> Vec<Recorded> {
    let mut random = Random::new(7, Purpose::Choices);
    let mut at_ns = 5_000_000_000;
    let mut next = |number: u64| {
        at_ns += random.bits() % (2 * mean_ns);
        let kind = Kind::ALL[(random.bits() % 4) as usize];
        let (offset, length) = if kind == Kind::Flush { (0, 0) } else { (random.bits() % 2_000 * 4096, 4096) };
        let took_ns = 50 * US + number % 7 * 40 * US;
        recorded(at_ns, Some(at_ns + took_ns), request(kind, offset, length))
    };
    (0..count).map(&mut next).collect()
}

/// Returns a null target with a fixed service time, in virtual time.
fn null(service_ns: u64) -> (Vec<Arc<Target>>, EngineKind) {
    null_in(Time::Virtual { late_ns: 0 }, service_ns)
}

fn null_in(time: Time, service_ns: u64) -> (Vec<Arc<Target>>, EngineKind) {
    (vec![Arc::new(Target::null_in(time, 64 * MIB))], EngineKind::Null { service_ns })
}

fn spec((targets, engine): (Vec<Arc<Target>>, EngineKind), mode: ReplayMode) -> ReplaySpec {
    ReplaySpec {
        system: SystemRecord::new("target", "file", targets[0].description().clone()),
        targets,
        replay: Replay::new("recording", mode),
        writes: Writes::AsRecorded,
        engine,
        slots: 64,
        realtime: false,
        interval_ns: None,
        verification: None,
    }
}

/// Returns the result, and the observed requests in order of issue.
fn play(spec: &ReplaySpec, records: &[Recorded]) -> Result<(RunResult, Vec<Observed>), Failure> {
    let mut source = in_memory::<Failure>(records.to_vec());
    let mut seen: Vec<Observed> = Vec::new();
    let result = replay(spec, &mut source, &mut |_| true, Some(&mut |observed| seen.push(*observed)))?;
    assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
    // Completions come in any order; requests issued at the same time are in the order of the trace.
    seen.sort_by_key(|observed| (observed.recorded.arrival_ns, observed.number));
    Ok((result, seen))
}

fn completion_ns(observed: &Observed) -> u64 {
    observed.recorded.completion_ns.unwrap()
}

#[test]
fn timed_issues_every_request_once_in_order_and_never_before_its_time() {
    let records = mixed(3_000, 200 * US);
    for (time_scale, late_ns) in [(1.0, 0), (0.5, 0), (2.0, 0), (1.0, 3 * MS)] {
        let target = null_in(Time::Virtual { late_ns }, 100 * US);
        let (result, seen) = play(&spec(target, ReplayMode::Timed { time_scale }), &records).unwrap();
        let requests: Vec<Request> = seen.iter().map(|observed| observed.recorded.request).collect();
        assert_eq!(requests, records.iter().map(|record| record.request).collect::<Vec<_>>());
        for (observed, record) in seen.iter().zip(&records) {
            let scheduled = ((record.arrival_ns - records[0].arrival_ns) as f64 * time_scale).round() as u64;
            assert_eq!(observed.due_ns, scheduled);
            assert!(observed.recorded.arrival_ns >= scheduled && completion_ns(observed) >= scheduled + 100 * US);
        }
        for (kind, (_, counted)) in Kind::ALL.into_iter().zip(result.kinds.all()) {
            assert_eq!(counted.count, requests.iter().filter(|request| request.kind == kind).count() as u64);
        }
        // A response time counts from the due time, however late the issue was.
        let responses_ns: u128 = seen.iter().map(|one| u128::from(completion_ns(one) - one.due_ns)).sum();
        assert_eq!(result.kinds.all().iter().map(|(_, kind)| kind.latency.sum_ns()).sum::<u128>(), responses_ns);
        let fidelity = result.fidelity.unwrap();
        assert_eq!((fidelity.recorded_requests, fidelity.replayed_requests), (3_000, 3_000));
        assert_eq!((fidelity.early, fidelity.reordered, fidelity.dropped), (0, 0, 0));
        let lateness = |observed: &Observed| observed.recorded.arrival_ns - observed.due_ns;
        let latest_ns = seen.iter().map(lateness).max().unwrap();
        assert!(fidelity.lateness_max_ns.abs_diff(latest_ns) <= latest_ns / 20, "{fidelity:?} {latest_ns}");
        // A sleeping thread wakes late by the delay of its wake-up, and delays no request for longer.
        assert!(latest_ns <= late_ns, "{latest_ns}");
        assert_eq!(latest_ns > 0, late_ns > 0);
        let ratio = fidelity.rate_ratio.unwrap();
        assert!((0.98..1.02).contains(&ratio), "{ratio} at {time_scale}");
        let offered = result.offered_per_s.unwrap() * time_scale;
        assert!((offered / fidelity.recorded_per_s.unwrap() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn asap_keeps_its_depth() {
    let records = regular(1_000, 50 * MS, MS);
    let (result, seen) = play(&spec(null(MS), ReplayMode::Asap { depth: 8 }), &records).unwrap();
    let numbers: Vec<u64> = seen.iter().map(|observed| observed.number).collect();
    assert_eq!(numbers, (1..=1_000).collect::<Vec<_>>());
    // The ninth request is issued only when one of the eight before it is complete.
    for (index, observed) in seen.iter().enumerate().skip(8) {
        let complete = seen[..index].iter().filter(|one| completion_ns(one) <= observed.recorded.arrival_ns).count();
        assert!(complete >= index - 7, "{complete} of {index} were complete");
    }
    assert_eq!(result.depth.max, 8);
    assert_eq!((result.depth.mean, result.duration_ns), (8.0, 125 * MS));
}

#[test]
fn whoever_waited_waits_again() {
    // Pairs of concurrent requests, where each pair starts 300 us after the later one of the previous pair, which takes
    // 500 us.
    let mut records = Vec::new();
    for pair in 0..200 {
        let at_ns = pair * 800 * US;
        records.push(recorded(at_ns, Some(at_ns + 400 * US), request(Kind::Read, pair * 8192, 4096)));
        records.push(recorded(at_ns, Some(at_ns + 500 * US), request(Kind::Read, pair * 8192 + 4096, 4096)));
    }
    // The target is twice as slow as recorded, and faster.
    for service_ns in [1_000 * US, 100 * US] {
        let dependent = play(&spec(null(service_ns), ReplayMode::DEPENDENT), &records).unwrap();
        let by_number: BTreeMap<u64, Observed> = dependent.1.iter().map(|one| (one.number, *one)).collect();
        for pair in 1..200 {
            let parents = [2 * pair - 1, 2 * pair].map(|number| completion_ns(&by_number[&number]));
            for number in [2 * pair + 1, 2 * pair + 2] {
                let issued_ns = by_number[&number].recorded.arrival_ns;
                assert!(issued_ns >= parents[0].max(parents[1]) + 300 * US, "{number} at {issued_ns}: {parents:?}");
            }
        }
        assert_eq!(dependent.0.fidelity.unwrap().causality_violations, 0);
        let closed = play(&spec(null(service_ns), ReplayMode::Closed), &records).unwrap();
        let by_number: BTreeMap<u64, Observed> = closed.1.iter().map(|one| (one.number, *one)).collect();
        for pair in 1..200 {
            // The client whose request completed last goes first: the second one in the trace.
            for (number, before, think_ns) in
                [(2 * pair + 1, 2 * pair, 300 * US), (2 * pair + 2, 2 * pair - 1, 400 * US)]
            {
                let issued_ns = by_number[&number].recorded.arrival_ns;
                assert!(issued_ns >= completion_ns(&by_number[&before]) + think_ns, "{number} at {issued_ns}");
            }
        }
    }
    // In timed mode, a slower target causes causality violations, which are reported.
    let (result, _) = play(&spec(null(1_000 * US), TIMED), &records).unwrap();
    assert!(result.fidelity.unwrap().causality_violations > 100);
}

/// Returns the requests of four clients with different think times between requests of 10 ms. If requests take less
/// time, the client with the shortest think time gains most.
fn clients() -> Vec<Recorded> {
    let mut records: Vec<Recorded> = Vec::new();
    for client in 0..4 {
        let mut at_ns = client * 100 * US;
        for number in 0..30 {
            let read = request(Kind::Read, (client * 30 + number) * 4096, 4096);
            records.push(recorded(at_ns, Some(at_ns + 10 * MS + client * 100 * US), read));
            at_ns += 10 * MS + client * 100 * US + [1, 3, 8, 20][client as usize] * MS + number * 10 * US;
        }
    }
    records.sort_by_key(|record| record.arrival_ns);
    records
}

/// Returns the issue time of each request, by number, for a target that takes 1 ms per request.
fn in_virtual_time(mode: ReplayMode, records: &[Recorded]) -> BTreeMap<u64, u64> {
    let settings = Replay::new("recording", mode);
    let mut source = in_memory::<ReplayError>(records.to_vec());
    let mut player = Player::new(&settings, 64 * MIB, 512, &mut source).unwrap();
    let (mut under_way, mut issued): (Vec<(u64, Issue)>, BTreeMap<u64, u64>) = Default::default();
    loop {
        let completion_ns = under_way.first().map_or(u64::MAX, |one| one.0);
        match player.next_due().unwrap() {
            Due::Never => return issued,
            Due::At(due_ns) if due_ns < completion_ns => {
                while let Some(issue) = player.take(due_ns).unwrap() {
                    player.issued(&issue, due_ns);
                    issued.insert(issue.number, due_ns);
                    under_way.push((due_ns + MS, issue));
                }
            }
            Due::At(_) | Due::AfterCompletion => {
                let (at_ns, issue) = under_way.remove(0);
                player.completed(issue.slot, at_ns);
            }
        }
    }
}

#[test]
fn the_order_is_that_of_virtual_time() {
    let records = clients();
    for mode in [TIMED, ReplayMode::Asap { depth: 1 }, ReplayMode::Closed, ReplayMode::DEPENDENT] {
        let virtually = in_virtual_time(mode, &records);
        let (_, seen) = play(&spec(null(MS), mode), &records).unwrap();
        assert_eq!((seen.len(), virtually.len()), (120, 120));
        for observed in &seen {
            assert_eq!(observed.recorded.arrival_ns, virtually[&observed.number], "{}", mode.name());
        }
        let keeps_order = matches!(mode, ReplayMode::Timed { .. } | ReplayMode::Asap { .. });
        let overtook = seen.windows(2).any(|pair| pair[0].number > pair[1].number);
        assert_eq!(keeps_order, !overtook, "{}", mode.name());
    }
}

#[test]
fn what_the_target_cannot_keep_up_with_waits_and_counts() {
    let records = regular(300, MS, MS);
    let slow = ReplaySpec { slots: 1, ..spec(null(2 * MS), TIMED) };
    let (result, seen) = play(&slow, &records).unwrap();
    assert!(result.saturated && result.late_arrivals > 290, "{}", result.late_arrivals);
    // The last request waited for all earlier ones, and this wait counts.
    let read = &result.kinds.read;
    assert_eq!((read.latency.max_ns(), read.service.max_ns()), (301 * MS, 2 * MS));
    assert_eq!((result.duration_ns, result.backlog), (600 * MS, 0));
    let late = |observed: &&Observed| observed.recorded.arrival_ns > observed.due_ns;
    assert_eq!(seen.iter().filter(late).count(), 299);
    assert!(result.fidelity.unwrap().lateness_p50_ns > 100 * MS);
    let (result, _) = play(&spec(null(2 * MS), TIMED), &records).unwrap();
    assert_eq!((result.saturated, result.late_arrivals), (false, 0));
}

#[test]
fn reading_the_recording_delays_no_issue() {
    let mut batches = regular(600, MS, MS).chunks(20).map(<[Recorded]>::to_vec).collect::<Vec<_>>().into_iter();
    let (read, heard) = mpsc::channel();
    let mut source = |batch: &mut Vec<Recorded>| {
        *batch = batches.next().unwrap_or_default();
        // The receiver is gone when the first request completes.
        let _ = read.send(());
        Ok::<_, Failure>(!batch.is_empty())
    };
    // The replaying thread continues only when five batches have been read, of which it needs one or two.
    let mut ahead = Some(heard);
    let mut sink = |_: &Observed| {
        if let Some(heard) = ahead.take() {
            let patience = Duration::from_secs(60);
            (0..5).for_each(|number| heard.recv_timeout(patience).unwrap_or_else(|_| panic!("batch {number}")));
        }
    };
    let result = replay(&spec(null(50 * US), TIMED), &mut source, &mut |_| true, Some(&mut sink)).unwrap();
    assert_eq!(result.fidelity.unwrap().replayed_requests, 600);
}

#[test]
fn a_replay_uses_realtime_priority_if_permitted() {
    let spec = ReplaySpec { realtime: true, ..spec(null(50 * US), TIMED) };
    let policy = std::sync::atomic::AtomicI32::new(-1);
    // SAFETY: only queries the policy of the calling thread.
    let mut sink = |_: &Observed| policy.store(unsafe { libc::sched_getscheduler(0) }, Ordering::Relaxed);
    let mut source = in_memory::<Failure>(regular(10, MS, MS));
    match replay(&spec, &mut source, &mut |_| true, Some(&mut sink)) {
        Ok(_) => assert_eq!(policy.load(Ordering::Relaxed), libc::SCHED_FIFO),
        Err(error) => assert!(error.0.contains("real-time priority") && error.0.contains("not permitted"), "{error}"),
    }
}

#[test]
fn a_stopped_run_is_reported() {
    let records = regular(100_000, MS, MS);
    for slots in [64, 1] {
        let spec = ReplaySpec { slots, ..spec(null(2 * MS), TIMED) };
        let mut source = in_memory::<Failure>(records.clone());
        let result = replay(&spec, &mut source, &mut |progress| progress.elapsed_ns < 300 * MS, None).unwrap();
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
        assert!((140..=310).contains(&result.count()), "{}", result.count());
        assert_eq!(result.backlog > 50, slots == 1, "{}", result.backlog);
        assert!((300 * MS..=400 * MS).contains(&result.duration_ns), "{}", result.duration_ns);
    }
}

#[test]
fn a_trace_error_keeps_the_measurements() {
    for (good, message) in [(300, "line 301: no number"), (0, "line 1: no number")] {
        let mut records = in_memory::<Failure>(regular(good, 100 * US, MS));
        let mut failing = |batch: &mut Vec<Recorded>| match records(batch) {
            Ok(false) => Err(Failure(message.to_owned())),
            other => other,
        };
        match replay(&spec(null(50 * US), TIMED), &mut failing, &mut |_| true, None) {
            Ok(result) => {
                assert_eq!((result.count(), result.ended_early.as_deref()), (good, Some(message)));
                assert!(result.checks.iter().all(|check| check.passed), "{:?}", result.checks);
            }
            Err(error) => assert_eq!((good, error.0.as_str()), (0, message)),
        }
    }
}

#[test]
fn requests_outside_are_refused_folded_or_left_out() {
    let mut records = regular(50, 100 * US, MS);
    records[20].request.offset_bytes = 100 * MIB;
    let outcome = |outside| {
        let mut spec = spec(null(50 * US), TIMED);
        spec.replay.outside = outside;
        play(&spec, &records).map(|(result, seen)| (result.ended_early, result.fidelity.unwrap(), seen))
    };
    let (ended, _, seen) = outcome(Outside::Refuse).unwrap();
    assert!(ended.unwrap().starts_with("request 21: 4096 bytes at 104857600"), "it names the request");
    assert!(seen.len() <= 20);
    let (_, fidelity, seen) = outcome(Outside::Fold).unwrap();
    assert_eq!((fidelity.folded, seen[20].recorded.request.offset_bytes), (1, 36 * MIB));
    let (_, fidelity, seen) = outcome(Outside::Drop).unwrap();
    assert_eq!((fidelity.dropped, seen.len()), (1, 49));
}

fn opened(path: &str, direct: bool, permission: &Permission) -> Arc<Target> {
    Arc::new(Target::open(path, direct, Sync::No, permission, &|_| true).unwrap())
}

fn writing() -> Permission {
    Permission { write: true, overwrite: true, ..Permission::default() }
}

#[test]
fn a_read_only_target_is_never_written() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let before = vec![7; 8 * MIB as usize];
    std::fs::write(&path, &before).unwrap();
    let records = mixed(200, 50 * US);
    let of = |kind: Kind| records.iter().filter(|record| record.request.kind == kind).count() as u64;
    let target = opened(&path, false, &Permission::default());
    let mut spec = spec((vec![target], EngineKind::Auto), TIMED);
    let refused = play(&spec, &records).unwrap_err().0;
    assert!(refused.contains("--destroy") && refused.contains("--overwrite") && !refused.contains('\n'), "{refused}");
    spec.writes = Writes::Skip;
    let (result, _) = play(&spec, &records).unwrap();
    let kinds = &result.kinds;
    assert_eq!((kinds.write.count, kinds.trim.count, kinds.read.count), (0, 0, of(Kind::Read)));
    assert!(
        result.notes.contains(&format!("{} writes and trims omitted, as requested", of(Kind::Write) + of(Kind::Trim)))
    );
    spec.writes = Writes::AsReads;
    let (result, _) = play(&spec, &records).unwrap();
    assert_eq!((result.kinds.write.count, result.kinds.read.count), (0, of(Kind::Read) + of(Kind::Write)));
    assert!(result.notes.contains(&format!("{} writes replayed as reads, as requested", of(Kind::Write))));
    assert_eq!(result.kinds.all().iter().map(|(_, kind)| kind.errors).sum::<u64>(), 0);
    assert!(std::fs::read(&path).unwrap() == before, "the file was written");
}

#[test]
fn writes_and_trims_keep_their_offsets() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    for engine in [EngineKind::Auto, EngineKind::Psync] {
        std::fs::write(&path, vec![7; 8 * MIB as usize]).unwrap();
        let target = opened(&path, false, &writing());
        let records = [
            recorded(0, None, request(Kind::Write, MIB, 8192)),
            recorded(MS, None, Request { force_unit_access: true, ..request(Kind::Write, 4 * MIB, 4096) }),
            recorded(2 * MS, None, request(Kind::Flush, 0, 0)),
            recorded(3 * MS, None, request(Kind::Trim, 6 * MIB, 65_536)),
        ];
        let (result, seen) = play(&spec((vec![target], engine), TIMED), &records).unwrap();
        assert_eq!((seen.len(), result.count(), result.ended_early), (4, 4, None));
        let after = std::fs::read(&path).unwrap();
        let is = |range: std::ops::Range<u64>, byte: u8| {
            after[range.start as usize..range.end as usize].iter().all(|&one| one == byte)
        };
        assert!(is(0..MIB, 7) && is(MIB + 8192..4 * MIB, 7) && is(4 * MIB + 4096..6 * MIB, 7));
        assert!(is(6 * MIB..6 * MIB + 65_536, 0) && is(6 * MIB + 65_536..8 * MIB, 7));
        assert!(!is(MIB..MIB + 512, 7) && !is(4 * MIB..4 * MIB + 512, 7));
    }
}

#[test]
fn a_pre_flush_is_a_flush_and_then_its_write() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    for engine in [EngineKind::Auto, EngineKind::Psync] {
        std::fs::write(&path, vec![7; 8 * MIB as usize]).unwrap();
        let commit = Request { force_unit_access: true, ..request(Kind::Write, 4 * MIB, 4096) };
        let records = [
            recorded(0, None, request(Kind::Write, MIB, 8192)),
            Recorded { pre_flush: true, ..recorded(MS, None, commit) },
        ];
        for (writes, expected) in [
            (Writes::AsRecorded, vec![Kind::Write, Kind::Flush, Kind::Write]),
            (Writes::AsReads, vec![Kind::Read, Kind::Flush, Kind::Read]),
            (Writes::Skip, vec![]),
        ] {
            let target = opened(&path, false, &writing());
            let spec = ReplaySpec { writes, ..spec((vec![target], engine), TIMED) };
            let Ok((_, seen)) = play(&spec, &records) else {
                assert!(expected.is_empty(), "{writes:?}");
                continue;
            };
            let kinds: Vec<Kind> = seen.iter().map(|observed| observed.recorded.request.kind).collect();
            assert_eq!(kinds, expected, "{engine:?}");
            assert_eq!(seen.iter().map(|observed| observed.number).collect::<Vec<_>>(), [1, 2, 2]);
            assert_eq!(
                seen[2].due_ns,
                completion_ns(&seen[1]),
                "{engine:?}: the write is issued when its flush is complete"
            );
        }
    }
}

#[test]
fn requests_longer_than_all_buffers_are_one_request_each() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    std::fs::File::create(&path).unwrap().set_len(64 * MIB).unwrap();
    let long = 40 * MIB as u32 + 4096;
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        let target = opened(&path, false, &writing());
        let records = [
            recorded(0, None, request(Kind::Read, 4096, long)),
            recorded(0, None, request(Kind::Write, 8192, long)),
            recorded(0, None, request(Kind::Read, 0, 4096)),
        ];
        let (result, seen) = play(&spec((vec![target], engine), ReplayMode::Asap { depth: 1 }), &records).unwrap();
        assert_eq!((result.ended_early, seen.iter().filter(|one| one.failed).count()), (None, 0));
        assert_eq!((result.kinds.read.bytes, result.kinds.write.bytes), (u64::from(long) + 4096, u64::from(long)));
    }
    // The last block was written, and nothing after it.
    let (mut last, mut behind) = ([0; 4096], [1; 4096]);
    let file = std::fs::File::open(&path).unwrap();
    file.read_exact_at(&mut last, 8192 + u64::from(long) - 4096).unwrap();
    file.read_exact_at(&mut behind, 8192 + u64::from(long)).unwrap();
    assert!(last.iter().any(|&byte| byte != 0) && behind == [0; 4096]);
}

#[test]
fn failures_are_counted_and_fatal_ones_end_the_replay() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    std::fs::write(&path, vec![7; 8 * MIB as usize]).unwrap();
    let target = opened(&path, false, &Permission::default());
    // The file is truncated during the run, so the kernel reads less than requested.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4 * MIB).unwrap();
    let (result, seen) =
        play(&spec((vec![target], EngineKind::Auto), ReplayMode::Closed), &regular(2_000, 50 * US, US)).unwrap();
    let failed = seen.iter().filter(|observed| observed.failed).count() as u64;
    assert_eq!((failed, result.kinds.read.errors, result.kinds.read.count), (976, 976, 1_024));
    let told = "976 requests failed; the first: read of 4KiB at byte";
    assert!(result.notes.iter().any(|note| note.starts_with(told)), "{:?}", result.notes);
}

#[test]
fn a_loop_device_is_played_to_its_end() {
    let Some(device) = LoopDevice::new(64 * MIB) else { return };
    let destroy = Permission { write: true, destroy: vec![device.name().to_owned()], ..Permission::default() };
    let target = opened(&device.path, true, &destroy);
    let mut records = mixed(3_000, 667 * US);
    // Background flushes of a file take a variable time.
    records.retain(|record| record.request.kind != Kind::Flush || record.arrival_ns % 16 == 0);
    let (result, seen) = play(&spec((vec![target], EngineKind::Auto), TIMED), &records).unwrap();
    assert_eq!((seen.len(), result.ended_early), (records.len(), None));
    let fidelity = result.fidelity.unwrap();
    println!(
        "lateness p50 {} us, p99 {} us, max {} us; rate {:?}",
        fidelity.lateness_p50_ns / US,
        fidelity.lateness_p99_ns / US,
        fidelity.lateness_max_ns / US,
        fidelity.rate_ratio
    );
    assert_eq!((fidelity.early, fidelity.replayed_requests), (0, records.len() as u64), "{fidelity:?}");
}

/// A loop device has no FUA: the kernel flushes it after each write with FUA.
#[test]
fn writes_with_fua_flush_the_device() {
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        let Some(device) = LoopDevice::new(16 * MIB) else { return };
        let flushes = || {
            let text = std::fs::read_to_string(format!("/sys/class/block/{}/stat", device.name())).unwrap();
            text.split_whitespace().nth(15).expect("Linux 5.5 counts them").parse::<u64>().unwrap()
        };
        let permission = Permission { write: true, destroy: vec![device.name().to_owned()], ..Permission::default() };
        let target = Arc::new(Target::open(&device.path, true, Sync::No, &permission, &|_| true).unwrap());
        let spec = spec((vec![target], engine), ReplayMode::Asap { depth: 1 });
        for (force_unit_access, flushes_min) in [(false, 0), (true, 20)] {
            let writes = |number: u64| Request { force_unit_access, ..request(Kind::Write, number * 4096, 4096) };
            let records: Vec<_> = (0..20).map(|number| recorded(number * MS, None, writes(number))).collect();
            let before = flushes();
            let (result, _) = play(&spec, &records).unwrap();
            assert_eq!(result.kinds.write.count, 20);
            let flushed = flushes() - before;
            assert!(flushed >= flushes_min && (flushed > 0) == force_unit_access, "{engine:?}: {flushed}");
        }
    }
}
