//! Tests of job file phases on files and null targets.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use headstack_jobfiles::{Phase, Sync, fio};
use headstack_load::{LoadError, Log, Permission, PhaseSpec, Target, Time, play_phase};
use headstack_result::{RunResult, SystemRecord};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Returns the phases of a fio job file.
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
        times_handing_over: false,
    }
}

/// Measures on a null target in virtual time.
fn on_null(phase: Phase, service_ns: u64) -> RunResult {
    let target = Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 1 << 30));
    let result = play_phase(&spec(phase, &target, service_ns), None, &mut |_| true).unwrap();
    let failed: Vec<_> = result.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    result
}

fn streams(result: &RunResult) -> Vec<(&str, u64)> {
    let count = |kinds: &headstack_result::Kinds| kinds.all().iter().map(|(_, kind)| kind.count).sum();
    result.streams.iter().map(|stream| (stream.name.as_str(), count(&stream.kinds))).collect()
}

/// A file that is removed on drop.
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
    // A single job is reported as a stream too.
    assert_eq!(streams(&on_null(phase(&format!("{text}[a]\n")), 0)), [("a", 100)]);
}

#[test]
fn exitall_ends_all_jobs_with_the_first() {
    let text = "[global]\nsize=1m\n[short]\nnumber_ios=10\n[long]\nruntime=3600\ntime_based\n";
    let mut phase = phase(text);
    phase.ends_with_first = true;
    let result = on_null(phase, 1_000_000);
    assert_eq!(result.ended_early, None);
    assert_eq!(streams(&result)[0], ("short", 10));
    assert!(streams(&result)[1].1 < 20, "the other job ended it: {:?}", streams(&result));
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
    // Four requests at a time, each of which takes 1 ms.
    assert_eq!((result.depth.max, result.duration_ns, total), (4, 1_000_000_000, 4.0 * 999.0));
}

#[test]
fn a_part_in_percent_is_one_of_the_target_as_it_is() {
    let scratch = Scratch::new("part", 4 * MIB);
    let mut phase = phase("[w]\nrw=write\nbs=64k\noffset=50%\nsize=25%\n");
    phase.jobs[0].file_bytes = None;
    let result = play_phase(&spec(phase, &scratch.open(true), 0), None, &mut |_| true).unwrap();
    assert_eq!(streams(&result), [("w", 16)]);
    let bytes = std::fs::read(&scratch.0).unwrap();
    let touched: Vec<bool> = bytes.chunks(MIB as usize).map(|part| part.iter().any(|byte| *byte != 0)).collect();
    assert_eq!(touched, [false, false, true, false]);
}

#[test]
fn nothing_is_written_to_a_target_that_is_open_for_reading() {
    let scratch = Scratch::new("guard", MIB);
    let error = play_phase(&spec(phase("[w]\nrw=write\nsize=1m\n"), &scratch.open(false), 0), None, &mut |_| true);
    let error = error.unwrap_err();
    assert!(matches!(error, LoadError::Job { .. }), "{error}");
    assert!(error.to_string().contains("opened read-only"), "{error}");
}

#[test]
fn a_curve_point_needs_the_maximum_rate() {
    let mut point = phase("[r]\nsize=1m\n");
    point.curve_point = Some(headstack_jobfiles::CurvePoint {
        max_phase: 0,
        percent: 50.0,
        process: headstack_workload::ArrivalProcess::Poisson,
        stop_response_ns: None,
    });
    let spec = spec(point, &Arc::new(Target::null(MIB)), 0);
    assert!(spec.check().err().unwrap().to_string().contains("must run first"));
}

/// Returns whether the first page of a file is in the page cache: a cached page can be read without waiting.
fn is_cached(scratch: &Scratch) -> bool {
    let file = std::fs::File::open(&scratch.0).unwrap();
    let mut bytes = [0u8; 512];
    let place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: one buffer of 512 bytes, which outlives the call.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const place, 1, 0, libc::RWF_NOWAIT) };
    read == 512
}

#[test]
fn invalidate_empties_the_page_cache() {
    for (invalidate, expected) in [(true, false), (false, true)] {
        let scratch = Scratch::new(&format!("cache-{invalidate}"), MIB);
        std::fs::File::open(&scratch.0).unwrap().sync_all().unwrap();
        if !is_cached(&scratch) {
            return headstack_needs::lacks(
                headstack_needs::Need::Kernel,
                "the temporary folder is on a file system that cannot be asked",
            );
        }
        // Reads only the last page, so nothing after it is read ahead.
        let mut phase = phase("[r]\nrw=randread\nbs=4k\noffset=1020k\nsize=4k\nnumber_ios=1\n");
        phase.jobs[0].invalidate = invalidate;
        play_phase(&spec(phase, &scratch.open(false), 0), None, &mut |_| true).unwrap();
        assert_eq!(is_cached(&scratch), expected);
    }
}

fn counts(result: &RunResult) -> (u64, u64, u64, u64) {
    let kinds = &result.kinds;
    (kinds.read.count, kinds.write.count, kinds.trim.count, kinds.flush.count)
}

#[test]
fn each_kind_keeps_to_its_rate() {
    let text = "[j]\nrw=randrw\nsize=1g\nnorandommap\nrate_iops=600,200\nnumber_ios=400\nioengine=null\niodepth=4\n";
    let (reads, writes, ..) = counts(&on_null(phase(text), 0));
    assert_eq!(reads + writes, 400);
    assert!(reads.abs_diff(300) <= 1, "{reads} reads and {writes} writes");
    // A flush that follows a write is not an arrival of a write.
    let flushed = "[j]\nrw=randrw\nsize=1g\nrate_iops=600,200\nfsync=2\nnumber_ios=400\nioengine=null\niodepth=4\n";
    let (reads, writes, _, flushes) = counts(&on_null(phase(flushed), 0));
    assert!(reads + writes == 400 && reads.abs_diff(300) <= 1, "{reads} reads and {writes} writes");
    assert!(flushes.abs_diff(writes / 2) <= 1);
}

#[test]
fn flushes_are_none_of_the_requests_that_a_job_ends_with() {
    let text = "[j]\nrw=write\nsize=1g\nfsync=8\nnumber_ios=24\nioengine=null\n";
    let (_, writes, _, flushes) = counts(&on_null(phase(text), 0));
    assert!(writes == 24 && (2..=3).contains(&flushes), "{writes} and {flushes}");
}

#[test]
fn jobs_of_a_flow_keep_to_their_weights() {
    let text = "[global]\nioengine=null\nrw=randread\nsize=1g\n[a]\nflow=3\nnumber_ios=300\nexitall\n[b]\nflow=1\n\
                runtime=60\ntime_based\n";
    let log = Arc::new(Log::default());
    let phase = phase(text);
    let target = Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 1 << 30));
    play_phase(&spec(phase, &target, 200_000), Some(&log), &mut |_| true).unwrap();
    let logged = log.take();
    // Once the first job has ended, no one holds back the other.
    let last = logged.iter().rposition(|one| one.job == 0).unwrap();
    let seconds = logged[..last].iter().filter(|one| one.job == 1).count();
    assert!(seconds.abs_diff(100) <= 3, "{seconds} of the second, 300 of the first");
}

#[test]
fn a_job_ends_at_its_first_error_unless_it_may_go_on() {
    for engine in ["psync", "io_uring"] {
        let run = |options: &str| {
            let scratch = Scratch::new(&format!("errors-{engine}-{}", options.len()), MIB);
            let target = scratch.open(false);
            std::fs::File::options().write(true).open(&scratch.0).unwrap().set_len(MIB / 2).unwrap();
            let text = format!("[j]\nioengine={engine}\nrw=read\nsize=1m\n{options}");
            let result = play_phase(&spec(phase(&text), &target, 0), None, &mut |_| true).unwrap();
            assert!(!result.passed(), "requests failed");
            (result.kinds.read.count, result.kinds.read.errors)
        };
        assert_eq!(run(""), (128, 1));
        assert_eq!(run("continue_on_error=write\n"), (128, 1));
        assert_eq!(run("continue_on_error=all\n"), (128, 128));
    }
}

#[test]
fn several_files_are_used_up_to_their_size_and_hold_the_pattern() {
    for engine in ["psync", "io_uring"] {
        let files: Vec<Scratch> = (0..2).map(|n| Scratch::new(&format!("part-{engine}-{n}"), MIB)).collect();
        let text = format!("[j]\nioengine={engine}\nfilename=a:b\nrw=write\nsize=1m\nbuffer_pattern=0xdeadbeef\n");
        let phase = phase(&text);
        let targets = vec![files.iter().map(|file| file.open(true)).collect()];
        let result = play_phase(&PhaseSpec { targets, ..spec(phase, &files[0].open(true), 0) }, None, &mut |_| true);
        assert_eq!(counts(&result.unwrap()), (0, 256, 0, 0));
        for file in &files {
            let contents = std::fs::read(&file.0).unwrap();
            let (used, rest) = contents.split_at(MIB as usize / 2);
            assert!(used.chunks(4).all(|word| word == [0xde, 0xad, 0xbe, 0xef]), "{engine}");
            assert!(rest.iter().all(|&byte| byte == 0), "{engine}: nothing is written behind its part");
        }
    }
}

#[test]
fn what_verified_is_a_stream_of_reads_as_long_as_the_writes() {
    let scratch = Scratch::new("verified", MIB);
    let text = "[j]\nrw=randwrite\nbs=16k\nsize=1m\nverify=crc32c\n";
    let result = play_phase(&spec(phase(text), &scratch.open(true), 0), None, &mut |_| true).unwrap();
    assert_eq!(counts(&result), (0, 64, 0, 0), "the load is of writes");
    let [written, read] = &result.streams[..] else { panic!("{:?}", result.streams) };
    assert_eq!((written.name.as_str(), read.name.as_str()), ("j", "j (verify)"));
    assert_eq!((read.kinds.read.count, read.kinds.read.bytes), (64, MIB));
}

#[test]
fn submission_latency_is_measured_on_request() {
    let scratch = Scratch::new("submission", MIB);
    let text = "[j]\nioengine=io_uring\niodepth=8\nrw=randread\nsize=1m\n";
    for times_handing_over in [false, true] {
        let asked = PhaseSpec { times_handing_over, ..spec(phase(text), &scratch.open(false), 0) };
        let result = play_phase(&asked, None, &mut |_| true).unwrap();
        let read = &result.kinds.read;
        assert_eq!(
            read.handing_over.as_ref().map_or(0, |times| times.count()),
            if times_handing_over { 256 } else { 0 }
        );
        if let Some(times) = &read.handing_over {
            assert!(times.min_ns() > 0);
            assert_eq!(times.sum_ns() + read.service.sum_ns(), read.latency.sum_ns());
        }
    }
}
