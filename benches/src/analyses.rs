//! Re-use and whole analyses, of the CloudPhysics trace where it is, else of a generated one.

use headstack_cache::CachePolicy;
use headstack_result::content_hash;
use headstack_trace::analyze::{Analysis, Granularity, Options, Reuse, ReuseOptions};
use headstack_trace::caching::{Admission, Lab, LabOptions, LabPolicy, Unit, Writes};
use headstack_trace::{Meta, ReadOptions, Record, TraceReader};

use crate::measure::{ROUNDS, interleaved, round};
use crate::recordings::{BLOCK_BYTES, popular_blocks};
use crate::report::{Bar, Peer, Report, shared};
use crate::rows::{milliseconds, rate};

/// How often the trace comes: as libCacheSim was measured.
const TIMES: u64 = 50;
/// libCacheSim (October 2024) on a machine with 2 cores and the CloudPhysics trace 50 times over: `distUtil`, exact stack
/// distances; `cachesim`, the miss-ratio curve of LRU at its default sizes on 2 threads.
const DISTANCES_PER_S: f64 = 2.6e6;
const CURVE_PER_S: f64 = 0.65e6;
/// The same: one cache of 100 MB, by `cachesim`.
const LRU_PER_S: f64 = 3.9e6;
const ARC_PER_S: f64 = 4.7e6;
const S3_FIFO_PER_S: f64 = 2.6e6;
/// Sizes of the policies that have to be run at each.
const SIZES: u64 = 20;

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
    let times = report.size().count(TIMES);
    let requests = trace.records.len() as u64 * times;
    let count = |cache_sizes: Vec<u64>| {
        let options = ReuseOptions { granularity: Granularity::Request, cache_sizes, ..ReuseOptions::default() };
        let mut reuse = Reuse::new(options, BLOCK_BYTES);
        for _ in 0..times {
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
    let [distances, curve] = interleaved(report.size().rounds(ROUNDS), [&mut || distances(), &mut || curve()]);
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
        let [speed] =
            interleaved(report.size().rounds(ROUNDS), [&mut || round(1, work, |json| content_hash(json.as_bytes()))]);
        report.add(milliseconds("analysis of CloudPhysics from its file", speed));
    }
    let trace = trace();
    let last_ns = trace.records.last().map_or(0, |record| record.arrival_ns);
    let length_ns = last_ns - trace.records[0].arrival_ns + 1;
    let times = report.size().count(TIMES);
    let work = || {
        let mut analysis = Analysis::new(Options::default()).expect("the default is allowed");
        let mut records = trace.records.clone();
        for _ in 0..times {
            analysis.add(&records);
            records.iter_mut().for_each(|record| record.arrival_ns += length_ns);
        }
        analysis.finish(&trace.meta)
    };
    let requests = trace.records.len() as u64 * times;
    let identify = |report| content_hash(serde_json::to_string(&report).expect("reports become JSON").as_bytes());
    let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || round(requests, work, identify)]);
    report.add(rate(format!("analysis of everything, {} x {TIMES}", trace.what), speed, None, Some(Bar::AtLeast(3e6))));
}

/// The cache lab on one core: whole requests, LRU at all sizes and single caches, then policies at many sizes.
pub fn caches(report: &mut Report) {
    let trace = trace();
    let times = report.size().count(TIMES);
    let requests = trace.records.len() as u64 * times;
    let sizes: Vec<u64> = (1..=SIZES).map(|step| step * 50_000 / SIZES).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    let work = |policies: &[CachePolicy], sizes: &[u64]| {
        let options = LabOptions {
            policies: policies.iter().map(|&policy| LabPolicy::Online(policy)).collect(),
            sizes: sizes.to_vec(),
            unit: Unit::Objects,
            writes: Writes::Through,
            dirty_share: 1.0,
            destage_bytes: 65_536,
            admission: Admission::All,
            rate: 1.0,
            samples: 1,
            seed: 0,
            memory_bytes: 1 << 30,
        };
        pool.install(|| {
            let mut lab = Lab::new(options).expect("the options are allowed");
            for _ in 0..times {
                trace.records.chunks(8_192).for_each(|batch| lab.add(batch).expect("memory is enough"));
            }
            lab.finish()
        })
    };
    let identify = |report| content_hash(serde_json::to_string(&report).expect("reports become JSON").as_bytes());
    let mut row = |what: &str, policy: CachePolicy, sizes: &[u64], peer: Option<Peer>, bar: f64| {
        let [speed] =
            interleaved(report.size().rounds(3), [&mut || round(requests, || work(&[policy], sizes), identify)]);
        report.add(rate(format!("cache lab, {what}, {}", trace.what), speed, peer, Some(Bar::AtLeast(bar))));
    };
    row("LRU at all sizes", CachePolicy::Lru, &sizes, Some(is_quoted("MRC", CURVE_PER_S)), 12e6);
    row("FIFO at one size", CachePolicy::Fifo, &sizes[9..10], Some(is_quoted("LRU", LRU_PER_S)), 4e6);
    row("CLOCK at one size", CachePolicy::Clock, &sizes[9..10], Some(is_quoted("LRU", LRU_PER_S)), 4e6);
    row("S3-FIFO at 20 sizes", CachePolicy::S3Fifo, &sizes, Some(is_quoted("S3-FIFO at one", S3_FIFO_PER_S)), 1e6);
    row("ARC at 20 sizes", CachePolicy::Arc, &sizes, Some(is_quoted("ARC at one", ARC_PER_S)), 1e6);
    row("SIEVE at 20 sizes", CachePolicy::Sieve, &sizes, None, 1e6);
}
