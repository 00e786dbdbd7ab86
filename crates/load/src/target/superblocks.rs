//! Superblocks of formats whose magic numbers are too short to identify them, or have no fixed offset.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const KIB: u64 = 1 << 10;

/// Place of a magic number.
#[derive(Clone, Copy)]
pub(super) enum SignaturePlace {
    Start(u64),
    /// Number of bytes before the end, after the end is rounded down to a multiple of the second number.
    End(u64, u64),
}
use SignaturePlace::{End, Start};

/// Number of bytes that are searched for a copy of the XFS superblock: groups are rounded to whole blocks, or to
/// stripes of at most half as much.
pub(super) const XFS_WINDOW_BYTES: u64 = 256 * KIB;

/// Returns the offsets of the windows that are searched for copies of the XFS superblock. mkfs.xfs creates a power of
/// two of equal allocation groups, up to 32, or groups of 1 TiB if they would otherwise be larger.
pub(super) fn xfs_windows(length_bytes: u64) -> impl Iterator<Item = u64> {
    const GROUPS: u64 = 32;
    const GROUP_BYTES_MAX: u64 = 1 << 40;
    let equal =
        (1..GROUPS).map(move |group| (u128::from(length_bytes) * u128::from(group) / u128::from(GROUPS)) as u64);
    let largest = (1..=length_bytes / GROUP_BYTES_MAX).map(|group| group * GROUP_BYTES_MAX);
    equal.chain(largest).map(|place| (place / 4096 * 4096).saturating_sub(XFS_WINDOW_BYTES / 2))
}

/// A part of a device.
pub(super) struct Part<'a> {
    device: &'a File,
    from_bytes: u64,
    length_bytes: u64,
}

impl Part<'_> {
    pub(super) fn new(device: &File, from_bytes: u64, length_bytes: u64) -> Part<'_> {
        Part { device, from_bytes, length_bytes }
    }

    /// Returns the offset of a place within the part; `None` if the part is too short.
    pub(super) fn resolve(&self, place: SignaturePlace) -> Option<u64> {
        match place {
            Start(at_bytes) => Some(at_bytes),
            End(before_bytes, unit_bytes) => (self.length_bytes / unit_bytes * unit_bytes).checked_sub(before_bytes),
        }
    }

    /// Reads `N` bytes at `at_bytes`; returns `None` if the part ends before.
    pub(super) fn bytes<const N: usize>(&self, at_bytes: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        Ok(self.read(at_bytes, &mut bytes)?.then_some(bytes))
    }

    /// Reads into `bytes` at `at_bytes`; returns false if the part ends before.
    pub(super) fn read(&self, at_bytes: u64, bytes: &mut [u8]) -> io::Result<bool> {
        let end = at_bytes.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes) {
            return Ok(false);
        }
        match self.device.read_exact_at(bytes, self.from_bytes.saturating_add(at_bytes)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            result => result.map(|()| true),
        }
    }

    pub(super) fn holds(&self, at_bytes: u64, magic: &[u8]) -> io::Result<bool> {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..magic.len()];
        Ok(self.read(at_bytes, bytes)? && bytes == magic)
    }

    /// Finds ext2, ext3, ext4 or a separate journal. The magic number has only two bytes, so the superblock must be
    /// consistent too. The copy in the first block group counts if it states its own group.
    pub(super) fn extended(&self) -> io::Result<Option<(&'static str, u64)>> {
        // The first copy is in group 1. A group has as many blocks as a block has bits; with blocks of 1 KiB, it starts
        // after the boot block.
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
            // Features of ext2 and ext3: filetype, recover, journal_dev, meta_bg; sparse_super, large_file, btree_dir.
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

    /// Finds one of the 128 uberblocks in one of the four ZFS labels of 256 KiB, two of which are at each end.
    pub(super) fn zfs(&self) -> io::Result<Option<u64>> {
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

    /// Finds a partition table in the boot sector: its mark, and four entries that are active or not. An entry that
    /// protects the whole disk counts as a GPT.
    pub(super) fn partition_table(&self) -> io::Result<Option<&'static str>> {
        let Some(sector) = self.bytes::<512>(0)? else { return Ok(None) };
        let entries = || sector[446..510].chunks_exact(16);
        if sector[510..] != [0x55, 0xaa] || !entries().all(|entry| entry[0] & 0x7f == 0) {
            return Ok(None);
        }
        Ok(Some(if entries().any(|entry| entry[4] == 0xee) { "gpt" } else { "dos" }))
    }

    /// Finds a copy of the XFS superblock at the start of an allocation group.
    pub(super) fn xfs(&self) -> io::Result<Option<u64>> {
        let mut window = vec![0; XFS_WINDOW_BYTES as usize];
        for from in xfs_windows(self.length_bytes) {
            if self.read(from, &mut window)?
                && let Some(sector) = window.chunks_exact(512).position(|sector| sector.starts_with(b"XFSB"))
            {
                return Ok(Some(from + 512 * sector as u64));
            }
        }
        Ok(None)
    }

    /// Finds one of the two superblocks of nilfs2, with revision 2 and a valid length.
    pub(super) fn nilfs2(&self) -> io::Result<Option<u64>> {
        for place in [Start(KIB), End(4096, 4096), End(4096, 512)] {
            let Some(at) = self.resolve(place) else { continue };
            let Some(head) = self.bytes::<10>(at)? else { continue };
            let length_bytes = u16::from_le_bytes([head[8], head[9]]);
            if head[..4] == [2, 0, 0, 0] && head[6..8] == [0x34, 0x34] && (64..=1024).contains(&length_bytes) {
                return Ok(Some(at + 6));
            }
        }
        Ok(None)
    }

    /// Finds a minix superblock in either byte order, whose bitmaps must have room for its inodes and zones.
    pub(super) fn minix(&self) -> io::Result<Option<u64>> {
        let Some(superblock) = self.bytes::<32>(KIB)? else { return Ok(None) };
        for swapped in [false, true] {
            let half = |at: usize| {
                let bytes = [superblock[at], superblock[at + 1]];
                u64::from(if swapped { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
            };
            let word = |at: usize| if swapped { half(at) << 16 | half(at + 2) } else { half(at) | half(at + 2) << 16 };
            // Inodes, blocks of both bitmaps, the first zone, and all zones.
            let (at, inodes, inode_map, zone_map, first, zones, block_bits) = match (half(0x10), half(0x18)) {
                (0x137f | 0x138f, _) => (0x10, half(0), half(4), half(6), half(8), half(2), 8192),
                (0x2468 | 0x2478, _) => (0x10, half(0), half(4), half(6), half(8), word(0x14), 8192),
                (_, 0x4d5a) => (0x18, word(0), half(6), half(8), half(10), word(0x14), half(0x1c) * 8),
                _ => continue,
            };
            let fits = inode_map > 0 && zone_map > 0 && inodes > 0 && first <= zones;
            if fits && inode_map * block_bits > inodes && zone_map * block_bits > zones - first {
                return Ok(Some(KIB + at));
            }
        }
        Ok(None)
    }

    /// Finds the label of a Sun disk, whose words XOR to zero.
    pub(super) fn sun(&self) -> io::Result<Option<u64>> {
        let Some(sector) = self.bytes::<512>(0)? else { return Ok(None) };
        let sum = sector.chunks_exact(2).fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
        Ok((sector[508..510] == [0xda, 0xbe] && sum == 0).then_some(508))
    }
}
