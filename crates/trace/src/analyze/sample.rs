//! [`Sample`]: spatial sampling (SHARDS: Waldspurger et al., FAST '15), stratified: exactly one of every 2^k
//! neighbouring blocks.
//!
//! Addresses form the leaves of a binary tree, and a hash picks one child of each node; a block is sampled if it is
//! picked on every level up to k. A block picked up to level k + 1 is also picked up to level k, so a sample can be
//! halved. Neighbours are accessed in similar ways: with one block per neighbourhood, the sample contains nearly the
//! right number of each kind, while independent choice would be off by chance.

use serde::{Deserialize, Serialize};

use super::table::mix;

/// Number of groups of a sample, whose differences give its error.
pub(crate) const GROUPS: usize = 64;
const LEVELS_MAX: u32 = 48;

/// Which blocks are sampled.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sample {
    levels: u32,
    salt: u64,
}

impl Sample {
    /// All blocks, until the sample is halved; `salt` determines which half remains.
    pub(crate) fn all(salt: u64) -> Sample {
        Sample { levels: 0, salt: mix(salt) }
    }

    #[inline]
    pub(crate) fn is_all(self) -> bool {
        self.levels == 0
    }

    /// Whether it is a superset of the other sample and larger.
    pub(crate) fn is_more_than(self, other: Sample) -> bool {
        self.levels < other.levels
    }

    /// Share of the blocks that are sampled.
    pub(crate) fn rate(self) -> f64 {
        f64::from(self.levels).exp2().recip()
    }

    /// Halves the sample; the result is a subset.
    pub(crate) fn halve(&mut self) {
        self.levels = (self.levels + 1).min(LEVELS_MAX);
    }

    /// Whether this block is sampled.
    #[inline]
    pub(crate) fn takes(self, place: u64) -> bool {
        let picked = |level: u32| {
            let node = place >> level;
            let side = mix((node ^ self.salt).wrapping_mul(2 * u64::from(level) + 1)) >> 63;
            place >> (level - 1) & 1 == side
        };
        (1..=self.levels).all(picked)
    }

    /// Group of a block: neighbourhoods in turn, so that groups differ as little as neighbours do.
    #[inline]
    pub(crate) fn group(self, place: u64) -> usize {
        (place >> self.levels) as usize % GROUPS
    }
}
