//! Re-use and whole analyses, of the CloudPhysics trace where it is, else of a generated one.

use headstack_result::content_hash;
use headstack_trace::analyze::{Analysis, Granularity, Options, Reuse, ReuseOptions};
use headstack_trace::{Meta, ReadOptions, Record, TraceReader};

use crate::measure::{ROUNDS, interleaved, round};
use crate::recordings::{BLOCK_BYTES, popular_blocks};
use crate::report::{Bar, Peer, Report, shared};
use crate::rows::{milliseconds, rate};

/// How often the trace comes: as libCacheSim was measured.
const TIMES: usize = 50;
/// libCacheSim (October 2024) on a machine with 2 cores and the CloudPhysics trace 50 times over: `distUtil`, exact stack
/// distances; `cachesim`, the miss-ratio curve of LRU at its default sizes on 2 threads.
const DISTANCES_PER_S: f64 = 2.6e6;
const CURVE_PER_S: f64 = 0.65e6;

const SAMPLE: &str = "traces/cloudphysics/cloudPhysicsIO.vscsi";

struct Trace {
    what: &'static str,
    records: Vec<Record>,
    meta: Meta,
}

fn read_sample() -> Option<(Vec<Record>, Meta)> {
    let path = shared().join(SAMPLE);
    let mut reader = TraceReader::open(&[&path], &ReadOptions::default()).ok()?;
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch).expect("the sample can be read") {
        records.append(&mut batch);
    }
    Some((records, reader.meta().clone()))
}

fn trace() -> Trace {
    match read_sample() {
        Some((records, meta)) => Trace { what: "CloudPhysics", records, meta },
        None => Trace { what: "generated", records: popular_blocks(113_872, 65_536), meta: Meta::default() },
    }
}

fn is_quoted(what: &str, value: f64) -> Peer {
    Peer { name: format!("libCacheSim {what}, quoted"), value }
}

/// Exact stack distances of whole requests, without and with the whole curve: a point for every cache size.
pub fn stack_distances(report: &mut Report) {
    let trace = trace();
    let requests = (trace.records.len() * TIMES) as u64;
    let count = |cache_sizes: Vec<u64>| {
        let options = ReuseOptions { granularity: Granularity::Request, cache_sizes, ..ReuseOptions::default() };
        let mut reuse = Reuse::new(options, BLOCK_BYTES);
        for _ in 0..TIMES {
            trace.records.iter().for_each(|record| reuse.add(record));
        }
        reuse
    };
    let identify = |curve: String| content_hash(curve.as_bytes());
    let distinct = count(Vec::new()).finish().distinct as u64;
    let distances = || round(requests, || count(Vec::new()), |reuse| identify(format!("{:?}", reuse.finish())));
    let curve = || {
        let work = || count((1..=distinct).collect()).finish();
        round(requests, work, |report| identify(format!("{report:?}")))
    };
    let [distances, curve] = interleaved(ROUNDS, [&mut || distances(), &mut || curve()]);
    let name = |what: &str| format!("{what}, {} x {TIMES}", trace.what);
    let (peer, bar) = (is_quoted("distUtil", DISTANCES_PER_S), Bar::AtLeast(8e6));
    report.add(rate(name("exact stack distances"), distances, Some(peer), Some(bar)));
    let (peer, bar) = (is_quoted("MRC", CURVE_PER_S), Bar::AtLeast(6.5e6));
    report.add(rate(name("LRU curve at every size"), curve, Some(peer), Some(bar)));
}

/// Everything that is known of a trace by default: of the CloudPhysics trace from its file, and of the same many times
/// over, the next behind the last.
pub fn whole(report: &mut Report) {
    if shared().join(SAMPLE).is_file() {
        let work = || {
            let (records, meta) = read_sample().expect("it was there");
            let mut analysis = Analysis::new(Options::default()).expect("the default is allowed");
            analysis.add(&records);
            serde_json::to_string(&analysis.finish(&meta)).expect("reports become JSON")
        };
        let [speed] = interleaved(ROUNDS, [&mut || round(1, work, |json| content_hash(json.as_bytes()))]);
        report.add(milliseconds("analysis of CloudPhysics from its file", speed));
    }
    let trace = trace();
    let last_ns = trace.records.last().map_or(0, |record| record.arrival_ns);
    let length_ns = last_ns - trace.records[0].arrival_ns + 1;
    let work = || {
        let mut analysis = Analysis::new(Options::default()).expect("the default is allowed");
        let mut records = trace.records.clone();
        for _ in 0..TIMES {
            analysis.add(&records);
            records.iter_mut().for_each(|record| record.arrival_ns += length_ns);
        }
        analysis.finish(&trace.meta)
    };
    let requests = (trace.records.len() * TIMES) as u64;
    let identify = |report| content_hash(serde_json::to_string(&report).expect("reports become JSON").as_bytes());
    let [speed] = interleaved(ROUNDS, [&mut || round(requests, work, identify)]);
    report.add(rate(format!("analysis of everything, {} x {TIMES}", trace.what), speed, None, Some(Bar::AtLeast(3e6))));
}
