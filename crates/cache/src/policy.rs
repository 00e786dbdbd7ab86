//! [`Policy`]: the interface of all eviction policies, and [`CachePolicy`]: their names.

use serde::{Deserialize, Serialize};

use crate::nodes::Nodes;

/// Eviction policy of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CachePolicy {
    /// Evicts the least recently used item.
    #[default]
    Lru,
    /// Evicts the item admitted first.
    Fifo,
    /// Evicts the item admitted first, unless it was used since the hand's last pass.
    Clock,
    /// Evicts the oldest item used once or the oldest item used again, depending on which list exceeds its adaptive
    /// share.
    Arc,
    /// Evicts the first item of a small queue, which only reused items leave for the main queue, or the first item of
    /// the main queue.
    #[serde(alias = "s3fifo")]
    S3Fifo,
    /// Evicts the first unused item that the hand finds from the oldest to the newest.
    Sieve,
    /// Evicts the oldest of the few items whose last two uses are farthest apart.
    Lirs,
    /// Evicts the oldest of the new items, or the least recently used of the items that returned.
    #[serde(rename = "twoq")]
    TwoQ,
    /// Evicts the least recently used item of the lowest of four segments. Each use moves an item up by one.
    Slru,
    /// Evicts the least frequently used item; among equals, the item that reached its count first.
    Lfu,
    /// W-TinyLFU: evicts the oldest new item or the oldest of the others, whichever was used less often.
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

/// An eviction policy. The caller tracks the contents of the cache and how much fits.
pub trait Policy {
    /// Returns the nodes with the state of all ids.
    fn nodes(&mut self) -> &mut Nodes;

    /// Whether the id is in the cache.
    fn holds(&self, id: u32) -> bool;

    /// Records a use of a cached id, which may be pinned.
    fn hit(&mut self, id: u32);

    /// Announces that an uncached id is about to be admitted, so that the policy can use what it remembers of the id.
    /// The caller then calls [`Policy::replace`] as often as needed to make room, and [`Policy::admit`] with the same
    /// id.
    fn recall(&mut self, _id: u32) {}

    /// Evicts and returns an evictable id. At least one id must be evictable.
    fn replace(&mut self) -> u32;

    /// Admits an id, which becomes evictable. `key` identifies the item even if ids are reused.
    fn admit(&mut self, id: u32, weight: u32, key: u64);

    /// Pins a cached id, so that it cannot be evicted.
    fn keep(&mut self, id: u32);

    /// Unpins an id, so that it can be evicted.
    fn release(&mut self, id: u32);

    /// Removes an evictable id from the cache and forgets it.
    fn discard(&mut self, id: u32);

    /// Reports the number of the next reference, for policies that know the future.
    #[inline]
    fn is_at(&mut self, _number: usize) {}
}
