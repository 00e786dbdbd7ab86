//! Tests of requests that fail during a run.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;

use headstack_load::{FailureScope, Permission, Target, TargetKind};
use headstack_needs::{Need, lacks};
use headstack_workload::{Kind, Request};

use crate::bench::{LoopDevice, run};
use crate::{MIB, destroying, open};

/// Executes a request like the engine. Returns the request and its error number.
fn attempt(target: &Target, kind: Kind, offset_bytes: u64, length_bytes: u32) -> (Request, i32) {
    let request = Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
    let mut memory = vec![1u8; length_bytes as usize + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let (data, fd) = (&mut memory[start..start + length_bytes as usize], target.fd().unwrap().as_raw_fd());
    let (length, offset) = (data.len(), offset_bytes as i64);
    // SAFETY: the buffer has the required length and outlives the call.
    let result = unsafe {
        match kind {
            Kind::Read => libc::pread(fd, data.as_mut_ptr().cast(), length, offset),
            _ => libc::pwrite(fd, data.as_ptr().cast(), length, offset),
        }
    };
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap();
    assert_eq!(result, -1, "{request:?} succeeded");
    (request, errno)
}

#[test]
fn failures_during_a_run_end_it_or_count() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let target = open(&device.path, &destroying(device.name())).unwrap();
    let classify = |target: &Target, (request, errno): (Request, i32)| target.classify(&request, errno);
    let ends = |scope: FailureScope, wanted: &str| match scope {
        FailureScope::End(line) => {
            assert!(line.contains(wanted) && !line.contains('\n'), "{line:?} without {wanted:?}")
        }
        FailureScope::CountOn(line) => panic!("goes on after {line}"),
    };
    // Neither request consists of whole blocks.
    let block_bytes = target.block_bytes();
    ends(
        classify(&target, attempt(&target, Kind::Write, 100, 4096)),
        &format!("{}: write of 4KiB at byte 100: offsets and lengths must be multiples of {block_bytes}", device.path),
    );
    // Simulates a bad block: the data after it is missing there, and only there.
    let backing = fs::OpenOptions::new().write(true).open(&device.backing).unwrap();
    backing.set_len(32 * MIB).unwrap();
    match classify(&target, attempt(&target, Kind::Read, 48 * MIB, 4096)) {
        FailureScope::CountOn(line) => assert!(line.starts_with("read of 4KiB at byte 50331648: "), "{line}"),
        FailureScope::End(line) => panic!("ended by {line}"),
    }
    // Simulates a removed device.
    backing.set_len(0).unwrap();
    assert!(run(&["losetup", "--set-capacity", &device.path]));
    let gone =
        Request { kind: Kind::Read, offset_bytes: 0, length_bytes: 4096, force_unit_access: false, ordered: false };
    ends(target.classify(&gone, libc::EIO), "the device has vanished");
    drop(target);
    backing.set_len(64 * MIB).unwrap();
    assert!(run(&["losetup", "--set-capacity", &device.path]));

    // A file with holes on a file system that runs full.
    let (mount, path) = (device.directory("mount"), device.path.clone());
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let (sparse, other) = (format!("{mount}/sparse"), format!("{mount}/other"));
    fs::File::create(&sparse).unwrap().set_len(MIB).unwrap();
    let mut filler = fs::File::create(&other).unwrap();
    while filler.write_all(&[1; 1 << 16]).and_then(|()| filler.sync_all()).is_ok() {}
    let target = open(&sparse, &Permission { write: true, overwrite: true, ..Permission::default() }).unwrap();
    ends(classify(&target, attempt(&target, Kind::Write, 0, 1 << 20)), "the file system is full");
    let trim = Request { kind: Kind::Trim, ..gone };
    ends(target.classify(&trim, libc::EOPNOTSUPP), "the target does not support trim");
    let read_only = open(&sparse, &Permission::default()).unwrap();
    ends(classify(&read_only, attempt(&read_only, Kind::Write, 0, 4096)), "such requests are not allowed");
}

#[test]
fn alignment_is_blamed_only_if_it_is_the_cause() {
    let path = std::env::temp_dir().join(format!("headstack-failures-{}", std::process::id()));
    fs::write(&path, vec![1; 1 << 16]).unwrap();
    let target = open(path.to_str().unwrap(), &Permission::default()).unwrap();
    let said = |offset_bytes: u64, errno: i32| {
        let (kind, length_bytes) = (Kind::Read, 4096);
        let request = Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        match target.classify(&request, errno) {
            FailureScope::End(line) | FailureScope::CountOn(line) => line,
        }
    };
    assert!(said(1, libc::EINVAL).contains("offsets and lengths must be multiples of "), "{}", said(1, libc::EINVAL));
    // An aligned request was refused for another reason, for example by a server that is about to exit.
    let aligned = said(4096, libc::EINVAL);
    assert!(aligned.contains("its driver or server rejects the request"), "{aligned}");
    assert!(!aligned.contains("must be"), "{aligned}");
    for errno in [libc::ENOTCONN, libc::ECONNABORTED, libc::ESHUTDOWN, libc::ESTALE] {
        let line = said(4096, errno);
        assert!(line.contains("its server has ended or is disconnected") && !line.contains("must be"), "{line}");
    }
    assert!(!said(4096, libc::EIO).contains("must be"));
    fs::remove_file(&path).unwrap();
}

#[test]
fn the_null_target_has_the_stated_size() {
    let target = Target::null(1 << 40);
    assert_eq!((target.kind(), target.capacity_bytes(), target.block_bytes()), (TargetKind::Null, 1 << 40, 1));
    assert!(target.fd().is_none() && target.notes().is_empty() && target.is_rotational().is_none());
}
