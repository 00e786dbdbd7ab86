//! [`Candidates`]: blocks outside of dm-cache that were used of late. One that is used again is copied to the cache.
//!
//! dm-cache's policy `smq` sorts regions of up to 16 blocks into 64 levels by their hits, and copies the blocks of the
//! upper levels. This counts the uses of each block among as many recently used blocks as smq has regions:
//! `max(blocks / 4, 1024)` (`calc_hotspot_params` in drivers/md/dm-cache-policy-smq.c).

use headstack_cache::{CachePolicy, Policy, Replacement};
use rustc_hash::FxHashMap;

/// Recently used blocks, with their number of uses.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    max: u32,
    ids: FxHashMap<u64, u32>,
    /// Block and uses of each id.
    blocks: Vec<(u64, u32)>,
    free: Vec<u32>,
    order: Replacement,
}

impl Candidates {
    /// Remembers blocks for a cache of `buckets` blocks.
    pub fn new(buckets: u32) -> Candidates {
        let max = (buckets / 4).max(1024);
        let order = Replacement::new(CachePolicy::Lru, u64::from(max), false);
        Candidates { max, ids: FxHashMap::default(), blocks: Vec::new(), free: Vec::new(), order }
    }

    /// Notes a use of a block; returns its number of uses.
    pub fn count(&mut self, block: u64) -> u32 {
        if let Some(&id) = self.ids.get(&block) {
            self.order.hit(id);
            self.blocks[id as usize].1 += 1;
            return self.blocks[id as usize].1;
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None if self.blocks.len() < self.max as usize => {
                self.blocks.push((block, 0));
                self.blocks.len() as u32 - 1
            }
            None => {
                let id = self.order.replace();
                self.ids.remove(&self.blocks[id as usize].0);
                id
            }
        };
        self.blocks[id as usize] = (block, 1);
        self.ids.insert(block, id);
        self.order.recall(id);
        self.order.admit(id, 1, block);
        1
    }

    /// Forgets a block, because the cache has it.
    pub fn forget(&mut self, block: u64) {
        if let Some(id) = self.ids.remove(&block) {
            self.order.discard(id);
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_forgotten_after_1024_others() {
        let mut candidates = Candidates::new(100);
        assert_eq!([candidates.count(7), candidates.count(7)], [1, 2]);
        (100..1123).for_each(|block| _ = candidates.count(block));
        assert_eq!(candidates.count(7), 3);
        (2000..3024).for_each(|block| _ = candidates.count(block));
        assert_eq!(candidates.count(7), 1);
        candidates.forget(7);
        assert_eq!((candidates.count(7), candidates.blocks.len()), (1, 1024));
    }
}
