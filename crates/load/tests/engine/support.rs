//! Jobs and runs for tests, and the checks that must hold for every run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use headstack_jobfiles::{Bounds, Content, Errors, Limits, Sync, Verify};
use headstack_load::{EngineKind, Job, Permission, Spec, Target, Time, run};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::{ArrivalClock, Arrivals, Generator, Request, Span, Workload};
use serde_json::{Value, json};

pub const KIB: u32 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const MS: u64 = 1_000_000;

/// Returns a workload of one line without warm-up, with `changes` applied to its JSON form.
pub fn workload(size_bytes: u32, read_percent: f64, changes: &Value) -> Workload {
    let mut form = json!({
        "name": "test",
        "warm_up": {},
        "lines": [{"size": size_bytes, "read_percent": read_percent, "random_percent": 100, "align": size_bytes}],
    });
    merge(&mut form, changes);
    serde_json::from_value(form).unwrap()
}

fn merge(form: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().unwrap() {
        if key == "line" {
            merge(&mut form["lines"][0], value);
        } else {
            form[key] = value.clone();
        }
    }
}

pub fn closed(queue_depth: u32) -> Value {
    json!({"arrivals": {"closed": {"queue_depth": queue_depth}}})
}

pub fn open(rate_per_s: f64, process: &str) -> Value {
    json!({"arrivals": {"open": {"rate_per_s": rate_per_s, "process": process}}})
}

pub fn requests(count: u64) -> Limits {
    Limits { requests: Some(count), ..Limits::default() }
}

pub fn time(ns: u64) -> Limits {
    Limits { time_ns: Some(ns), ..Limits::default() }
}

pub fn job(targets: &[Arc<Target>], engine: EngineKind, workload: Workload, limits: Limits) -> Job {
    let targets = targets.to_vec();
    Job {
        name: "job".into(),
        targets,
        span: None,
        workload,
        limits,
        engine,
        slots: 64,
        start_delay_ns: 0,
        seed: 7,
        verify: Verify::No,
        invalidates_every_bytes: None,
        target_bytes_max: u64::MAX,
        rates_per_s: None,
        flow: None,
        errors: Errors::default(),
        content: Content::default(),
        bounds: Bounds::default(),
        flushes_at_end: false,
        times_handing_over: false,
        zones: None,
    }
}

/// Returns a job on the null target in wall-clock time.
pub fn null_job(service_ns: u64, workload: Workload, limits: Limits) -> Job {
    null_job_in(Time::Wall, service_ns, workload, limits)
}

/// Returns a job on the null target in virtual time, in which all times are exact.
pub fn virtual_job(service_ns: u64, workload: Workload, limits: Limits) -> Job {
    null_job_in(Time::Virtual { late_ns: 0 }, service_ns, workload, limits)
}

pub fn null_job_in(time: Time, service_ns: u64, workload: Workload, limits: Limits) -> Job {
    job(&[Arc::new(Target::null_in(time, 1 << 30))], EngineKind::Null { service_ns }, workload, limits)
}

/// Returns the arrival times of an open loop, since its start, in ns.
pub fn arrivals(job: &Job) -> impl Iterator<Item = u64> {
    let Arrivals::Open { rate_per_s, process } = job.workload.arrivals else { panic!("a closed loop") };
    let mut clock = ArrivalClock::new(rate_per_s, process, job.seed).unwrap();
    std::iter::repeat_with(move || clock.next_ns())
}

/// Returns arrival and completion of each request at a single server with a fixed service time (Lindley's recursion).
pub fn at_one_server(job: &Job, service_ns: u64) -> impl Iterator<Item = (u64, u64)> {
    arrivals(job).scan(0, move |free_ns, at_ns| {
        *free_ns = at_ns.max(*free_ns) + service_ns;
        Some((at_ns, *free_ns))
    })
}

pub fn spec(jobs: Vec<Job>) -> Spec {
    let system = SystemRecord::new("", "", Value::Null);
    Spec {
        system,
        workload: Value::Null,
        jobs,
        seed: 7,
        interval_ns: None,
        ends_with_first: false,
        tells_streams: false,
        verification: None,
    }
}

/// Measures a run that ends by itself.
pub fn measure(jobs: Vec<Job>) -> RunResult {
    let result = run(&spec(jobs), &mut |_| true).unwrap();
    assert_sound(&result);
    result
}

/// Checks what must hold for every run: its own checks, and sums that agree with each other.
#[track_caller]
pub fn assert_sound(result: &RunResult) {
    let failed: Vec<_> = result.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let names: Vec<_> = result.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["requests in = requests out", "Little's law"]);
    for (name, kind) in result.kinds.all() {
        assert_eq!(kind.latency.count(), kind.count, "{name}");
        assert_eq!(kind.service.count(), kind.count, "{name}");
        assert!(kind.service.mean_ns() <= kind.latency.mean_ns(), "{name}");
    }
    let counted_ns: u64 = result.depth.time_at_depth_ns.iter().sum();
    assert!(result.depth.time_at_depth_ns.is_empty() || counted_ns == result.duration_ns);
}

pub fn count(result: &RunResult) -> u64 {
    result.kinds.all().iter().map(|(_, kind)| kind.count).sum()
}

pub fn bytes(result: &RunResult) -> u64 {
    result.kinds.all().iter().map(|(_, kind)| kind.bytes).sum()
}

pub fn errors(result: &RunResult) -> u64 {
    result.kinds.all().iter().map(|(_, kind)| kind.errors).sum()
}

pub fn counter(result: &RunResult, name: &str) -> u64 {
    result.counters.iter().find(|counter| counter.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

/// Returns the requests that a simulation would also issue.
pub fn generated(job: &Job, count: u64) -> Vec<Request> {
    let length_bytes = job.targets.iter().map(|target| target.capacity_bytes()).sum();
    let block_bytes = job.targets.iter().map(|target| target.block_bytes()).max().unwrap().max(512);
    let span = job.span.unwrap_or(Span { start_bytes: 0, length_bytes });
    let mut generator = Generator::new(&job.workload, span, block_bytes, job.seed).unwrap();
    (0..count).map(|_| generator.next()).collect()
}

/// A test's file, removed on drop.
pub struct TestFile(pub PathBuf);

impl TestFile {
    /// Creates a file of `bytes`, all holes, in the temporary directory.
    pub fn holes(bytes: u64) -> TestFile {
        TestFile::holes_in(&std::env::temp_dir(), bytes)
    }

    pub fn holes_in(directory: &std::path::Path, bytes: u64) -> TestFile {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("headstack-engine-{}-{number}", std::process::id()));
        File::create_new(&path).unwrap().set_len(bytes).unwrap();
        TestFile(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub fn open(&self, direct: bool) -> Arc<Target> {
        let permission = Permission { write: true, overwrite: true, ..Permission::default() };
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match Target::open(self.path(), direct, Sync::No, &permission, &|_| true) {
                // A program that another test starts holds, until it runs, all files that this process had open,
                // including this file as it was created.
                Err(error) if error.to_string().contains("is in use") && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return Arc::new(opened.unwrap()),
            }
        }
    }

    /// Returns the contents of the file.
    pub fn contents(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }

    pub fn fill(&self, byte: u8) {
        let file = File::options().write(true).open(&self.0).unwrap();
        file.write_all_at(&vec![byte; file.metadata().unwrap().len() as usize], 0).unwrap();
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let removed = std::fs::remove_file(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}
