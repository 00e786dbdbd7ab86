//! Tests of runs with verification: during reads, and in a pass after all writes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::support::*;
use headstack_jobfiles::Verify;
use headstack_load::{
    EngineKind, Job, LedgerPlace, LoadError, ReplaySpec, ScenarioSpec, Spec, Target, Verification, VerifySpec, Writes,
    play_scenario, replay, run, verify,
};
use headstack_replay::{Replay, ReplayError, ReplayMode};
use headstack_result::{Integrity, RunResult, SystemRecord};
use headstack_workload::{Kind, Recorded, Request, Scenario};
use serde_json::{Value, json};

const UNIT: usize = 4096;
const UNITS: u64 = 64;

/// A file and the ledger of the runs on it, both removed on drop.
struct Bench {
    file: TestFile,
    ledger: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let file = TestFile::holes(UNITS * UNIT as u64);
        let ledger = PathBuf::from(format!("{}.ledger", file.path()));
        Bench { file, ledger }
    }

    fn job(&self, verify: Verify, read_percent: f64, changes: &Value) -> Job {
        self.job_on(&[self.file.open(true)], verify, read_percent, changes)
    }

    fn job_on(&self, targets: &[Arc<Target>], verify: Verify, read_percent: f64, changes: &Value) -> Job {
        let workload = workload(UNIT as u32, read_percent, changes);
        Job { verify, ..job(targets, EngineKind::Auto, workload, requests(2000)) }
    }

    /// Runs a job with the ledger in a file.
    fn run(&self, job: Job) -> RunResult {
        let place = if self.ledger.exists() {
            LedgerPlace::Existing(self.ledger.clone())
        } else {
            LedgerPlace::New(self.ledger.clone())
        };
        let verification = Verification::of_jobs(&[&job], &place).unwrap().map(Arc::new);
        let result = run(&Spec { verification, ..spec(vec![job]) }, &mut |_| true).unwrap();
        assert_sound(&result);
        result
    }

    /// Returns the verdicts of a pass, by the ledger or only by stamps.
    fn verify(&self, with_ledger: bool) -> Integrity {
        let spec = VerifySpec {
            system: SystemRecord::new("", "", Value::Null),
            target: self.file.open(true),
            ledger: with_ledger.then(|| self.ledger.clone()),
            engine: EngineKind::Auto,
            interval_ns: None,
        };
        verify(&spec, &mut |_| true).unwrap().integrity.expect("the pass has verdicts")
    }

    fn put(&self, offset: usize, data: &[u8]) {
        let file = File::options().write(true).open(&self.file.0).unwrap();
        file.write_all_at(data, offset as u64).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Some tests create no ledger.
        let _ = std::fs::remove_file(&self.ledger);
    }
}

fn refusal(job: &Job) -> String {
    Verification::of_jobs(&[job], &LedgerPlace::Memory).err().expect("the job is refused").to_string()
}

#[test]
fn written_data_verify_as_intact() {
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        for direct in [true, false] {
            for load in [closed(8), open(20_000.0, "poisson")] {
                let file = TestFile::holes(MIB);
                let mixed = workload(4 * KIB, 50.0, &load);
                let job = Job { verify: Verify::Stamp, ..job(&[file.open(direct)], engine, mixed, requests(4000)) };
                let integrity = measure(vec![job]).integrity.expect("the run was verified");
                assert_eq!((integrity.faults(), integrity.block_bytes), (0, 4096), "{integrity:?}");
                assert!(integrity.intact > 1000, "{integrity:?}");
            }
        }
    }
}

#[test]
fn threads_that_write_trim_and_flush_the_same_place_raise_no_false_alarm() {
    let bench = Bench::new();
    let targets = [bench.file.open(true)];
    let changes = json!({"flush_every": 50, "line": {"trim_percent": 10},
                         "arrivals": {"closed": {"queue_depth": 16}}});
    let jobs: Vec<Job> = [(1, EngineKind::Ring), (2, EngineKind::Psync), (3, EngineKind::Auto)]
        .map(|(seed, engine)| Job { seed, engine, ..bench.job_on(&targets, Verify::StampAndRead, 40.0, &changes) })
        .into();
    let result = measure(jobs);
    let integrity = result.integrity.expect("the run was verified");
    assert_eq!(integrity.faults(), 0, "{integrity:?}");
    assert!(integrity.intact > 1000 && result.kinds.trim.count > 100 && result.kinds.flush.count > 10);
}

#[test]
fn a_fault_during_a_run_is_detected() {
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        let bench = Bench::new();
        let mostly_reads = workload(UNIT as u32, 90.0, &closed(4));
        let job = Job { verify: Verify::Stamp, ..job(&[bench.file.open(false)], engine, mostly_reads, time(600 * MS)) };
        let mut planted = false;
        let result = run(&spec(vec![job]), &mut |now| {
            if !planted && now.completed > 2000 {
                planted = true;
                (0..UNITS as usize).for_each(|unit| bench.put(unit * UNIT + 700, b"!"));
            }
            true
        });
        let integrity = result.unwrap().integrity.expect("the run was verified");
        assert!(planted && integrity.corrupt > 0, "{integrity:?}");
        assert_eq!(integrity.faults(), integrity.corrupt, "{integrity:?}");
        assert!(integrity.findings[0].starts_with("corrupt at byte "), "{:?}", integrity.findings);
    }
}

#[test]
fn planted_faults_are_distinguished_by_name() {
    let bench = Bench::new();
    let everywhere = json!({"addresses": "once", "arrivals": {"closed": {"queue_depth": 4}}});
    let writes = || Job { limits: requests(UNITS), ..bench.job(Verify::StampAndRead, 0.0, &everywhere) };
    bench.run(writes());
    let older = bench.file.contents();
    let result = bench.run(Job { seed: 8, ..writes() });
    assert_eq!(result.integrity.map(|found| (found.checked, found.intact)), Some((UNITS, UNITS)));
    let newer = bench.file.contents();
    let at = 5 * UNIT;
    let of = |content: &[u8], unit: usize| content[unit * UNIT..(unit + 1) * UNIT].to_vec();
    let flipped = {
        let mut unit = of(&newer, 5);
        unit[1000] ^= 4;
        unit
    };
    let half = [&of(&older, 5)[..UNIT / 2], &of(&newer, 5)[UNIT / 2..]].concat();
    type Count = fn(&Integrity) -> u64;
    let faults: [(&str, Vec<u8>, Count); 6] = [
        ("corrupt", flipped, |found| found.corrupt),
        ("stale", of(&older, 5), |found| found.stale),
        ("torn", half, |found| found.torn),
        ("misplaced", of(&newer, 6), |found| found.misplaced),
        ("zeros", vec![0; UNIT], |found| found.zeros),
        ("foreign", vec![7; UNIT], |found| found.foreign),
    ];
    for (name, content, count) in faults {
        bench.put(at, &content);
        let found = bench.verify(true);
        assert_eq!((found.faults(), count(&found), found.intact), (1, 1, UNITS - 1), "{name}: {found:?}");
        let blocks: Vec<_> = found.findings.iter().filter(|text| !text.starts_with("torn request")).collect();
        assert!(blocks.len() == 1 && blocks[0].starts_with(&format!("{name} at byte {at}, 4096 bytes")), "{blocks:?}");
        bench.put(at, &of(&newer, 5));
    }
    assert_eq!(bench.verify(true).faults(), 0);
}

#[test]
fn without_a_ledger_stamps_show_damage_and_name_their_limits() {
    let bench = Bench::new();
    bench.run(bench.job(Verify::Stamp, 0.0, &closed(4)));
    let found = bench.verify(false);
    assert_eq!((found.faults(), found.block_bytes, found.checked), (0, 4096, UNITS));
    assert!(!found.cannot_tell.is_empty() && found.intact > 0);
    let content = bench.file.contents();
    let stamped = content.chunks(UNIT).position(|unit| unit.starts_with(b"hsstamp1")).expect("the run wrote a unit");
    bench.put(stamped * UNIT + 900, &[!content[stamped * UNIT + 900]]);
    let found = bench.verify(false);
    assert_eq!((found.faults(), found.corrupt), (1, 1), "{found:?}");
}

#[test]
fn a_later_run_checks_its_reads_by_the_ledger_or_the_stamps() {
    let bench = Bench::new();
    bench.run(bench.job(Verify::Stamp, 0.0, &closed(4)));
    let content = bench.file.contents();
    let stamped = content.chunks(UNIT).position(|unit| unit.starts_with(b"hsstamp1")).expect("the run wrote a unit");
    let check = || bench.job(Verify::Check, 100.0, &closed(4));
    let by_ledger = || bench.run(check()).integrity.expect("checked");
    let by_stamps = || measure(vec![check()]).integrity.expect("checked");
    assert_eq!((by_ledger().faults(), by_stamps().faults()), (0, 0));
    assert!(by_ledger().intact > 1000);
    bench.put(stamped * UNIT + 900, &[!content[stamped * UNIT + 900]]);
    assert!(by_ledger().corrupt > 0 && by_stamps().corrupt > 0);
}

#[test]
fn units_divide_all_requests() {
    let bench = Bench::new();
    let unit = |align_bytes: Option<u32>, line: &Value| {
        let mut job = bench.job(Verify::Stamp, 0.0, &json!({ "line": line }));
        job.workload.specification.lines[0].align_bytes = align_bytes;
        job.unit_bytes().unwrap()
    };
    assert_eq!(unit(Some(4096), &json!({})), 4096);
    assert_eq!(unit(Some(4096), &json!({"size": 12288})), 4096);
    assert_eq!(unit(None, &json!({})), 512, "random places are multiples of the block");
    assert_eq!(unit(None, &json!({"random_percent": 0})), 4096, "sequential places are multiples of the request");
    assert_eq!(unit(Some(65536), &json!({"size": 65536})), 65536);
    assert_eq!(unit(Some(3 << 20), &json!({"size": 3 << 20})), 1 << 20, "no longer than a pass reads");
}

#[test]
fn what_cannot_be_verified_is_refused_before_anything_is_written() {
    let bench = Bench::new();
    let null = null_job(0, workload(4096, 0.0, &json!({})), requests(1));
    assert!(refusal(&Job { verify: Verify::Stamp, ..null }).contains("stores no data to verify"));
    let writes = bench.job(Verify::Check, 50.0, &json!({}));
    assert!(refusal(&writes).contains("use only reads"));
    let no_stamps = bench.job(Verify::Check, 100.0, &json!({}));
    assert!(refusal(&no_stamps).contains("has no stamps at its start"));
    let target = [bench.file.open(true)];
    let stamps = bench.job_on(&target, Verify::Stamp, 0.0, &json!({}));
    let plain = bench.job_on(&target, Verify::No, 0.0, &json!({}));
    let refused = Verification::of_jobs(&[&stamps, &plain], &LedgerPlace::Memory).err().expect("the jobs are refused");
    assert!(refused.to_string().contains("writes without stamps"), "{refused}");
    let large = bench.job(Verify::Stamp, 0.0, &json!({"line": {"size": 8192, "align": 8192}}));
    bench.run(large);
    let small = bench.job(Verify::Stamp, 0.0, &json!({}));
    let refused = Verification::of_jobs(&[&small], &LedgerPlace::Existing(bench.ledger.clone())).err();
    assert!(refused.expect("the jobs are refused").to_string().contains("in units of 8192 bytes"));
    let refused = Verification::of_jobs(&[&small], &LedgerPlace::New(bench.ledger.clone())).err();
    assert!(refused.expect("the jobs are refused").to_string().contains("create: File exists"));
}

#[test]
fn unreadable_blocks_are_reported_one_by_one() {
    let bench = Bench::new();
    let everywhere = json!({"addresses": "once", "arrivals": {"closed": {"queue_depth": 4}}});
    bench.run(Job { limits: requests(UNITS), ..bench.job(Verify::Stamp, 0.0, &everywhere) });
    let target = bench.file.open(true);
    // The file has shrunk since it was opened, and nothing can be read after its end.
    File::options().write(true).open(&bench.file.0).unwrap().set_len((UNITS - 3) * UNIT as u64).unwrap();
    let system = SystemRecord::new("", "", Value::Null);
    let ledger = Some(bench.ledger.clone());
    let spec = VerifySpec { system, target, ledger, engine: EngineKind::Auto, interval_ns: None };
    let result = verify(&spec, &mut |_| true).unwrap();
    let found = result.integrity.as_ref().expect("the run was verified");
    assert_eq!((found.unreadable, found.damaged, found.intact), (3, 3, UNITS - 3), "{found:?}");
    assert!(found.findings[0].starts_with(&format!("unreadable at byte {}, 4096 bytes", (UNITS - 3) * UNIT as u64)));
}

#[test]
fn a_replay_of_requests_of_any_number_of_blocks_is_verified() {
    let bench = Bench::new();
    let targets = vec![bench.file.open(true)];
    let place = LedgerPlace::New(bench.ledger.clone());
    let request = |number: u64| {
        let kind = [Kind::Write, Kind::Read, Kind::Write, Kind::Trim, Kind::Read][number as usize % 5];
        let (offset_bytes, length_bytes) = (number * 7919 % 500 * 512, 512 * (1 + number as u32 % 9));
        Request { kind, offset_bytes, length_bytes, force_unit_access: number.is_multiple_of(6), ordered: false }
    };
    let recorded =
        |number| Recorded { arrival_ns: number, completion_ns: None, request: request(number), pre_flush: false };
    let mut spec = ReplaySpec {
        system: SystemRecord::new("", "", Value::Null),
        verification: Some(Arc::new(Verification::of_blocks(&targets, &place).unwrap())),
        targets,
        replay: Replay::new("recording", ReplayMode::Asap { depth: 16 }),
        writes: Writes::AsRecorded,
        engine: EngineKind::Auto,
        slots: 16,
        realtime: false,
        interval_ns: None,
    };
    let play = |spec: &ReplaySpec, records: Vec<Recorded>| {
        let mut left = Some(records);
        let mut source = |batch: &mut Vec<Recorded>| {
            batch.extend(left.take().unwrap_or_default());
            Ok::<_, Failure>(!batch.is_empty())
        };
        replay(spec, &mut source, &mut |_| true, None).unwrap()
    };
    let result = play(&spec, (1..5000).map(recorded).collect());
    let found = result.integrity.expect("the run was verified");
    assert_eq!((found.faults(), found.block_bytes), (0, 512), "{found:?}");
    assert!(found.intact > 1000, "{found:?}");
    // A request that does not fit into its own buffer is not written without stamps.
    let long = Request { length_bytes: 2 << 20, ..request(5) };
    let file = TestFile::holes(8 * MIB);
    spec.targets = vec![file.open(true)];
    spec.verification = Some(Arc::new(Verification::of_blocks(&spec.targets, &LedgerPlace::Memory).unwrap()));
    let ended =
        play(&spec, vec![Recorded { arrival_ns: 1, completion_ns: None, request: long, pre_flush: false }]).ended_early;
    assert!(ended.unwrap().contains("a request of 2097152 bytes; the maximum with verification is 1048576"));
    assert!(file.contents().iter().all(|&byte| byte == 0));
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

#[test]
fn the_clients_of_a_scenario_are_verified() {
    let file = TestFile::holes(4 * MIB);
    let target = file.open(true);
    let text = r#"
        name = "test"
        source = "this test"
        run_length = { requests = 6000 }
        pool = { closed = { queue_depth = 8 } }
        [[streams]]
        name = "small"
        [streams.access]
        share_percent = 75
        lines = [{ size = "4KiB", read_percent = 50, random_percent = 100 }]
        [[streams]]
        name = "large"
        [streams.access]
        share_percent = 25
        lines = [{ size = "64KiB", read_percent = 30, random_percent = 100 }]
    "#;
    let verification = Verification::of_blocks(&[Arc::clone(&target)], &LedgerPlace::Memory).unwrap();
    let spec = ScenarioSpec {
        system: SystemRecord::new("", "", Value::Null),
        luns: vec![("disk".to_owned(), target)],
        scenario: Scenario::from_toml("test.toml", text).unwrap(),
        engine: EngineKind::Auto,
        slots: 64,
        seed: 1,
        interval_ns: None,
        verification: Some(Arc::new(verification)),
    };
    let result = play_scenario(&spec, &mut |_| true).unwrap();
    let found = result.integrity.expect("the run was verified");
    assert_eq!(found.faults(), 0, "{found:?}");
    assert!(found.intact > 1000, "{found:?}");
}
