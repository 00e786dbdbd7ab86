//! Tests of conditioning a module as one stream: which device delays it, the time of each position, and what remains
//! after an early end.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use headstack_jobfiles::Sync;
use headstack_load::{DeviceShare, EngineKind, Pass, Passed, Permission, Stretch, Target, Time, stream};
use headstack_workload::Kind;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;
const BLOCK: u32 = 64 << 10;

/// Returns a pass over null devices with these service times per block, in virtual time.
fn nulls(services_ns: &[u64], device_bytes: u64) -> Pass {
    Pass {
        targets: services_ns.iter().map(|_| Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 1 << 40))).collect(),
        engines: services_ns.iter().map(|&service_ns| EngineKind::Null { service_ns }).collect(),
        kind: Kind::Read,
        block_bytes: BLOCK,
        ahead: 4,
        device_bytes,
        start_bytes: 0,
        interval_ns: 50 * MS,
    }
}

/// Runs a pass to its end, or until `goes_on` returns false.
fn passed(pass: &Pass, mut goes_on: impl FnMut(u64) -> bool) -> (Passed, Vec<Stretch>) {
    let mut kept = Vec::new();
    let passed = stream(pass, &mut |stretch| kept.push(stretch), &mut goes_on).unwrap();
    assert_sound(pass, &passed, &kept);
    (passed, kept)
}

/// Checks that each position occurs once and in order, that each block is on its device, and that sums agree.
#[track_caller]
fn assert_sound(pass: &Pass, passed: &Passed, kept: &[Stretch]) {
    let mut position_bytes = pass.start_bytes;
    for stretch in kept {
        assert_eq!(stretch.position_bytes, position_bytes);
        position_bytes += stretch.bytes;
        let sum = |of: fn(&DeviceShare) -> u64| stretch.devices.iter().map(of).sum::<u64>();
        assert_eq!(sum(|device| device.blocks) * u64::from(pass.block_bytes), stretch.bytes);
        assert_eq!(sum(|device| device.held_ns), stretch.duration_ns);
        for device in &stretch.devices {
            let counted: u64 = device.responses.iter().map(|bin| bin.1).sum();
            assert_eq!((counted, device.classes.iter().sum()), (device.blocks - device.errors, counted));
            assert!(device.busy_ns <= stretch.duration_ns);
        }
    }
    assert_eq!(position_bytes, passed.end_bytes);
    assert_eq!(passed.is_whole, passed.end_bytes == pass.module_bytes());
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headstack-conditioning-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: u64) -> String {
        let path = self.0.join(name);
        fs::write(&path, vec![0; bytes as usize]).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &str, write: bool) -> Arc<Target> {
    let permission = Permission { write, overwrite: true, ..Permission::default() };
    Arc::new(Target::open(path, false, Sync::No, &permission, &|_| true).unwrap())
}

fn files(targets: Vec<Arc<Target>>, kind: Kind, engine: EngineKind) -> Pass {
    let engines = vec![engine; targets.len()];
    Pass { targets, engines, kind, device_bytes: u64::MAX, ..nulls(&[], 0) }
}

#[test]
fn the_slowest_device_holds_the_module_to_its_own_rate() {
    let pass = nulls(&[MS, MS, 8 * MS, MS], 16 << 20);
    let (whole, kept) = passed(&pass, |_| true);
    assert!(whole.is_whole && whole.ended_early.is_none() && whole.flush_ns.is_none());
    // Four blocks of each device take 8 ms, 64 times.
    let total_ns: u64 = kept.iter().map(|stretch| stretch.duration_ns).sum();
    let sum = |lane: usize, of: fn(&DeviceShare) -> u64| kept.iter().map(|one| of(&one.devices[lane])).sum::<u64>();
    assert!((64 * 8 * MS..65 * 8 * MS).contains(&total_ns), "{total_ns}");
    assert!(sum(2, |device| device.held_ns) >= total_ns * 7 / 8, "{}", sum(2, |device| device.held_ns));
    for lane in [0, 1, 3] {
        assert_eq!(sum(lane, |device| device.classes[0]), 256, "all of them take at most 1 ms");
        assert!(sum(lane, |device| device.busy_ns) <= total_ns / 4, "1 ms of 8");
    }
    assert_eq!(sum(2, |device| device.classes[3]), 256, "all blocks of this device take at most 8 ms");
    assert_eq!(sum(2, |device| device.blocks), 256);
    assert_eq!(kept.len() as u64, total_ns.div_ceil(56 * MS));
}

#[test]
fn equal_devices_hold_each_other_up_equally() {
    let (_, kept) = passed(&nulls(&[2 * MS; 4], 16 << 20), |_| true);
    let held = |lane: usize| kept.iter().map(|one| one.devices[lane].held_ns).sum::<u64>() as f64;
    let total: f64 = (0..4).map(held).sum();
    // Four blocks of each device take 2 ms.
    assert_eq!(total, 64.0 * 2.0 * MS as f64);
    assert!(kept.iter().all(|one| one.devices.iter().all(|device| device.classes[0] == 0)));
}

#[test]
fn one_block_of_each_device_may_be_under_way() {
    let (whole, kept) = passed(&Pass { ahead: 1, ..nulls(&[MS; 2], MIB) }, |_| true);
    assert!(whole.is_whole);
    assert_eq!(kept.iter().map(|one| one.duration_ns).sum::<u64>(), 16 * MS, "16 blocks of each, 1 ms each");
    for lane in [0, 1] {
        assert_eq!(kept.iter().map(|one| one.devices[lane].busy_ns).sum::<u64>(), 16 * MS, "busy all along");
        assert_eq!(kept.iter().map(|one| one.devices[lane].sum_ns).sum::<u64>(), 16 * MS);
        assert!(kept.iter().all(|one| one.devices[lane].max_ns == MS));
    }
}

#[test]
fn stretches_are_as_long_as_the_interval_and_none_is_empty() {
    let pass = Pass { ahead: 1, interval_ns: 4 * MS, ..nulls(&[MS; 2], MIB) };
    let (_, kept) = passed(&pass, |_| true);
    assert_eq!(kept.iter().map(|one| (one.duration_ns, one.bytes)).collect::<Vec<_>>(), [(4 * MS, 8 * 64 * KIB); 4]);
    // A pass that begins at the end of the module has nothing left to do.
    let (whole, kept) = passed(&Pass { start_bytes: 2 * MIB, ..pass }, |_| true);
    assert!(whole.is_whole && whole.end_bytes == 2 * MIB && kept.is_empty(), "{whole:?}");
}

#[test]
fn a_stopped_pass_waits_for_the_blocks_under_way() {
    // Looks are 100 ms apart: the second block of 80 ms is under way at the second look, which says stop.
    let mut looks = 0;
    let (stopped, kept) = passed(&Pass { ahead: 1, ..nulls(&[80 * MS], MIB) }, |_| {
        looks += 1;
        looks < 2
    });
    assert_eq!(stopped.end_bytes, 2 * 64 * KIB);
    assert_eq!(kept.iter().map(|one| one.duration_ns).sum::<u64>(), 160 * MS);
}

#[test]
fn a_stopped_pass_resumes_at_its_offset() {
    let mut pass = nulls(&[MS, 2 * MS], 64 << 20);
    let mut looks = 0;
    let (stopped, first) = passed(&pass, |_| {
        looks += 1;
        looks < 3
    });
    assert_eq!(stopped.ended_early.as_deref(), Some("stopped by hand"));
    assert!(!first.is_empty() && (1..128 << 20).contains(&stopped.end_bytes));
    pass.start_bytes = stopped.end_bytes;
    let (whole, rest) = passed(&pass, |_| true);
    assert!(whole.is_whole);
    let blocks: u64 = first.iter().chain(&rest).flat_map(|one| &one.devices).map(|device| device.blocks).sum();
    assert_eq!(blocks * u64::from(BLOCK), 128 << 20);
}

#[test]
fn progress_is_reported_until_the_last_block_under_way_has_ended() {
    let mut looks = 0;
    let (stopped, _) = passed(&nulls(&[MS, 80 * MS], 64 << 20), |_| {
        looks += 1;
        looks < 2
    });
    assert!(!stopped.is_whole && looks > 2, "{looks}");
}

#[test]
fn files_are_written_to_the_last_stripe_of_the_smallest_and_then_read() {
    let folder = Folder::new("files");
    let sizes = [5 * 64 * KIB, 3 * 64 * KIB + 100, 4 * 64 * KIB];
    let paths: Vec<String> =
        sizes.iter().enumerate().map(|(number, &bytes)| folder.file(&number.to_string(), bytes)).collect();
    for engine in [EngineKind::Auto, EngineKind::Psync] {
        for kind in [Kind::Write, Kind::Read] {
            let targets = paths.iter().map(|path| open(path, kind == Kind::Write)).collect();
            let pass = files(targets, kind, engine);
            assert_eq!(pass.module_bytes(), 9 * 64 * KIB);
            let begin = Instant::now();
            let (whole, _) = passed(&pass, |_| true);
            assert!(whole.is_whole && whole.failures.is_empty(), "{whole:?}");
            assert_eq!(whole.flush_ns.is_some(), kind == Kind::Write);
            assert!(whole.flush_ns.is_none_or(|ns| u128::from(ns) <= begin.elapsed().as_nanos()));
        }
    }
    for (path, bytes) in paths.iter().zip(sizes) {
        let contents = fs::read(path).unwrap();
        assert_eq!(contents.len() as u64, bytes);
        let is_blank = |part: &[u8]| part.iter().all(|&byte| byte == 0);
        let (written, left) = contents.split_at(3 * BLOCK as usize);
        assert!(written.chunks(512).all(|sector| !is_blank(sector)) && is_blank(left));
    }
}

#[test]
fn failures_name_their_device_and_count_there() {
    let folder = Folder::new("cut");
    let paths = [folder.file("good", MIB), folder.file("cut", MIB)];
    let targets = paths.iter().map(|path| open(path, false)).collect();
    // The second file now ends within its tenth block.
    File::options().write(true).open(&paths[1]).unwrap().set_len(9 * 64 * KIB + 1).unwrap();
    let (whole, kept) = passed(&files(targets, Kind::Read, EngineKind::Auto), |_| true);
    assert!(whole.is_whole && whole.ended_early.is_none());
    let errors = |lane: usize| kept.iter().map(|one| one.devices[lane].errors).sum::<u64>();
    assert_eq!((errors(0), errors(1)), (0, 7));
    assert!(!whole.failures.is_empty() && whole.failures.iter().all(|words| words.starts_with(&paths[1])));
}

#[test]
fn what_cannot_be_streamed_is_refused_in_words() {
    let refused = |change: fn(&mut Pass)| {
        let mut pass = nulls(&[0, 0], MIB);
        change(&mut pass);
        stream(&pass, &mut |_| {}, &mut |_| true).unwrap_err().to_string()
    };
    for (change, words) in [
        ((|pass: &mut Pass| pass.block_bytes = 1000) as fn(&mut Pass), "must be a multiple of 512"),
        (|pass| pass.block_bytes = 0, "must be a multiple of 512"),
        (|pass| pass.ahead = 0, "must be 1 to 16384"),
        (|pass| pass.ahead = 1 << 20, "must be 1 to 16384"),
        (|pass| pass.interval_ns = 0, "interval"),
        (|pass| pass.device_bytes = 100, "no room"),
        (|pass| pass.start_bytes = 100, "begins at byte"),
        (|pass| pass.start_bytes = 3 * MIB, "begins at byte"),
        (|pass| pass.engines[0] = EngineKind::Auto, "real and null"),
        (|pass| pass.targets.clear(), "no target"),
        (|pass| pass.engines.truncate(1), "no target"),
    ] {
        let told = refused(change);
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn a_write_pass_needs_devices_that_are_open_for_writing() {
    let folder = Folder::new("reading");
    let paths = [folder.file("a", MIB), folder.file("b", MIB)];
    let pass = files(vec![open(&paths[0], true), open(&paths[1], false)], Kind::Write, EngineKind::Auto);
    let refused = stream(&pass, &mut |_| {}, &mut |_| true).unwrap_err().to_string();
    assert!(refused.contains(&paths[1]) && refused.contains("is opened read-only"), "{refused}");
    assert!(passed(&Pass { kind: Kind::Read, ..pass }, |_| true).0.is_whole);
}
