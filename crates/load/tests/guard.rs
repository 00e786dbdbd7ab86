//! Nobody's disk is destroyed: what is opened, what is refused, and in which words.

mod bench;

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;

use bench::{LoopDevice, Scratch, attach, run, skipped};
use headstack_load::{LoadError, Permission, Target, TargetKind};
use headstack_workload::jobs::Sync;

const MIB: u64 = 1 << 20;

fn open(path: &str, permission: &Permission) -> Result<Target, LoadError> {
    Target::open(path, true, Sync::No, permission, &|_| true)
}

/// What it says, on one line.
fn refusal(path: &str, permission: &Permission) -> String {
    let Err(error) = open(path, permission) else { panic!("{path} was opened under {permission:?}") };
    let line = error.to_string();
    assert!(!line.contains('\n') && line.starts_with(path), "{line}");
    line
}

#[track_caller]
fn assert_refused(path: &str, permission: &Permission, wanted: &str) {
    let line = refusal(path, permission);
    assert!(line.contains(wanted), "{line:?} without {wanted:?}");
}

fn destroying(name: &str) -> Permission {
    Permission { write: true, destroy: vec![name.to_owned()], ..Permission::default() }
}

fn descriptor_writes(target: &Target) -> bool {
    // SAFETY: asks for flags.
    let flags = unsafe { libc::fcntl(target.fd().unwrap().as_raw_fd(), libc::F_GETFL) };
    flags & libc::O_ACCMODE != libc::O_RDONLY
}

#[test]
fn a_device_is_read_unless_it_is_named_to_be_destroyed() {
    let Some(device) = LoopDevice::new(64 * MIB) else { return };
    let target = open(&device.path, &Permission::default()).unwrap();
    assert_eq!((target.kind(), target.capacity_bytes()), (TargetKind::BlockDevice, 64 * MIB));
    assert!(!descriptor_writes(&target));
    assert!(target.block_bytes().is_power_of_two() && target.physical_block_bytes() >= target.block_bytes());
    assert_eq!(target.description()["device"]["backing_file"], device.backing);
    drop(target);

    let write = Permission { write: true, ..Permission::default() };
    assert_refused(&device.path, &write, &format!("--destroy {}", device.name()));
    // Neither another name, nor a part of one, nor an empty one, nor a file called so.
    for wrong in ["loop", "sda", "", " ", "/dev/null", &device.backing] {
        assert_refused(&device.path, &destroying(wrong), "--destroy");
    }
    for name in [device.name(), &device.path] {
        assert!(descriptor_writes(&open(&device.path, &destroying(name)).unwrap()), "{name}");
    }
    let scratch = Scratch::new();
    let link = scratch.path("by-id");
    std::os::unix::fs::symlink(&device.path, &link).unwrap();
    for (path, name) in [(&link, device.name()), (&device.path, &link), (&link, &link)] {
        assert!(descriptor_writes(&open(path, &destroying(name)).unwrap()), "{path} as {name}");
    }
}
