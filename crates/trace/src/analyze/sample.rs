//! Spatial sampling (SHARDS: Waldspurger et al., FAST '15), stratified: of every 2^k neighbouring blocks exactly one.
//!
//! A binary tree stands over the addresses, and a hash picks one child of each node; taken are the blocks that are
//! picked on every level up to k. Whatever is picked on level k + 1 is picked on level k, so that a sample can be halved.
//! Neighbours are read and written alike: with one of each neighbourhood the sample holds nearly the right number of
//! each sort, where independent choice would hold more or fewer by chance.

use serde::{Deserialize, Serialize};

use super::table::mix;

/// Groups that a sample is split into, so that their differences tell its error.
pub(crate) const GROUPS: usize = 64;
const LEVELS_MAX: u32 = 48;

/// Which blocks are looked at.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sample {
    levels: u32,
    salt: u64,
}

impl Sample {
    /// All blocks, until it is halved; which half is chosen by `salt`.
    pub(crate) fn all(salt: u64) -> Sample {
        Sample { levels: 0, salt: mix(salt) }
    }

    #[inline]
    pub(crate) fn is_all(self) -> bool {
        self.levels == 0
    }

    /// It holds more than the other, and all of that.
    pub(crate) fn is_more_than(self, other: Sample) -> bool {
        self.levels < other.levels
    }

    /// The share of blocks that are looked at.
    pub(crate) fn rate(self) -> f64 {
        f64::from(self.levels).exp2().recip()
    }

    /// From here on half as many, all of which were looked at before.
    pub(crate) fn halve(&mut self) {
        self.levels = (self.levels + 1).min(LEVELS_MAX);
    }

    /// This block is looked at.
    #[inline]
    pub(crate) fn takes(self, place: u64) -> bool {
        let picked = |level: u32| {
            let node = place >> level;
            let side = mix((node ^ self.salt).wrapping_mul(2 * u64::from(level) + 1)) >> 63;
            place >> (level - 1) & 1 == side
        };
        (1..=self.levels).all(picked)
    }

    /// The group of a block: neighbourhoods in turn, so that groups differ by no more than neighbours do.
    #[inline]
    pub(crate) fn group(self, place: u64) -> usize {
        (place >> self.levels) as usize % GROUPS
    }
}
