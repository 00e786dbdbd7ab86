//! Tests of when block devices may be written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use headstack_load::{Permission, TargetKind};
use headstack_needs::{Need, lacks};

use crate::bench::{LoopDevice, Scratch, attach, run};
use crate::{MIB, assert_refused, descriptor_writes, destroying, open, refusal};

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
    // Not accepted: another name, a part of the name, an empty name, or a file with this name.
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

#[test]
fn what_is_mounted_is_not_written() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let mount = device.directory("mount");
    let path = device.path.clone();
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let all = Permission { signatures: vec!["ext4".into()], ..destroying(device.name()) };
    assert_refused(&path, &all, &format!("{} is mounted at {mount}", device.name()));
    // Another node with the same device number leads to the same device.
    let scratch = Scratch::new();
    let node = scratch.path("alias");
    let minor = device.name().strip_prefix("loop").unwrap();
    assert!(run(&["mknod", &node, "b", "7", minor]));
    assert_refused(&node, &all, "is mounted at");
    open(&path, &Permission::default()).unwrap();
    device.undo_last();
    open(&path, &all).unwrap();
}

#[test]
fn a_mount_in_another_namespace_counts() {
    let Some(device) = LoopDevice::new(64 * MIB) else { return };
    let mount = device.directory("mount");
    if !run(&["mkfs.ext4", "-q", &device.path]) {
        return lacks(Need::Programs, "there is no mkfs.ext4");
    }
    let script = format!("mount {} {mount} && echo mounted && read line", device.path);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let seen = fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&mount);
    let all = Permission { signatures: vec!["ext4".into()], ..destroying(device.name()) };
    let outcome = open(&device.path, &all).map(drop);
    drop(child.stdin.take());
    child.wait().unwrap();
    if line.trim() != "mounted" {
        return lacks(Need::Root, "no mount namespace");
    }
    assert!(!seen);
    let line = outcome.unwrap_err().to_string();
    assert!(line.contains(&format!("is mounted at {mount}")), "{line}");
}

#[test]
fn every_member_of_a_mounted_btrfs_is_in_use() {
    let Some(mut device) = LoopDevice::new(128 * MIB) else { return };
    let backing = format!("{}.second", device.backing);
    fs::File::create(&backing).unwrap().set_len(128 * MIB).unwrap();
    let second = attach(&backing).unwrap();
    let (path, mount) = (device.path.clone(), device.directory("mount"));
    let options = format!("device={path},device={}", second.0);
    if !run(&["mkfs.btrfs", "-q", "-f", &path, &second.0])
        || !device.during(&["mount", "-t", "btrfs", "-o", &options, &path, &mount], &["umount", &mount])
    {
        return lacks(Need::Kernel, "no btrfs can be mounted");
    }
    let all = |name: &str| Permission { signatures: vec!["btrfs".into()], ..destroying(name) };
    let lines = [refusal(&path, &all(device.name())), refusal(&second.0, &all(second.name()))];
    assert!(lines[0].contains(&format!("is mounted at {mount}")), "{lines:?}");
    assert!(lines[1].contains("is part of a mounted btrfs"), "{lines:?}");
    device.undo_last();
    open(&second.0, &all(second.name())).unwrap();
}

#[test]
fn a_disk_is_not_written_while_a_partition_is_in_use_nor_the_other_way_round() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let Some(first) = device.add_partition(1, 2048, 40_960) else { return };
    let Some(second) = device.add_partition(2, 43_008, 40_960) else { return };
    let mount = device.directory("mount");
    let (path, name) = (device.path.clone(), device.name().to_owned());
    let disk = Permission { signatures: vec!["ext4".into()], ..destroying(&name) };
    let second_name = format!("{name}p2");
    assert!(run(&["mkfs.ext4", "-q", &first]));
    // The contents of a partition are on the disk too.
    assert_refused(&path, &destroying(&name), &format!("carries ext4 (at byte 1080 of {name}p1)"));
    assert!(device.during(&["mount", &first, &mount], &["umount", &mount]));
    assert_refused(&path, &disk, &format!("{name}p1 is mounted at"));
    // Another partition is not affected, and the disk's name does not name it.
    open(&second, &destroying(&second_name)).unwrap();
    assert_refused(&second, &destroying(&name), "names another target");
    device.undo_last();
    // A disk that is used as a whole has no free partitions; the kernel mounts it only without partitions in use.
    let held = attach(&path).unwrap();
    let line = refusal(&second, &destroying(&second_name));
    let held_name = held.name().to_owned();
    drop(held);
    assert!(line.contains(&format!("{name} is held by {}", held_name)), "{line}");
    open(&path, &disk).unwrap();
}

#[test]
fn what_is_swapped_on_is_not_written() {
    let Some(mut device) = LoopDevice::new(16 * MIB) else { return };
    let path = device.path.clone();
    let all = Permission { signatures: vec!["swap".into()], ..destroying(device.name()) };
    assert!(run(&["mkswap", &path]));
    assert_refused(&path, &destroying(device.name()), "carries swap (at byte 4086 of");
    open(&path, &all).unwrap();
    if !device.during(&["swapon", &path], &["swapoff", &path]) {
        return lacks(Need::Root, "no swap can be added");
    }
    assert_refused(&path, &all, &format!("{} is used as swap", device.name()));
}

#[test]
fn what_is_behind_a_loop_device_is_not_written() {
    let Some(device) = LoopDevice::new(16 * MIB) else { return };
    let overwrite = Permission { write: true, overwrite: true, ..Permission::default() };
    assert_refused(&device.backing, &overwrite, &format!("is behind {}", device.name()));
    // Another name of the same file is refused too.
    let alias = format!("{}.alias", device.backing);
    fs::hard_link(&device.backing, &alias).unwrap();
    assert_refused(&alias, &overwrite, &format!("is behind {}", device.name()));
    open(&device.backing, &Permission::default()).unwrap();
    // A device behind a loop device, and a loop device whose file also backs another one.
    for (backing, wanted) in [(&device.path, "is held by"), (&device.backing, "is on a file that also backs")] {
        let other = attach(backing).unwrap();
        let line = refusal(&device.path, &destroying(device.name()));
        drop(other);
        assert!(line.contains(wanted), "{line}");
    }
    open(&device.path, &destroying(device.name())).unwrap();
}

#[test]
fn a_loop_device_is_in_use_with_the_device_behind_it() {
    let Some(mut device) = LoopDevice::new(64 * MIB) else { return };
    let mount = device.directory("mount");
    let path = device.path.clone();
    if !run(&["mkfs.ext4", "-q", &path]) || !device.during(&["mount", &path, &mount], &["umount", &mount]) {
        return lacks(Need::Root, "no ext4 can be mounted");
    }
    let other = attach(&path).unwrap();
    let all = Permission { signatures: vec!["ext4".into()], ..destroying(&other.0) };
    let line = refusal(&other.0, &all);
    assert!(line.contains(&format!("{} is mounted at {mount}", device.name())), "{line}");
}

#[test]
fn a_device_is_written_by_one_only() {
    let Some(device) = LoopDevice::new(16 * MIB) else { return };
    let name = device.name();
    let target = open(&device.path, &destroying(name)).unwrap();
    assert_refused(&device.path, &destroying(name), "holds it exclusively");
    open(&device.path, &Permission::default()).unwrap();
    drop(target);
    // Opened like servers that export a device, or virtual machines.
    let script = format!("exec 3<>{}; echo open; read line", device.path);
    let mut child =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let outcome = open(&device.path, &destroying(name)).map(drop);
    drop(child.stdin.take());
    child.wait().unwrap();
    let line = outcome.unwrap_err().to_string();
    assert!(line.contains(&format!("sh (process {}) has it open for writing", child.id())), "{line}");
    open(&device.path, &destroying(name)).unwrap();
}

#[test]
fn unmeasurable_devices_are_refused_with_a_reason() {
    let Some(mut device) = LoopDevice::new(16 * MIB) else { return };
    let path = device.path.clone();
    assert!(device.during(&["blockdev", "--setro", &path], &["blockdev", "--setrw", &path]));
    assert_refused(&device.path, &destroying(device.name()), "is read-only");
    let target = open(&device.path, &Permission::default()).unwrap();
    assert!(target.check_span(0, 16 * MIB).is_ok());
    for (offset_bytes, length_bytes) in [(MIB, 16 * MIB), (0, 16 * MIB + 1), (u64::MAX, 2)] {
        let error = target.check_span(offset_bytes, length_bytes).err().unwrap().to_string();
        assert!(error.contains("has 16MiB; ") && error.contains("do not fit"), "{error}");
    }
    // Device numbers for experiments without a driver, drives without a medium, and devices with nothing behind them.
    let scratch = Scratch::new();
    let node = scratch.path("none");
    assert!(run(&["mknod", &node, "b", "240", "0"]));
    assert_refused(&node, &Permission::default(), "has no device, or");
    let blocks = fs::read_dir("/sys/class/block").unwrap().map(|entry| entry.unwrap());
    let empty = |entry: &fs::DirEntry| fs::read_to_string(entry.path().join("size")).is_ok_and(|size| size == "0\n");
    for entry in blocks.filter(empty) {
        let path = format!("/dev/{}", entry.file_name().to_str().unwrap());
        assert_refused(&path, &Permission::default(), "has a size of 0");
    }
}
