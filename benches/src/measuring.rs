//! What measuring costs, beside fio in alternating runs: processor time, requests a second, percentiles.
//!
//! Each run is a process of its own, whose processor time is that of the whole process without what the same process
//! takes for one request, for fio as for headstack.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use headstack_jobfiles::{Bounds, Content, Errors, Limits, Sync, Verify};
use headstack_load::{EngineKind, Job, Permission, Spec, Target, run};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::{ArrivalProcess, Arrivals, Think, WarmUp, Workload};
use serde_json::{Value, json};

use crate::report::{Bar, Figure, Missing, Peer, Report};
use crate::size::Size;

/// The argument, followed by `null` or a file, a depth and a number of requests, that makes this program the child.
pub const CHILD: &str = "--measure";
/// Size of the file that is read.
const FILE_BYTES: u64 = 4 << 30;
const FILE_UNIT: u64 = 1 << 20;
/// Of the target that stores nothing.
const NULL_BYTES: u64 = 1 << 40;
const NULL: &str = "null";
/// Runs of each subject after one that warms up, in turn.
const PAIRS: usize = 9;
/// What `/proc/PID/stat` counts processor time in (`proc_pid_stat(5)`).
const TICKS_PER_S: f64 = 100.0;
const US_PER_IO: &str = "us/IO";

/// One process that measures.
struct Subject<'a> {
    command: Box<dyn Fn(u64) -> Command + 'a>,
    read: fn(&str) -> Option<Told>,
}

/// What a process says of its run.
#[derive(Clone, Copy)]
struct Told {
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

/// What a run gave.
#[derive(Clone, Copy)]
struct Measured {
    cpu_us: f64,
    told: Told,
}

impl Subject<'_> {
    /// Runs the process for so many requests: seconds of processor time, and what it says.
    fn carry_out(&self, requests: u64) -> Result<(f64, Told), String> {
        let mut command = (self.command)(requests);
        let before_s = children_cpu_s();
        let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let cpu_s = children_cpu_s() - before_s;
        let text = String::from_utf8_lossy(&output.stdout);
        let told = (self.read)(&text).filter(|_| output.status.success());
        let complaint = || format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        Ok((cpu_s, told.ok_or_else(complaint)?))
    }
}

/// Processor time of all children that have ended, in seconds.
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold spaces; user and system time of children are fields 16 and 17.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_S
}

/// Measures as [`CHILD`] says and prints what the parent reads.
pub fn child(target: &str, depth: u32, requests: u64) {
    let (target, engine) = match target {
        NULL => (Target::null(NULL_BYTES), EngineKind::Null { service_ns: 0 }),
        path => (open(path, &Permission::default()), EngineKind::Ring),
    };
    let arrivals = Arrivals::Closed { queue_depth: depth, think: Think::None };
    let result = measure(target, engine, arrivals, Limits { requests: Some(requests), ..Limits::default() });
    assert!(result.ended_early.is_none() && result.checks.iter().all(|check| check.passed), "{:?}", result.notes);
    let response = &result.kinds.read.latency;
    let quantile_us = |q| response.quantile_ns(q).unwrap_or(0) as f64 / 1e3;
    let per_s = response.count() as f64 / (result.duration_ns as f64 / 1e9);
    println!("{per_s} {} {}", quantile_us(0.5), quantile_us(0.99));
}

fn open(path: &str, permission: &Permission) -> Target {
    Target::open(path, true, Sync::No, permission, &|_| true).unwrap_or_else(|error| panic!("{error}"))
}

fn measure(target: Target, engine: EngineKind, arrivals: Arrivals, limits: Limits) -> RunResult {
    let line = json!({"size": 4096, "read_percent": 100, "random_percent": 100, "align": 4096});
    let workload: Workload = serde_json::from_value(json!({"name": "reads", "lines": [line]})).expect("it is valid");
    let workload = Workload { arrivals, warm_up: WarmUp { requests: 0, time_ns: 0 }, ..workload };
    let job = Job {
        name: "reads".to_owned(),
        targets: vec![Arc::new(target)],
        span: None,
        workload,
        limits,
        engine,
        slots: 1,
        start_delay_ns: 0,
        seed: 1,
        invalidates_every_bytes: None,
        target_bytes_max: u64::MAX,
        rates_per_s: None,
        flow: None,
        errors: Errors::default(),
        content: Content::default(),
        bounds: Bounds::default(),
        flushes_at_end: false,
        times_handing_over: false,
        verify: Verify::No,
        zones: None,
    };
    let system = SystemRecord::new("", "", Value::Null);
    let spec = Spec {
        system,
        workload: Value::Null,
        jobs: vec![job],
        seed: 1,
        interval_ns: None,
        ends_with_first: false,
        tells_streams: false,
        verification: None,
    };
    run(&spec, &mut |_| true).unwrap_or_else(|error| panic!("{error}"))
}

fn read_child(text: &str) -> Option<Told> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Told { per_s: next()?, p50_us: next()?, p99_us: next()? })
}

fn headstack(target: &Path, depth: u32) -> Subject<'_> {
    let command = move |requests: u64| {
        let mut command = Command::new(std::env::current_exe().expect("a process knows its program"));
        command.arg(CHILD).arg(target).args([depth.to_string(), requests.to_string()]);
        command
    };
    Subject { command: Box::new(command), read: read_child }
}

fn fio<'a>(target: &'a Path, depth: u32, more: &'static [&str]) -> Subject<'a> {
    let command = move |requests: u64| {
        let mut command = Command::new("fio");
        command.args(["--name=reads", "--rw=randread", "--bs=4k", "--output-format=json"]);
        // Latency from before the submission, as ours.
        command.args(["--lat_percentiles=1", "--clat_percentiles=0"]);
        command.arg(format!("--iodepth={depth}")).arg(format!("--number_ios={requests}"));
        if target == Path::new(NULL) {
            // A pass over the file is no end: it ends by the number of requests.
            command.args(["--ioengine=null", "--size=4g"]).arg(format!("--io_size={NULL_BYTES}"));
        } else {
            // Places may come twice, as ours.
            command.args(["--ioengine=io_uring", "--direct=1", "--readonly", "--norandommap"]);
            command.arg(format!("--io_size={}", requests * 4096)).arg(format!("--filename={}", target.display()));
        }
        command.args(more);
        command
    };
    Subject { command: Box::new(command), read: read_fio }
}

fn read_fio(text: &str) -> Option<Told> {
    // Warnings stand before the JSON.
    let json: Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let read = json.pointer("/jobs/0/read")?;
    let us = |percentile: &str| Some(read.pointer(&format!("/lat_ns/percentile/{percentile}"))?.as_f64()? / 1e3);
    Some(Told { per_s: read["iops"].as_f64()?, p50_us: us("50.000000")?, p99_us: us("99.000000")? })
}

/// Registered files and buffers, and batches as large as help it.
const BEST: &[&str] = &[
    "--registerfiles",
    "--fixedbufs",
    "--iodepth_batch_submit=8",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=8",
];

/// Names what fio needs to run this engine and this machine does not have.
pub fn fio_lacks(engine: &str) -> Option<String> {
    match Command::new("fio").arg(format!("--enghelp={engine}")).output() {
        Err(_) => Some("fio is not installed".to_owned()),
        Ok(output) if !output.status.success() => Some(format!("fio has no engine {engine}")),
        Ok(_) => None,
    }
}

/// The subjects in turn, each so often after one round that warms up.
fn alternating<const N: usize>(
    size: Size,
    requests: u64,
    subjects: [&Subject; N],
) -> Result<[Vec<Measured>; N], Missing> {
    if let Some(lacks) = fio_lacks("io_uring") {
        return Err(Missing::Lacking(lacks));
    }
    let requests = size.count(requests);
    let starts = size.rounds(3);
    let mut starts_s = [0.0; N];
    for (subject, start_s) in subjects.iter().zip(&mut starts_s) {
        let runs = (0..starts).map(|_| subject.carry_out(1).map(|run| run.0)).collect::<Result<Vec<_>, _>>();
        let mut runs = runs.map_err(Missing::Broken)?;
        runs.sort_by(f64::total_cmp);
        *start_s = runs[starts / 2];
    }
    let mut rounds: [Vec<Measured>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..=size.rounds(PAIRS) {
        for ((subject, start_s), rounds) in subjects.iter().zip(starts_s).zip(&mut rounds) {
            let (cpu_s, told) = subject.carry_out(requests).map_err(Missing::Broken)?;
            rounds.push(Measured { cpu_us: (cpu_s - start_s) * 1e6 / requests as f64, told });
        }
    }
    for rounds in &mut rounds {
        rounds.remove(0);
    }
    println!("    processor time before the first request, taken off: {starts_s:.2?} s");
    Ok(rounds)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Half the distance of the extreme rounds, in percent of the median: what a difference must exceed to mean anything.
fn noise_percent(rounds: &[Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for value in rounds.iter().map(&value) {
        (least, most) = (least.min(value), most.max(value));
    }
    (most - least) / 2.0 / median(rounds.iter().map(&value)) * 100.0
}

/// A figure of ours against fio's, both the median of the rounds.
fn compare(report: &mut Report, name: String, unit: &'static str, peer: &str, pair: Pair, factor: Option<f64>) {
    let (ours, theirs) = pair;
    let value = median(theirs.iter().copied());
    report.add(Figure {
        name,
        value: median(ours.iter().copied()),
        best: ours.iter().copied().reduce(if unit == "IOPS" { f64::max } else { f64::min }),
        unit,
        peer: Some(Peer { name: format!("{peer}, measured"), value }),
        bar: factor.map(|factor| Bar::AtMost(factor * value)),
        answer: None,
    });
}

/// Values of our rounds, and of fio's beside them.
type Pair = (Vec<f64>, Vec<f64>);

fn pair(ours: &[Measured], theirs: &[Measured], value: impl Fn(&Measured) -> f64) -> Pair {
    (ours.iter().map(&value).collect(), theirs.iter().map(&value).collect())
}

/// What a request costs on a target that stores nothing.
pub fn null_target(report: &mut Report) {
    for (depth, requests) in [(1, 10_000_000), (32, 10_000_000)] {
        let name = format!("measuring, null target, depth {depth}");
        let null = Path::new(NULL);
        let subjects = [&headstack(null, depth), &fio(null, depth, &[]), &fio(null, depth, &["--norandommap"])];
        match alternating(report.size(), requests, subjects) {
            Err(missing) => report.miss(&name, missing),
            Ok([ours, default, mapless]) => {
                let cpu = |theirs: &[Measured]| pair(&ours, theirs, |run| run.cpu_us);
                compare(report, name.clone(), US_PER_IO, "fio's null engine", cpu(&default), Some(0.4));
                compare(report, name, US_PER_IO, "fio without its random map", cpu(&mapless), None);
            }
        }
    }
}

/// Random reads of 4 KiB past the page cache, from a file of incompressible data that is removed afterwards.
pub fn random_reads(report: &mut Report) {
    let path = std::env::temp_dir().join(format!("headstack-speed-{}", std::process::id()));
    let file = Removed(path);
    let permission = Permission {
        write: true,
        create_bytes: Some(report.size().count(FILE_BYTES).next_multiple_of(FILE_UNIT)),
        ..Permission::default()
    };
    let created = Target::open(&file.0.to_string_lossy(), true, Sync::No, &permission, &|_| true);
    if let Err(error) = created.map(drop) {
        return report.miss("measuring, random 4 KiB reads", Missing::Broken(error.to_string()));
    }
    for (depth, requests, default_factor, best_factor) in
        [(1, 60_000, 0.95, 0.95), (32, 400_000, 0.75, 0.95), (64, 400_000, 0.75, 0.95)]
    {
        let name = format!("measuring, random 4 KiB reads, depth {depth}");
        let subjects = [&headstack(&file.0, depth), &fio(&file.0, depth, &[]), &fio(&file.0, depth, BEST)];
        match alternating(report.size(), requests, subjects) {
            Err(missing) => report.miss(&name, missing),
            Ok([ours, default, best]) => {
                against(report, &name, &ours, &default, "fio io_uring", default_factor);
                against(report, &name, &ours, &best, "fio at its best", best_factor);
            }
        }
    }
}

fn against(report: &mut Report, name: &str, ours: &[Measured], theirs: &[Measured], peer: &str, cpu_factor: f64) {
    let cpu = pair(ours, theirs, |run| run.cpu_us);
    compare(report, format!("{name}, CPU"), US_PER_IO, peer, cpu, Some(cpu_factor));
    let per_s = pair(ours, theirs, |run| run.told.per_s);
    let ratio = median(per_s.0.iter().zip(&per_s.1).map(|(ours, theirs)| ours / theirs));
    compare(report, name.to_owned(), "IOPS", peer, per_s, None);
    report.add(Figure {
        name: format!("{name}, IOPS over {peer}"),
        value: ratio,
        best: None,
        unit: "times",
        peer: None,
        bar: Some(Bar::AtLeast(1.0)),
        answer: None,
    });
    for (percentile, value) in [("p50", p50_us as fn(&Measured) -> f64), ("p99", p99_us)] {
        let noise = noise_percent(theirs, value).max(noise_percent(ours, value));
        let name = format!("{name}, {percentile} (noise {noise:.0} %)");
        compare(report, name, "us", peer, pair(ours, theirs, value), Some(1.0 + noise / 100.0));
    }
}

fn p50_us(run: &Measured) -> f64 {
    run.told.p50_us
}

fn p99_us(run: &Measured) -> f64 {
    run.told.p99_us
}

/// 1,000 arrivals a second at a target that serves 500: fio tells of 2.5 ms.
pub fn overload(report: &mut Report) {
    let arrivals = Arrivals::Open { rate_per_s: 1_000.0, process: ArrivalProcess::Poisson };
    let length = report.size().time(Duration::from_secs(5));
    let limits = Limits { time_ns: Some(length.as_nanos() as u64), ..Limits::default() };
    let result = measure(Target::null(NULL_BYTES), EngineKind::Null { service_ns: 2_000_000 }, arrivals, limits);
    assert!(result.saturated, "the run does not report that it is saturated");
    let read = &result.kinds.read;
    let what = "1,000 arrivals/s for 5 s, 2 ms, one slot";
    let mut add = |name: &str, value, unit, bar| {
        let name = format!("{what}, {name}");
        report.add(Figure { name, value, best: None, unit, peer: None, bar, answer: None });
    };
    add("mean response", read.latency.mean_ns() / 1e9, "s", Some(Bar::AtLeast(1.0)));
    add("mean service", read.service.mean_ns() / 1e6, "ms", Some(Bar::AtMost(2.2)));
    add("backlog", result.backlog as f64, "requests", Some(Bar::AtLeast(2_200.0)));
}

/// A file that is removed in the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("speed: {}: {error}", self.0.display());
        }
    }
}
