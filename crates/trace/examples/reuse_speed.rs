//! How fast re-use is counted, and how well a sample tells it: `cargo run --release -p headstack-trace --example
//! reuse_speed -- [cloudPhysicsIO.vscsi]`.
//!
//! Without a file the requests are generated; with a number in its place, so many are generated and analysed, and the
//! memory is printed as they pass. Each speed is the best of three runs in one thread.

use std::time::Instant;

use headstack_trace::analyze::{Analysis, Granularity, Options, Reuse, ReuseOptions, ReuseReport};
use headstack_trace::{Meta, Operation, Record};

const RUNS: usize = 3;
const SALTS: u64 = 20;
const BLOCK_BYTES: u32 = 4_096;

/// The 32-byte records of the first version: length, -, opcode, -, sector, time in us.
fn read_vscsi(path: &str) -> Vec<Record> {
    let bytes = std::fs::read(path).expect("a readable file");
    let word = |record: &[u8], at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let long = |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let record = |record: &[u8]| {
        let operation = if record[12] == 0x28 { Operation::Read } else { Operation::Write };
        Record::new(long(record, 24) * 1_000, operation, long(record, 16) * 512, word(record, 4))
    };
    bytes.chunks_exact(32).map(record).collect()
}

/// Requests of one block, with popularity in inverse proportion to rank.
fn zipf(requests: usize, blocks: u64) -> Vec<Record> {
    let mut state = 1u64;
    let mut unit = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let record = |index: usize| {
        let rank = (blocks as f64).powf(unit()) as u64;
        let block = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (4 * blocks);
        Record::new(index as u64 * 1_000, Operation::Read, block * u64::from(BLOCK_BYTES), BLOCK_BYTES)
    };
    (0..requests).map(record).collect()
}

fn reuse(trace: &[Record], repeats: usize, options: ReuseOptions) -> ReuseReport {
    let mut reuse = Reuse::new(options, BLOCK_BYTES);
    for _ in 0..repeats {
        trace.iter().for_each(|record| reuse.add(record));
    }
    reuse.finish()
}

fn count(trace: &[Record], repeats: usize, granularity: Granularity, rate: f64) -> (f64, ReuseReport) {
    let run = || {
        let options = ReuseOptions { granularity, rate, memory_bytes: 1 << 30, ..ReuseOptions::default() };
        let begin = Instant::now();
        let report = reuse(trace, repeats, options);
        (begin.elapsed().as_secs_f64(), report)
    };
    (0..RUNS).map(|_| run()).min_by(|a, b| a.0.total_cmp(&b.0)).expect("runs")
}

/// The same with a Fenwick tree over time and a standard map, for comparison: seconds, and the sum of all distances.
fn fenwick(trace: &[Record], repeats: usize) -> (f64, u64) {
    let begin = Instant::now();
    let total = trace.len() * repeats;
    let (mut tree, mut last) = (vec![0i32; total + 1], std::collections::HashMap::new());
    let (mut now, mut sum) = (0usize, 0u64);
    let add = |tree: &mut Vec<i32>, at: usize, by: i32| {
        let mut at = at;
        while at <= total {
            tree[at] += by;
            at += at & at.wrapping_neg();
        }
    };
    for record in std::iter::repeat_n(trace, repeats).flatten() {
        now += 1;
        let live = last.len();
        if let Some(old) = last.insert(record.offset_bytes, now) {
            let (mut at, mut up_to) = (old, 0);
            while at > 0 {
                up_to += tree[at];
                at &= at - 1;
            }
            sum += live as u64 - up_to as u64;
            add(&mut tree, old, -1);
        }
        add(&mut tree, now, 1);
    }
    (begin.elapsed().as_secs_f64(), sum)
}

/// Mean distance of two curves over cache sizes in equal steps up to the working set.
fn mean_error(exact: &ReuseReport, sampled: &ReuseReport) -> f64 {
    let at = |report: &ReuseReport, cache: f64| {
        let curve = &report.lru_curve;
        let next = curve.partition_point(|point| (point.cache as f64) < cache).min(curve.len() - 1);
        let (a, b) = (curve[next.saturating_sub(1)], curve[next]);
        let share = ((cache - a.cache as f64) / (b.cache as f64 - a.cache as f64).max(1.0)).clamp(0.0, 1.0);
        a.miss_ratio + share * (b.miss_ratio - a.miss_ratio)
    };
    let cache = |step: usize| exact.distinct * step as f64 / 200.0;
    (1..=200).map(|step| (at(exact, cache(step)) - at(sampled, cache(step))).abs()).sum::<f64>() / 200.0
}

fn show(what: &str, requests: usize, (seconds, report): &(f64, ReuseReport)) {
    let rate = requests as f64 / seconds / 1e6;
    println!("{what:44} {seconds:7.3} s  {rate:6.2} M requests/s  {:9.0} distinct", report.distinct);
}

/// Requests a second of the whole analysis.
fn analyse(what: &str, trace: &[Record], repeats: usize, options: &Options) {
    let run = || {
        let begin = Instant::now();
        let mut analysis = Analysis::new(options.clone()).expect("options in range");
        let length_ns = trace.last().expect("requests").arrival_ns - trace[0].arrival_ns + 1;
        let mut batch = trace.to_vec();
        for _ in 0..repeats {
            analysis.add(&batch);
            batch.iter_mut().for_each(|record| record.arrival_ns += length_ns);
        }
        let report = analysis.finish(&Meta::default());
        assert_eq!(report.requests as usize, trace.len() * repeats);
        begin.elapsed().as_secs_f64()
    };
    let seconds = (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min);
    println!("{what:44} {seconds:7.3} s  {:6.2} M requests/s", (trace.len() * repeats) as f64 / seconds / 1e6);
}

/// Analyses generated requests without keeping them: 4 KiB at random places of 4 TB, each with a response time.
fn memory(requests: u64) {
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("").to_owned();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
    };
    let mut analysis = Analysis::new(Options::default()).expect("options in range");
    let begin = Instant::now();
    let mut state = 1u64;
    for part in 0..10 {
        for first in (part * requests / 10..(part + 1) * requests / 10).step_by(10_000) {
            let record = |index: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let operation = if state >> 63 == 0 { Operation::Read } else { Operation::Write };
                let mut record = Record::new(index * 10_000, operation, (state >> 34) * 4_096, BLOCK_BYTES);
                record.response_ns = 50_000 + (state >> 50);
                record
            };
            analysis.add(&(first..first + 10_000).map(record).collect::<Vec<Record>>());
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!("{:12} requests {seconds:7.1} s  peak {:5} MiB", (part + 1) * requests / 10, peak_kib() >> 10);
    }
    let report = analysis.finish(&Meta::default());
    println!("sampled {:?}, peak {} MiB", report.reuse.map(|reuse| reuse.sampled_rate), peak_kib() >> 10);
}

fn main() {
    let file = std::env::args().nth(1);
    if let Some(requests) = file.as_deref().and_then(|text| text.parse().ok()) {
        return memory(requests);
    }
    let trace = file.as_deref().map_or_else(|| zipf(113_872, 60_000), read_vscsi);
    let repeated = trace.len() * 50;
    show("requests, exact, 50 times over", repeated, &count(&trace, 50, Granularity::Request, 1.0));
    let (seconds, _) = fenwick(&trace, 50);
    println!(
        "{:44} {seconds:7.3} s  {:6.2} M requests/s",
        "the same, Fenwick tree and standard map",
        repeated as f64 / seconds / 1e6
    );
    show("blocks, exact, 50 times over", repeated, &count(&trace, 50, Granularity::Block, 1.0));
    show("blocks, one in a hundred, 50 times over", repeated, &count(&trace, 50, Granularity::Block, 0.01));
    let by_request = ReuseOptions { granularity: Granularity::Request, ..ReuseOptions::default() };
    let none = Options { reuse: None, working_set: false, ..Options::default() };
    analyse("everything, once", &trace, 1, &Options::default());
    analyse("everything, 50 times over", &trace, 50, &Options::default());
    let requests = Options { reuse: Some(by_request), ..Options::default() };
    analyse("re-use of whole requests instead", &trace, 50, &requests);
    analyse("without re-use", &trace, 50, &Options { reuse: None, ..Options::default() });
    analyse("without blocks and re-use", &trace, 50, &none);
    let many = zipf(20_000_000, 40_000_000);
    show("zipf, exact", many.len(), &count(&many, 1, Granularity::Block, 1.0));
    compare(&trace, &many[..2_000_000]);
}

/// Exact curves held against samples.
fn compare(trace: &[Record], many: &[Record]) {
    for (name, trace) in [("trace", trace), ("zipf", many)] {
        let exact = reuse(trace, 1, ReuseOptions::default());
        let sampled =
            (0..SALTS).map(|salt| reuse(trace, 1, ReuseOptions { rate: 0.01, salt, ..ReuseOptions::default() }));
        let (mut errors, mut bands) = (Vec::new(), Vec::new());
        for sampled in sampled {
            errors.push(mean_error(&exact, &sampled));
            bands.push(sampled.mean_band.unwrap_or(0.0));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let greatest = errors.iter().copied().fold(0.0, f64::max);
        println!(
            "{name}: samples of 1 %: error {:.4}, greatest of {SALTS} {greatest:.4}, band {:.4}",
            mean(&errors),
            mean(&bands)
        );
    }
}
