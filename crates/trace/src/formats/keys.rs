//! Addresses of objects identified by a key: a hash of the key, so every file and every machine yields the same, no
//! table of keys is needed, and lines can be parsed in parallel.
//!
//! An object begins at one of 2^50 places, 4,096 bytes apart: among a million objects, two share a place with a
//! probability of 1 in 2,252, among a hundred million, about four pairs do. Adjacent objects are unrelated.

use super::units::{Stated, proven_unit};
use crate::error::{Problem, refused};
use crate::meta::{AddressSpace, Meta};

/// Bytes between places.
const PLACE_BYTES: u64 = 4_096;
const PLACES: u64 = 1 << 50;

/// Address of the object with that key.
#[inline]
pub(crate) fn address(key: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    // Each step is a bijection of the state and of the next eight bytes, so only keys that differ in two words can
    // collide.
    let step = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
        hash ^ hash >> 32
    };
    let (words, rest) = key.as_chunks::<8>();
    let hash = words.iter().fold(key.len() as u64, |hash, word| step(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // The finalizer of MurmurHash3: every input bit changes half of the output bits.
    let mut hash = step(hash, u64::from_le_bytes(last));
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((hash ^ hash >> 33) % PLACES) * PLACE_BYTES
}

/// Interpretation of the numbers by which a cache trace identifies data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Consecutive blocks of `bytes`.
    Blocks { bytes: u32 },
    /// Objects of any length: each has the address of a key, so that none overlaps another.
    Objects,
}

impl Numbers {
    /// Blocks of a given size, or one that `requests` prove; else objects.
    pub(crate) fn of(said_bytes: Option<u32>, requests: &[Stated], meta: &mut Meta) -> Numbers {
        if let Some(bytes) = said_bytes {
            return Numbers::Blocks { bytes };
        }
        match proven_unit(requests) {
            Some(bytes) => {
                meta.note(format!(
                    "object numbers are addresses in units of {bytes} bytes, as sequential requests show"
                ));
                Numbers::Blocks { bytes }
            }
            None => {
                meta.address_space = AddressSpace::Object;
                meta.note("object numbers may not be addresses; add --sector 512 if they count sectors");
                Numbers::Objects
            }
        }
    }

    /// The unit of addresses.
    pub(crate) fn block_bytes(self) -> Option<u32> {
        match self {
            Numbers::Blocks { bytes } => Some(bytes),
            Numbers::Objects => None,
        }
    }

    /// Address of a number. A block at or above 2^62 is an object.
    ///
    /// # Errors
    /// For the number with all bits set, which is no object and frequent in broken files.
    #[inline]
    pub(crate) fn address(self, number: u64) -> Result<u64, Problem> {
        if number == u64::MAX {
            return Err(("object", "must be below 2^64 - 1".to_owned()));
        }
        let block = match self {
            Numbers::Blocks { bytes } => number.checked_mul(u64::from(bytes)),
            Numbers::Objects => None,
        };
        let block = block.filter(|&address| address < PLACES * PLACE_BYTES);
        Ok(block.unwrap_or_else(|| address(&number.to_le_bytes())))
    }
}

/// Refuses invalid keys, so that not every text is accepted as a list of keys.
#[inline]
pub(crate) fn check(key: &[u8]) -> Result<(), Problem> {
    let is_good = |&byte: &u8| byte > b' ' && byte != 0x7f && !matches!(byte, b',' | b';' | b'"' | b'{' | b'}');
    if !key.is_empty() && key.iter().all(is_good) && std::str::from_utf8(key).is_ok() {
        return Ok(());
    }
    Err(refused("key", key, "a word of UTF-8 without blanks, commas, semicolons, quotes and braces"))
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;

    #[test]
    fn keys_have_addresses_of_their_own() {
        let key = |number: u64| format!("q:q:1:{number:x}");
        let places: FxHashSet<u64> = (0..200_000).map(|number| address(key(number).as_bytes())).collect();
        assert_eq!(places.len(), 200_000);
        assert!(places.iter().all(|place| place % PLACE_BYTES == 0 && *place < 1 << 62));
        // Evenly distributed: of 200,000 in 16 parts, each has 12,500 +- 5 standard deviations.
        for part in 0..16 {
            let count = places.iter().filter(|place| *place >> 58 == part).count();
            assert!(count.abs_diff(12_500) < 550, "{part}: {count}");
        }
        // Also for keys that differ in one byte, or only in length.
        let zeros = [0; 40];
        let lengths: FxHashSet<u64> = (0..=40).map(|length| address(&zeros[..length])).collect();
        assert_eq!(lengths.len(), 41);
    }

    #[test]
    fn addresses_never_change() {
        assert_eq!(address(b"q:q:1:8WTfjZU14ee"), ADDRESS);
        let blocks = Numbers::Blocks { bytes: 512 };
        assert_eq!(blocks.address(7), Ok(3_584));
        assert_eq!(blocks.address(1 << 53), Ok(address(&(1u64 << 53).to_le_bytes())));
        assert_eq!(Numbers::Objects.address(7), Ok(address(&7u64.to_le_bytes())));
        assert!(blocks.address(u64::MAX).is_err() && Numbers::Objects.address(u64::MAX).is_err());
    }

    /// Stored traces contain it.
    const ADDRESS: u64 = 4_463_914_399_973_576_704;
}
