//! [`Signature`]: a magic number that shows that a device contains data.
//!
//! Names are those of `blkid`; offsets and magic numbers are from each format's own documentation.

use std::fs::File;
use std::io;

use super::superblocks::Part;
use super::superblocks::SignaturePlace::{self, End, Start};

/// A signature on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Name, such as `ext4` or `gpt`.
    pub name: &'static str,
    /// Offset of the magic number from the start of the probed range, in bytes.
    pub at_bytes: u64,
}

impl Signature {
    /// Returns whether the signature is that of a partition table, which does not imply any other data.
    pub(super) fn is_table(name: &str) -> bool {
        ["gpt", "dos", "mac", "bsd", "sgi", "sun", "solaris", "unixware"].contains(&name)
    }

    /// Returns whether the format has a boot sector, which ends like a partition table.
    pub(super) fn is_boot_sector(&self) -> bool {
        self.at_bytes < 4608 && ["gpt", "vfat", "ntfs", "exfat", "ReFS", "BitLocker"].contains(&self.name)
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Magic numbers that identify a format on their own. Each format has the offsets of all its copies, since a file
/// system that is overwritten at its start can be recovered from them.
const MAGICS: &[(&str, &[SignaturePlace], &[u8])] = &[
    // UEFI: the second and the last block, with blocks of 512 and 4,096 bytes.
    ("gpt", &[Start(512), Start(4096), End(512, 512), End(4096, 4096)], b"EFI PART"),
    ("mac", &[Start(512)], b"PM\0\0"),
    // Offsets on i386, alpha and sparc.
    ("bsd", &[Start(512), Start(64), Start(128)], b"\x57\x45\x56\x82"),
    ("sgi", &[Start(0)], b"\x0b\xe5\xa9\x41"),
    ("aix", &[Start(0)], b"\xc9\xc2\xd4\xc1"),
    ("solaris", &[Start(512 + 12)], b"\xee\xde\x0d\x60"),
    ("unixware", &[Start(29 * 512 + 4)], b"\x0d\x60\x5e\xca"),
    ("xfs", &[Start(0)], b"XFSB"),
    // Header of the first allocation group, after the superblock of one sector.
    ("xfs", &[Start(512), Start(4096)], b"XAGF"),
    ("xfs", &[Start(1024), Start(8192)], b"XAGI"),
    ("xfs_external_log", &[Start(0)], b"\xfe\xed\xba\xbe"),
    ("btrfs", &[Start(64 * KIB + 64), Start(64 * MIB + 64), Start((256 << 30) + 64)], b"_BHRfS_M"),
    ("bcache", &[Start(4096 + 24)], b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("bcachefs", &[Start(4096 + 24)], b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    ("f2fs", &[Start(KIB), Start(4096 + KIB)], b"\x10\x20\xf5\xf2"),
    ("erofs", &[Start(KIB)], b"\xe2\xe1\xf5\xe0"),
    ("reiserfs", &[Start(64 * KIB + 52), Start(8 * KIB + 52)], b"ReIsEr"),
    ("jfs", &[Start(32 * KIB)], b"JFS1"),
    ("gfs2", &[Start(64 * KIB)], b"\x01\x16\x19\x70"),
    ("ocfs2", &[Start(KIB), Start(2 * KIB), Start(4 * KIB), Start(8 * KIB)], b"OCFSV2"),
    ("hfsplus", &[Start(KIB), End(KIB, 512)], b"H+\0\x04"),
    ("hfsplus", &[Start(KIB), End(KIB, 512)], b"HX\0\x05"),
    ("apfs", &[Start(32)], b"NXSB"),
    ("ntfs", &[Start(3), End(512 - 3, 512)], b"NTFS    "),
    ("exfat", &[Start(3), Start(12 * 512 + 3), Start(12 * 4096 + 3)], b"EXFAT   "),
    ("vfat", &[Start(0x52), Start(6 * 512 + 0x52), Start(6 * 4096 + 0x52)], b"FAT32   "),
    ("vfat", &[Start(0x36)], b"FAT16   "),
    ("vfat", &[Start(0x36)], b"FAT12   "),
    ("vfat", &[Start(0x36)], b"FAT     "),
    ("ReFS", &[Start(3)], b"ReFS\0"),
    ("BitLocker", &[Start(3)], b"-FVE-FS-"),
    ("iso9660", &[Start(32 * KIB + 1)], b"CD001"),
    ("udf", &[Start(34 * KIB + 1), Start(36 * KIB + 1), Start(38 * KIB + 1)], b"NSR0"),
    ("squashfs", &[Start(0)], b"hsqs"),
    ("squashfs", &[Start(0)], b"sqsh"),
    ("cramfs", &[Start(0)], b"\x45\x3d\xcd\x28"),
    ("romfs", &[Start(0)], b"-rom1fs-"),
    ("bfs", &[Start(0)], b"\xce\xfa\xad\x1b"),
    ("zonefs", &[Start(0)], b"SFOZ"),
    ("ubi", &[Start(0)], b"UBI#"),
    ("ubifs", &[Start(0)], b"\x31\x18\x10\x06"),
    ("hpfs", &[Start(8 * KIB)], b"\x49\xe8\x95\xf9"),
    // The byte order of i386, and that of HP-UX machines.
    ("vxfs", &[Start(KIB)], b"\xf5\xfc\x01\xa5"),
    ("vxfs", &[Start(8 * KIB)], b"\xa5\x01\xfc\xf5"),
    // UFS1, UFS2, and the variants of NeXT, HP-UX and others, in either byte order.
    ("ufs", &UFS, b"\x54\x19\x01\0"),
    ("ufs", &UFS, b"\0\x01\x19\x54"),
    ("ufs", &UFS, b"\x19\x01\x54\x19"),
    ("ufs", &UFS, b"\x19\x54\x01\x19"),
    ("ufs", &UFS, b"\x14\x50\x09\0"),
    ("ufs", &UFS, b"\0\x09\x50\x14"),
    ("ufs", &UFS, b"\x12\x56\x19\0"),
    ("ufs", &UFS, b"\0\x19\x56\x12"),
    ("ufs", &UFS, b"\x95\x21\x61\0"),
    ("ufs", &UFS, b"\0\x61\x21\x95"),
    ("ufs", &UFS, b"\x94\x19\x23\x05"),
    ("ufs", &UFS, b"\x05\x23\x19\x94"),
    ("VMFS_volume_member", &[Start(MIB)], b"\x0d\xd0\x01\xc0"),
    ("VMFS", &[Start(2 * MIB)], b"\x5e\xf1\xab\x2f"),
    ("ceph_bluestore", &[Start(0)], b"bluestore block device"),
    ("oracleasm", &[Start(32)], b"ORCLDISK"),
    ("stratis", &[Start(512 + 4), Start(4608 + 4)], b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("vdo", &[Start(0)], b"dmvdo001"),
    ("LVM2_member", &[Start(24), Start(512 + 24), Start(1024 + 24), Start(1536 + 24)], b"LVM2 001"),
    // Header of a metadata area, which is in the second 4 KiB if the label is lost.
    ("LVM2_member", &[Start(4096 + 4)], b" LVM2 x[5A%r0N*>"),
    // The version is 1 or 2.
    ("LVM1_member", &[Start(0)], b"HM\x01\0"),
    ("LVM1_member", &[Start(0)], b"HM\x02\0"),
    // Windows dynamic disks: a header in the boot track, and copies in the last MiB.
    ("ldm_member", &[Start(6 * 512), End(192 * 512, 512), End(512, 512)], b"PRIVHEAD"),
    ("ldm_member", &[End(2047 * 512, 512), End(2046 * 512, 512)], b"TOCBLOCK"),
    ("storage_spaces", &[Start(0)], b"SPACEDB "),
    ("sbd", &[Start(0)], b"SBD_SBD_"),
    ("spdk_blobstore", &[Start(0)], b"SPDKBLOB"),
    // Images of virtual machines and archives that were written directly to a device.
    ("qcow2", &[Start(0)], b"QFI\xfb"),
    ("vmdk", &[Start(0)], b"KDMV"),
    ("vmdk", &[Start(0)], b"COWD"),
    ("vmdk", &[Start(0)], b"# Disk DescriptorFile"),
    ("vdi", &[Start(64)], b"\x7f\x10\xda\xbe"),
    ("vhdx", &[Start(0)], b"vhdxfile"),
    ("vhd", &[Start(0), End(512, 512)], b"conectix"),
    ("tar", &[Start(257)], b"ustar"),
    ("cpio", &[Start(0)], b"07070"),
    ("zip", &[Start(0)], b"PK\x03\x04"),
    ("gzip", &[Start(0)], b"\x1f\x8b\x08"),
    ("xz", &[Start(0)], b"\xfd7zXZ\0"),
    ("zstd", &[Start(0)], b"\x28\xb5\x2f\xfd"),
    ("sqlite", &[Start(0)], b"SQLite format 3\0"),
    ("DM_integrity", &[Start(0)], b"integrt\0"),
    ("DM_verity_hash", &[Start(0)], b"verity\0\0"),
    ("DM_snapshot_cow", &[Start(0)], b"SnAp"),
    // The page size of the machine that created the swap area is 4 to 64 KiB.
    ("swap", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"SWAPSPACE2"),
    ("swap", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"SWAP-SPACE"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"S1SUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"S2SUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"ULSUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"LINHIB0001"),
    ("crypto_LUKS", &[Start(0)], b"LUKS\xba\xbe"),
    ("crypto_LUKS", &LUKS_SECONDARY, b"SKUL\xba\xbe"),
    // md(4): version 0.90 in the last whole 64 KiB, in the machine's byte order; 1.0 at 8 to 12 KiB from the end, 1.1
    // at the start, 1.2 at 4 KiB.
    (
        "linux_raid_member",
        &[End(64 * KIB, 64 * KIB), End(8 * KIB, 4 * KIB), Start(0), Start(4096)],
        b"\xfc\x4e\x2b\xa9",
    ),
    (
        "linux_raid_member",
        &[End(64 * KIB, 64 * KIB), End(8 * KIB, 4 * KIB), Start(0), Start(4096)],
        b"\xa9\x2b\x4e\xfc",
    ),
    ("ddf_raid_member", &[End(512, 512), End(257 * 512, 512)], b"\xde\x11\xde\x11"),
    ("ddf_raid_member", &[End(512, 512), End(257 * 512, 512)], b"\x11\xde\x11\xde"),
    ("isw_raid_member", &[End(1024, 512), End(8192, 4096)], b"Intel Raid ISM Cfg Sig. "),
    ("nvidia_raid_member", &[End(1024, 512)], b"NVIDIA"),
    ("promise_fasttrack_raid_member", &PROMISE, b"Promise Technology, Inc."),
    ("lsi_mega_raid_member", &[End(512, 512)], b"$XIDE$"),
    ("hpt45x_raid_member", &[End(11 * 512, 512)], b"\xf3\x16\x78\x5a"),
    ("hpt37x_raid_member", &[Start(9 * 512 + 32)], b"\xf0\x16\x78\x5a"),
];

/// Offsets of the superblock's magic number, which is near its end.
const UFS: [SignaturePlace; 4] =
    [Start(0x55c), Start(8 * KIB + 0x55c), Start(64 * KIB + 0x55c), Start(256 * KIB + 0x55c)];

/// Offsets of the metadata of controllers from different years, in sectors from the end.
const PROMISE: [SignaturePlace; 13] = [
    End(63 * 512, 512),
    End(255 * 512, 512),
    End(256 * 512, 512),
    End(16 * 512, 512),
    End(399 * 512, 512),
    End(591 * 512, 512),
    End(675 * 512, 512),
    End(735 * 512, 512),
    End(911 * 512, 512),
    End(974 * 512, 512),
    End(991 * 512, 512),
    End(951 * 512, 512),
    End(3087 * 512, 512),
];

/// Sizes of the first LUKS2 header, after which the second header follows (LUKS2 on-disk format, 2.2).
const LUKS_SECONDARY: [SignaturePlace; 9] = [
    Start(16 * KIB),
    Start(32 * KIB),
    Start(64 * KIB),
    Start(128 * KIB),
    Start(256 * KIB),
    Start(512 * KIB),
    Start(MIB),
    Start(2 * MIB),
    Start(4 * MIB),
];

/// Returns the signatures in `length_bytes` of a device from `from_bytes` on. Each name occurs once, with its first
/// offset.
///
/// # Errors
/// Returns an error if the device cannot be read.
pub(super) fn probe(device: &File, from_bytes: u64, length_bytes: u64) -> io::Result<Vec<Signature>> {
    let part = Part::new(device, from_bytes, length_bytes);
    let mut found: Vec<Signature> = Vec::new();
    let mut add = |name, at_bytes| {
        if !found.iter().any(|signature| signature.name == name) {
            found.push(Signature { name, at_bytes });
        }
    };
    for &(name, places, magic) in MAGICS {
        for place in places {
            if let Some(at_bytes) = part.resolve(*place)
                && part.holds(at_bytes, magic)?
            {
                add(name, at_bytes);
            }
        }
    }
    match part.extended()? {
        Some((name, at_bytes)) => add(name, at_bytes),
        // An ext4 superblock can look like a minix superblock.
        None => part.minix()?.into_iter().for_each(|at_bytes| add("minix", at_bytes)),
    }
    let others = [("nilfs2", part.nilfs2()?), ("zfs_member", part.zfs()?), ("sun", part.sun()?), ("xfs", part.xfs()?)];
    for (name, at_bytes) in others {
        if let Some(at_bytes) = at_bytes {
            add(name, at_bytes);
        }
    }
    if !found.iter().any(Signature::is_boot_sector)
        && let Some(name) = part.partition_table()?
    {
        found.push(Signature { name, at_bytes: 510 });
    }
    Ok(found)
}

/// Returns a sparse file that vanishes when it is closed.
#[cfg(test)]
pub(super) fn image(length_bytes: u64) -> File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir()).unwrap();
    file.set_len(length_bytes).unwrap();
    file
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn names(file: &File, length_bytes: u64) -> Vec<&'static str> {
        probe(file, 0, length_bytes).unwrap().into_iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn every_magic_number_is_found_at_each_of_its_offsets() {
        let length_bytes = (257u64 << 30) + 3 * 512;
        for &(name, places, magic) in MAGICS {
            for place in places {
                let file = image(length_bytes);
                let part = Part::new(&file, 0, length_bytes);
                let at_bytes = part.resolve(*place).unwrap();
                file.write_all_at(magic, at_bytes).unwrap();
                assert_eq!(probe(&file, 0, length_bytes).unwrap(), [Signature { name, at_bytes }]);
                // Not found in a part elsewhere that does not contain the magic number.
                assert_eq!(probe(&file, 4 << 30, 1 << 30).unwrap(), []);
                file.write_all_at(&vec![0; magic.len()], at_bytes).unwrap();
                assert_eq!(names(&file, length_bytes), [""; 0]);
            }
        }
    }

    #[test]
    fn magic_numbers_count_from_the_start_of_a_partition() {
        let file = image(256 << 20);
        file.write_all_at(b"XFSB", 1 << 20).unwrap();
        file.write_all_at(b"\xfc\x4e\x2b\xa9", (1 << 20) + (64 << 20) - 8192).unwrap();
        let found = probe(&file, 1 << 20, 64 << 20).unwrap();
        let at = |name, at_bytes| Signature { name, at_bytes };
        assert_eq!(found, [at("xfs", 0), at("linux_raid_member", (64 << 20) - 8192)]);
        assert_eq!(names(&file, 256 << 20), [""; 0]);
    }

    /// Tests formats whose offsets count from the end, rounded down to their unit. The expected offsets were computed
    /// by hand.
    #[test]
    fn the_end_of_a_device_is_rounded_to_the_unit_of_each_format() {
        // 63 sectors more than whole units of 64 KiB, and thus 7 sectors more than whole units of 4 KiB.
        let (whole, length_bytes) = (64 * MIB, 64 * MIB + 63 * 512);
        let four = whole + 7 * 4096;
        let cases: &[(&str, &[u8], u64)] = &[
            ("linux_raid_member", b"\xfc\x4e\x2b\xa9", whole - 64 * KIB),
            ("linux_raid_member", b"\xfc\x4e\x2b\xa9", four - 8 * KIB),
            ("gpt", b"EFI PART", length_bytes - 512),
            ("gpt", b"EFI PART", four - 4096),
            ("isw_raid_member", b"Intel Raid ISM Cfg Sig. ", length_bytes - 1024),
            ("isw_raid_member", b"Intel Raid ISM Cfg Sig. ", four - 8192),
            ("nvidia_raid_member", b"NVIDIA", length_bytes - 1024),
            ("lsi_mega_raid_member", b"$XIDE$", length_bytes - 512),
            ("promise_fasttrack_raid_member", b"Promise Technology, Inc.", length_bytes - 63 * 512),
            ("ddf_raid_member", b"\xde\x11\xde\x11", length_bytes - 512),
            ("ddf_raid_member", b"\x11\xde\x11\xde", length_bytes - 257 * 512),
            ("hpt45x_raid_member", b"\xf3\x16\x78\x5a", length_bytes - 11 * 512),
            ("ntfs", b"NTFS    ", length_bytes - 512 + 3),
            ("hfsplus", b"H+\0\x04", length_bytes - 1024),
        ];
        for &(name, magic, at_bytes) in cases {
            let file = image(length_bytes);
            file.write_all_at(magic, at_bytes).unwrap();
            assert_eq!(probe(&file, 0, length_bytes).unwrap(), [Signature { name, at_bytes }], "{name}");
            // A remainder of less than a sector does not change any offset; a magic number that is off by a sector does
            // not count.
            assert_eq!(probe(&file, 0, length_bytes + 511).unwrap(), [Signature { name, at_bytes }], "{name}");
            let file = image(length_bytes);
            file.write_all_at(magic, at_bytes + 512 - 512 * 2).unwrap();
            assert_eq!(names(&file, length_bytes), [""; 0], "{name}");
        }
        // The second superblock of nilfs2, and the ZFS labels of 256 KiB.
        let file = image(length_bytes);
        file.write_all_at(&[2, 0, 0, 0, 0, 0, 0x34, 0x34, 0, 4], four - 4096).unwrap();
        assert_eq!(probe(&file, 0, length_bytes).unwrap(), [Signature { name: "nilfs2", at_bytes: four - 4096 + 6 }]);
        let file = image(length_bytes);
        file.write_all_at(&0x00ba_b10c_u64.to_le_bytes(), whole - 128 * KIB).unwrap();
        assert_eq!(
            probe(&file, 0, length_bytes).unwrap(),
            [Signature { name: "zfs_member", at_bytes: whole - 128 * KIB }]
        );
    }

    #[test]
    fn boot_sectors_are_distinguished_from_partition_tables() {
        let length_bytes = 1 << 20;
        let boot = |entry: &[u8; 16], magic: &[u8], at: u64| {
            let file = image(length_bytes);
            file.write_all_at(entry, 446).unwrap();
            file.write_all_at(b"\x55\xaa", 510).unwrap();
            file.write_all_at(magic, at).unwrap();
            names(&file, length_bytes)
        };
        let none = [0; 16];
        let entry = |active, kind| {
            let mut entry = none;
            (entry[0], entry[4], entry[12]) = (active, kind, 8);
            entry
        };
        assert_eq!(boot(&none, b"", 0), ["dos"]);
        assert_eq!(boot(&entry(0x80, 0x83), b"", 0), ["dos"]);
        // Header and copy are lost, and only the protective entry is left.
        assert_eq!(boot(&entry(0, 0xee), b"", 0), ["gpt"]);
        assert_eq!(boot(&entry(0, 0xee), b"EFI PART", 512), ["gpt"]);
        assert_eq!(boot(&entry(0x17, 0x83), b"", 0), [""; 0]);
        for (name, magic, at) in [("ntfs", &b"NTFS    "[..], 3), ("vfat", b"FAT16   ", 0x36), ("exfat", b"EXFAT   ", 3)]
        {
            assert_eq!(boot(&none, magic, at), [name]);
        }
        // A file system on a disk with a partition table, as in hybrid images.
        assert_eq!(boot(&entry(0x80, 0x83), b"CD001", 32 * KIB + 1), ["iso9660", "dos"]);
    }

    #[test]
    fn one_uberblock_in_any_label_identifies_zfs() {
        // The labels at the end are aligned like those at the start.
        let length_bytes = (64 << 20) + 512;
        let labels = [0, 256 * KIB, (64 << 20) - 512 * KIB, (64 << 20) - 256 * KIB];
        for (index, magic) in [0x00ba_b10cu64.to_le_bytes(), 0x00ba_b10cu64.to_be_bytes()].iter().enumerate() {
            for label in labels {
                let file = image(length_bytes);
                let at_bytes = label + 128 * KIB + 37 * KIB * index as u64;
                file.write_all_at(magic, at_bytes).unwrap();
                assert_eq!(probe(&file, 0, length_bytes).unwrap(), [Signature { name: "zfs_member", at_bytes }]);
            }
        }
    }

    #[test]
    fn short_and_empty_devices_are_searched_as_far_as_they_go() {
        for length_bytes in [0, 1, 511, 512, 1000, 1024, 4096, 65_536, 131_071] {
            let file = image(length_bytes);
            assert_eq!(names(&file, length_bytes), [""; 0]);
            // The file is shorter than stated, as after a device shrinks.
            assert_eq!(names(&file, 1 << 30), [""; 0]);
        }
    }

    #[test]
    fn noise_has_no_signature() {
        use headstack_workload::{Purpose, Random};
        let mut random = Random::new(7, Purpose::Contents);
        let length_bytes = 4 << 20;
        for _ in 0..20 {
            let noise: Vec<u8> = (0..length_bytes / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
            let file = image(length_bytes);
            file.write_all_at(&noise, 0).unwrap();
            assert_eq!(names(&file, length_bytes), [""; 0]);
        }
    }
}
