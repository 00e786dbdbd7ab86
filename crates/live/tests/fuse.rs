//! A model as files of a mounted directory: allowed operations, queue depth, and a clean end.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headstack_live::fuse::{Mount, Unmounted, attach_loop, detach_loop};
use headstack_live::{Contents, Device, Export, Fidelity, LiveError, Order, Session, SessionOptions};
use headstack_sim::{Constant, Model};
use headstack_workload::{Kind, Request, Span};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek, statvfs};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

const MIB: u64 = 1 << 20;
const CAPACITY_BYTES: u64 = 64 * MIB;
const HOUR_NS: u64 = 3_600_000_000_000;

/// Serialises the tests, since they count threads and depend on timing.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns a guard, or prints why this machine cannot mount.
fn may_mount() -> Option<MutexGuard<'static, ()>> {
    if !Path::new("/dev/fuse").exists() || !headstack_needs::is_privileged() {
        headstack_needs::lacks(headstack_needs::Need::Root, "mounting takes root and /dev/fuse");
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        headstack_needs::lacks(headstack_needs::Need::Programs, format_args!("no {program}"));
    }
    found
}

fn scratch() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("headstack-fuse-test-{}-{number}", std::process::id()))
}

fn lun(name: &str, start_bytes: u64, length_bytes: u64) -> Export {
    Export {
        name: name.to_owned(),
        description: String::new(),
        span: Span { start_bytes, length_bytes },
        block_bytes: 512,
        is_rotational: true,
    }
}

/// A mounted device that takes equally long for every request.
struct Served {
    session: Session,
    device: Arc<Device>,
    mount: Mount,
    directory: PathBuf,
    heard: Arc<Mutex<Vec<(u64, Request)>>>,
}

impl Served {
    fn of(latency_ns: u64, exports: Vec<Export>, contents: Contents) -> Result<Served, LiveError> {
        let model = Model::Constant(Constant { latency_ns, capacity_bytes: CAPACITY_BYTES });
        let heard: Arc<Mutex<Vec<(u64, Request)>>> = Arc::default();
        let hears = Arc::clone(&heard);
        let listener = Box::new(move |observed: &headstack_sim::Observed| {
            hears.lock().unwrap().push((observed.recorded.arrival_ns, observed.recorded.request));
        });
        let session = Session::start(&model, SessionOptions::default(), Some(listener))?;
        let device = Arc::new(Device { exports, contents, submitter: session.submitter() });
        let directory = scratch();
        let mount = Mount::start(&device, &directory)?;
        Ok(Served { session, device, mount, directory, heard })
    }

    fn new(latency_ns: u64) -> Served {
        let contents = Contents::in_memory(CAPACITY_BYTES).unwrap();
        Served::of(latency_ns, vec![lun("lun0", 0, CAPACITY_BYTES)], contents).unwrap()
    }

    fn open(&self) -> File {
        open(&self.mount.files()[0])
    }

    /// Stops the device, and checks that nothing remains.
    fn end(self) -> (Unmounted, Fidelity) {
        let ended = self.mount.stop().unwrap();
        let fidelity = self.session.stop();
        assert!(!self.directory.exists(), "the created directory is removed");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(self.directory.to_str().unwrap()), "{mounts}");
        eventually("threads end", || threads().is_empty());
        (ended, fidelity)
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Returns the names of the threads that serve mounts.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| ["headstack-fuse", "headstack-send", "fuser"].iter().any(|ours| name.starts_with(ours)))
        .collect()
}

fn eventually(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the status of a session.
fn status(session: &Session) -> serde_json::Value {
    session.commander().order(Order::Status).unwrap()
}

fn outstanding(session: &Session) -> u64 {
    status(session)["outstanding"].as_u64().unwrap()
}

fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> Errno {
    Errno::from_io_error(&result.unwrap_err()).unwrap()
}

/// Size of parts that the kernel does not split; it would split requests from unaligned memory at a page.
const PART_BYTES: usize = 256 << 10;

fn write(file: &File, data: &[u8], at: u64) -> io::Result<()> {
    let mut parts = (at..).step_by(PART_BYTES).zip(data.chunks(PART_BYTES));
    parts.try_for_each(|(at, part)| file.write_all_at(part, at))
}

fn read(file: &File, bytes: u64, at: u64) -> io::Result<Vec<u8>> {
    let mut data = vec![1; bytes as usize];
    let mut parts = (at..).step_by(PART_BYTES).zip(data.chunks_mut(PART_BYTES));
    parts.try_for_each(|(at, part)| file.read_exact_at(part, at))?;
    Ok(data)
}

fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at / 512 * 7 + at) as u8).collect()
}

#[test]
fn a_file_is_the_device() {
    let Some(_alone) = may_mount() else { return };
    for latency_ns in [0, 100_000] {
        let served = Served::new(latency_ns);
        let file = served.open();
        let data = pattern(3 * MIB);
        write(&file, &data, 5 * MIB).unwrap();
        assert!(read(&file, 3 * MIB, 5 * MIB).unwrap() == data);
        let mut held = vec![0; data.len()];
        served.device.contents.read(5 * MIB, &mut held).unwrap();
        assert!(held == data);

        let end = CAPACITY_BYTES;
        assert_eq!(file.metadata().unwrap().len(), end);
        assert_eq!(file.read_at(&mut held[..4096], end).unwrap(), 0);
        assert_eq!(file.read_at(&mut held[..4096], end - 512).unwrap(), 512);
        assert_eq!(errno(file.write_at(&data[..512], end)), Errno::NOSPC);
        assert_eq!(errno(file.write_at(&data[..1024], end - 512)), Errno::NOSPC);
        assert_eq!(errno(file.read_at(&mut held[..512], 1)), Errno::INVAL);
        assert_eq!(errno(file.write_at(&data[..100], 0)), Errno::INVAL);
        assert_eq!(errno(file.set_len(end / 2)), Errno::PERM);
        file.set_len(end).unwrap();
        assert_eq!(errno(fs::read(served.directory.join("other"))), Errno::NOENT);
        let names: Vec<_> = fs::read_dir(&served.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["disk"]);
        let room = statvfs(&served.mount.files()[0]).unwrap();
        assert_eq!((room.f_blocks * room.f_frsize, room.f_bfree, room.f_bsize), (end, 0, 512));
        drop(file);
        let (ended, fidelity) = served.end();
        assert_eq!(ended, Unmounted::Cleanly);
        assert!(fidelity.path.requests >= 8, "{}", fidelity.path.requests);
    }
}

#[test]
fn ranges_can_be_trimmed_zeroed_and_seeked() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(10_000);
    let file = served.open();
    write(&file, &pattern(4 * MIB), 8 * MIB).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 9 * MIB, MIB).unwrap();
    fallocate(&file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, 11 * MIB, MIB).unwrap();
    let mut expected = pattern(4 * MIB);
    expected[MIB as usize..2 * MIB as usize].fill(0);
    expected[3 * MIB as usize..].fill(0);
    assert!(read(&file, 4 * MIB, 8 * MIB).unwrap() == expected);

    assert_eq!(seek(&file, SeekFrom::Data(0)).unwrap(), 8 * MIB);
    assert_eq!(seek(&file, SeekFrom::Hole(8 * MIB)).unwrap(), 9 * MIB);
    assert_eq!(seek(&file, SeekFrom::Hole(9 * MIB + 512)).unwrap(), 9 * MIB + 512);
    assert_eq!(seek(&file, SeekFrom::Data(9 * MIB)).unwrap(), 10 * MIB);
    assert_eq!(seek(&file, SeekFrom::Data(11 * MIB)).unwrap_err(), Errno::NXIO);
    assert_eq!(seek(&file, SeekFrom::Hole(CAPACITY_BYTES)).unwrap_err(), Errno::NXIO);

    assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, MIB).unwrap_err(), Errno::OPNOTSUPP);
    assert_eq!(fallocate(&file, punch, 100, 512).unwrap_err(), Errno::INVAL);
    assert_eq!(fallocate(&file, punch, CAPACITY_BYTES, 512).unwrap_err(), Errno::INVAL);
    let zero = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&file, zero, CAPACITY_BYTES, 512).unwrap_err(), Errno::NOSPC);
    file.sync_all().unwrap();
    drop(file);

    let heard = Arc::clone(&served.heard);
    served.end();
    let heard = heard.lock().unwrap();
    let of = |kind| heard.iter().filter(move |(_, r)| r.kind == kind).map(|(_, r)| (r.offset_bytes, r.length_bytes));
    assert_eq!(of(Kind::Trim).collect::<Vec<_>>(), [(9 * MIB, MIB as u32)]);
    assert_eq!(of(Kind::Flush).collect::<Vec<_>>(), [(0, 0)]);
    assert!(of(Kind::Write).any(|range| range == (11 * MIB, MIB as u32)));
}

#[test]
fn every_lun_has_its_file() {
    let Some(_alone) = may_mount() else { return };
    let luns = vec![lun("a", 0, 16 * MIB), lun("b", 16 * MIB, 48 * MIB)];
    let served = Served::of(0, luns, Contents::in_memory(CAPACITY_BYTES).unwrap()).unwrap();
    let names: Vec<_> = served.mount.files().iter().map(|file| file.file_name().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    let second = open(&served.mount.files()[1]);
    assert_eq!(second.metadata().unwrap().len(), 48 * MIB);
    second.write_all_at(&pattern(4096), 0).unwrap();
    let mut read = vec![0; 4096];
    served.device.contents.read(16 * MIB, &mut read).unwrap();
    assert!(read == pattern(4096));
    assert_eq!(errno(open(&served.mount.files()[0]).write_at(&read, 16 * MIB)), Errno::NOSPC);
    drop(second);
    served.end();
    for name in ["", "..", "x/y", "a"] {
        let luns = vec![lun("a", 0, MIB), lun(name, MIB, MIB)];
        let refused = Served::of(0, luns, Contents::in_memory(CAPACITY_BYTES).unwrap()).err().unwrap();
        assert!(refused.to_string().contains("a distinct name"), "{refused}");
    }
}

#[test]
fn a_directory_in_use_is_not_touched() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(0);
    let refused = Mount::start(&served.device, &served.directory).unwrap_err();
    assert!(refused.to_string().contains("not empty"), "{refused}");
    let own = scratch();
    fs::create_dir(&own).unwrap();
    let second = Mount::start(&served.device, &own).unwrap();
    assert_eq!(second.stop().unwrap(), Unmounted::Cleanly);
    fs::remove_dir(&own).expect("an existing directory remains");
    served.end();
}

#[test]
fn a_full_file_system_returns_enospc() {
    let Some(_alone) = may_mount() else { return };
    let small = scratch();
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small).status().unwrap();
    assert!(mounted.success());
    let contents = Contents::in_file(&small.join("contents"), CAPACITY_BYTES).unwrap();
    let served = Served::of(10_000, vec![lun("lun0", 0, CAPACITY_BYTES)], contents).unwrap();
    let written = write(&served.open(), &pattern(2 * MIB), 0);
    // The device shares the file, so the file system remains busy.
    unmount(&small, UnmountFlags::DETACH).unwrap();
    fs::remove_dir(&small).unwrap();
    served.end();
    assert_eq!(errno(written), Errno::NOSPC);
}

#[test]
fn thirty_two_requests_are_under_way_at_a_time() {
    let Some(_alone) = may_mount() else { return };
    let depth = 32;
    // All requests must arrive before any is answered: the kernel's default would admit only 12.
    let served = Served::new(HOUR_NS);
    let files: Vec<File> = (0..depth).map(|_| served.open()).collect();
    let Served { session, mount, .. } = served;
    thread::scope(|scope| {
        for (number, file) in (0..).zip(&files) {
            scope.spawn(move || {
                let (mut data, at) = (vec![0; 4096], number * 4096);
                // Check writes as well: concurrent writers of one file must not wait for each other.
                let ended = if number % 2 == 0 { file.read_at(&mut data, at) } else { file.write_at(&data, at) };
                assert_eq!(errno(ended), Errno::IO);
            });
        }
        eventually("all are under way", || outstanding(&session) == depth);
        assert_eq!(session.stop().path.deepest_queue as u64, depth);
    });
    drop(files);
    assert_eq!(mount.stop().unwrap(), Unmounted::Cleanly);
}

#[test]
fn a_vanished_device_fails_requests_without_a_hang() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(HOUR_NS);
    let (waiting, late) = (served.open(), served.open());
    let reader = thread::spawn(move || waiting.read_at(&mut [0; 4096], 0));
    eventually("the read is under way", || outstanding(&served.session) == 1);
    let Served { session, mount, directory, .. } = served;
    assert_eq!(session.stop().path.deepest_queue, 1);
    assert_eq!(errno(reader.join().unwrap()), Errno::IO);
    assert_eq!(errno(late.write_at(&[0; 4096], 0)), Errno::IO);
    assert_eq!(errno(late.sync_all()), Errno::IO);
    drop(late);
    assert_eq!(mount.stop().unwrap(), Unmounted::Cleanly);
    assert!(!directory.exists());
}

#[test]
fn unmounted_from_outside_it_serves_who_is_inside() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(1_000_000);
    let file = served.open();
    unmount(&served.directory, UnmountFlags::DETACH).unwrap();
    file.write_all_at(&pattern(4096), 0).unwrap();
    assert!(!served.mount.is_unmounted());
    drop(file);
    eventually("the mount ends with its last user", || served.mount.is_unmounted());
    assert_eq!(served.end().0, Unmounted::Before);
}

#[test]
fn an_aborted_mount_leaves_no_state() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(HOUR_NS);
    let file = served.open();
    let reader = thread::spawn(move || file.read_at(&mut [0; 4096], 0));
    eventually("the read is under way", || outstanding(&served.session) == 1);
    // The directory is busy, but the connection ends.
    assert_eq!(unmount(&served.directory, UnmountFlags::FORCE), Err(Errno::BUSY));
    reader.join().unwrap().unwrap_err();
    eventually("the mount has ended", || served.mount.is_unmounted());
    assert_eq!(served.end().0, Unmounted::Before);
}

#[test]
fn a_stop_while_in_use_is_reported() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(1_000_000);
    let file = served.open();
    assert_eq!(served.end().0, Unmounted::InUse);
    file.read_at(&mut [0; 4096], 0).unwrap_err();
}

#[test]
fn a_loop_device_is_a_disk() {
    let Some(_alone) = may_mount() else { return };
    if !has("losetup") {
        return;
    }
    // Slow enough for a busy client to fill the queue.
    let served = Served::new(5_000_000);
    let device = attach_loop(&served.mount.files()[0], &served.device.exports[0]).unwrap();
    let queue = Path::new("/sys/block").join(device.file_name().unwrap()).join("queue");
    assert_eq!(fs::read_to_string(queue.join("rotational")).unwrap().trim(), "1");
    assert_eq!(fs::read_to_string(queue.join("../loop/dio")).unwrap().trim(), "1");
    let is_deep = !has("fio") || {
        let fio = Command::new("fio")
            .args(["--name=depth", "--ioengine=libaio", "--direct=1", "--rw=randread", "--bs=4k", "--iodepth=32"])
            .args(["--number_ios=2000", "--size=32m", "--allow_file_create=0"])
            .arg(format!("--filename={}", device.display()))
            .output()
            .unwrap();
        assert!(fio.status.success(), "{}", String::from_utf8_lossy(&fio.stderr));
        status(&served.session)["fidelity"]["deepest_queue"].as_u64().unwrap() >= 32
    };
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&device).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    if has("mkfs.ext4") {
        run("mkfs.ext4", &["-q"]);
        run("fsck.ext4", &["-fn"]);
    }
    detach_loop(&device).unwrap();
    assert!(!queue.join("../loop/backing_file").exists());
    let heard = Arc::clone(&served.heard);
    assert_eq!(served.end().0, Unmounted::Cleanly);
    assert!(is_deep, "the kernel's own limit of 12 is lifted");
    let kinds: Vec<Kind> = heard.lock().unwrap().iter().map(|(_, request)| request.kind).collect();
    assert!(!has("mkfs.ext4") || (kinds.contains(&Kind::Write) && kinds.contains(&Kind::Flush)));
}

#[test]
fn a_dangling_loop_device_is_explained() {
    let Some(_alone) = may_mount() else { return };
    if !has("losetup") {
        return;
    }
    let served = Served::new(0);
    let device = attach_loop(&served.mount.files()[0], &served.device.exports[0]).unwrap();
    // Like a server that is killed: the connection ends, but the mount and the loop device remain.
    assert_eq!(unmount(&served.directory, UnmountFlags::FORCE), Err(Errno::BUSY));
    eventually("the mount has ended", || served.mount.is_unmounted());
    let refused = Mount::start(&served.device, &served.directory).unwrap_err().to_string();
    assert!(refused.contains(&format!("losetup --detach {}`, then `umount", device.display())), "{refused}");
    detach_loop(&device).unwrap();
    let refused = Mount::start(&served.device, &served.directory).unwrap_err().to_string();
    assert!(refused.contains("a server that no longer runs; run `umount"), "{refused}");
    served.end();
}

#[test]
fn each_path_has_its_own_floor() {
    let model = Model::Constant(Constant { latency_ns: HOUR_NS, capacity_bytes: CAPACITY_BYTES });
    let arrivals: Arc<Mutex<Vec<u64>>> = Arc::default();
    let hears = Arc::clone(&arrivals);
    let listener =
        Box::new(move |observed: &headstack_sim::Observed| hears.lock().unwrap().push(observed.recorded.arrival_ns));
    let session = Session::start(&model, SessionOptions::default(), Some(listener)).unwrap();
    let plain = session.submitter();
    let (near, far) = (plain.with_floor_ns(10_000), plain.with_floor_ns(400_000));
    thread::sleep(Duration::from_millis(1));
    let at = Instant::now();
    let read =
        Request { kind: Kind::Read, offset_bytes: 0, length_bytes: 512, force_unit_access: false, ordered: false };
    let (sender, _heard) = std::sync::mpsc::channel();
    [&far, &near, &plain].into_iter().for_each(|path| path.submit(at, read, Box::new(sender.clone())));
    eventually("all are under way", || outstanding(&session) == 3);
    assert_eq!(session.stop().path.floor_ns, 400_000);
    let arrivals = arrivals.lock().unwrap();
    assert_eq!([arrivals[1] - arrivals[0], arrivals[2] - arrivals[1]], [390_000, 10_000]);
}

#[test]
fn the_floor_is_measured() {
    let Some(_alone) = may_mount() else { return };
    let floor_ns = headstack_live::floor::measure_fuse(true, 1_000_000).unwrap();
    // Two thread switches and three mode switches take at least a microsecond.
    assert!(floor_ns > 1000, "{floor_ns} ns");
    eventually("threads end", || threads().is_empty());
}

/// A fault of the model is reported with the kernel's error number for every kind of request. If the schedule names the
/// fault from the start, the failed request also has no effect on the contents: see damage.rs.
#[test]
fn errors_come_out_as_the_schedule_names_them() {
    let Some(_alone) = may_mount() else { return };
    let served = Served::new(1_000_000);
    let commander = served.session.commander();
    let order = |order: serde_json::Value| commander.order(serde_json::from_value(order).unwrap()).unwrap();
    let file = served.open();
    write(&file, &[7; 4096], 0).unwrap();
    // The faults, each with its errno and whether it affects trims, and reads and flushes.
    let words = [
        ("EIO", Errno::IO, true, true),
        ("ENOSPC", Errno::NOSPC, false, false),
        ("ETIMEDOUT", Errno::TIMEDOUT, true, true),
        ("EROFS", Errno::ROFS, true, false),
    ];
    for (name, expected, of_trims, of_all) in words {
        order(serde_json::json!({ "do": "inject", "fault": { "what": "errno", "errno": name } }));
        assert_eq!(errno(write(&file, &[8; 4096], 0)), expected, "a write");
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(&file, hole, 0, 4096).err(), of_trims.then_some(expected), "a trim, {name}");
        if of_all {
            assert_eq!(errno(read(&file, 4096, 0)), expected, "a read");
            assert_eq!(errno(file.sync_data()), expected, "a flush");
        }
        order(serde_json::json!({ "do": "clear" }));
        assert!(read(&file, 4096, 0).is_ok(), "{name} is over");
    }
    drop(file);
    served.end();
}
