//! Promotions of dm-cache: a block that is used again is read from the origin and written to the cache.

use headstack_workload::{Kind, Span};

use super::commit::Waiter;
use super::under_way::{CACHE, ORIGIN, Promotion, Sent};
use super::{BlockCache, access};
use crate::description::stack::CacheSoftware;
use crate::stack::extents::Extent;
use crate::stack::orders::Orders;

impl BlockCache {
    /// Counts the use of blocks, and starts to copy those that were used often enough.
    pub(super) fn consider_promotions(&mut self, span: Span, orders: &mut Orders) {
        let (promote_after, migration_bytes) = match &self.description.software {
            CacheSoftware::DmCache(rules) => (rules.promote_after, rules.migration_bytes),
            CacheSoftware::Bcache(_) | CacheSoftware::DmWritecache(_) => return,
        };
        let end = span.start_bytes + span.length_bytes;
        let mut block = self.block_of(span.start_bytes);
        while block < end {
            let is_cached = self.map.starting_at(block).is_some() || self.locked.contains_key(&block);
            if !is_cached && self.candidates.count(block) >= promote_after {
                let fits = self.migrating_bytes() + self.description.bucket_bytes <= migration_bytes;
                if fits && !self.is_being_written(block, self.block_end(block)) {
                    self.promote(block, orders);
                }
            }
            block += self.description.bucket_bytes;
        }
    }

    /// Takes a place for a block. A place that another block had is free only after a commit, since a crash would bring
    /// back the old entry (`mg_update_metadata` in drivers/md/dm-cache-target.c).
    fn promote(&mut self, block: u64, orders: &mut Orders) {
        let is_free = self.map.space.free_buckets() > 0;
        if !is_free && !self.map.evict() {
            self.is_writing_back = true;
            return;
        }
        let place = self.map.space.take().expect("a bucket is free");
        let extent = Extent { start: block, length: (self.block_end(block) - block) as u32, place };
        let number = self.promotions.insert(Promotion { extent });
        self.locked.insert(block, Vec::new());
        self.candidates.forget(block);
        if is_free {
            return self.read_promoted(number, orders);
        }
        self.counters.demotions += 1;
        self.changes.unmapped();
        self.wait_for_commit(Waiter::Promotion(number), orders);
    }

    fn read_promoted(&mut self, number: u32, orders: &mut Orders) {
        let Promotion { extent } = *self.promotions.get(number);
        let read = access(Kind::Read, extent.start, extent.end(), false);
        self.send(ORIGIN, Sent::PromotionRead { promotion: number }, read, orders);
    }

    /// Begins a promotion whose place was committed as free.
    pub(super) fn begin_promotion(&mut self, now_ns: u64, number: u32, done: bool, orders: &mut Orders) {
        if done {
            self.read_promoted(number, orders);
        } else {
            self.end_promotion(now_ns, number, false, orders);
        }
    }

    /// Writes a block that was read.
    pub(super) fn promotion_read(&mut self, now_ns: u64, number: u32, done: bool, orders: &mut Orders) {
        if !done {
            return self.end_promotion(now_ns, number, false, orders);
        }
        let Promotion { extent } = *self.promotions.get(number);
        let write = access(Kind::Write, extent.place, extent.place + u64::from(extent.length), false);
        self.send(CACHE, Sent::PromotionWrite { promotion: number }, write, orders);
    }

    /// Maps a block that was copied.
    pub(super) fn end_promotion(&mut self, now_ns: u64, number: u32, done: bool, orders: &mut Orders) {
        let Promotion { extent } = self.promotions.remove(number);
        if done {
            self.counters.promotions += 1;
            self.counters.inserted_bytes += u64::from(extent.length);
            self.map.map(extent, false);
            self.changes.mapped(extent.start, extent.end());
        }
        self.map.space.unpin(extent.place, extent.length);
        self.unlock(now_ns, extent.start, orders);
        self.note_changes(now_ns, orders);
    }
}
