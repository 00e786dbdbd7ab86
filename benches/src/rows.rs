//! What is measured.

use std::hint::black_box;

use headstack_catalogue::{disks, load_drive, workloads};
use headstack_result::{LatencyHistogram, RunResult, content_hash};
use headstack_sim::drive::description::{DriveDescription, Policy};
use headstack_sim::replay::closed_responses_ns;
use headstack_sim::{Demand, RunSpec, run, run_all};
use headstack_trace::{Input, ReadOptions, Record, TraceReader};
use headstack_workload::{
    ArrivalClock, ArrivalProcess, Arrivals, Document, Generator, Recorded, RunLength, Span, Think, Workload,
};

use crate::bare::BareDrive;
use crate::measure::{ROUNDS, Round, Speed, interleaved, round};
use crate::report::{Bar, Figure, Missing, Peer, Report, shared};
use crate::size::Size;

pub const REQUESTS_PER_S: &str = "requests/s";
const BLOCK_BYTES: u32 = 512;

/// DiskSim 4.0 built with -O2 on one core of an x86-64 Xeon, median of five, its model of the Cheetah 9LP: a synthetic
/// closed loop of 20,000 requests (66 % reads, 4 KiB on average) over the number outstanding.
const DISKSIM_PER_S: [(u32, f64); 3] = [(1, 36_391.0), (16, 14_873.0), (64, 7_718.0)];
/// The same for the replay of the validation trace of the Cheetah 9LP.
const DISKSIM_REPLAY_PER_S: f64 = 41_276.0;
pub const DISKSIM: &str = "DiskSim 4.0 -O2, quoted";

/// A drive of the catalogue that takes what it is given: 256 commands at once, shortest positioning time first.
pub fn deep_drive(id: &str) -> DriveDescription {
    let mut drive = load_drive(id).expect("the catalogue is valid").description;
    (drive.queue.depth, drive.interface.host_tags) = (256, 256);
    drive.queue.policy = Policy::Sptf;
    drive
}

/// Random reads of 4 KiB over the whole drive.
pub fn random_reads(drive: &DriveDescription, queue_depth: u32, requests: u64) -> RunSpec {
    spec(drive, "random-read-4k", queue_depth, requests)
}

fn spec(drive: &DriveDescription, workload: &str, queue_depth: u32, requests: u64) -> RunSpec {
    RunSpec {
        system_name: drive.name.clone(),
        system: drive.clone().into(),
        demand: Demand::Workload(Workload {
            arrivals: Arrivals::Closed { queue_depth, think: Think::None },
            run_length: RunLength::Requests(requests),
            ..catalogue_workload(workload)
        }),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    }
}

fn catalogue_workload(id: &str) -> Workload {
    let entry = workloads().iter().find(|entry| entry.id == id).expect("the catalogue has it");
    Workload::from_toml(entry.file_name, entry.text).expect("the catalogue is valid")
}

/// Identifies what was simulated: not the version, not the names.
pub fn answer(result: &RunResult) -> String {
    assert!(result.passed(), "a run failed its own checks: {:?}", result.checks);
    let simulated = (&result.kinds, &result.depth, &result.components, &result.counters, result.duration_ns);
    content_hash(serde_json::to_string(&simulated).expect("results become JSON").as_bytes())
}

/// One run, timed.
pub fn simulate(spec: &RunSpec, requests: u64) -> Round {
    round(requests, || run(spec, &|_| true).expect("the specification is valid"), |result| answer(&result))
}

/// A figure of speed.
pub fn rate(name: String, speed: Speed, peer: Option<Peer>, bar: Option<Bar>) -> Figure {
    Figure {
        name,
        value: speed.median_per_s,
        best: Some(speed.best_per_s),
        unit: REQUESTS_PER_S,
        peer,
        bar,
        answer: Some(speed.answer),
    }
}

/// One drive on one core, at three depths, beside the bare loop; the Cheetah 9LP beside DiskSim too.
pub fn drive_under_random_reads(report: &mut Report) {
    const DEPTHS: [(u32, u64, f64); 3] = [(1, 3_000_000, 6e6), (16, 1_500_000, 3e6), (64, 750_000, 1.5e6)];
    for (id, has_bar) in [("cheetah-x15-36lp", true), ("cheetah-9lp", false)] {
        let drive = deep_drive(id);
        let loop_drive = BareDrive::new(&drive, 4096);
        for (depth, requests, bar) in DEPTHS {
            let requests = report.size().count(requests);
            let spec = random_reads(&drive, depth, requests);
            let bare = || match depth {
                1 => loop_drive.one_at_a_time(requests),
                _ => loop_drive.shortest_first(requests, depth as usize),
            };
            let [speed, peer] = interleaved(
                report.size().rounds(ROUNDS),
                [&mut || simulate(&spec, requests), &mut || round(requests, bare, |outcome| outcome.answer())],
            );
            let name = format!("{id}, random 4 KiB reads, depth {depth}");
            let peer = Peer { name: "bare loop, measured".to_owned(), value: peer.median_per_s };
            let bar = has_bar.then_some(Bar::AtLeast(bar));
            report.add(rate(name.clone(), speed.clone(), Some(peer), bar));
            if id == "cheetah-9lp"
                && let Some(&(_, value)) = DISKSIM_PER_S.iter().find(|(at, _)| *at == depth)
            {
                report.add(rate(name, speed, Some(Peer { name: DISKSIM.to_owned(), value }), None));
            }
        }
    }
}

/// A mix of sizes, reads and writes.
pub fn file_server(report: &mut Report) {
    let drive = deep_drive("cheetah-x15-36lp");
    for (depth, requests) in [(1, 1_500_000), (16, 1_000_000), (64, 500_000)] {
        let requests = report.size().count(requests);
        let spec = spec(&drive, "file-server", depth, requests);
        let [speed] = interleaved(report.size().rounds(ROUNDS), [&mut || simulate(&spec, requests)]);
        report.add(rate(format!("cheetah-x15-36lp, File Server, depth {depth}"), speed, None, None));
    }
}

/// Many runs on two threads over the same on one, and whether they give the same bytes.
pub fn two_cores(report: &mut Report) {
    const RUNS: u64 = 64;
    // Many and short: two threads need a moment in which both cores are free.
    const SHORT_ROUNDS: usize = 31;
    const NAME: &str = "two cores over one, 64 runs of depth 16";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return report.miss(NAME, Missing::Lacking("one core".to_owned()));
    }
    let requests = report.size().count(10_000);
    let drive = deep_drive("cheetah-x15-36lp");
    let specs: Vec<RunSpec> = (0..RUNS).map(|seed| RunSpec { seed, ..random_reads(&drive, 16, requests) }).collect();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    let (one, two) = (pool(1), pool(2));
    let on = |pool: &rayon::ThreadPool| {
        round(
            RUNS * requests,
            || pool.install(|| run_all(&specs, &|_, _| true)),
            |results| {
                let json = results.into_iter().map(|result| result.expect("valid").to_json().expect("finite"));
                content_hash(json.collect::<Vec<String>>().join("\n").as_bytes())
            },
        )
    };
    let [one, two] = interleaved(report.size().rounds(SHORT_ROUNDS), [&mut || on(&one), &mut || on(&two)]);
    assert_eq!(one.answer, two.answer, "the number of threads changed the results");
    report.add(rate("64 runs of depth 16 on one thread".to_owned(), one.clone(), None, None));
    report.add(rate("64 runs of depth 16 on two threads, the same bytes".to_owned(), two.clone(), None, None));
    // The best rounds: whatever else runs takes from two threads more than from one.
    report.add(Figure {
        name: format!("{NAME} (best rounds)"),
        value: two.best_per_s / one.best_per_s,
        best: None,
        unit: "times",
        peer: None,
        bar: Some(Bar::AtLeast(1.9)),
        answer: Some(two.answer),
    });
}

/// The parts that every request goes through.
pub fn parts(report: &mut Report) {
    let size = report.size();
    let operations = size.count(5_000_000);
    let mut add = |name: &str, unit: &'static str, work: &mut dyn FnMut() -> u64| {
        let [speed] = interleaved(
            size.rounds(ROUNDS),
            [&mut || round(operations, &mut *work, |sum| content_hash(&sum.to_le_bytes()))],
        );
        report.add(Figure {
            name: name.to_owned(),
            value: 1e9 / speed.median_per_s,
            best: Some(1e9 / speed.best_per_s),
            unit,
            peer: None,
            bar: None,
            answer: Some(speed.answer),
        });
    };
    let span = Span { start_bytes: 0, length_bytes: 36 << 30 };
    for id in ["random-read-4k", "file-server", "sequential-read-64k"] {
        let workload = catalogue_workload(id);
        add(&format!("generator, {id}"), "ns/request", &mut || {
            let mut generator = Generator::new(&workload, span, BLOCK_BYTES, 1).expect("the catalogue is valid");
            (0..operations).fold(0u64, |sum, _| sum.wrapping_add(generator.next().offset_bytes))
        });
    }
    add("arrival clock, Poisson", "ns/arrival", &mut || {
        let mut clock = ArrivalClock::new(10_000.0, ArrivalProcess::Poisson, 1).expect("the rate is valid");
        (0..operations).fold(0u64, |sum, _| sum.wrapping_add(clock.next_ns()))
    });
    let latencies_ns = spread_latencies_ns(size.count(1 << 16) as usize);
    add("histogram, one latency", "ns/record", &mut || {
        let mut histogram = LatencyHistogram::new();
        let repeats = operations.div_ceil(latencies_ns.len() as u64) as usize;
        let latencies_ns = std::iter::repeat_n(&latencies_ns, repeats).flatten();
        latencies_ns.take(operations as usize).for_each(|&ns| histogram.record(ns));
        histogram.sum_ns() as u64
    });
}

/// Response times of a simulated File Server, about 100 us to 100 ms, in an order that no branch predictor learns.
fn spread_latencies_ns(requests: usize) -> Vec<u64> {
    let drive = deep_drive("cheetah-x15-36lp");
    closed_responses_ns(&drive, recorded_file_server(&drive, requests)).expect("the requests lie on the drive")
}

/// A recorded trace of the kind that drives are validated with: the File Server's mix and a pause after each request.
fn recorded_file_server(drive: &DriveDescription, requests: usize) -> Vec<Recorded> {
    const THINK_NS: u64 = 20_000_000;
    let geometry = &drive.geometry;
    let block_bytes = geometry.logical_block_bytes;
    let span = Span { start_bytes: 0, length_bytes: geometry.logical_blocks * u64::from(block_bytes) };
    let workload = catalogue_workload("file-server");
    let mut generator = Generator::new(&workload, span, block_bytes, 1).expect("the catalogue is valid");
    let record = |arrival_ns| Recorded {
        arrival_ns,
        completion_ns: Some(arrival_ns),
        request: generator.next(),
        pre_flush: false,
    };
    (0..requests as u64).map(|number| number * THINK_NS).map(record).collect()
}

/// Does it `times` times, at least once, and keeps the last outcome.
fn repeated<R>(times: u64, work: impl Fn() -> R) -> R {
    (1..times).fold(black_box(work()), |_, _| black_box(work()))
}

fn replays(size: Size, drive: &DriveDescription, records: &[Recorded], times: u64) -> Speed {
    let times = size.count(times);
    let once = || closed_responses_ns(drive, records.iter().copied()).expect("the requests lie on the drive");
    let work = || repeated(times, once);
    let [speed] = interleaved(
        size.rounds(ROUNDS),
        [&mut || {
            round(times * records.len() as u64, work, |responses_ns| {
                let bytes: Vec<u8> = responses_ns.iter().flat_map(|ns| ns.to_le_bytes()).collect();
                content_hash(&bytes)
            })
        }],
    );
    speed
}

/// Reading descriptions and DiskSim's traces, and replaying them.
pub fn replayed(report: &mut Report) {
    let size = report.size();
    let drive = deep_drive("cheetah-9lp");
    let records = recorded_file_server(&drive, size.count(10_000) as usize);
    let speed = replays(size, &drive, &records, 50);
    report.add(rate("replay of a recorded File Server, cheetah-9lp".to_owned(), speed, None, None));
    let drives = size.count(disks().count() as u64);
    let resolve = || resolve_catalogue(drives as usize);
    let [speed] = interleaved(
        size.rounds(ROUNDS),
        [&mut || round(drives, resolve, |names| content_hash(names.join("\n").as_bytes()))],
    );
    report.add(milliseconds("completing one drive of the catalogue, mean of all", speed));
    validation(report);
}

fn resolve_catalogue(drives: usize) -> Vec<String> {
    let resolved = disks().take(drives).map(|entry| {
        let document = Document::parse(entry.file_name, entry.text).expect("the catalogue is valid");
        headstack_catalogue::resolve(&document).expect("the catalogue is valid").description.name
    });
    resolved.collect()
}

pub fn milliseconds(name: &str, speed: Speed) -> Figure {
    Figure {
        name: name.to_owned(),
        value: 1e3 / speed.median_per_s,
        best: Some(1e3 / speed.best_per_s),
        unit: "ms",
        peer: None,
        bar: None,
        answer: Some(speed.answer),
    }
}

/// DiskSim's validation of the Cheetah 9LP, which does not ship with the project.
fn validation(report: &mut Report) {
    let folder = shared().join("validation/disksim");
    let [parameters, trace] = ["cheetah9LP.parv", "cheetah9LP.trace"].map(|name| folder.join(name));
    let (import, reading, replaying) =
        ("import of cheetah9LP.parv", "reading of cheetah9LP.trace", "replay of cheetah9LP.trace");
    let text = match (std::fs::read_to_string(&trace), parameters.is_file()) {
        (Ok(text), true) => text,
        _ => {
            let reason = format!("no {} and .trace", parameters.display());
            return [import, reading, replaying]
                .into_iter()
                .for_each(|name| report.miss(name, Missing::Lacking(reason.clone())));
        }
    };
    let size = report.size();
    let [imports, readings] = [50, 50].map(|times| size.count(times));
    let import_drive =
        || headstack_disksim::import(&parameters).expect("the drive can be imported").drives.remove(0).description;
    let [speed] = interleaved(
        size.rounds(ROUNDS),
        [&mut || {
            round(
                imports,
                || repeated(imports, import_drive),
                |drive| content_hash(serde_json::to_string(&drive).expect("plain data").as_bytes()),
            )
        }],
    );
    report.add(milliseconds(import, speed));
    let drive = import_drive();
    let read = || {
        let input = Input::from_bytes("cheetah9LP.trace", text.clone().into_bytes());
        let reader = input.and_then(|input| TraceReader::from_inputs(vec![input], &ReadOptions::default()));
        reader.and_then(|mut reader| reader.read_all()).expect("the trace can be read")
    };
    let lines = text.lines().count() as u64;
    let [speed] = interleaved(
        size.rounds(ROUNDS),
        [&mut || {
            round(
                readings * lines,
                || repeated(readings, read),
                |records| content_hash(format!("{records:?}").as_bytes()),
            )
        }],
    );
    report.add(Figure { unit: "lines/s", ..rate(reading.to_owned(), speed, None, None) });
    let records: Vec<Recorded> = read().iter().filter_map(Record::recorded).collect();
    let peer = Peer { name: DISKSIM.to_owned(), value: DISKSIM_REPLAY_PER_S };
    report.add(rate(replaying.to_owned(), replays(size, &drive, &records, 50), Some(peer), None));
}
