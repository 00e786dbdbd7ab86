//! Live capture against loop devices of the tests' own making. Needs root, tracefs, `losetup` and for most of it fio; what
//! is missing is said.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use headstack_trace::capture::{Capture, CaptureOptions, Method, Progress};
use headstack_trace::{Meta, NOT_RECORDED, Operation, Record, Stage};

const TRACEFS: &str = "/sys/kernel/tracing";
const DEVICE_BYTES: u64 = 256 << 20;

/// A loop device on a sparse file, and the right to the kernel's one tracer among tests.
struct Bench {
    device: String,
    file: PathBuf,
    before: Vec<(String, String)>,
    _lock: File,
}

impl Bench {
    /// None where this machine has not what it takes, or the program `needed` is not there.
    fn new(needed: &str, head: &[u8]) -> Option<Bench> {
        let skipped = |why: &str| println!("skipped: {why}");
        if fs::metadata(format!("{TRACEFS}/trace_pipe")).is_err() {
            skipped("root and tracefs are missing");
            return None;
        }
        for program in ["losetup", needed] {
            if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
                skipped(&format!("{program} is missing"));
                return None;
            }
        }
        let lock = File::create("/run/headstack-capture-tests.lock").unwrap();
        lock.lock().unwrap();
        let file = std::env::temp_dir().join(format!("headstack-capture-{}", std::process::id()));
        let sparse = File::create(&file).unwrap();
        sparse.set_len(DEVICE_BYTES).unwrap();
        sparse.write_all_at(head, 0).unwrap();
        let made = Command::new("losetup").args(["-P", "-f", "--show"]).arg(&file).output().unwrap();
        if !made.status.success() {
            let _ = fs::remove_file(&file);
            skipped(&format!("no loop device: {}", String::from_utf8_lossy(&made.stderr).trim()));
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

    fn options(&self, method: Method, stage: Stage) -> CaptureOptions {
        CaptureOptions { method: Some(method), stage, ..CaptureOptions::new(&self.device) }
    }

    /// What fio is to do to the device, as a child.
    fn fio(&self, arguments: &[&str]) -> Child {
        let mut fio = Command::new("fio");
        fio.args(["--name=load", "--direct=1", "--ioengine=libaio", "--output-format=json", "--randseed=7"]);
        fio.arg(format!("--filename={}", self.device)).args(arguments);
        fio.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
    }

    /// The kernel's counters of completed reads and writes.
    fn completed(&self) -> [u64; 2] {
        let stat = fs::read_to_string(format!("/sys/class/block/{}/stat", name(&self.device))).unwrap();
        let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        [fields[0], fields[4]]
    }

    fn assert_set_back(&self) {
        assert_eq!(state(&self.device), self.before);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        let _ = fs::remove_file(&self.file);
    }
}

fn name(device: &str) -> &str {
    device.rsplit('/').next().unwrap()
}

/// Everything that a capture may change, as the kernel says it.
fn state(device: &str) -> Vec<(String, String)> {
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
fn drain(capture: &mut Capture, records: &mut Vec<Record>) -> Progress {
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
fn record(capture: &mut Capture, mut fio: Child) -> (Vec<Record>, Progress, serde_json::Value) {
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
fn totals(records: &[Record], operation: Operation) -> (u64, u64) {
    let of_kind = || records.iter().filter(|record| record.operation == operation);
    (of_kind().count() as u64, of_kind().map(|record| u64::from(record.length_bytes)).sum())
}

/// The same as fio counted it.
fn fio_totals(report: &serde_json::Value, kind: &str) -> (u64, u64) {
    let side = &report["jobs"][0][kind];
    (side["total_ios"].as_u64().unwrap(), side["io_bytes"].as_u64().unwrap())
}

fn count(meta: &Meta, what: &str) -> u64 {
    meta.counts.get(what).copied().unwrap_or(0)
}

/// A random mix at depth 32.
const MIX: [&str; 4] = ["--rw=randrw", "--rwmixread=70", "--bssplit=4k/60:8k/20:64k/20", "--iodepth=32"];

const BOTH_STAGES: [Stage; 2] = [Stage::Queue, Stage::Issue];

#[test]
fn every_request_of_fio_is_recorded() {
    let Some(bench) = Bench::new("fio", &[]) else { return };
    for method in Method::ALL {
        for stage in BOTH_STAGES {
            let before = bench.completed();
            let mut capture = Capture::start(&bench.options(method, stage)).unwrap();
            assert_eq!(capture.method(), method);
            let fio = bench.fio(&[&MIX[..], &["--number_ios=30000", "--fsync=500"]].concat());
            let (records, progress, report) = record(&mut capture, fio);
            let what = format!("{method:?} {stage:?}, {progress:?}, {:?}", capture.meta());
            assert_eq!(progress.lost, 0, "{what}");
            let (reads, writes) = (totals(&records, Operation::Read), totals(&records, Operation::Write));
            assert_eq!((reads, writes), (fio_totals(&report, "read"), fio_totals(&report, "write")), "{what}");
            let syncs = report["jobs"][0]["sync"]["total_ios"].as_u64().unwrap();
            assert!(syncs > 10, "fio synced {syncs} times");
            assert_eq!(totals(&records, Operation::Flush), (syncs, 0), "{what}");
            // The kernel counts flushes among writes.
            let completed = bench.completed();
            assert_eq!((reads.0, writes.0 + syncs), (completed[0] - before[0], completed[1] - before[1]), "{what}");
            assert!(records.iter().all(|record| record.response_ns != NOT_RECORDED), "{what}");
            assert!(capture.meta().counts.is_empty() && capture.meta().rejected == 0, "{what}");
            if stage == Stage::Issue {
                let in_flight = count(capture.meta(), "requests without completion");
                // A flush ends twice: for the device, and for who asked for it.
                assert_eq!(progress.events, 2 * progress.requests - in_flight + syncs, "{what}");
            } else {
                assert!(records.iter().all(|record| record.wait_ns <= record.response_ns), "{what}");
                let by_fio = records.iter().filter(|record| {
                    record.process > 0 && capture.meta().processes[record.process as usize - 1].name == "fio"
                });
                assert_eq!(by_fio.count(), records.len(), "{what}");
            }
            bench.assert_set_back();
        }
    }
}

#[test]
fn trims_and_what_is_split_are_recorded_whole() {
    let Some(bench) = Bench::new("fio", &[]) else { return };
    // Requests of 1 MiB to a device that takes a quarter of that.
    let limit = format!("/sys/class/block/{}/queue/max_sectors_kb", name(&bench.device));
    fs::write(limit, "256").unwrap();
    for method in Method::ALL {
        let mut capture = Capture::start(&bench.options(method, Stage::Queue)).unwrap();
        let fio = bench.fio(&["--rw=write", "--bs=1m", "--number_ios=100"]);
        let (records, progress, report) = record(&mut capture, fio);
        let what = format!("{method:?}, {progress:?}, {:?}", capture.meta());
        assert_eq!(totals(&records, Operation::Write), fio_totals(&report, "write"), "{what}");
        assert!(records.iter().all(|record| record.response_ns != NOT_RECORDED), "{what}");
        // One is queued and perhaps split in four; four are issued and completed.
        assert!((900..=1200).contains(&progress.events), "{what}");

        let mut capture = Capture::start(&bench.options(method, Stage::Issue)).unwrap();
        let fio = bench.fio(&["--rw=randtrim", "--bs=64k", "--number_ios=1000"]);
        let (records, _, report) = record(&mut capture, fio);
        assert_eq!(totals(&records, Operation::Trim), fio_totals(&report, "trim"), "{method:?}");
        assert_eq!(records.len(), 1000);
    }
    bench.assert_set_back();
}

#[test]
fn a_partition_is_recorded_from_its_own_start() {
    // A boot record with one partition: Linux, from sector 4,096, 65,536 sectors long.
    let mut head = [0; 512];
    head[446 + 4] = 0x83;
    head[446 + 8..][..4].copy_from_slice(&4096u32.to_le_bytes());
    head[446 + 12..][..4].copy_from_slice(&65536u32.to_le_bytes());
    head[510..].copy_from_slice(&[0x55, 0xaa]);
    let Some(bench) = Bench::new("fio", &head) else { return };
    let partition = format!("{}p1", bench.device);
    if !Path::new(&partition).exists() {
        println!("skipped: this kernel makes no {partition}");
        return;
    }
    let number = fs::read_to_string(format!("/sys/class/block/{}/dev", name(&partition))).unwrap();
    for method in Method::ALL {
        for stage in BOTH_STAGES {
            let options = CaptureOptions { device: number.trim().to_owned(), ..bench.options(method, stage) };
            let mut capture = Capture::start(&options).unwrap();
            // The second job goes past the partition, and before it.
            let fio = bench.fio(&[
                "--rw=randread",
                "--bs=4k",
                "--offset=2m",
                "--size=32m",
                "--number_ios=500",
                "--name=beyond",
                "--ioengine=libaio",
                "--direct=1",
                &format!("--filename={}", bench.device),
                "--rw=randread",
                "--bs=4k",
                "--offset=34m",
                "--size=64m",
                "--number_ios=400",
            ]);
            let (records, _, _) = record(&mut capture, fio);
            let what = format!("{method:?} {stage:?}");
            assert_eq!(totals(&records, Operation::Read), (500, 500 * 4096), "{what}");
            assert!(records.iter().all(|record| record.end_bytes() <= 32 << 20), "{what}");
            assert!(records.iter().any(|record| record.offset_bytes < 1 << 20), "{what}");
            let device = &capture.meta().devices[0];
            assert_eq!((device.name.as_str(), device.capacity_bytes), (name(&partition), Some(32 << 20)), "{what}");
        }
        // The whole disk has what goes to its partition.
        let mut capture = Capture::start(&bench.options(method, Stage::Queue)).unwrap();
        let fio = bench.fio(&[&format!("--filename={partition}"), "--rw=read", "--bs=4k", "--number_ios=300"]);
        let (records, _, _) = record(&mut capture, fio);
        assert_eq!(totals(&records, Operation::Read), (300, 300 * 4096), "{method:?}");
        assert_eq!(records[0].offset_bytes, 2 << 20);
    }
    bench.assert_set_back();
}

#[test]
fn ends_by_itself_after_requests_or_time() {
    let Some(bench) = Bench::new("fio", &[]) else { return };
    let endless = || bench.fio(&[&MIX[..], &["--time_based", "--runtime=60"]].concat());
    for method in Method::ALL {
        let mut fio = endless();
        let options = CaptureOptions { requests: Some(5000), ..bench.options(method, Stage::Queue) };
        let mut capture = Capture::start(&options).unwrap();
        let mut records = Vec::new();
        assert_eq!(drain(&mut capture, &mut records).requests, 5000, "{method:?}");
        let mut batch = Vec::new();
        assert!(capture.poll(&mut batch).unwrap().is_over && batch.is_empty());

        let options = CaptureOptions { duration: Some(Duration::from_millis(1500)), ..options };
        let options = CaptureOptions { requests: None, ..options };
        let mut capture = Capture::start(&options).unwrap();
        let progress = drain(&mut capture, &mut records);
        assert!((1.5..10.0).contains(&progress.elapsed.as_secs_f64()), "{progress:?}");
        assert!(progress.rate_per_s > 100.0 && progress.bytes_per_s > 4096.0 * 100.0, "{progress:?}");
        // At most as many as fio keeps under way have not completed.
        assert!(count(capture.meta(), "requests without completion") <= 32, "{:?}", capture.meta());
        bench.assert_set_back();
        fio.kill().unwrap();
        fio.wait().unwrap();
    }
    // Nothing happens, and it ends all the same.
    let options = CaptureOptions { duration: Some(Duration::from_millis(300)), ..CaptureOptions::new(&bench.device) };
    let mut capture = Capture::start(&options).unwrap();
    assert_eq!(drain(&mut capture, &mut Vec::new()).requests, 0);
}
