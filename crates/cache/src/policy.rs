//! [`Policy`], the interface of all eviction policies, and [`CachePolicy`], their list.

use serde::{Deserialize, Serialize};

use crate::nodes::Nodes;

/// Which cached item is evicted for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CachePolicy {
    /// Evicts the least recently used.
    #[default]
    Lru,
    /// Evicts the first admitted.
    Fifo,
    /// Evicts the first admitted, unless it was used since the hand's last pass.
    Clock,
    /// Evicts the oldest of those used once or of those used again, whichever list exceeds its adaptive share.
    Arc,
    /// Evicts the first of a small queue, which only reused items leave for the main one, or the first of the main one.
    #[serde(alias = "s3fifo")]
    S3Fifo,
    /// Evicts the first unused one that the hand finds on its way from the oldest to the newest.
    Sieve,
    /// Evicts the oldest of the few whose last two uses are farthest apart.
    Lirs,
    /// Evicts the first of the new ones, or the least recently used of those that came back.
    #[serde(rename = "twoq")]
    TwoQ,
    /// Evicts the least recently used of the lowest of four segments; each use lifts by one.
    Slru,
    /// Evicts the least often used, and of several the one that has been so for longest.
    Lfu,
    /// W-TinyLFU: evicts the oldest newcomer or the oldest of the others, whichever was used less often.
    #[serde(rename = "wtinylfu")]
    WTinyLfu,
}

impl CachePolicy {
    /// All policies.
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
    /// Returns the state of all ids.
    fn nodes(&mut self) -> &mut Nodes;

    /// Whether the id is in the cache.
    fn holds(&self, id: u32) -> bool;

    /// Records a use of a cached id, which may be pinned.
    fn hit(&mut self, id: u32);

    /// Announces an id that is not cached and about to be admitted: what is remembered of it counts now.
    /// [`Policy::replace`], as often as needed to make room, and [`Policy::admit`] of the same id follow.
    fn recall(&mut self, _id: u32) {}

    /// Evicts an evictable id, of which there is at least one, and returns it.
    fn replace(&mut self) -> u32;

    /// Admits an id, which is evictable. `key` identifies the item, even if ids are reused.
    fn admit(&mut self, id: u32, weight: u32, key: u64);

    /// Pins a cached id: it is not evictable from now on.
    fn keep(&mut self, id: u32);

    /// Unpins an id: it is evictable from now on.
    fn release(&mut self, id: u32);

    /// Removes an evictable id from the cache, and forgets it.
    fn discard(&mut self, id: u32);

    /// Reports the number of the next reference, for policies that know the future.
    #[inline]
    fn is_at(&mut self, _number: usize) {}
}
