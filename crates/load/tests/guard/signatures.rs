//! Tests that data of other programs on a device are found before they are overwritten.

use headstack_needs::{Need, lacks};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use headstack_load::Permission;

use crate::bench::{LoopDevice, run};
use crate::{MIB, assert_refused, destroying, open, refusal};

/// Returns the signature that blkid finds on a device.
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
        &[
            "cryptsetup",
            "luksFormat",
            "--type=luks1",
            "--key-file=/etc/hostname",
            "--pbkdf-force-iterations=1000",
            "-q",
        ],
        LUKS2,
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
            lacks(Need::Programs, format_args!("{} is not installed", maker.join(" ")));
            continue;
        }
        let Some(name) = blkid(&device.path) else { return lacks(Need::Programs, "there is no blkid") };
        let line = refusal(&device.path, &destroying(device.name()));
        assert!(line.contains(&format!("carries {name} (at byte")), "{maker:?}: {line}");
        assert!(line.ends_with(&format!("--signature {name}")), "{maker:?}: {line}");
        // The signature's name in other letter case is accepted, and another name is not.
        let named = Permission { signatures: vec![name.to_uppercase()], ..destroying(device.name()) };
        open(&device.path, &named).unwrap();
        let other = Permission { signatures: vec!["zfs_member".into()], ..destroying(device.name()) };
        assert_refused(&device.path, &other, &format!("carries {name}"));
    }
}

/// Few iterations of the key derivation, since there is nothing to protect.
const LUKS2: &[&str] = &[
    "cryptsetup",
    "luksFormat",
    "--type=luks2",
    "--key-file=/etc/hostname",
    "--pbkdf=pbkdf2",
    "--pbkdf-force-iterations=1000",
    "-q",
];

#[test]
fn a_file_system_without_its_start_is_found_by_backup_superblocks() {
    let cases: &[(&str, &[&str], u64, u64)] = &[
        ("ext4", &["mkfs.ext4", "-q", "-b", "1024"], MIB, 8193 * 1024 + 56),
        ("ext4", &["mkfs.ext4", "-q", "-b", "4096"], MIB, 32_768 * 4096 + 56),
        ("btrfs", &["mkfs.btrfs", "-q", "-f"], MIB, 64 * MIB + 64),
        ("gpt", &["sgdisk", "-o"], MIB, 320 * MIB - 512),
        ("ntfs", &["mkfs.ntfs", "-Q", "-F"], MIB, 320 * MIB - 509),
        ("f2fs", &["mkfs.f2fs", "-q", "-f"], 4096, 5120),
        ("vfat", &["mkfs.vfat", "-F", "32"], 512, 6 * 512 + 0x52),
        ("exfat", &["mkfs.exfat"], 512, 12 * 512 + 3),
        ("crypto_LUKS", LUKS2, 4096, 16_384),
    ];
    for &(name, maker, lost_bytes, copy) in cases {
        let Some(device) = LoopDevice::new(320 * MIB) else { return };
        if !run(&[maker, &[&device.path]].concat()) {
            lacks(Need::Programs, format_args!("{} is not installed", maker[0]));
            continue;
        }
        let wiped = fs::OpenOptions::new().write(true).open(&device.path).unwrap();
        wiped.write_all_at(&vec![0; lost_bytes as usize], 0).unwrap();
        drop(wiped);
        assert_refused(&device.path, &destroying(device.name()), &format!("carries {name} (at byte {copy} of"));
        let named = Permission { signatures: vec![name.into()], ..destroying(device.name()) };
        open(&device.path, &named).unwrap();
    }
}
