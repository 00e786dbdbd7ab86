//! Tests of files: creation, writing, and the notes about them.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};

use headstack_jobfiles::Sync;
use headstack_load::{LoadError, Permission, Target, TargetKind};
use headstack_needs::{Need, lacks};

use crate::bench::{LoopDevice, Scratch, run};
use crate::{MIB, assert_refused, descriptor_writes, open};

#[test]
fn a_swap_file_is_not_written() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let mount = device.directory("mount");
    let path = device.path.clone();
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let file = format!("{mount}/swap");
    let create = Permission { create_bytes: Some(16 * MIB), ..Permission::default() };
    open(&file, &create).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    if !run(&["mkswap", &file]) || !device.during(&["swapon", &file], &["swapoff", &file]) {
        return lacks(Need::Root, "no swap can be added");
    }
    let overwrite = Permission { write: true, overwrite: true, ..Permission::default() };
    assert_refused(&file, &overwrite, "is used as swap");
}

#[test]
fn other_things_than_files_and_devices_are_refused() {
    let scratch = Scratch::new();
    let pipe = scratch.path("pipe");
    assert!(run(&["mkfifo", &pipe]));
    let socket = scratch.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let dangling = scratch.path("dangling");
    std::os::unix::fs::symlink("/nowhere/at/all", &dangling).unwrap();
    let empty = scratch.path("empty");
    fs::File::create(&empty).unwrap();
    let directory = scratch.0.to_str().unwrap().to_owned();
    let create = Permission { create_bytes: Some(MIB), write: true, ..Permission::default() };
    for (path, wanted) in [
        (pipe, "is a pipe"),
        (socket, "is a socket"),
        (directory, "is a directory"),
        ("/dev/zero".into(), "is a character device"),
        (dangling, "is a link to /nowhere/at/all, which does not exist"),
    ] {
        assert_refused(&path, &Permission::default(), wanted);
        assert_refused(&path, &create, wanted);
    }
    assert_refused(&empty, &Permission::default(), "is empty");
    assert_refused(&scratch.path("none"), &Permission::default(), "not found");
    // A mistyped device name must not create a file in memory.
    let buffered = Target::open("/dev/headstack-none", false, Sync::No, &create, &|_| true);
    assert!(buffered.err().unwrap().to_string().contains("files in /dev are not created"));
    assert!(!fs::exists("/dev/headstack-none").unwrap());
}

#[test]
fn a_user_without_permission_is_refused() {
    let scratch = Scratch::new();
    let file = scratch.path("file");
    fs::write(&file, vec![1; 4096]).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let error = Target::open(&file, false, Sync::No, &Permission::default(), &|_| true);
    match error {
        Err(error) => assert!(error.to_string().contains("may not be read by this user"), "{error}"),
        // Root may read it.
        Ok(_) => lacks(Need::Kernel, "this user may read everything"),
    }
    if run(&["chattr", "+i", &file]) {
        let error = open(&file, &Permission { write: true, overwrite: true, ..Permission::default() });
        assert!(run(&["chattr", "-i", &file]));
        assert!(error.err().unwrap().to_string().contains("may not be written by this user"));
    } else {
        lacks(Need::Kernel, "no file can be made immutable");
    }
}

#[test]
fn a_file_is_created_written_and_never_changed_unasked() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let bytes = 5 * MIB / 2 + 512;
    let create = Permission { create_bytes: Some(bytes), write: true, ..Permission::default() };
    let shares = RefCell::new(Vec::new());
    let progress = |share| {
        shares.borrow_mut().push(share);
        true
    };
    let target = Target::open(&path, true, Sync::Data, &create, &progress).unwrap();
    assert_eq!((target.kind(), target.capacity_bytes()), (TargetKind::File, bytes));
    assert!(target.notes().is_empty(), "{:?}", target.notes());
    assert!(descriptor_writes(&target));
    assert!(target.description()["file_system"]["type"].is_string(), "{}", target.description());
    drop(target);
    let shares = shares.into_inner();
    assert!(shares.is_sorted() && shares.len() == 4 && shares[0] == 0.0 && shares[3] == 1.0, "{shares:?}");
    let contents = fs::read(&path).unwrap();
    // The contents are incompressible: none of 2^20 words occurs twice.
    let mut words: Vec<&[u8]> = contents.chunks_exact(8).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!((contents.len() as u64, words.len() as u64), (bytes, bytes / 8));
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);

    // The file exists now.
    assert_refused(&path, &create, "--overwrite");
    assert_refused(&path, &Permission { write: true, ..Permission::default() }, "--overwrite");
    let larger = Permission { create_bytes: Some(4 * MIB), ..Permission::default() };
    assert_refused(&path, &larger, "and 4MiB are requested");
    assert_eq!(fs::read(&path).unwrap(), contents);
    // The requested size is smaller than the file, which is only read.
    let smaller = Permission { create_bytes: Some(MIB), ..Permission::default() };
    assert_eq!(open(&path, &smaller).unwrap().capacity_bytes(), bytes);
    let grown = open(&path, &Permission { overwrite: true, ..larger }).unwrap();
    assert_eq!(grown.capacity_bytes(), 4 * MIB);
    assert!(grown.notes().is_empty() && !descriptor_writes(&grown));
    assert!(fs::read(&path).unwrap().starts_with(&contents));
}

#[test]
fn a_stopped_creation_leaves_no_file() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let create = Permission { create_bytes: Some(8 * MIB), ..Permission::default() };
    let stopped = Target::open(&path, true, Sync::No, &create, &|share| share < 0.4);
    assert!(matches!(stopped, Err(LoadError::Stopped)));
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    // The remainder of a killed creation may belong to a creation in progress.
    fs::write(scratch.path(".file.partial"), "others").unwrap();
    assert_refused(&path, &create, "is being created by another process");
    assert_eq!(fs::read(scratch.path(".file.partial")).unwrap(), b"others");
    // If growing a file fails, it gets its old size back.
    fs::write(&path, vec![7; 1000]).unwrap();
    let grow = Permission { overwrite: true, ..create };
    assert!(matches!(Target::open(&path, true, Sync::No, &grow, &|share| share < 0.4), Err(LoadError::Stopped)));
    assert_eq!(fs::read(&path).unwrap(), vec![7; 1000]);
}

#[test]
fn a_full_disk_leaves_no_file() {
    let Some(mut device) = LoopDevice::new(16 * MIB) else { return };
    let mount = device.directory("mount");
    let path = device.path.clone();
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let create = |bytes| Permission { create_bytes: Some(bytes), ..Permission::default() };
    let file = format!("{mount}/file");
    assert_refused(&file, &create(1 << 40), "1TiB to write, but only");
    assert_refused(&file, &create(u64::MAX), "are free");
    // Another process fills the file system while the file is written. Nothing was reserved, since tmpfs has no
    // fallocate beyond its size.
    let full = device.directory("full");
    if device.during(&["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", &full], &["umount", &full]) {
        let file = format!("{full}/file");
        let other = format!("{full}/other");
        let fill = |share: f64| {
            if share == 0.0 {
                // Frees the reserved space behind the writer's back, as on thin volumes.
                assert!(run(&["fallocate", "--punch-hole", "--length", "4M", &format!("{full}/.file.partial")]));
                let mut other = fs::File::create(&other).unwrap();
                other.write_all(&vec![1; 3 * MIB as usize]).unwrap();
            }
            true
        };
        let error = Target::open(&file, false, Sync::No, &create(4 * MIB), &fill).err().unwrap().to_string();
        assert!(error.contains("no space left: the file system is full"), "{error}");
        let names: Vec<_> = fs::read_dir(&full).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["other"]);
        device.undo_last();
    }
    assert_eq!(
        fs::read_dir(&mount).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(),
        ["lost+found"]
    );
}

#[test]
fn what_is_not_allocated_is_noted() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let mount = device.directory("mount");
    let path = device.path.clone();
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let note = |name: &str, prepare: &dyn Fn(&fs::File)| {
        let path = format!("{mount}/{name}");
        prepare(&fs::File::create(&path).unwrap());
        open(&path, &Permission::default()).unwrap().notes().join("; ")
    };
    let quarter = |file: &fs::File| file.write_all_at(&vec![1; MIB as usize], MIB).unwrap();
    let sparse = note("sparse", &|file| {
        quarter(file);
        file.set_len(4 * MIB).unwrap();
    });
    assert_eq!(sparse, "75.000 % of the file is unallocated; reads there never reach the device");
    let reserved = note("reserved", &|file| {
        // SAFETY: takes numbers only.
        assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 4 << 20) }, 0);
        quarter(file);
    });
    assert_eq!(reserved, sparse);
    assert_eq!(note("hole", &|file| file.set_len(MIB).unwrap()).split(' ').next(), Some("100.000"));
    // The file has more extents than the kernel reports at once.
    let comb = note("comb", &|file| {
        for tooth in 0..600 {
            file.write_all_at(&[1; 1024], tooth * 2048).unwrap();
        }
        file.set_len(600 * 2048).unwrap();
    });
    assert_eq!(comb.split(' ').next(), Some("50.000"));
    assert_eq!(note("whole", &|file| file.write_all_at(&[1; 5000], 0).unwrap()), "");
}

#[test]
fn memory_has_no_direct_io() {
    let scratch =
        if fs::exists("/dev/shm").unwrap() { "/dev/shm" } else { return lacks(Need::Kernel, "there is no /dev/shm") };
    let path = format!("{scratch}/headstack-guard-{}", std::process::id());
    let create = Permission { create_bytes: Some(MIB), ..Permission::default() };
    assert_refused(&path, &create, "is in memory (tmpfs)");
    assert!(!fs::exists(&path).unwrap());
    let target = Target::open(&path, false, Sync::No, &create, &|_| true).map(|target| target.capacity_bytes());
    let line = open(&path, &Permission::default()).err().map(|error| error.to_string());
    fs::remove_file(&path).unwrap();
    assert_eq!(target.unwrap(), MIB);
    assert!(line.unwrap().contains("is in memory"));
}

#[test]
fn links_are_named_with_their_destination() {
    let scratch = Scratch::new();
    let (path, link) = (scratch.path("file"), scratch.path("link"));
    fs::write(&path, vec![1; 8192]).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let write = Permission { write: true, ..Permission::default() };
    assert_refused(&link, &write, &format!("{link} ({path}): exists"));
    let target = open(&link, &Permission::default()).unwrap();
    assert_eq!(target.description()["resolved"], fs::canonicalize(&path).unwrap().to_str().unwrap());
}
