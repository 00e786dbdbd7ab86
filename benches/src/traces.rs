//! Reading and importing traces, beside programs that do the like.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use headstack_result::content_hash;
use headstack_trace::{Input, NOT_RECORDED, ReadOptions, Record, TraceReader, import};

use crate::measure::{ROUNDS, Round, Speed, external_round, interleaved, round};
use crate::python::run_script;
use crate::recordings::{EVENTS_A_REQUEST, block_trace as make_block_trace, write_msr};
use crate::report::{Bar, Figure, Missing, Peer, Report, repository};

const BYTES_PER_MB: f64 = 1e6;

/// A folder of its own below `target`, gone with this.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let path = repository().join(format!("target/speed-{}", std::process::id()));
        fs::create_dir_all(&path).expect("target can be written to");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in `target`, under a name that says what it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What was read, put together: requests, and a number that every field and the order count in.
#[derive(Clone, Copy, Default)]
struct Digest {
    requests: u64,
    sum: u64,
}

impl Digest {
    fn add(&mut self, record: &Record) {
        let fields = [
            record.arrival_ns,
            record.response_ns,
            record.wait_ns,
            record.offset_bytes,
            u64::from(record.length_bytes),
            u64::from(record.device),
            record.operation as u64,
        ];
        self.requests += 1;
        self.sum =
            fields.into_iter().fold(self.sum, |sum, field| sum.rotate_left(5) ^ field.wrapping_mul(self.requests));
    }

    fn answer(self) -> String {
        content_hash(&[self.requests.to_le_bytes(), self.sum.to_le_bytes()].concat())
    }
}

fn read(reader: &mut TraceReader, mut each: impl FnMut(&Record)) -> Digest {
    let (mut batch, mut digest) = (Vec::new(), Digest::default());
    while reader.next_batch(&mut batch).expect("the trace was made to be read") {
        for record in &batch {
            each(record);
            digest.add(record);
        }
    }
    digest
}

fn open(path: &Path) -> TraceReader {
    TraceReader::open(&[path], &ReadOptions::default()).expect("the trace was made to be read")
}

/// Imports `from`, and identifies the file it became by its bytes.
fn imported(operations: u64, from: impl FnOnce() -> TraceReader, to: &Path) -> Round {
    round(
        operations,
        || import(&mut from(), to, &mut |_| true).expect("what can be read can be imported"),
        |_| content_hash(&fs::read(to).expect("it was written")),
    )
}

fn figure(name: &str, speed: Speed, unit: &'static str, peer: Option<Peer>, bar: Option<Bar>) -> Figure {
    let (value, best) = (speed.median_per_s, Some(speed.best_per_s));
    Figure { name: name.to_owned(), value, best, unit, peer, bar, answer: Some(speed.answer) }
}

/// A block trace of a closed loop, decoded and paired, and imported.
pub fn block_trace(report: &mut Report) {
    let requests = report.size().count(220_000);
    let (events, rounds) = (requests * EVENTS_A_REQUEST, report.size().rounds(ROUNDS));
    /// What a reader of records of fixed size should be quicker by than one that formats each.
    const TIMES: f64 = 10.0;
    const READ: &str = "block trace, 1.3 M events, decoded and paired";
    const IMPORT: &str = "block trace, 1.3 M events, imported to Parquet";
    const EVENTS_PER_S: &str = "events/s";
    let folder = Folder::new();
    let [base, to] = ["trace", "trace.parquet"].map(|name| folder.0.join(name));
    // As blkparse wants its files called: one for each CPU.
    let trace = make_block_trace(requests);
    fs::write(folder.0.join("trace.blktrace.0"), &trace).expect("target can be written to");
    let reader = || {
        let input = Input::from_bytes("trace", trace.clone()).expect("it is not empty");
        TraceReader::from_inputs(vec![input], &ReadOptions::default()).expect("it is a block trace")
    };
    let decode = || {
        let mut reader = reader();
        let is_paired = |record: &Record| assert_ne!(record.response_ns, NOT_RECORDED, "a request was not paired");
        round(
            events,
            || read(&mut reader, is_paired),
            |digest| {
                assert_eq!(digest.requests, requests, "requests were lost");
                digest.answer()
            },
        )
    };
    let into = || imported(events, reader, &to);
    let is_there = Command::new("blkparse").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        let [decoded, imported] = interleaved(rounds, [&mut || decode(), &mut || into()]);
        report.add(figure(READ, decoded, EVENTS_PER_S, None, None));
        report.add(figure(IMPORT, imported, EVENTS_PER_S, None, None));
        let reason = "blkparse is not installed".to_owned();
        return report.miss(&format!("{READ}, beside blkparse"), Missing::Lacking(reason));
    }
    let peer = || blkparse(&base, events);
    let [decoded, imported, peer] = interleaved(rounds, [&mut || decode(), &mut || into(), &mut || peer()]);
    let peer = Peer { name: "blkparse, measured".to_owned(), value: peer.median_per_s };
    let bar = Bar::AtLeast(TIMES * peer.value);
    report.add(figure(READ, decoded, EVENTS_PER_S, Some(peer.clone()), Some(bar)));
    report.add(figure(IMPORT, imported, EVENTS_PER_S, Some(peer), None));
}

/// The text of all events, to nowhere.
fn blkparse(base: &Path, events: u64) -> Round {
    let start = Instant::now();
    let status = Command::new("blkparse").arg("-i").arg(base).args(["-o", "/dev/null"]).stdout(Stdio::null()).status();
    let per_s = events as f64 / start.elapsed().as_secs_f64();
    let status = status.expect("it was there before");
    assert!(status.success(), "blkparse ended with {status}");
    external_round(per_s, status.to_string())
}

/// A CSV of MSR's shape to Parquet, beside DuckDB and polars, and what was stored, read.
pub fn msr(report: &mut Report) {
    let rows = report.size().count(10_000_000);
    // Each takes seconds and little depends on chance.
    let few_rounds = report.size().rounds(3);
    const NAME: &str = "MSR CSV, 10 M rows, imported to Parquet";
    const ROWS_PER_S: &str = "rows/s";
    let folder = Folder::new();
    let [from, to, peers_to] = ["msr.csv", "msr.parquet", "peer.parquet"].map(|name| folder.0.join(name));
    write_msr(&from, rows).expect("target has room for 600 MB");
    let csv_mb = fs::metadata(&from).expect("it was written").len() as f64 / BYTES_PER_MB;
    let ours = || imported(rows, || open(&from), &to);
    let peer = |name: &str| copied_by(name, &from, &peers_to);
    let mut peers = Vec::new();
    let mut speeds = Vec::new();
    for name in ["duckdb", "polars"] {
        match peer(name) {
            Err(missing) => report.miss(&format!("{NAME}, beside {name}"), missing),
            Ok(_) => {
                let work = || peer(name).unwrap_or_else(|missing| panic!("{name} worked once: {missing:?}"));
                let [ours, theirs] = interleaved(few_rounds, [&mut || ours(), &mut || work()]);
                peers.push(Peer { name: format!("{name}, measured"), value: theirs.median_per_s });
                speeds.push(ours);
            }
        }
    }
    let mut add = |speed: Speed, peer: Option<Peer>| {
        let bar = peer.as_ref().map(|peer| Bar::AtLeast(peer.value));
        report.add(figure(NAME, speed.clone(), ROWS_PER_S, peer, bar));
        speed
    };
    let last = match peers.is_empty() {
        true => add(interleaved(few_rounds, [&mut || ours()])[0].clone(), None),
        false => speeds.into_iter().zip(peers).map(|(speed, peer)| add(speed, Some(peer))).last().expect("some"),
    };
    let mb_per_row = csv_mb / rows as f64;
    let (median_per_s, best_per_s) = (last.median_per_s * mb_per_row, last.best_per_s * mb_per_row);
    let speed = Speed { median_per_s, best_per_s, ..last.clone() };
    report.add(figure("the same, bytes of CSV", speed, "MB/s", None, None));
    stored(report, &to, rows, last.answer);
}

/// Seconds that a peer in Python needs for the same, as it says itself.
fn copied_by(peer: &str, from: &Path, to: &Path) -> Result<Round, Missing> {
    let text = run_script("peers.py", &[peer.as_ref(), from.as_os_str(), to.as_os_str()])?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [seconds, rows] => {
            Ok(external_round(rows / seconds, text.split_whitespace().last().unwrap_or_default().to_owned()))
        }
        _ => Err(Missing::Broken(format!("{peer} prints {text:?}"))),
    }
}

/// How large the stored form is, and how fast it is read.
fn stored(report: &mut Report, path: &Path, requests: u64, answer: String) {
    let bytes = fs::metadata(path).expect("it was written").len();
    report.add(Figure {
        name: "the stored form, MSR CSV of 10 M rows".to_owned(),
        value: bytes as f64 / requests as f64,
        best: None,
        unit: "B/request",
        peer: None,
        bar: Some(Bar::AtMost(24.0)),
        answer: Some(answer),
    });
    let reading = || round(requests, || read(&mut open(path), |_| ()), Digest::answer);
    let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || reading()]);
    report.add(figure("reading the stored form, 10 M requests", speed, "requests/s", None, None));
}
