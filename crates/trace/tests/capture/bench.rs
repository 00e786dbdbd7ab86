//! Devices and loads for the tests of capture, and checks that the kernel's state is restored.

use headstack_needs::{Need, lacks};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headstack_trace::capture::{Capture, CaptureOptions, Method, Progress};
use headstack_trace::{Meta, Operation, Record, Stage};

pub const TRACEFS: &str = "/sys/kernel/tracing";
pub const DEVICE_BYTES: u64 = 256 << 20;

/// A loop device on a sparse file, with exclusive access among tests to the kernel's only tracer.
pub struct Bench {
    pub device: String,
    file: PathBuf,
    pub before: Vec<(String, String)>,
    _lock: File,
}

impl Bench {
    /// Creates a device; returns `None` if this machine lacks the requirements or the program `needed`.
    pub fn new(needed: &str) -> Option<Bench> {
        if fs::metadata(format!("{TRACEFS}/trace_pipe")).is_err() {
            lacks(Need::Kernel, "root and tracefs are missing");
            return None;
        }
        for program in ["losetup", needed] {
            if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
                lacks(Need::Programs, format_args!("{program} is missing"));
                return None;
            }
        }
        let lock = File::create("/run/headstack-capture-tests.lock").unwrap();
        lock.lock().unwrap();
        // In memory if possible, because syncs to a disk in use take most of the time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let file = folder.join(format!("headstack-capture-{}", std::process::id()));
        let sparse = File::create(&file).unwrap();
        sparse.set_len(DEVICE_BYTES).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(&file).output().unwrap();
        if !made.status.success() {
            let _ = fs::remove_file(&file);
            lacks(Need::Loop, format_args!("no loop device: {}", String::from_utf8_lossy(&made.stderr).trim()));
            return None;
        }
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        // The kernel enlarges its buffer on first use and never shrinks it again.
        let size = format!("{TRACEFS}/buffer_size_kb");
        let text = fs::read_to_string(&size).unwrap();
        if let Some((_, expanded)) = text.trim().trim_end_matches(')').split_once("expanded: ") {
            fs::write(&size, expanded).unwrap();
        }
        let before = state(&device);
        Some(Bench { device, file, before, _lock: lock })
    }

    pub fn options(&self, method: Method, stage: Stage) -> CaptureOptions {
        CaptureOptions { method: Some(method), stage, ..CaptureOptions::new(&self.device) }
    }

    /// Starts fio on the device as a child process.
    pub fn fio(&self, arguments: &[&str]) -> Child {
        fio(&self.device, arguments)
    }

    /// Returns the kernel's counters of completed reads and writes.
    pub fn completed(&self) -> [u64; 2] {
        let stat = fs::read_to_string(format!("/sys/class/block/{}/stat", name(&self.device))).unwrap();
        let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        [fields[0], fields[4]]
    }

    pub fn assert_set_back(&self) {
        assert_eq!(state(&self.device), self.before);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // An added partition would outlive the file.
        if Path::new(&format!("{}p1", self.device)).exists() {
            let _ = Command::new("delpart").args([&self.device, "1"]).status();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        let _ = fs::remove_file(&self.file);
    }
}

/// Starts fio on a device as a child process.
pub fn fio(device: &str, arguments: &[&str]) -> Child {
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--direct=1", "--ioengine=libaio", "--output-format=json", "--randseed=7"]);
    fio.arg(format!("--filename={device}")).args(arguments);
    fio.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// Reads 250 blocks of 4 KiB from `offset_bytes` on, bypassing the page cache; faster than starting fio.
pub fn read_blocks(device: &str, offset_bytes: u64) -> Child {
    let skip = format!("skip={}", offset_bytes / 4096);
    let file = format!("if={device}");
    let mut dd = Command::new("dd");
    dd.args([&file, "of=/dev/null", "bs=4096", "count=250", "iflag=direct", "status=none", &skip]);
    dd.spawn().unwrap()
}

/// A load that ends when dropped.
pub struct Load(pub Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn name(device: &str) -> &str {
    device.rsplit('/').next().unwrap()
}

/// Returns all kernel settings that a capture may change.
pub fn state(device: &str) -> Vec<(String, String)> {
    let mut files: Vec<String> = [
        "buffer_size_kb",
        "trace_clock",
        "options/bin",
        "options/context-info",
        "saved_cmdlines_size",
        "current_tracer",
        "tracing_on",
        "events/enable",
    ]
    .iter()
    .map(|file| format!("{TRACEFS}/{file}"))
    .collect();
    files.push(format!("/sys/class/block/{}/trace/enable", name(device)));
    files.push(format!("/sys/class/block/{}/trace/act_mask", name(device)));
    let mut state: Vec<(String, String)> =
        files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect();
    for entry in fs::read_dir(format!("{TRACEFS}/instances")).unwrap() {
        state.push(("instance".to_owned(), entry.unwrap().file_name().to_string_lossy().into_owned()));
    }
    state.push(("claimed".to_owned(), Path::new("/run/headstack-capture").exists().to_string()));
    state
}

/// Reads the rest of a capture, and returns the progress at its end.
pub fn drain(capture: &mut Capture, records: &mut Vec<Record>) -> Progress {
    let mut batch = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let progress = capture.poll(&mut batch).unwrap();
        records.append(&mut batch);
        if progress.is_over {
            assert_eq!(progress.requests, records.len() as u64);
            assert!(records.is_sorted_by_key(|record| record.arrival_ns));
            return progress;
        }
        assert!(Instant::now() < deadline, "the capture does not end: {progress:?}");
    }
}

/// Records while fio runs; returns all requests, the final progress and fio's report.
pub fn record(capture: &mut Capture, mut fio: Child) -> (Vec<Record>, Progress, serde_json::Value) {
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    while fio.try_wait().unwrap().is_none() {
        capture.poll(&mut batch).unwrap();
        records.append(&mut batch);
    }
    capture.stop().unwrap();
    let progress = drain(capture, &mut records);
    let output = fio.wait_with_output().unwrap();
    assert!(output.status.success(), "fio failed");
    (records, progress, serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns the number and bytes of the requests of one operation.
pub fn totals(records: &[Record], operation: Operation) -> (u64, u64) {
    let of_kind = || records.iter().filter(|record| record.operation == operation);
    (of_kind().count() as u64, of_kind().map(|record| u64::from(record.length_bytes)).sum())
}

/// Returns the number and bytes of requests as counted by fio.
pub fn fio_totals(report: &serde_json::Value, kind: &str) -> (u64, u64) {
    let side = &report["jobs"][0][kind];
    (side["total_ios"].as_u64().unwrap(), side["io_bytes"].as_u64().unwrap())
}

pub fn count(meta: &Meta, what: &str) -> u64 {
    meta.counts.get(what).copied().unwrap_or(0)
}

/// Options for a random mix at queue depth 32.
pub const MIX: [&str; 4] = ["--rw=randrw", "--rwmixread=70", "--bssplit=4k/60:8k/20:64k/20", "--iodepth=32"];

/// Options for the same mix, running until stopped.
pub const ENDLESS: [&str; 7] = [MIX[0], MIX[1], MIX[2], MIX[3], "--time_based", "--runtime=60", "--thread"];

pub const BOTH_STAGES: [Stage; 2] = [Stage::Queue, Stage::Issue];

/// A device in memory, removed on drop.
pub struct Zram(pub String);

impl Zram {
    pub const CONTROL: &str = "/sys/class/zram-control";

    pub fn add() -> Option<Zram> {
        let number = fs::read_to_string(format!("{}/hot_add", Zram::CONTROL)).ok()?;
        Some(Zram(number.trim().to_owned()))
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = fs::write(format!("{}/hot_remove", Zram::CONTROL), &self.0);
    }
}

/// Returns the time of day in ns since 1970.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
