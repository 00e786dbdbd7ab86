//! Tests that requests on files and loop devices are exactly those of the generator, with kind and place.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use headstack_jobfiles::Sync;
use headstack_load::{EngineKind, Job, Permission, Target, run};
use headstack_workload::{Kind, Request, Span};
use serde_json::{Value, json};

use crate::bench::LoopDevice;
use crate::engine::support::{
    KIB, MIB, MS, TestFile, arrivals, bytes, closed, count, counter, errors, generated, job, measure, null_job, open,
    requests, spec, time, workload,
};

const ENGINES: [EngineKind; 3] = [EngineKind::Ring, EngineKind::Psync, EngineKind::Auto];

/// Returns files on tmpfs, which has no direct I/O, and in the temporary directory, which is on a disk.
fn files(bytes: u64) -> Vec<(TestFile, Arc<Target>)> {
    let on_disk = TestFile::holes(bytes);
    let direct = on_disk.open(true);
    let buffered = TestFile::holes(bytes);
    let target = buffered.open(false);
    let mut files = vec![(on_disk, direct), (buffered, target)];
    if Path::new("/dev/shm").is_dir() {
        let in_memory = TestFile::holes_in(Path::new("/dev/shm"), bytes);
        let target = in_memory.open(false);
        files.push((in_memory, target));
    }
    files
}

fn device_to_write(device: &LoopDevice) -> Arc<Target> {
    let permission = Permission { write: true, destroy: vec![device.name().to_owned()], ..Permission::default() };
    Arc::new(Target::open(&device.path, true, Sync::No, &permission, &|_| true).unwrap())
}

/// Returns the number of the write, from 1, that a sector comes from: writes number their sectors in order of issue,
/// each number times a constant that has an inverse modulo 2^64.
fn number_of(sector: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // Newton's iteration doubles the number of correct bits.
    let inverse =
        (0..6).fold(FACTOR, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(inverse))));
    u64::from_ne_bytes(sector[..8].try_into().unwrap()).wrapping_mul(inverse)
}

/// Returns for each sector the number of its last write; 0 if there was none.
fn written(requests: &[Request], sectors: usize) -> Vec<u64> {
    let (mut expected, mut number) = (vec![0; sectors], 0);
    for request in requests.iter().filter(|request| request.kind == Kind::Write) {
        for sector in 0..request.length_bytes as usize / 512 {
            number += 1;
            expected[request.offset_bytes as usize / 512 + sector] = number;
        }
    }
    expected
}

#[track_caller]
fn assert_written(contents: &[u8], requests: &[Request]) {
    let found: Vec<u64> = contents.chunks(512).map(number_of).collect();
    let expected = written(requests, found.len());
    let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(wrong, None, "the first sector that differs from the generator's requests");
}

#[test]
fn the_requests_are_the_generators_one_by_one() {
    let mix = json!({"lines": [
        {"size": 4096, "share_percent": 60, "read_percent": 30, "random_percent": 100, "align": 4096},
        {"size": 16384, "share_percent": 40, "read_percent": 0, "random_percent": 40, "align": 8192},
    ]});
    for engine in ENGINES {
        for (file, target) in files(2 * MIB) {
            let one = job(&[target], engine, workload(4096, 50.0, &mix), requests(700));
            let result = measure(vec![one.clone()]);
            let expected = generated(&one, 700);
            let of = |kind| expected.iter().filter(move |request| request.kind == kind);
            let kinds = &result.kinds;
            assert_eq!(kinds.read.count, of(Kind::Read).count() as u64);
            assert_eq!(kinds.write.count, of(Kind::Write).count() as u64);
            assert_eq!(kinds.write.bytes, of(Kind::Write).map(|request| u64::from(request.length_bytes)).sum::<u64>());
            assert_written(&file.contents(), &expected);
        }
    }
}

#[test]
fn the_same_seed_writes_the_same_places_at_any_depth_and_another_others() {
    let places = |engine, depth, seed| {
        let file = TestFile::holes(8 * MIB);
        let mut one = job(&[file.open(true)], engine, workload(4096, 0.0, &closed(depth)), requests(300));
        one.seed = seed;
        measure(vec![one]);
        let contents = file.contents();
        contents.chunks(4096).map(|block| number_of(block) > 0).collect::<Vec<bool>>()
    };
    let first = places(EngineKind::Ring, 1, 7);
    assert!(first.iter().filter(|written| **written).count() > 200);
    for (engine, depth) in [(EngineKind::Ring, 64), (EngineKind::Psync, 1), (EngineKind::Psync, 8)] {
        assert!(first == places(engine, depth, 7), "{engine:?} at depth {depth}");
    }
    assert!(first != places(EngineKind::Ring, 1, 8));
}

#[test]
fn a_part_of_a_file_is_all_that_is_touched() {
    for engine in ENGINES {
        let file = TestFile::holes(8 * MIB);
        file.fill(0);
        let mut one = job(&[file.open(true)], engine, workload(4096, 0.0, &closed(16)), requests(2_000));
        one.span = Some(Span { start_bytes: 3 * MIB, length_bytes: MIB });
        measure(vec![one]);
        let contents = file.contents();
        let (part, rest) =
            (3 * MIB as usize..4 * MIB as usize, |range: std::ops::Range<usize>| contents[range].to_vec());
        assert!(rest(0..part.start).iter().chain(&rest(part.end..8 * MIB as usize)).all(|byte| *byte == 0));
        assert!(contents[part].chunks(4096).filter(|block| number_of(block) > 0).count() > 250);
    }
}

#[test]
fn all_kinds_of_requests_pass_at_depth() {
    let form = json!({"arrivals": {"closed": {"queue_depth": 16}}, "flush_every": 10, "line": {"trim_percent": 20}});
    for engine in ENGINES {
        for (_file, target) in files(4 * MIB) {
            let result = measure(vec![job(&[target], engine, workload(8192, 40.0, &form), requests(2_000))]);
            assert_eq!((count(&result), errors(&result)), (2_000, 0), "{:?}", result.notes);
            let kinds = &result.kinds;
            for (name, kind) in kinds.all() {
                assert!(kind.count > 50 && kind.latency.min_ns() > 0, "{engine:?}: {name}: {}", kind.count);
            }
            assert_eq!(bytes(&result), 8192 * (kinds.read.count + kinds.write.count + kinds.trim.count));
        }
    }
}

#[test]
fn trims_punch_holes_only_in_their_range() {
    let form = json!({"line": {"trim_percent": 100}});
    for engine in ENGINES {
        let file = TestFile::holes(4 * MIB);
        file.fill(0xaa);
        let one = job(&[file.open(true)], engine, workload(4096, 0.0, &form), requests(200));
        let before = std::fs::metadata(&file.0).unwrap().blocks();
        assert_eq!(measure(vec![one.clone()]).kinds.trim.count, 200);
        let contents = file.contents();
        let mut expected = vec![0xaa; contents.len()];
        for request in generated(&one, 200) {
            expected[request.offset_bytes as usize..][..4096].fill(0);
        }
        assert!(contents == expected);
        assert!(std::fs::metadata(&file.0).unwrap().blocks() < before);
    }
}

#[test]
fn a_device_is_read_written_trimmed_and_flushed() {
    let form = json!({"arrivals": {"closed": {"queue_depth": 8}}, "flush_every": 7, "line": {"trim_percent": 30}});
    for engine in ENGINES {
        let Some(device) = LoopDevice::new(16 * MIB) else { return };
        let target = device_to_write(&device);
        let result = measure(vec![job(&[Arc::clone(&target)], engine, workload(4096, 30.0, &form), requests(1_500))]);
        assert_eq!((count(&result), errors(&result)), (1_500, 0), "{engine:?}: {:?}", result.notes);
        assert!(result.kinds.all().iter().all(|(_, kind)| kind.count > 50));
        // If only this job writes, the device holds what the generator wrote.
        let alone = job(&[Arc::clone(&target)], engine, workload(4096, 0.0, &json!({})), requests(300));
        let trims = job(
            &[target],
            engine,
            workload(1 << 20, 0.0, &json!({"line": {"trim_percent": 100, "random_percent": 0}})),
            requests(16),
        );
        assert_eq!(measure(vec![trims]).kinds.trim.bytes, 16 * MIB);
        measure(vec![alone.clone()]);
        assert_written(&std::fs::read(&device.backing).unwrap(), &generated(&alone, 300));
    }
}

#[test]
fn files_of_any_size_form_one_address_space() {
    for engine in ENGINES {
        // A size that is not a multiple of the block does not shift the files after it.
        let files = [TestFile::holes(MIB), TestFile::holes(700_000), TestFile::holes(3 * MIB)];
        let targets: Vec<_> = files.iter().map(|file| file.open(true)).collect();
        let block_bytes = u64::from(targets[0].block_bytes().max(512));
        let one = job(&targets, engine, workload(4096, 0.0, &closed(8)), requests(4_000));
        let result = measure(vec![one]);
        assert_eq!(errors(&result), 0, "{:?}", result.notes);
        for file in &files {
            let contents = file.contents();
            assert_eq!(contents.len() as u64, std::fs::metadata(&file.0).unwrap().len(), "the file did not grow");
            let blocks = contents.len() as u64 / block_bytes * block_bytes / 4096;
            let touched = contents.chunks(4096).filter(|block| number_of(block) > 0).count() as u64;
            assert!(touched * 10 > blocks * 9, "{touched} of {blocks}");
        }
        // A flush covers all files, as a single request.
        let flushes = workload(4096, 0.0, &json!({"flush_every": 1, "arrivals": {"closed": {"queue_depth": 4}}}));
        let result = measure(vec![job(&targets, engine, flushes, requests(100))]);
        assert_eq!((result.kinds.write.count + result.kinds.flush.count, errors(&result)), (100, 0));
        assert!(result.kinds.flush.count >= 48);
    }
}

#[test]
fn a_request_that_no_file_has_room_for_is_refused() {
    let files = [TestFile::holes(MIB), TestFile::holes(64 * 1024)];
    let targets: Vec<_> = files.iter().map(|file| file.open(true)).collect();
    let one = job(&targets, EngineKind::Ring, workload(128 * KIB, 100.0, &json!({})), requests(1));
    let line = run(&spec(vec![one]), &mut |_| true).unwrap_err().to_string();
    assert!(
        line.starts_with(files[1].path()) && line.contains("requests of 131072 bytes; its size is 65536 bytes"),
        "{line}"
    );
}

#[test]
fn several_jobs_work_on_one_file() {
    let file = TestFile::holes(16 * MIB);
    let target = file.open(true);
    let one = |name: &str, engine, part: u64, read| {
        let mut one = job(&[Arc::clone(&target)], engine, workload(4096, read, &closed(8)), requests(1_000));
        (one.name, one.seed) = (name.to_owned(), part);
        one.span = Some(Span { start_bytes: part * 4 * MIB, length_bytes: 4 * MIB });
        one
    };
    let jobs: Vec<Job> = vec![
        one("a", EngineKind::Ring, 0, 0.0),
        one("b", EngineKind::Psync, 1, 0.0),
        one("c", EngineKind::Auto, 2, 100.0),
        one("a", EngineKind::Ring, 3, 100.0),
    ];
    let result = measure(jobs);
    assert_eq!((result.kinds.write.count, result.kinds.read.count), (2_000, 2_000));
    assert_eq!(result.streams.len(), 3);
    let contents = file.contents();
    let touched = |part: usize| {
        let part = &contents[part * 4 * MIB as usize..][..4 * MIB as usize];
        part.chunks(4096).filter(|block| number_of(block) > 0).count()
    };
    assert!(touched(0) > 500 && touched(1) > 500);
    assert_eq!((touched(2), touched(3)), (0, 0));
}

#[test]
fn an_open_loop_on_a_file_issues_every_arrival() {
    let file = TestFile::holes(16 * MIB);
    file.fill(1);
    let target = file.open(false);
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        let mut one =
            job(&[Arc::clone(&target)], engine, workload(4096, 100.0, &open(2_000.0, "poisson")), time(500 * MS));
        one.slots = 8;
        let arrived = arrivals(&one).take_while(|&at_ns| at_ns < 500 * MS).count() as u64;
        let result = measure(vec![one]);
        // However late they are, all arrivals have completed, are waiting, or are in flight.
        let known = count(&result) + result.backlog;
        assert!((arrived.saturating_sub(8)..=arrived).contains(&known), "{engine:?}: {known} of {arrived}");
    }
}

#[test]
fn the_queue_depth_is_as_requested() {
    let file = TestFile::holes(16 * MIB);
    file.fill(1);
    let target = file.open(true);
    let deep = |engine, depth, size_bytes: u32, wanted| {
        let one = job(&[Arc::clone(&target)], engine, workload(size_bytes, 100.0, &closed(depth)), requests(wanted));
        let result = measure(vec![one]);
        assert_eq!((count(&result), errors(&result)), (wanted, 0), "{engine:?} at {depth}: {:?}", result.notes);
        assert_eq!(result.depth.max, depth);
    };
    deep(EngineKind::Ring, 4_096, 4 * KIB, 9_000);
    deep(EngineKind::Ring, 65_536, 512.max(target.block_bytes()), 70_000);
    deep(EngineKind::Ring, 64, 1 << 20, 500);
    // Buffers that would take 4 GiB together are shared.
    deep(EngineKind::Ring, 4_096, 1 << 20, 4_200);
    deep(EngineKind::Psync, 64, 1 << 20, 200);
    deep(EngineKind::Psync, 256, 4 * KIB, 1_000);
    let one = job(&[target], EngineKind::Psync, workload(4096, 100.0, &closed(5_000)), requests(1));
    let line = run(&spec(vec![one]), &mut |_| true).unwrap_err().to_string();
    assert!(line.contains("psync needs a thread for each of 5000 requests; the maximum is 4096"), "{line}");
}

#[test]
fn writes_that_must_be_stable_are_passed_on_as_such() {
    let file = TestFile::holes(MIB);
    for (sync, expected) in [(Sync::No, 0), (Sync::Data, libc::O_DSYNC), (Sync::File, libc::O_SYNC)] {
        let permission = Permission { write: true, overwrite: true, ..Permission::default() };
        let target = Arc::new(Target::open(file.path(), false, sync, &permission, &|_| true).unwrap());
        // SAFETY: asks for the flags of a descriptor that is open.
        let flags = unsafe { libc::fcntl(target.fd().unwrap().as_raw_fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_SYNC, expected, "{sync:?}: the kernel waits for the device, or does not");
        let one = job(&[target], EngineKind::Ring, workload(4096, 0.0, &json!({})), requests(20));
        assert_eq!(measure(vec![one]).kinds.write.count, 20);
    }
}

#[test]
fn processor_use_is_reported() {
    // A thread that sleeps for each request, and awaits the rest awake.
    let start = Instant::now();
    let result = measure(vec![null_job(MS, workload(4096, 100.0, &closed(1)), requests(200))]);
    let passed_ns = start.elapsed().as_nanos() as u64;
    let cpu_ns = counter(&result, "cpu_user_ns") + counter(&result, "cpu_system_ns");
    assert!((1..passed_ns).contains(&cpu_ns), "{cpu_ns} of {passed_ns}");
    assert!(counter(&result, "voluntary_switches") >= 100, "{:?}", result.counters);
    assert!(matches!(result.workload, Value::Null));
}
