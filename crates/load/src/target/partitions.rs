//! Finds the partitions in the tables on a device, whether or not the kernel has read them. The kernel reads no tables
//! inside partitions, on devices without a partition scan, or on exports.

use std::fs::File;
use std::io;

use super::superblocks::Part;

/// Block sizes in which tables count, in bytes.
const BLOCK_BYTES: [u64; 2] = [512, 4096];
/// Maximum depth of nested tables, which virtual machines create in partitions.
const DEPTH_MAX: u32 = 3;
/// Maximum number of entries that are read from a table; GPTs have 128.
const ENTRIES_MAX: u64 = 1024;
/// Maximum number of logical partitions that are followed.
const LOGICAL_MAX: usize = 128;
/// Types of an MBR entry that contains logical partitions: CHS, LBA, and Linux's own type.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Type of the MBR entry that protects a GPT.
const PROTECTIVE: u8 = 0xee;

/// Returns the extents (start and length, in bytes) of all partitions in `length_bytes` of a device from `from_bytes`
/// on, including nested partitions.
///
/// # Errors
/// Returns an error if the device cannot be read.
pub(super) fn inside(device: &File, from_bytes: u64, length_bytes: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut partitions = Vec::new();
    collect(device, (from_bytes, length_bytes), 0, &mut partitions)?;
    Ok(partitions)
}

fn collect(
    device: &File,
    (from_bytes, length_bytes): (u64, u64),
    depth: u32,
    partitions: &mut Vec<(u64, u64)>,
) -> io::Result<()> {
    if depth >= DEPTH_MAX {
        return Ok(());
    }
    let part = Part::new(device, from_bytes, length_bytes);
    let mut here = Vec::new();
    for block_bytes in BLOCK_BYTES {
        gpt(&part, length_bytes, block_bytes, &mut here)?;
        mbr(&part, block_bytes, &mut here)?;
    }
    for (begin, length) in here {
        let is_inside = length > 0 && begin > 0 && begin.checked_add(length).is_some_and(|end| end <= length_bytes);
        let extent = (from_bytes.saturating_add(begin), length);
        if is_inside && !partitions.contains(&extent) && (partitions.len() as u64) < ENTRIES_MAX {
            partitions.push(extent);
            collect(device, extent, depth + 1, partitions)?;
        }
    }
    Ok(())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

/// Adds the partitions of a GPT, by its header or by the copy in the last block.
fn gpt(part: &Part, length_bytes: u64, block_bytes: u64, partitions: &mut Vec<(u64, u64)>) -> io::Result<()> {
    let last = (length_bytes / block_bytes).saturating_sub(1) * block_bytes;
    for at in [block_bytes, last] {
        let Some(header) = part.bytes::<92>(at)? else { continue };
        if &header[..8] != b"EFI PART" {
            continue;
        }
        let (table, entries, entry_bytes) = (long(&header, 72), word(&header, 80), word(&header, 84));
        if !(128..=4096).contains(&entry_bytes) {
            continue;
        }
        for index in 0..entries.min(ENTRIES_MAX) {
            let at = table.saturating_mul(block_bytes).saturating_add(index * entry_bytes);
            let Some(entry) = part.bytes::<48>(at)? else { break };
            let (first, last) = (long(&entry, 32), long(&entry, 40));
            if entry[..16] != [0; 16] && last >= first {
                let blocks = (last - first).saturating_add(1);
                partitions.push((first.saturating_mul(block_bytes), blocks.saturating_mul(block_bytes)));
            }
        }
    }
    Ok(())
}

/// Adds the partitions of an MBR, including logical ones.
fn mbr(part: &Part, block_bytes: u64, partitions: &mut Vec<(u64, u64)>) -> io::Result<()> {
    let Some(entries) = entries(part, 0)? else { return Ok(()) };
    for (kind, first, blocks) in entries {
        match kind {
            0 | PROTECTIVE => {}
            kind if EXTENDED.contains(&kind) => logical(part, first, block_bytes, partitions)?,
            _ => partitions.push((first * block_bytes, blocks * block_bytes)),
        }
    }
    Ok(())
}

/// Follows the chain of logical partitions in an extended partition. Each link has its own partition and the next link.
fn logical(part: &Part, extended: u64, block_bytes: u64, partitions: &mut Vec<(u64, u64)>) -> io::Result<()> {
    let mut link = extended;
    for _ in 0..LOGICAL_MAX {
        let Some([(kind, first, blocks), (next_kind, next, _), ..]) = entries(part, link * block_bytes)? else { break };
        if kind != 0 {
            partitions.push(((link + first) * block_bytes, blocks * block_bytes));
        }
        if !EXTENDED.contains(&next_kind) || next == 0 {
            break;
        }
        link = extended + next;
    }
    Ok(())
}

/// Returns type, first block and number of blocks of the four entries of a boot sector; `None` if it is not a boot
/// sector.
fn entries(part: &Part, at_bytes: u64) -> io::Result<Option<[(u8, u64, u64); 4]>> {
    let Some(sector) = part.bytes::<512>(at_bytes)? else { return Ok(None) };
    let entry = |index: usize| &sector[446 + 16 * index..462 + 16 * index];
    let is_table = sector[510..] == [0x55, 0xaa] && (0..4).all(|index| entry(index)[0] & 0x7f == 0);
    Ok(is_table.then(|| std::array::from_fn(|index| (entry(index)[4], word(entry(index), 8), word(entry(index), 12)))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::signatures::image;
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Writes a boot sector with these entries.
    fn boot(file: &File, at_bytes: u64, entries: &[(u8, u32, u32)]) {
        for (index, &(kind, first, blocks)) in entries.iter().enumerate() {
            let at = at_bytes + 446 + 16 * index as u64;
            file.write_all_at(&[kind], at + 4).unwrap();
            file.write_all_at(&first.to_le_bytes(), at + 8).unwrap();
            file.write_all_at(&blocks.to_le_bytes(), at + 12).unwrap();
        }
        file.write_all_at(b"\x55\xaa", at_bytes + 510).unwrap();
    }

    #[test]
    fn primary_and_logical_partitions_of_an_mbr_are_found() {
        let file = image(64 * MIB);
        boot(&file, 0, &[(0x83, 2048, 2048), (0x0f, 8192, 32768)]);
        boot(&file, 8192 * 512, &[(0x83, 63, 100), (0x05, 4096, 4096)]);
        boot(&file, (8192 + 4096) * 512, &[(0x82, 63, 200)]);
        let partitions = inside(&file, 0, 64 * MIB).unwrap();
        for extent in [(2048, 2048), (8192 + 63, 100), (8192 + 4096 + 63, 200)] {
            assert!(partitions.contains(&(extent.0 * 512, extent.1 * 512)), "{extent:?}: {partitions:?}");
        }
    }

    #[test]
    fn a_table_in_a_partition_is_followed_and_counts_from_its_start() {
        let file = image(64 * MIB);
        boot(&file, 0, &[(0x83, 2048, 65536)]);
        boot(&file, MIB, &[(0x83, 4096, 1024)]);
        assert!(inside(&file, 0, 64 * MIB).unwrap().contains(&(3 * MIB, 1024 * 512)));
        assert_eq!(inside(&file, MIB, 32 * MIB).unwrap()[0], (3 * MIB, 1024 * 512));
    }

    #[test]
    fn either_header_of_a_gpt_names_its_partitions() {
        for block_bytes in BLOCK_BYTES {
            for is_copy in [false, true] {
                let file = image(64 * MIB);
                let (header, table) = if is_copy { (64 * MIB - block_bytes, 1000) } else { (block_bytes, 2) };
                file.write_all_at(b"EFI PART", header).unwrap();
                file.write_all_at(&u64::to_le_bytes(table), header + 72).unwrap();
                file.write_all_at(&4u32.to_le_bytes(), header + 80).unwrap();
                file.write_all_at(&128u32.to_le_bytes(), header + 84).unwrap();
                let entry = table * block_bytes + 128;
                file.write_all_at(&[1; 16], entry).unwrap();
                file.write_all_at(&2048u64.to_le_bytes(), entry + 32).unwrap();
                file.write_all_at(&2559u64.to_le_bytes(), entry + 40).unwrap();
                assert_eq!(inside(&file, 0, 64 * MIB).unwrap(), [(2048 * block_bytes, 512 * block_bytes)]);
            }
        }
    }

    #[test]
    fn a_table_that_leads_round_in_a_circle_or_past_the_end_has_an_end() {
        let file = image(8 * MIB);
        boot(&file, 0, &[(0x0f, 2048, 4096), (0x83, 0, 100), (0x83, 100, u32::MAX), (0x83, u32::MAX, u32::MAX)]);
        boot(&file, MIB, &[(0x83, 63, 100), (0x05, 0x800, 1)]);
        boot(&file, 2 * MIB, &[(0x83, 63, 100), (0x05, 0x800, 1)]);
        assert!(inside(&file, 0, 8 * MIB).unwrap().len() < 8);
        assert_eq!(inside(&file, 0, 0).unwrap(), []);
    }
}
