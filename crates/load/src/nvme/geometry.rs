//! [`Geometry`]: block size, capacity and limits of an NVMe namespace, as reported by its drive.

/// Page size in which drives state the maximum transfer, in bytes. Controllers that only support larger pages are not
/// supported.
const PAGE_BYTES: u64 = 4096;
/// Maximum number of blocks in a command, which counts them in 16 bits from 0.
const BLOCKS_MAX: u64 = 1 << 16;

/// Block size, capacity and limits of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Namespace number.
    pub namespace: u32,
    /// Base-2 logarithm of the block size in bytes.
    pub block_shift: u32,
    /// Capacity, in bytes.
    pub capacity_bytes: u64,
    /// Maximum transfer, in bytes.
    pub longest_bytes: u32,
}

impl Geometry {
    /// Parses the namespace's Identify data (`page`; figure 97 of the NVM Command Set Specification 1.0) and the
    /// controller's maximum transfer (`largest`, log2 of the number of pages; 0 for no limit).
    ///
    /// # Errors
    /// Returns an error if such blocks cannot be measured. The text continues a sentence that begins with the
    /// namespace's name.
    pub fn new(namespace: u32, page: &[u8; 4096], largest: u8) -> Result<Geometry, String> {
        let blocks = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        // The format number has four bits, and two more above them if there are many formats.
        let format = page[26];
        let number = usize::from(format & 0x0f | (format >> 5 & 3) << 4);
        let entry = &page[128 + 4 * number..][..4];
        let (metadata_bytes, shift) = (u16::from_le_bytes([entry[0], entry[1]]), u32::from(entry[2]));
        if !(9..=24).contains(&shift) {
            return Err(format!("reports blocks of 2^{shift} bytes; the minimum is 512 bytes"));
        }
        if metadata_bytes > 0 {
            return Err(format!(
                "has {metadata_bytes} bytes of metadata per block, which is not supported; use its \
                 block device, or a format without metadata"
            ));
        }
        let capacity_bytes = blocks.checked_mul(1 << shift).ok_or("reports more than 2^64 bytes")?;
        let of_drive = if largest == 0 { u64::MAX } else { PAGE_BYTES.saturating_mul(1 << u32::from(largest).min(40)) };
        let longest = of_drive.min(BLOCKS_MAX << shift).min(u64::from(u32::MAX));
        let longest_bytes = (longest >> shift << shift) as u32;
        Ok(Geometry { namespace, block_shift: shift, capacity_bytes, longest_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the Identify data of a namespace with `blocks` blocks, whose format is the third one.
    fn page(blocks: u64, format: u8, entry: [u8; 4]) -> Box<[u8; 4096]> {
        let mut page = Box::new([0; 4096]);
        page[..8].copy_from_slice(&blocks.to_le_bytes());
        page[26] = format;
        let number = usize::from(format & 0x0f | (format >> 5 & 3) << 4);
        page[128 + 4 * number..][..4].copy_from_slice(&entry);
        page
    }

    #[test]
    fn geometry_follows_identify() {
        let of_4k = Geometry::new(3, &page(1000, 2, [0, 0, 12, 0]), 5).unwrap();
        let expected = Geometry { namespace: 3, block_shift: 12, capacity_bytes: 4_096_000, longest_bytes: 131_072 };
        assert_eq!(of_4k, expected);
        // Format 17, whose number needs a bit above the four; without a transfer limit, so that the number of blocks is
        // the limit.
        let of_512 = Geometry::new(1, &page(1 << 21, 0x21, [0, 0, 9, 2]), 0).unwrap();
        assert_eq!((of_512.block_shift, of_512.capacity_bytes, of_512.longest_bytes), (9, 1 << 30, 32 << 20));
        let with_metadata = Geometry::new(1, &page(8, 1, [8, 0, 9, 0]), 0).unwrap_err();
        assert!(with_metadata.starts_with("has 8 bytes of metadata"), "{with_metadata}");
        let odd = Geometry::new(1, &page(8, 0, [0, 0, 3, 0]), 0).unwrap_err();
        assert!(odd.contains("2^3 bytes"), "{odd}");
        assert!(Geometry::new(1, &page(u64::MAX, 0, [0, 0, 12, 0]), 0).is_err());
    }
}
