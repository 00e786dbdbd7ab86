//! Live capture against devices of the tests' own making. Needs root, tracefs, `losetup` and for most of it fio; what
//! is missing is said.
#![cfg(target_os = "linux")]

mod bench;

use headstack_needs::{Need, lacks};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::*;
use headstack_trace::capture::{Capture, CaptureOptions, Method};
use headstack_trace::{NOT_RECORDED, Operation, Record, Stage};

#[test]
fn every_request_of_fio_is_recorded() {
    let Some(bench) = Bench::new("fio") else { return };
    for method in Method::ALL {
        for stage in BOTH_STAGES {
            let before = bench.completed();
            let before_ns = unix_ns();
            let mut capture = Capture::start(&bench.options(method, stage)).unwrap();
            assert_eq!(capture.method(), method);
            let fio = bench.fio(&[&MIX[..], &["--number_ios=10000", "--fsync=200"]].concat());
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
            let zero_ns = capture.meta().zero_unix_ns.unwrap();
            let arrivals_ns = [records[0].arrival_ns, records[records.len() - 1].arrival_ns];
            assert!(
                arrivals_ns.iter().all(|arrival_ns| (before_ns..unix_ns()).contains(&(zero_ns + arrival_ns))),
                "{what}"
            );
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
fn trims_and_split_requests_are_recorded_whole() {
    let Some(bench) = Bench::new("fio") else { return };
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
        // One is queued and perhaps split in four; four are issued and completed. The tracer tells of requests that the
        // kernel has got, and put into the scheduler's queue, too.
        let most = match method {
            Method::Tracepoints => 1200,
            Method::Tracer => 2000,
        };
        assert!((900..=most).contains(&progress.events), "{what}");

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
    let Some(bench) = Bench::new("fio") else { return };
    let partition = format!("{}p1", bench.device);
    // In sectors: 2 MiB from the start, 32 MiB long.
    let added = Command::new("addpart").args([&bench.device, "1", "4096", "65536"]).status();
    if !added.is_ok_and(|status| status.success()) || !Path::new(&partition).exists() {
        lacks(Need::Loop, "no partition can be added");
        return;
    }
    let number = fs::read_to_string(format!("/sys/class/block/{}/dev", name(&partition))).unwrap();
    for method in Method::ALL {
        for stage in BOTH_STAGES {
            let options = CaptureOptions { device: number.trim().to_owned(), ..bench.options(method, stage) };
            let mut capture = Capture::start(&options).unwrap();
            // Two to the partition, by its own name and as a part of the disk; one past it, and one before it.
            let (mut records, mut batch) = (Vec::new(), Vec::new());
            let loads = [
                read_blocks(&partition, 0),
                read_blocks(&bench.device, 2 << 20),
                read_blocks(&bench.device, 34 << 20),
                read_blocks(&bench.device, 0),
            ];
            for mut load in loads {
                assert!(load.wait().unwrap().success());
                capture.poll(&mut batch).unwrap();
                records.append(&mut batch);
            }
            capture.stop().unwrap();
            drain(&mut capture, &mut records);
            let what = format!("{method:?} {stage:?}");
            assert_eq!(totals(&records, Operation::Read), (500, 500 * 4096), "{what}");
            assert!(records.iter().all(|record| record.end_bytes() <= 32 << 20), "{what}");
            assert!(records.iter().any(|record| record.offset_bytes < 1 << 20), "{what}");
            let device = &capture.meta().devices[0];
            assert_eq!((device.name.as_str(), device.capacity_bytes), (name(&partition), Some(32 << 20)), "{what}");
        }
        // The whole disk has what goes to its partition.
        let mut capture = Capture::start(&bench.options(method, Stage::Queue)).unwrap();
        let fio = fio(&partition, &["--rw=read", "--bs=4k", "--number_ios=300"]);
        let (records, _, _) = record(&mut capture, fio);
        assert_eq!(totals(&records, Operation::Read), (300, 300 * 4096), "{method:?}");
        assert_eq!(records[0].offset_bytes, 2 << 20);
    }
    bench.assert_set_back();
}

#[test]
fn ends_by_itself_after_requests_or_time() {
    let Some(bench) = Bench::new("fio") else { return };
    for method in Method::ALL {
        let load = Load(bench.fio(&ENDLESS));
        let options = CaptureOptions { requests: Some(5000), ..bench.options(method, Stage::Queue) };
        let mut capture = Capture::start(&options).unwrap();
        assert_eq!(drain(&mut capture, &mut Vec::new()).requests, 5000, "{method:?}");
        let mut batch = Vec::new();
        assert!(capture.poll(&mut batch).unwrap().is_over && batch.is_empty());

        let options = CaptureOptions { duration: Some(Duration::from_millis(600)), ..options };
        let options = CaptureOptions { requests: None, ..options };
        let mut capture = Capture::start(&options).unwrap();
        let progress = drain(&mut capture, &mut Vec::new());
        assert!(progress.elapsed.as_secs_f64() >= 0.6, "{progress:?}");
        assert!(progress.rate_per_s > 0.0 && progress.bytes_per_s >= 4096.0 * progress.rate_per_s, "{progress:?}");
        // At most as many as fio keeps under way have not completed, and as many that did while the buffers of processors
        // were read for the last time, one after the other.
        assert!(count(capture.meta(), "requests without completion") <= 2 * 32, "{:?}", capture.meta());
        bench.assert_set_back();
        drop(load);
    }
    // Nothing happens, and it ends all the same.
    let options = CaptureOptions { duration: Some(Duration::from_millis(300)), ..CaptureOptions::new(&bench.device) };
    let mut capture = Capture::start(&options).unwrap();
    assert_eq!(drain(&mut capture, &mut Vec::new()).requests, 0);
}

#[test]
fn loss_is_counted() {
    let Some(bench) = Bench::new("fio") else { return };
    let _load = Load(bench.fio(&ENDLESS));
    for method in Method::ALL {
        let options = CaptureOptions { buffer_bytes: 16 << 10, ..bench.options(method, Stage::Queue) };
        let mut capture = Capture::start(&options).unwrap();
        let (mut records, mut batch) = (Vec::new(), Vec::new());
        // A reader that stalls, until the buffer has run over.
        while capture.poll(&mut batch).unwrap().lost == 0 {
            records.append(&mut batch);
            std::thread::sleep(Duration::from_millis(300));
        }
        records.append(&mut batch);
        capture.stop().unwrap();
        let progress = drain(&mut capture, &mut records);
        let what = format!("{method:?}, {progress:?}, {:?}", capture.meta());
        assert!(progress.lost > 0 && progress.requests > 0, "{what}");
        assert_eq!(count(capture.meta(), "lost events"), progress.lost, "{what}");
        // What is left is whole: no text of the kernel's about the loss was taken for a record.
        assert_eq!(capture.meta().rejected, 0, "{what}");
        assert!(records.iter().all(|record| record.end_bytes() <= DEVICE_BYTES), "{what}");
        bench.assert_set_back();

        // The next one begins to count anew.
        let options = CaptureOptions { requests: Some(1000), ..bench.options(method, Stage::Issue) };
        let mut capture = Capture::start(&options).unwrap();
        assert_eq!(drain(&mut capture, &mut Vec::new()).lost, 0, "{method:?}");
    }
}

#[test]
fn two_captures_at_a_time() {
    let Some(bench) = Bench::new("fio") else { return };
    let mut first = Capture::start(&bench.options(Method::Tracer, Stage::Queue)).unwrap();
    let options = CaptureOptions { method: Some(Method::Tracer), ..CaptureOptions::new(&bench.device) };
    let refused = Capture::start(&options).err().unwrap().to_string();
    assert!(refused.contains("another program uses the tracer `blk`") && refused.lines().count() == 1, "{refused}");
    let mut second = Capture::start(&CaptureOptions::new(&bench.device)).unwrap();
    assert_eq!(second.method(), Method::Tracepoints);
    let mut third = Capture::start(&bench.options(Method::Tracepoints, Stage::Issue)).unwrap();
    let (mut by_first, mut by_second, mut by_third) = (Vec::new(), Vec::new(), Vec::new());
    let mut fio = bench.fio(&[&MIX[..], &["--number_ios=5000"]].concat());
    assert!(fio.wait().unwrap().success());
    for (capture, records) in [(&mut first, &mut by_first), (&mut second, &mut by_second), (&mut third, &mut by_third)]
    {
        capture.stop().unwrap();
        drain(capture, records);
        assert_eq!(records.len(), 5000);
    }
    // Two ways of listening to the same requests, on the same clock.
    let offsets = |records: &[Record]| {
        let mut offsets: Vec<_> = records.iter().map(|record| (record.offset_bytes, record.length_bytes)).collect();
        offsets.sort_unstable();
        offsets
    };
    assert_eq!(offsets(&by_first), offsets(&by_second));
    assert_eq!(offsets(&by_first), offsets(&by_third));
    let mean_ns =
        |records: &[Record]| records.iter().map(|record| record.response_ns).sum::<u64>() as f64 / records.len() as f64;
    let ratio = mean_ns(&by_first) / mean_ns(&by_second);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
    assert!(mean_ns(&by_third) < mean_ns(&by_second));
    bench.assert_set_back();
}

#[test]
fn the_kernel_is_set_back_however_a_capture_ends() {
    let Some(bench) = Bench::new("fio") else { return };
    let _load = Load(bench.fio(&ENDLESS));
    for method in Method::ALL {
        let mut capture = Capture::start(&bench.options(method, Stage::Queue)).unwrap();
        assert_ne!(state(&bench.device), bench.before);
        capture.poll(&mut Vec::new()).unwrap();
        drop(capture);
        bench.assert_set_back();

        let options = bench.options(method, Stage::Queue);
        let result = std::panic::catch_unwind(|| {
            let _capture = Capture::start(&options).unwrap();
            panic!("on purpose");
        });
        assert!(result.is_err());
        bench.assert_set_back();
    }
}

#[test]
fn a_capture_can_be_handed_to_another_thread() {
    fn is_sent<T: Send>() {}
    is_sent::<Capture>();
}

/// The device that [`a_capture_to_be_killed`] records.
const TO_BE_KILLED: &str = "HEADSTACK_CAPTURE_TO_BE_KILLED";

/// Other tests run this one by itself, and kill it; among all of them it does nothing.
#[test]
fn a_capture_to_be_killed() {
    let Ok(argument) = std::env::var(TO_BE_KILLED) else { return };
    let (method, device) = argument.split_once(' ').unwrap();
    let options = CaptureOptions { method: Method::from_name(method), ..CaptureOptions::new(device) };
    let _capture = Capture::start(&options).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_a_killed_capture_left_is_cleaned_up() {
    let Some(bench) = Bench::new("losetup") else { return };
    for method in Method::ALL {
        let mut child = Load(
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "a_capture_to_be_killed"])
                .env(TO_BE_KILLED, format!("{} {}", method.name(), bench.device))
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let enabled = || match method {
            Method::Tracer => fs::read_to_string(format!("/sys/class/block/{}/trace/enable", name(&bench.device))),
            Method::Tracepoints => fs::read_dir(format!("{TRACEFS}/instances")).map(|mut found| {
                let found =
                    found.find(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("headstack-"));
                found.map_or_else(String::new, |entry| {
                    fs::read_to_string(entry.unwrap().path().join("events/block/block_bio_complete/enable"))
                        .unwrap_or_default()
                })
            }),
        };
        let deadline = Instant::now() + Duration::from_secs(100);
        while enabled().unwrap().trim() != "1" {
            assert!(Instant::now() < deadline && child.0.try_wait().unwrap().is_none(), "the child does not record");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        if method == Method::Tracer {
            // While it lives, it is not touched.
            let error = Capture::start(&bench.options(method, Stage::Queue)).err().unwrap().to_string();
            assert!(error.contains("another program uses the tracer"), "{error}");
        }
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        assert_ne!(state(&bench.device), bench.before);
        let capture = Capture::start(&bench.options(method, Stage::Queue)).unwrap();
        let notes = capture.meta().notes.join("; ");
        assert!(notes.contains("left"), "{notes}");
        drop(capture);
        bench.assert_set_back();
    }
}

#[test]
fn a_device_without_a_queue_of_its_own() {
    let Some(bench) = Bench::new("fio") else { return };
    let Some(zram) = Zram::add() else { return lacks(Need::Kernel, "this kernel adds no zram") };
    fs::write(format!("/sys/block/zram{}/disksize", zram.0), "64M").unwrap();
    let device = format!("/dev/zram{}", zram.0);
    for method in Method::ALL {
        let options = CaptureOptions { device: device.clone(), ..bench.options(method, Stage::Queue) };
        let mut capture = Capture::start(&options).unwrap();
        let load = fio(&device, &["--rw=randrw", "--bs=4k", "--iodepth=4", "--number_ios=2000"]);
        let (records, _, report) = record(&mut capture, load);
        for (operation, kind) in [(Operation::Read, "read"), (Operation::Write, "write")] {
            assert_eq!(totals(&records, operation), fio_totals(&report, kind), "{operation:?} {:?}", capture.meta());
        }
        assert!(records.iter().all(|record| record.response_ns != NOT_RECORDED && record.wait_ns == NOT_RECORDED));
    }
    bench.assert_set_back();
}

#[test]
fn what_cannot_be_recorded_is_refused_on_one_line() {
    let refused = |device: &str| Capture::start(&CaptureOptions::new(device)).err().unwrap().to_string();
    for (device, reason) in [
        ("/dev/null", "is not a block device"),
        ("/", "is not a block device"),
        ("/dev/there-is-none", "No such file"),
        ("there-is-none", "there is no such block device"),
        ("", "there is no such block device"),
        ("4095:1048575", "there is no such block device"),
        ("..", "there is no such block device"),
        ("8:x", "there is no such block device"),
    ] {
        let error = refused(device);
        assert!(error.contains(reason) && error.lines().count() == 1, "{device}: {error}");
    }
    let Some(bench) = Bench::new("losetup") else { return };
    let options = CaptureOptions { buffer_bytes: 4096, ..CaptureOptions::new(&bench.device) };
    assert!(Capture::start(&options).err().unwrap().to_string().contains("16 KiB or more"));
}

#[test]
fn other_users_are_shown_the_required_privileges() {
    let Some(bench) = Bench::new("losetup") else { return };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_capture_to_be_killed"]).uid(65534).gid(65534);
    child.env(TO_BE_KILLED, format!("tracer {}", bench.device)).env("RUST_BACKTRACE", "0");
    let output = match child.output() {
        Ok(output) => output,
        Err(error) => return lacks(Need::Root, format_args!("another user cannot run this test: {error}")),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("needs root"), "{said}");
}
