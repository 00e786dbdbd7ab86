//! What other programs put on a device is found before it is overwritten.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use headstack_load::Permission;

use crate::bench::{LoopDevice, run, skipped};
use crate::{MIB, assert_refused, destroying, open, refusal};

/// What blkid finds on a device.
fn blkid(path: &str) -> Option<String> {
    let output = Command::new("blkid").args(["--probe", "--output", "export", path]).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key).map(str::to_owned));
    value("TYPE=").or_else(|| value("PTTYPE="))
}

#[test]
fn what_other_programs_make_is_known_by_the_name_that_blkid_has_for_it() {
    let makers: &[&[&str]] = &[
        &["mkfs.ext2", "-q"],
        &["mkfs.ext3", "-q"],
        &["mkfs.ext4", "-q"],
        &["mkfs.ext4", "-q", "-b", "4096"],
        &["mke2fs", "-q", "-O", "journal_dev"],
        &["mkfs.xfs", "-q", "-f"],
        &["mkfs.btrfs", "-q", "-f"],
        &["mkfs.vfat"],
        &["mkfs.vfat", "-F", "32"],
        &["mkfs.exfat"],
        &["mkfs.ntfs", "-Q", "-F"],
        &["mkfs.f2fs", "-q", "-f"],
        &["mkfs.jfs", "-q"],
        &["mkfs.cramfs", "/etc/default"],
        &["mkswap"],
        &["mkswap", "--pagesize", "65536"],
        &["pvcreate", "-qq", "-f"],
        &["cryptsetup", "luksFormat", "-q", "--type", "luks1", "--key-file", "/etc/hostname"],
        &["cryptsetup", "luksFormat", "-q", "--type", "luks2", "--key-file", "/etc/hostname"],
        &["make-bcache", "-B"],
        &["parted", "-s"],
        &["sgdisk", "-o"],
    ];
    for maker in makers {
        let Some(device) = LoopDevice::new(320 * MIB) else { return };
        let mut command = maker.to_vec();
        command.push(&device.path);
        if maker[0] == "parted" {
            command.extend(["mklabel", "gpt"]);
        }
        if !run(&command) {
            println!("skipped: {} is not installed", maker.join(" "));
            continue;
        }
        let Some(name) = blkid(&device.path) else { return println!("skipped: there is no blkid") };
        let line = refusal(&device.path, &destroying(device.name()));
        assert!(line.contains(&format!("carries {name} (at byte")), "{maker:?}: {line}");
        assert!(line.ends_with(&format!("--signature {name}")), "{maker:?}: {line}");
        // One that is named in another spelling of letters, and one of another.
        let named = Permission { signatures: vec![name.to_uppercase()], ..destroying(device.name()) };
        open(&device.path, &named).unwrap();
        let other = Permission { signatures: vec!["zfs_member".into()], ..destroying(device.name()) };
        assert_refused(&device.path, &other, &format!("carries {name}"));
    }
}

#[test]
fn a_file_system_whose_start_is_lost_is_found_by_its_copies() {
    for (block, copy) in [("1024", 8193 * 1024 + 56), ("4096", 32_768 * 4096 + 56)] {
        let Some(device) = LoopDevice::new(320 * MIB) else { return };
        if !run(&["mkfs.ext4", "-q", "-b", block, &device.path]) {
            return skipped("there is no mkfs.ext4").unwrap_or_default();
        }
        let all = Permission { signatures: vec!["ext4".into()], ..destroying(device.name()) };
        let wiped = fs::OpenOptions::new().write(true).open(&device.path).unwrap();
        wiped.write_all_at(&vec![0; MIB as usize], 0).unwrap();
        drop(wiped);
        assert_refused(&device.path, &destroying(device.name()), &format!("carries ext4 (at byte {copy} of"));
        open(&device.path, &all).unwrap();
    }
}
