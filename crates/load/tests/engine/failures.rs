//! Tests of failures during a run: they are counted or end the run, are reported in one line, and never lose
//! measurements.

use std::fs::{self, File};
use std::sync::Arc;

use headstack_jobfiles::Sync;
use headstack_load::{EngineKind, Permission, Target, run};
use headstack_needs::{Need, lacks};
use headstack_result::RunResult;
use headstack_workload::Workload;
use serde_json::json;

use crate::bench::{self, LoopDevice};
use crate::engine::support::{
    MIB, MS, TestFile, assert_sound, closed, count, errors, job, measure, null_job, requests, spec, time, workload,
};

const ENGINES: [EngineKind; 2] = [EngineKind::Ring, EngineKind::Psync];

fn open(path: &str, write: bool, direct: bool) -> Arc<Target> {
    let destroy = path.strip_prefix("/dev/").map(ToOwned::to_owned).into_iter().collect();
    let permission = Permission { write, destroy, overwrite: true, ..Permission::default() };
    Arc::new(Target::open(path, direct, Sync::No, &permission, &|_| true).unwrap())
}

/// Runs jobs and changes the target after a hundred completed requests. The run is stopped once a given number of
/// requests have failed.
fn run_until(
    target: &Arc<Target>,
    engine: EngineKind,
    load: Workload,
    errors_max: u64,
    event: impl FnOnce(),
) -> RunResult {
    let mut event = Some(event);
    let one = job(&[Arc::clone(target)], engine, load, time(3_600_000 * MS));
    let result = run(&spec(vec![one]), &mut |progress| {
        if progress.completed > 100
            && let Some(event) = event.take()
        {
            event();
        }
        progress.errors < errors_max
    });
    let result = result.unwrap();
    assert_sound(&result);
    result
}

/// Returns the only note about failures.
#[track_caller]
fn told(result: &RunResult) -> String {
    let notes: Vec<_> = result.notes.iter().filter(|note| note.contains("failed")).collect();
    assert_eq!(notes.len(), 1, "{:?}", result.notes);
    assert!(!notes[0].contains('\n'));
    notes[0].clone()
}

#[test]
fn a_file_that_is_cut_is_read_short_and_the_rest_counts() {
    for engine in ENGINES {
        for direct in [true, false] {
            let file = TestFile::holes(4 * MIB);
            file.fill(1);
            let target = file.open(direct);
            let cut = || File::options().write(true).open(&file.0).unwrap().set_len(2 * MIB).unwrap();
            let result = run_until(&target, engine, workload(4096, 100.0, &closed(4)), 100, cut);
            assert!(count(&result) > 100 && errors(&result) >= 100, "{} and {}", count(&result), errors(&result));
            assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
            let note = told(&result);
            assert!(note.contains("read of 4KiB at byte") && note.contains("only 0 bytes"), "{note}");
        }
    }
}

#[test]
fn failed_requests_count_towards_the_requested_number() {
    let file = TestFile::holes(4 * MIB);
    let target = file.open(true);
    File::options().write(true).open(&file.0).unwrap().set_len(MIB).unwrap();
    for engine in ENGINES {
        let result =
            measure(vec![job(&[Arc::clone(&target)], engine, workload(4096, 100.0, &closed(8)), requests(1_000))]);
        assert_eq!(count(&result) + errors(&result), 1_000);
        assert_eq!(errors(&result), result.kinds.read.errors);
        assert!((650..850).contains(&errors(&result)), "three quarters of the file are gone: {}", errors(&result));
        assert!(told(&result).starts_with(&format!("{} requests failed", errors(&result))), "{}", told(&result));
    }
}

#[test]
fn failures_of_the_second_file_are_reported_with_its_own_offsets() {
    let files = [TestFile::holes(4 * MIB), TestFile::holes(MIB)];
    let targets: Vec<_> = files.iter().map(|file| file.open(true)).collect();
    File::options().write(true).open(&files[1].0).unwrap().set_len(4096).unwrap();
    let result = measure(vec![job(&targets, EngineKind::Ring, workload(4096, 100.0, &closed(1)), requests(500))]);
    let note = told(&result);
    let at = note.split("at byte ").nth(1).unwrap().split(':').next().unwrap();
    assert!((4096..MIB).contains(&at.parse::<u64>().unwrap()), "{note}");
}

#[test]
fn a_device_that_fails_is_counted_on() {
    for engine in ENGINES {
        let Some(device) = LoopDevice::new(8 * MIB) else { return };
        let target = open(&device.path, true, true);
        // A loop device cannot reach data after the end of its file.
        let cut = || File::options().write(true).open(&device.backing).unwrap().set_len(4 * MIB).unwrap();
        let result = run_until(&target, engine, workload(4096, 100.0, &closed(4)), 10, cut);
        assert!(count(&result) > 100 && errors(&result) >= 10, "{} and {}", count(&result), errors(&result));
        assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
        let note = told(&result);
        assert!(note.contains("Input/output error") && note.contains("read of 4KiB at byte"), "{note}");
    }
}

#[test]
fn a_device_that_loses_its_medium_ends_the_run() {
    for engine in ENGINES {
        let Some(device) = LoopDevice::new(8 * MIB) else { return };
        let target = open(&device.path, true, true);
        let lose = || {
            File::options().write(true).open(&device.backing).unwrap().set_len(0).unwrap();
            assert!(bench::run(&["losetup", "--set-capacity", &device.path]));
        };
        let result = run_until(&target, engine, workload(4096, 100.0, &closed(4)), u64::MAX, lose);
        assert!(count(&result) > 100);
        let line = result.ended_early.unwrap();
        assert!(line.starts_with(&device.path) && line.contains("the device has vanished"), "{line}");
    }
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_it() {
    for engine in ENGINES {
        let Some(mut device) = LoopDevice::new(16 * MIB) else { return };
        let (path, mount) = (device.path.clone(), device.directory("mount"));
        let made = bench::run(&["mkfs.ext4", "-q", "-m", "0", &path]);
        if !made || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
            return lacks(Need::Root, "no ext4 can be mounted");
        }
        let file = TestFile::holes_in(std::path::Path::new(&mount), 64 * MIB);
        let target = file.open(true);
        let load = workload(65_536, 0.0, &closed(4));
        let result = run_until(&target, engine, load, u64::MAX, || {});
        let line = result.ended_early.clone().unwrap();
        assert!(line.starts_with(file.path()) && line.contains("the file system is full"), "{line}");
        assert!(line.contains("write of 64KiB at byte"), "{line}");
        assert!(count(&result) > 50 && errors(&result) > 0 && result.duration_ns > 0);
        drop((target, file));
    }
}

#[test]
fn writes_that_are_not_allowed_end_the_run() {
    let file = TestFile::holes(MIB);
    file.fill(1);
    for engine in ENGINES {
        let target = open(file.path(), false, true);
        let result = run_until(&target, engine, workload(4096, 50.0, &closed(4)), u64::MAX, || {});
        let line = result.ended_early.clone().unwrap();
        assert!(line.contains("such requests are not allowed") && line.contains("write of 4KiB"), "{line}");
        assert!(file.contents().iter().all(|byte| *byte == 1));
    }
}

#[test]
fn a_read_only_device_is_read_and_never_written() {
    let Some(device) = LoopDevice::new(MIB) else { return };
    assert!(bench::run(&["blockdev", "--setro", &device.path]));
    let reads =
        job(&[open(&device.path, false, true)], EngineKind::Ring, workload(4096, 100.0, &closed(2)), requests(50));
    assert_eq!(count(&measure(vec![reads])), 50);
    let permission = Permission { write: true, destroy: vec![device.name().to_owned()], ..Permission::default() };
    let refused = Target::open(&device.path, true, Sync::No, &permission, &|_| true);
    assert!(refused.err().unwrap().to_string().contains("read-only"));
}

#[test]
fn requests_smaller_than_a_block_are_refused() {
    let Some(device) = LoopDevice::new(MIB) else { return };
    if !bench::run(&["losetup", "--sector-size", "4096", &device.path]) {
        return lacks(Need::Loop, "no loop device has blocks of 4 KiB");
    }
    let target = open(&device.path, true, true);
    let load = workload(512, 100.0, &json!({"line": {"align": 512}}));
    // The block size is known in advance, so nothing is started.
    let refused = run(&spec(vec![job(&[target], EngineKind::Ring, load, requests(100))]), &mut |_| true);
    let line = refused.unwrap_err().to_string();
    assert!(line.contains("4096"), "{line}");
}

#[test]
fn one_failed_job_ends_all_and_measurements_are_kept() {
    let file = TestFile::holes(MIB);
    let target = open(file.path(), false, true);
    let mut writer = job(&[target], EngineKind::Ring, workload(4096, 0.0, &closed(1)), time(3_600_000 * MS));
    (writer.name, writer.start_delay_ns) = ("writer".into(), 200 * MS);
    let other = null_job(MS, workload(4096, 100.0, &closed(1)), time(3_600_000 * MS));
    let result = run(&spec(vec![other, writer]), &mut |_| true).unwrap();
    assert_sound(&result);
    assert!(result.ended_early.unwrap().contains("write of 4KiB"));
    assert!(result.kinds.read.count > 0);
}

/// Makes a system call fail with EPERM in the calling thread and all threads that it starts.
fn forbid(system_call: libc::c_long) -> bool {
    let step = |code: u32, k: u32, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, system_call as u32, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which is valid until then; only this thread is affected.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

#[test]
fn without_io_uring_psync_is_used_with_a_note() {
    let file = TestFile::holes(MIB);
    let target = file.open(true);
    let outcome = std::thread::spawn(move || {
        if !forbid(libc::SYS_io_uring_setup) {
            return None;
        }
        let of = |engine| job(&[Arc::clone(&target)], engine, workload(4096, 50.0, &closed(4)), requests(500));
        let refused = run(&spec(vec![of(EngineKind::Ring)]), &mut |_| true).unwrap_err().to_string();
        Some((measure(vec![of(EngineKind::Auto)]), refused))
    });
    let Some((result, refused)) = outcome.join().unwrap() else {
        return lacks(Need::Kernel, "no filter of system calls");
    };
    assert_eq!((count(&result), errors(&result)), (500, 0));
    let note = &result.notes[0];
    assert!(
        note.contains("io_uring is not available (Operation not permitted") && note.ends_with("by psync"),
        "{note}"
    );
    assert!(refused.starts_with(file.path()) && refused.contains("io_uring_setup"), "{refused}");
    // In this thread it is not forbidden.
    let result =
        measure(vec![job(&[file.open(true)], EngineKind::Auto, workload(4096, 50.0, &closed(4)), requests(10))]);
    assert_eq!(result.method_notes[0], "requests were submitted by io_uring");
    assert!(fs::metadata(&file.0).is_ok());
}
