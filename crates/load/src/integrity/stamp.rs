//! [`Stamp`]: the header of each sector, which determines the sector's data.
//!
//! A sector is the unit of atomicity, so each sector has its own stamp, and a torn write shows at the exact sector. All
//! numbers are little-endian.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0..8 | `hsstamp1`: magic and version |
//! | 8..16 | the run, a random number |
//! | 16..24 | where the sector belongs, bytes from the start of the target |
//! | 24..32 | number of the request that wrote it, counted over the run in order of issue |
//! | 32..40 | where that request began, bytes |
//! | 40..44, 44..48 | the request's length in bytes; the generation of the unit |
//! | 48..52, 52..56 | bytes per unit; bytes per sector |
//! | 56..64 | XXH3-64 of bytes 0..56 |
//! | 64.. | data: word `i` is a product of (checksum + `i`·constant), folded |
//!
//! The data are generated from the checksum, and thus depend on every field: no two writes of a run have data in common
//! (nothing to deduplicate), and no byte sequence repeats (nothing to compress). A check generates the data again and
//! compares every bit. This finds at least what a checksum over all bytes would find, and also shows which bits
//! changed, in one pass instead of two; only the 56 bytes that cannot be predicted need a checksum. XXH3 needs no
//! special instructions, and its crate is already a dependency. CRC-32C has only 32 bits, too few to derive the data
//! from.

use twox_hash::XxHash3_64;

/// Magic and version, the first word of a stamp.
const MAGIC: u64 = u64::from_le_bytes(*b"hsstamp1");
/// Bytes of a stamp before the data.
const HEADER_BYTES: usize = 64;
/// Wyrand's increment and mask (Wang Yi, wyhash, public domain): odd, with as many ones as zeros.
const STEP: u64 = 0xa076_1d64_78bd_642f;
const MASK: u64 = 0xe703_7ed1_a0b4_28db;

/// Number of writes and trims of a unit, modulo 2^32. Generations are compared by distance, like TCP sequence numbers.
/// 0 means the contents from before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Generation(pub u32);

impl Generation {
    pub(super) const NONE: Generation = Generation(0);

    /// Returns the next generation, which is never [`Generation::NONE`].
    pub(super) fn next(self) -> Generation {
        Generation(self.0.wrapping_add(1).max(1))
    }

    /// Returns whether this generation was issued before `other`, if fewer than 2^31 generations are between them.
    pub(super) fn is_before(self, other: Generation) -> bool {
        match (self.0, other.0) {
            (_, 0) => false,
            (0, _) => true,
            (a, b) => (a.wrapping_sub(b) as i32) < 0,
        }
    }
}

/// The stamp of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub run: u64,
    pub offset: u64,
    pub request: u64,
    pub request_offset: u64,
    pub request_bytes: u32,
    pub generation: Generation,
    pub unit_bytes: u32,
    pub sector_bytes: u32,
}

/// The contents of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectorContents {
    /// A valid stamp of this run, in its right place.
    Own(Stamp),
    /// A valid stamp of this run that belongs elsewhere.
    Misplaced(Stamp),
    /// A valid stamp of another run.
    OtherRun(Stamp),
    /// A stamp with changed fields or data.
    Corrupt {
        /// Generation, if the fields are valid.
        generation: Option<Generation>,
        /// First byte of the sector that differs, if the fields are valid.
        first_byte: Option<u32>,
        /// Number of bits that differ, if the fields are valid.
        bits: Option<u32>,
    },
    /// Only zeros.
    Zeros,
    /// No stamp.
    Foreign,
}

/// Returns word `index` of the data generated from `seed`.
#[inline(always)]
fn data_word(seed: u64, index: u64) -> u64 {
    let x = seed.wrapping_add(index.wrapping_mul(STEP));
    let product = u128::from(x) * u128::from(x ^ MASK);
    (product >> 64) as u64 ^ product as u64
}

fn word(sector: &[u8], index: usize) -> u64 {
    let bytes = sector.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or([0; 8]))
}

impl Stamp {
    /// Writes the stamp and its data to `sector`.
    pub(crate) fn write(&self, sector: &mut [u8]) {
        let Some((header, data)) = sector.split_at_mut_checked(HEADER_BYTES) else { return };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            MAGIC,
            self.run,
            self.offset,
            self.request,
            self.request_offset,
            pair(self.request_bytes, self.generation.0),
            pair(self.unit_bytes, self.sector_bytes),
        ];
        for (bytes, word) in header.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let seed = XxHash3_64::oneshot(&header[..HEADER_BYTES - 8]);
        header[HEADER_BYTES - 8..].copy_from_slice(&seed.to_le_bytes());
        for (index, bytes) in data.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&data_word(seed, index as u64).to_le_bytes());
        }
    }

    fn read(header: &[u8]) -> Stamp {
        let (lengths, sizes) = (word(header, 5), word(header, 6));
        Stamp {
            run: word(header, 1),
            offset: word(header, 2),
            request: word(header, 3),
            request_offset: word(header, 4),
            request_bytes: lengths as u32,
            generation: Generation((lengths >> 32) as u32),
            unit_bytes: sizes as u32,
            sector_bytes: (sizes >> 32) as u32,
        }
    }
}

/// Classifies `sector`, read at `offset`, by the stamps of run `run`, or of any run if `None`.
pub(crate) fn examine(sector: &[u8], offset: u64, run: Option<u64>) -> SectorContents {
    let Some((header, data)) = sector.split_at_checked(HEADER_BYTES) else { return SectorContents::Foreign };
    let seed = word(header, 7);
    if word(header, 0) != MAGIC || XxHash3_64::oneshot(&header[..HEADER_BYTES - 8]) != seed {
        return without_stamp(sector, offset, run);
    }
    let stamp = Stamp::read(header);
    if run.is_some_and(|run| run != stamp.run) {
        return SectorContents::OtherRun(stamp);
    }
    let mut difference = 0;
    for (index, bytes) in data.chunks_exact(8).enumerate() {
        difference |= word(bytes, 0) ^ data_word(seed, index as u64);
    }
    if difference != 0 {
        return damage(&stamp, seed, data);
    }
    if stamp.offset == offset { SectorContents::Own(stamp) } else { SectorContents::Misplaced(stamp) }
}

/// Classifies a sector without a valid stamp: zeros, foreign data, or a stamp with changed fields, recognized by its
/// magic number, its run or its place.
#[cold]
fn without_stamp(sector: &[u8], offset: u64, run: Option<u64>) -> SectorContents {
    if sector.iter().all(|&byte| byte == 0) {
        return SectorContents::Zeros;
    }
    let own_run = run.is_some_and(|run| run == word(sector, 1));
    let own_place = offset != 0 && word(sector, 2) == offset;
    if word(sector, 0) == MAGIC || own_run || own_place {
        return SectorContents::Corrupt { generation: None, first_byte: None, bits: None };
    }
    SectorContents::Foreign
}

/// Compares the data of a sector with the data that its stamp determines.
#[cold]
fn damage(stamp: &Stamp, seed: u64, data: &[u8]) -> SectorContents {
    let mut bits: u32 = 0;
    let mut first_byte = None;
    for (index, bytes) in data.chunks_exact(8).enumerate() {
        let difference = word(bytes, 0) ^ data_word(seed, index as u64);
        bits += difference.count_ones();
        if difference != 0 && first_byte.is_none() {
            first_byte = Some((HEADER_BYTES + index * 8) as u32 + difference.trailing_zeros() / 8);
        }
    }
    SectorContents::Corrupt { generation: Some(stamp.generation), first_byte, bits: Some(bits) }
}
