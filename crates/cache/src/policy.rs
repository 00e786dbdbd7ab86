//! What every policy is asked, and which there are.

use serde::{Deserialize, Serialize};

use crate::nodes::Nodes;

/// Which of what a cache holds gives way to what comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CachePolicy {
    /// The least recently used.
    #[default]
    Lru,
    /// The first in.
    Fifo,
    /// The first in, unless it was used since the hand passed last.
    Clock,
    /// The oldest of those used once or of those used again, whichever list outgrew the share that it earned.
    Arc,
    /// The first in of a small queue that only what is used again gets out of, or of the main one.
    #[serde(alias = "s3fifo")]
    S3Fifo,
    /// The first that the hand finds unused on its way from the oldest to the newest.
    Sieve,
    /// The oldest of the few whose last two uses lie farthest apart.
    Lirs,
    /// The first in of the new ones, or the least recently used of those that came back.
    #[serde(rename = "twoq")]
    TwoQ,
    /// The least recently used of the lowest of four segments; each use lifts by one.
    Slru,
    /// The least often used, and of several the one that has been so for longest.
    Lfu,
    /// W-TinyLFU: evicts the oldest newcomer or the oldest of the others, whichever was used less often.
    #[serde(rename = "wtinylfu")]
    WTinyLfu,
}

impl CachePolicy {
    /// Every policy.
    pub const ALL: [CachePolicy; 11] = [
        CachePolicy::Lru,
        CachePolicy::Fifo,
        CachePolicy::Clock,
        CachePolicy::Arc,
        CachePolicy::S3Fifo,
        CachePolicy::Sieve,
        CachePolicy::Lirs,
        CachePolicy::TwoQ,
        CachePolicy::Slru,
        CachePolicy::Lfu,
        CachePolicy::WTinyLfu,
    ];
}

/// An eviction policy. The caller knows what the cache holds and how much fits.
pub trait Policy {
    /// The ids.
    fn nodes(&mut self) -> &mut Nodes;

    /// The cache holds it.
    fn holds(&self, id: u32) -> bool;

    /// Notes a use of a held id, which may be pinned.
    fn hit(&mut self, id: u32);

    /// What is not held is about to come: what is remembered of it counts now. [`Policy::replace`], as often as it takes to
    /// make room, and [`Policy::admit`] of the same id follow.
    fn recall(&mut self, _id: u32) {}

    /// Gives up one that can go, of which there is one at least.
    fn replace(&mut self) -> u32;

    /// It comes, and can go. `key` is the same whenever the same comes, also where ids are used again.
    fn admit(&mut self, id: u32, weight: u32, key: u64);

    /// Pins a held id: it must stay from now on.
    fn keep(&mut self, id: u32);

    /// Unpins an id: it can go from now on.
    fn release(&mut self, id: u32);

    /// Throws out a held id that can go, and forgets it.
    fn discard(&mut self, id: u32);

    /// The reference of this number is the next that is asked about; for those who know what will come.
    #[inline]
    fn is_at(&mut self, _number: usize) {}
}
