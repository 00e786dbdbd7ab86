//! [`Sample`]: stratified spatial sampling that selects exactly one of every 2^k neighboring blocks (after SHARDS:
//! Waldspurger et al., FAST '15).
//!
//! Addresses are the leaves of a binary tree, and a hash picks one child of each node. A block is sampled if it is
//! picked on every level up to k. A block picked up to level k + 1 is also picked up to level k, so a sample can be
//! halved. Neighbors have similar access patterns, so one block per neighborhood gives nearly the right number of
//! blocks of each kind, while an independent choice has random errors.

use serde::{Deserialize, Serialize};

use super::table::mix;

/// Number of groups in a sample; the differences between groups give the sampling error.
pub(crate) const GROUPS: usize = 64;
const LEVELS_MAX: u32 = 48;

/// Selects the sampled blocks.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sample {
    levels: u32,
    salt: u64,
}

impl Sample {
    /// Creates a sample of all blocks; `salt` determines which half remains when the sample is halved.
    pub(crate) fn all(salt: u64) -> Sample {
        Sample { levels: 0, salt: mix(salt) }
    }

    #[inline]
    pub(crate) fn is_all(self) -> bool {
        self.levels == 0
    }

    /// Returns whether this sample is a strict superset of the other.
    pub(crate) fn is_more_than(self, other: Sample) -> bool {
        self.levels < other.levels
    }

    /// Returns the share of blocks that are sampled.
    pub(crate) fn rate(self) -> f64 {
        f64::from(self.levels).exp2().recip()
    }

    /// Halves the sample; the result is a subset.
    pub(crate) fn halve(&mut self) {
        self.levels = (self.levels + 1).min(LEVELS_MAX);
    }

    /// Returns whether the block is sampled.
    #[inline]
    pub(crate) fn takes(self, place: u64) -> bool {
        let picked = |level: u32| {
            let node = place >> level;
            let side = mix((node ^ self.salt).wrapping_mul(2 * u64::from(level) + 1)) >> 63;
            place >> (level - 1) & 1 == side
        };
        (1..=self.levels).all(picked)
    }

    /// Returns the group of a block. Neighborhoods are assigned to groups in turn, so that groups differ as little as
    /// neighbors do.
    #[inline]
    pub(crate) fn group(self, place: u64) -> usize {
        (place >> self.levels) as usize % GROUPS
    }
}
