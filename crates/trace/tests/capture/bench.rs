//! Devices and loads of the tests' own making, and what must be as it was before.

use headstack_needs::{Need, lacks};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headstack_trace::capture::{Capture, CaptureOptions, Method, Progress};
use headstack_trace::{Meta, Operation, Record, Stage};

pub const TRACEFS: &str = "/sys/kernel/tracing";
pub const DEVICE_BYTES: u64 = 256 << 20;

/// A loop device on a sparse file, and the right to the kernel's one tracer among tests.
pub struct Bench {
    pub device: String,
    file: PathBuf,
    pub before: Vec<(String, String)>,
    _lock: File,
}

impl Bench {
    /// None where this machine has not what it takes, or the program `needed` is not there.
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
        // In memory where there is such a place: syncs to a disk that others use take most of the time.
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
        // The kernel widens its buffer at its first use, and never narrows it again.
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

    /// What fio is to do to the device, as a child.
    pub fn fio(&self, arguments: &[&str]) -> Child {
        fio(&self.device, arguments)
    }

    /// The kernel's counters of completed reads and writes.
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
        // A partition that was added would outlive the file.
        if Path::new(&format!("{}p1", self.device)).exists() {
            let _ = Command::new("delpart").args([&self.device, "1"]).status();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        let _ = fs::remove_file(&self.file);
    }
}

/// What fio is to do to a device, as a child.
pub fn fio(device: &str, arguments: &[&str]) -> Child {
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--direct=1", "--ioengine=libaio", "--output-format=json", "--randseed=7"]);
    fio.arg(format!("--filename={device}")).args(arguments);
    fio.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// Reads 250 blocks of 4 KiB from there on, past the page cache: sooner done than fio has begun.
pub fn read_blocks(device: &str, offset_bytes: u64) -> Child {
    let skip = format!("skip={}", offset_bytes / 4096);
    let file = format!("if={device}");
    let mut dd = Command::new("dd");
    dd.args([&file, "of=/dev/null", "bs=4096", "count=250", "iflag=direct", "status=none", &skip]);
    dd.spawn().unwrap()
}

/// A load that ends with its owner.
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

/// Everything that a capture may change, as the kernel says it.
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

/// All that is left of a capture, and how far it came.
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

/// Records while fio runs; all requests, the progress at the end and fio's report.
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

/// Number and bytes of the requests of a kind.
pub fn totals(records: &[Record], operation: Operation) -> (u64, u64) {
    let of_kind = || records.iter().filter(|record| record.operation == operation);
    (of_kind().count() as u64, of_kind().map(|record| u64::from(record.length_bytes)).sum())
}

/// The same as fio counted it.
pub fn fio_totals(report: &serde_json::Value, kind: &str) -> (u64, u64) {
    let side = &report["jobs"][0][kind];
    (side["total_ios"].as_u64().unwrap(), side["io_bytes"].as_u64().unwrap())
}

pub fn count(meta: &Meta, what: &str) -> u64 {
    meta.counts.get(what).copied().unwrap_or(0)
}

/// A random mix at depth 32.
pub const MIX: [&str; 4] = ["--rw=randrw", "--rwmixread=70", "--bssplit=4k/60:8k/20:64k/20", "--iodepth=32"];

/// The same until it is stopped.
pub const ENDLESS: [&str; 7] = [MIX[0], MIX[1], MIX[2], MIX[3], "--time_based", "--runtime=60", "--thread"];

pub const BOTH_STAGES: [Stage; 2] = [Stage::Queue, Stage::Issue];

/// A device in memory, which goes with its owner.
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

/// The time of day.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
