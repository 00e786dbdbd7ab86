//! Replaying a stored trace, beside the plain run that it was recorded from.

use std::path::Path;

use headstack_replay::{Replay, ReplayError, ReplayMode};
use headstack_result::RunResult;
use headstack_sim::replay::{ReplaySpec, replay};
use headstack_sim::{Observed, RunSpec, SimError, record, run};
use headstack_trace::{
    Clock, DeviceMeta, Meta, NOT_RECORDED, ReadOptions, Record, Requests, ResponseSpan, StoreWriter, TraceError,
    TraceReader,
};
use rustix::time::ClockId;

use crate::measure::{ROUNDS, interleaved, processor_round};
use crate::report::{Bar, Figure, Report};
use crate::rows::{answer, deep_drive, random_reads};
use crate::traces::Folder;

const DEPTH: u32 = 16;

/// What ends a replay.
#[derive(Debug)]
enum Failure {
    #[allow(dead_code)] // Shown by the panic that it becomes.
    Sim(SimError),
    #[allow(dead_code)]
    Trace(TraceError),
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure::Sim(error)
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        Failure::Sim(error.into())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::Trace(error)
    }
}

/// Records a run in the stored form.
fn stored(spec: &RunSpec, path: &Path) {
    let device = DeviceMeta { name: spec.system_name.clone(), ..DeviceMeta::default() };
    let meta = Meta {
        clock: Clock::Recording,
        resolution_ns: 1,
        response: Some(ResponseSpan::Simulated),
        devices: vec![device],
        ..Meta::default()
    };
    let mut writer = StoreWriter::create(path).expect("target can be written to");
    let mut hear = |observed: &Observed| {
        let recorded = &observed.recorded;
        let request = &recorded.request;
        let mut taken =
            Record::new(recorded.arrival_ns, request.kind.into(), request.offset_bytes, request.length_bytes);
        taken.response_ns = recorded.completion_ns.map_or(NOT_RECORDED, |at_ns| at_ns - recorded.arrival_ns);
        writer.write(&[taken], &meta).expect("target can be written to");
    };
    record(spec, &|_| true, &mut hear).expect("the specification is valid");
    writer.finish(&meta).expect("target can be written to");
}

fn replayed(spec: &RunSpec, mode: ReplayMode, path: &Path) -> Result<RunResult, Failure> {
    let reader = TraceReader::open(&[path], &ReadOptions::default())?;
    let mut requests = Requests::shared(reader, 1)?.remove(0);
    let spec = ReplaySpec {
        system_name: spec.system_name.clone(),
        system: spec.system.clone(),
        replay: Replay::new("recording", mode),
        seed: spec.seed,
        interval_ns: None,
        faults: None,
    };
    let mut source = |batch: &mut Vec<_>| requests.next(batch).map_err(Failure::from);
    replay(&spec, &mut source, &|_| true, None)
}

/// Requests of the trace, read as replays read them.
fn read(path: &Path) -> Result<usize, Failure> {
    let mut requests = Requests::shared(TraceReader::open(&[path], &ReadOptions::default())?, 1)?.remove(0);
    let (mut batch, mut count) = (Vec::new(), 0);
    while requests.next(&mut batch)? {
        count += batch.len();
    }
    Ok(count)
}

/// What a replay from the stored form costs a request over the plain run, in every mode: in time of the thread that
/// simulates, since decoding goes on beside it, and what decoding takes of all others.
pub fn stored_trace(report: &mut Report) {
    const BAR_NS: f64 = 60.0;
    let modes = [
        ("timed", ReplayMode::Timed { time_scale: 1.0 }),
        ("asap", ReplayMode::Asap { depth: DEPTH }),
        ("closed", ReplayMode::Closed),
        ("dependent", ReplayMode::Dependent { min_ns: 0, max_ns: None }),
    ];
    let (requests, rounds) = (report.size().count(1_000_000), report.size().rounds(ROUNDS));
    let folder = Folder::new();
    let path = folder.0.join("run.parquet");
    let spec = random_reads(&deep_drive("cheetah-x15-36lp"), DEPTH, requests);
    stored(&spec, &path);
    for (name, mode) in modes {
        let timed = |work: &dyn Fn() -> RunResult| {
            processor_round(ClockId::ThreadCPUTime, requests, work, |result| answer(&result))
        };
        let mut plain = || timed(&|| run(&spec, &|_| true).expect("the specification is valid"));
        let mut recorded = || timed(&|| replayed(&spec, mode, &path).expect("it was recorded"));
        let [plain, recorded] = interleaved(rounds, [&mut plain, &mut recorded]);
        report.add(Figure {
            name: format!("replay of a stored trace of 10^6, {name}: over the plain run"),
            value: 1e9 / recorded.median_per_s - 1e9 / plain.median_per_s,
            best: Some(1e9 / recorded.best_per_s - 1e9 / plain.best_per_s),
            unit: "ns/request",
            peer: None,
            bar: Some(Bar::AtMost(BAR_NS)),
            answer: Some(recorded.answer),
        });
    }
    let mut decoded = || {
        let work = || read(&path).expect("it was recorded");
        processor_round(ClockId::ProcessCPUTime, requests, work, |count| count.to_string())
    };
    let [decoded] = interleaved(rounds, [&mut decoded]);
    report.add(Figure {
        name: "reading it for a replay, of all threads".to_owned(),
        value: 1e9 / decoded.median_per_s,
        best: Some(1e9 / decoded.best_per_s),
        unit: "ns/request",
        peer: None,
        bar: None,
        answer: Some(decoded.answer),
    });
}
