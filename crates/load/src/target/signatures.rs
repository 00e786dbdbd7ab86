//! Signatures: what says that a device holds something.
//!
//! Names are those of `blkid`; places and magic numbers those of each format's own documentation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Something found on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Its name, such as `ext4` or `gpt`.
    pub name: &'static str,
    /// Where the magic number is, from the start of what was probed.
    pub at_bytes: u64,
}

/// Where a magic number is.
#[derive(Clone, Copy)]
enum Place {
    Start(u64),
    /// So many bytes before the end, which is first rounded down to a multiple of the second.
    End(u64, u64),
}
use Place::{End, Start};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Magic numbers that stand for themselves. A format is listed at all places of its copies, since one overwritten at its
/// start can be recovered from the others.
const MAGICS: &[(&str, &[Place], &[u8])] = &[
    // UEFI: blocks 1 and last, with blocks of 512 and 4,096 bytes.
    ("gpt", &[Start(512), Start(4096), End(512, 512), End(4096, 4096)], b"EFI PART"),
    ("mac", &[Start(512)], b"PM\0\0"),
    ("xfs", &[Start(0)], b"XFSB"),
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
    ("VMFS_volume_member", &[Start(MIB)], b"\x0d\xd0\x01\xc0"),
    ("VMFS", &[Start(2 * MIB)], b"\x5e\xf1\xab\x2f"),
    ("ceph_bluestore", &[Start(0)], b"bluestore block device"),
    ("oracleasm", &[Start(32)], b"ORCLDISK"),
    ("stratis", &[Start(512 + 4), Start(4608 + 4)], b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("vdo", &[Start(0)], b"dmvdo001"),
    ("LVM2_member", &[Start(24), Start(512 + 24), Start(1024 + 24), Start(1536 + 24)], b"LVM2 001"),
    // The page of the machine that made it is 4 to 64 KiB.
    ("swap", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"SWAPSPACE2"),
    ("swap", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"SWAP-SPACE"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"S1SUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"S2SUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"ULSUSPEND"),
    ("swsuspend", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)], b"LINHIB0001"),
    ("crypto_LUKS", &[Start(0)], b"LUKS\xba\xbe"),
    ("crypto_LUKS", &LUKS_SECONDARY, b"SKUL\xba\xbe"),
    // md(4): 0.90 in the last whole 64 KiB, in the order of bytes of the machine; 1.0 at 8 to 12 KiB from the end, 1.1 at
    // the start, 1.2 at 4 KiB.
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
];

/// Sizes of the first header of LUKS2, behind which the second one is (LUKS2 on-disk format, 2.2).
const LUKS_SECONDARY: [Place; 9] = [
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

/// What is found in `length_bytes` of a device from `from_bytes` on, each name once, where it is first found.
///
/// # Errors
/// When the device cannot be read.
pub(super) fn probe(device: &File, from_bytes: u64, length_bytes: u64) -> io::Result<Vec<Signature>> {
    let part = Part { device, from_bytes, length_bytes };
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
    if let Some((name, at_bytes)) = part.extended()? {
        add(name, at_bytes);
    }
    if let Some(at_bytes) = part.zfs()? {
        add("zfs_member", at_bytes);
    }
    // The boot sectors of these end as a partition table does.
    let boots = ["gpt", "vfat", "ntfs", "exfat", "ReFS", "BitLocker"];
    if !found.iter().any(|signature| signature.at_bytes < 4608 && boots.contains(&signature.name))
        && let Some(name) = part.partition_table()?
    {
        found.push(Signature { name, at_bytes: 510 });
    }
    Ok(found)
}

/// A part of a device.
struct Part<'a> {
    device: &'a File,
    from_bytes: u64,
    length_bytes: u64,
}

impl Part<'_> {
    fn resolve(&self, place: Place) -> Option<u64> {
        match place {
            Start(at_bytes) => Some(at_bytes),
            End(before_bytes, unit_bytes) => (self.length_bytes / unit_bytes * unit_bytes).checked_sub(before_bytes),
        }
    }

    /// `N` bytes at `at_bytes`; `None` where the part ends before.
    fn bytes<const N: usize>(&self, at_bytes: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        Ok(self.read(at_bytes, &mut bytes)?.then_some(bytes))
    }

    fn read(&self, at_bytes: u64, bytes: &mut [u8]) -> io::Result<bool> {
        let end = at_bytes.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes) {
            return Ok(false);
        }
        match self.device.read_exact_at(bytes, self.from_bytes.saturating_add(at_bytes)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn holds(&self, at_bytes: u64, magic: &[u8]) -> io::Result<bool> {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..magic.len()];
        Ok(self.read(at_bytes, bytes)? && bytes == magic)
    }

    /// ext2, ext3, ext4 or a journal of its own. Their magic number has two bytes only, so that the superblock must make
    /// sense too; the copy of the first group of blocks counts when it says that it is that.
    fn extended(&self) -> io::Result<Option<(&'static str, u64)>> {
        // The first copy is in group 1: of 8 blocks' bits each, behind the boot block where blocks have 1 KiB.
        let copies = [(1, 8193 * KIB), (2, 16_384 * 2 * KIB), (4, 32_768 * 4 * KIB), (64, 524_288 * 64 * KIB)];
        for (block_kib, at) in std::iter::once((0, KIB)).chain(copies) {
            let Some(superblock) = self.bytes::<1024>(at)? else { continue };
            let half = |at: usize| u16::from_le_bytes([superblock[at], superblock[at + 1]]);
            let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
            let block_log = word(0x18);
            if half(0x38) != 0xef53 || block_log > 6 || word(0x4c) > 1 {
                continue;
            }
            if block_kib != 0 && (half(0x5a) != 1 || 1u64 << block_log != block_kib) {
                continue;
            }
            let (compatible, incompatible, read_only) = (word(0x5c), word(0x60), word(0x64));
            // What ext2 and ext3 know: filetype, recover, journal_dev, meta_bg; sparse_super, large_file, btree_dir.
            let name = if incompatible & 0x8 != 0 {
                "jbd"
            } else if incompatible & !0x1e != 0 || read_only & !0x7 != 0 {
                "ext4"
            } else if compatible & 0x4 != 0 {
                "ext3"
            } else {
                "ext2"
            };
            return Ok(Some((name, at + 0x38)));
        }
        Ok(None)
    }

    /// One of the 128 uberblocks of one of the four labels of 256 KiB, two at each end.
    fn zfs(&self) -> io::Result<Option<u64>> {
        let label = 256 * KIB;
        let mut ring = vec![0; 128 * KIB as usize];
        for place in [Start(0), Start(label), End(2 * label, label), End(label, label)] {
            let Some(at) = self.resolve(place).map(|at| at + 128 * KIB) else { continue };
            if !self.read(at, &mut ring)? {
                continue;
            }
            let magic = |block: &[u8]| {
                let magic = u64::from_le_bytes(block[..8].try_into().unwrap_or_default());
                magic == 0x00ba_b10c || magic.swap_bytes() == 0x00ba_b10c
            };
            if let Some(index) = ring.chunks_exact(1024).position(magic) {
                return Ok(Some(at + index as u64 * KIB));
            }
        }
        Ok(None)
    }

    /// A partition table in the boot sector: its mark, and four entries that are active or not. An entry that protects
    /// the whole disk stands for a GPT.
    fn partition_table(&self) -> io::Result<Option<&'static str>> {
        let Some(sector) = self.bytes::<512>(0)? else { return Ok(None) };
        let entries = || sector[446..510].chunks_exact(16);
        if sector[510..] != [0x55, 0xaa] || !entries().all(|entry| entry[0] & 0x7f == 0) {
            return Ok(None);
        }
        Ok(Some(if entries().any(|entry| entry[4] == 0xee) { "gpt" } else { "dos" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sparse file that is gone when it is closed.
    fn image(length_bytes: u64) -> File {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir()).unwrap();
        file.set_len(length_bytes).unwrap();
        file
    }

    fn names(file: &File, length_bytes: u64) -> Vec<&'static str> {
        probe(file, 0, length_bytes).unwrap().into_iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn every_magic_number_is_found_at_every_place_where_it_is_kept() {
        let length_bytes = (257u64 << 30) + 3 * 512;
        for &(name, places, magic) in MAGICS {
            for place in places {
                let file = image(length_bytes);
                let part = Part { device: &file, from_bytes: 0, length_bytes };
                let at_bytes = part.resolve(*place).unwrap();
                file.write_all_at(magic, at_bytes).unwrap();
                assert_eq!(probe(&file, 0, length_bytes).unwrap(), [Signature { name, at_bytes }]);
                // In a part that begins elsewhere, and not in one that it is no part of.
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

    #[test]
    fn boot_sectors_are_told_from_partition_tables() {
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
        // Whose header and copy are lost, and who says what is lost.
        assert_eq!(boot(&entry(0, 0xee), b"", 0), ["gpt"]);
        assert_eq!(boot(&entry(0, 0xee), b"EFI PART", 512), ["gpt"]);
        assert_eq!(boot(&entry(0x17, 0x83), b"", 0), [""; 0]);
        for (name, magic, at) in [("ntfs", &b"NTFS    "[..], 3), ("vfat", b"FAT16   ", 0x36), ("exfat", b"EXFAT   ", 3)]
        {
            assert_eq!(boot(&none, magic, at), [name]);
        }
        // A file system in a disk with a partition table, as hybrid images have it.
        assert_eq!(boot(&entry(0x80, 0x83), b"CD001", 32 * KIB + 1), ["iso9660", "dos"]);
    }

    #[test]
    fn one_uberblock_in_any_label_says_zfs() {
        // The labels at the end are aligned as those at the start are.
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
            // One that is shorter than it says, as a device that shrinks.
            assert_eq!(names(&file, 1 << 30), [""; 0]);
        }
    }

    #[test]
    fn noise_carries_nothing() {
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
