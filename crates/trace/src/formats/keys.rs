//! Addresses of objects identified by a key. The address is a hash of the key, so every file and every machine gives
//! the same address, no table of keys is needed, and lines can be parsed in parallel.
//!
//! An object begins at one of 2^50 addresses, 4,096 bytes apart. The probability that two of a million objects share an
//! address is 1 in 2,252; among 100 million objects, about four pairs do. Adjacent objects are unrelated.

use super::units::{Stated, proven_unit};
use crate::error::{Problem, refused};
use crate::meta::{AddressSpace, Meta};

/// Distance between object addresses, in bytes.
const PLACE_BYTES: u64 = 4_096;
const PLACES: u64 = 1 << 50;

/// Returns the address of the object with this key.
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
    // Finalizer of MurmurHash3: changing one input bit changes each output bit with probability 1/2.
    let mut hash = step(hash, u64::from_le_bytes(last));
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((hash ^ hash >> 33) % PLACES) * PLACE_BYTES
}

/// How the numbers that identify data in a cache trace are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Consecutive blocks of `bytes`.
    Blocks { bytes: u32 },
    /// Objects of any length: each gets the address of a key, so that objects do not overlap.
    Objects,
}

impl Numbers {
    /// Returns blocks of the given size, or of the size that `requests` prove; otherwise objects.
    pub(crate) fn of(said_bytes: Option<u32>, requests: &[Stated], meta: &mut Meta) -> Numbers {
        if let Some(bytes) = said_bytes {
            return Numbers::Blocks { bytes };
        }
        match proven_unit(requests) {
            Some(bytes) => {
                meta.note(format!(
                    "object numbers are addresses in units of {bytes} bytes, as shown by sequential requests"
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

    /// Returns the unit of addresses in bytes.
    pub(crate) fn block_bytes(self) -> Option<u32> {
        match self {
            Numbers::Blocks { bytes } => Some(bytes),
            Numbers::Objects => None,
        }
    }

    /// Returns the address of a number. A block at or above 2^62 is treated as an object.
    ///
    /// # Errors
    /// Returns an error for the number with all bits set, which is not a valid object and is frequent in damaged files.
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

/// Returns an error for an invalid key, so that not every text is accepted as a list of keys.
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
        // Addresses are evenly distributed: each of 16 parts has 12,500 of 200,000 keys, +- 5 standard deviations.
        for part in 0..16 {
            let count = places.iter().filter(|place| *place >> 58 == part).count();
            assert!(count.abs_diff(12_500) < 550, "{part}: {count}");
        }
        // Keys that differ in one byte or only in length also have different addresses.
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

    /// Stored traces contain this address.
    const ADDRESS: u64 = 4_463_914_399_973_576_704;
}
