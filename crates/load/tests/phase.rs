//! Phases of job files on files and on targets that store nothing.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use headstack_load::{LoadError, Permission, PhaseSpec, Target, Time, play_phase};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::jobs::{Phase, Sync, fio};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// The phases of a job file of fio.
fn phases(text: &str) -> Vec<Phase> {
    fio::read("test.fio", text, &[], &|_| None, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap().phases
}

fn phase(text: &str) -> Phase {
    let [phase] = <[Phase; 1]>::try_from(phases(text)).unwrap();
    phase
}

fn spec(phase: Phase, target: &Arc<Target>, service_ns: u64) -> PhaseSpec {
    PhaseSpec {
        system: SystemRecord::new("", "", Value::Null),
        targets: vec![vec![Arc::clone(target)]; phase.jobs.len()],
        phase,
        null_service_ns: service_ns,
        seed: 7,
        interval_ns: None,
    }
}

/// Measures on a target that stores nothing, in virtual time.
fn on_null(phase: Phase, service_ns: u64) -> RunResult {
    let target = Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 1 << 30));
    let result = play_phase(&spec(phase, &target, service_ns), &mut |_| true).unwrap();
    let failed: Vec<_> = result.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    result
}

fn streams(result: &RunResult) -> Vec<(&str, u64)> {
    let count = |kinds: &headstack_result::Kinds| kinds.all().iter().map(|(_, kind)| kind.count).sum();
    result.streams.iter().map(|stream| (stream.name.as_str(), count(&stream.kinds))).collect()
}

/// A file that is removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: u64) -> Scratch {
        let path = std::env::temp_dir().join(format!("headstack-phase-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![0; bytes as usize]).unwrap();
        Scratch(path)
    }

    fn open(&self, write: bool) -> Arc<Target> {
        let permission = Permission { write, overwrite: write, ..Permission::default() };
        Arc::new(Target::open(self.0.to_str().unwrap(), false, Sync::No, &permission, &|_| true).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

#[test]
fn each_copy_has_a_thread_and_a_group_is_one_stream() {
    let text = "[global]\nsize=1m\nrw=randread\nnumber_ios=100\n";
    let result = on_null(phase(&format!("{text}[a]\nnumjobs=2\nfilename=x\n[b]\n")), 0);
    assert_eq!(streams(&result), [("a.0", 100), ("a.1", 100), ("b", 100)]);
    let result = on_null(phase(&format!("{text}group_reporting\n[a]\nnumjobs=2\n[b]\n[c]\nnew_group\n")), 0);
    assert_eq!(streams(&result), [("a", 300), ("c", 100)]);
    // One job alone is told of as well.
    assert_eq!(streams(&on_null(phase(&format!("{text}[a]\n")), 0)), [("a", 100)]);
}

#[test]
fn the_first_that_ends_ends_all_where_that_is_asked() {
    let text = "[global]\nsize=1m\n[short]\nnumber_ios=10\n[long]\nruntime=3600\ntime_based\n";
    let mut phase = phase(text);
    phase.ends_with_first = true;
    let result = on_null(phase, 1_000_000);
    assert_eq!(result.ended_early, None);
    assert_eq!(streams(&result)[0], ("short", 10));
    assert!(streams(&result)[1].1 < 20, "it was ended by the other: {:?}", streams(&result));
}

#[test]
fn jobs_that_share_a_pool_take_turns_by_their_shares() {
    let text = "[global]\nsize=64m\nruntime=1\ntime_based\nbs=4k\n[a]\nrw=randread\n[b]\nrw=read\n";
    let mut phase = phase(text);
    phase.pool = Some(4);
    for (job, share) in phase.jobs.iter_mut().zip([80.0, 20.0]) {
        job.share_percent = Some(share);
    }
    let result = on_null(phase, 1_000_000);
    let streams = streams(&result);
    let total = (streams[0].1 + streams[1].1) as f64;
    assert!((streams[0].1 as f64 / total - 0.8).abs() < 0.05, "{streams:?}");
    // Four at a time, each a millisecond.
    assert_eq!((result.depth.max, result.duration_ns, total), (4, 1_000_000_000, 4.0 * 999.0));
}

#[test]
fn a_part_in_percent_is_one_of_the_target_as_it_is() {
    let scratch = Scratch::new("part", 4 * MIB);
    let mut phase = phase("[w]\nrw=write\nbs=64k\noffset=50%\nsize=25%\n");
    phase.jobs[0].file_bytes = None;
    let result = play_phase(&spec(phase, &scratch.open(true), 0), &mut |_| true).unwrap();
    assert_eq!(streams(&result), [("w", 16)]);
    let bytes = std::fs::read(&scratch.0).unwrap();
    let touched: Vec<bool> = bytes.chunks(MIB as usize).map(|part| part.iter().any(|byte| *byte != 0)).collect();
    assert_eq!(touched, [false, false, true, false]);
}

#[test]
fn nothing_is_written_to_a_target_that_is_open_for_reading() {
    let scratch = Scratch::new("guard", MIB);
    let error = play_phase(&spec(phase("[w]\nrw=write\nsize=1m\n"), &scratch.open(false), 0), &mut |_| true);
    let error = error.unwrap_err();
    assert!(matches!(error, LoadError::Job { .. }), "{error}");
    assert!(error.to_string().contains("open for reading"), "{error}");
}

#[test]
fn a_point_of_a_curve_needs_what_was_reached() {
    let mut point = phase("[r]\nsize=1m\n");
    point.curve_point = Some(headstack_workload::jobs::CurvePoint {
        max_phase: 0,
        percent: 50.0,
        process: headstack_workload::ArrivalProcess::Poisson,
        stop_response_ns: None,
    });
    let spec = spec(point, &Arc::new(Target::null(MIB)), 0);
    assert!(spec.check().err().unwrap().to_string().contains("has to run first"));
}

/// Whether the first page of a file is in the page cache: what need not wait may be read without waiting.
fn is_cached(scratch: &Scratch) -> bool {
    let file = std::fs::File::open(&scratch.0).unwrap();
    let mut bytes = [0u8; 512];
    let place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: one place of 512 bytes, which outlives the call.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const place, 1, 0, libc::RWF_NOWAIT) };
    read == 512
}

#[test]
fn the_page_cache_is_emptied_where_that_is_asked() {
    for (invalidate, expected) in [(true, false), (false, true)] {
        let scratch = Scratch::new(&format!("cache-{invalidate}"), MIB);
        std::fs::File::open(&scratch.0).unwrap().sync_all().unwrap();
        if !is_cached(&scratch) {
            return headstack_needs::lacks(
                headstack_needs::Need::Kernel,
                "the temporary folder is on a file system that cannot be asked",
            );
        }
        // It reads the last page alone; nothing is read ahead of that.
        let mut phase = phase("[r]\nrw=randread\nbs=4k\noffset=1020k\nsize=4k\nnumber_ios=1\n");
        phase.jobs[0].invalidate = invalidate;
        play_phase(&spec(phase, &scratch.open(false), 0), &mut |_| true).unwrap();
        assert_eq!(is_cached(&scratch), expected);
    }
}
