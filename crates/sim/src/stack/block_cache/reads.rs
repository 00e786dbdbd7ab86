//! Reads of a block cache: hits, misses, and the insertion of what was read.

use headstack_workload::Kind;

use super::map::Piece;
use super::under_way::{CACHE, Insert, ORIGIN, Sent};
use super::{BlockCache, access};
use crate::description::stack::CacheSoftware;
use crate::stack::extents::Extent;
use crate::stack::orders::{Answer, Orders};

/// Dirty part of bcache above which nothing is inserted: `CUTOFF_CACHE_ADD`, in percent.
pub(super) const CUTOFF_INSERT_PERCENT: u32 = 95;

impl BlockCache {
    /// Reads each piece from the device that has its newest data.
    pub(super) fn read(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let (start, end) = self.requests.get(number).range();
        let may_insert = match &self.description.software {
            CacheSoftware::Bcache(rules) => {
                let bypasses = self.bypass.decide(now_ns, rules, start, end - start, false);
                self.counters.bypassed_bytes += if bypasses { end - start } else { 0 };
                !bypasses && self.map.space.dirty_percent() <= CUTOFF_INSERT_PERCENT
            }
            CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) => false,
        };
        let mut pieces = Vec::new();
        self.map.pieces(start, end, &mut pieces);
        for piece in pieces {
            self.requests.get_mut(number).parts += 1;
            match piece {
                Piece::Dirty(extent) => self.read_hit(now_ns, number, extent, false, orders),
                Piece::Clean(extent) => self.read_hit(now_ns, number, extent, true, orders),
                Piece::Gap(from, to) => self.read_miss(number, from, to, may_insert, orders),
            }
        }
    }

    fn read_hit(&mut self, now_ns: u64, request: u32, extent: Extent, is_clean: bool, orders: &mut Orders) {
        self.counters.hit_bytes += u64::from(extent.length);
        self.map.space.pin(extent.place, extent.length);
        self.map.space.used(extent.place, extent.length);
        let read = access(Kind::Read, extent.place, extent.place + u64::from(extent.length), false);
        self.send(CACHE, Sent::Hit { request, extent, is_clean, sent_ns: now_ns }, read, orders);
    }

    fn read_miss(&mut self, request: u32, start: u64, end: u64, may_insert: bool, orders: &mut Orders) {
        self.counters.missed_bytes += end - start;
        let is_coming = self.inserts.values().any(|insert| insert.start < end && start < insert.end);
        let purpose = if may_insert && !is_coming {
            let insert = self.insert_number;
            self.insert_number = self.insert_number.wrapping_add(1);
            self.inserts.insert(insert, Insert { start, end, is_stale: false, writes: 0 });
            Sent::Miss { request, insert }
        } else {
            Sent::Origin { request }
        };
        self.send(ORIGIN, purpose, access(Kind::Read, start, end, false), orders);
    }

    /// Ends a read from the cache device. A clean piece that could not be read is read from the origin.
    pub(super) fn hit_answered(
        &mut self,
        now_ns: u64,
        (request, extent, is_clean): (u32, Extent, bool),
        answer: &Answer,
        orders: &mut Orders,
    ) {
        self.map.space.unpin(extent.place, extent.length);
        if answer.failed.is_some() && is_clean {
            let read = access(Kind::Read, extent.start, extent.end(), false);
            self.send(ORIGIN, Sent::Origin { request }, read, orders);
            return;
        }
        self.part_done(now_ns, request, failure_above(answer, &extent), orders);
    }

    /// Ends a read of the origin, and inserts its data into the cache.
    pub(super) fn miss_answered(
        &mut self,
        now_ns: u64,
        (request, insert): (u32, u32),
        answer: &Answer,
        orders: &mut Orders,
    ) {
        let Insert { start, end, is_stale, .. } = self.inserts[&insert];
        let places = match answer.failed.is_none() && !is_stale {
            true => self.map.allocate(start, end),
            false => None,
        };
        match places {
            Some(places) => {
                self.inserts.get_mut(&insert).expect("it is under way").writes = places.len() as u32;
                for extent in places {
                    let write = access(Kind::Write, extent.place, extent.place + u64::from(extent.length), false);
                    self.send(CACHE, Sent::Insert { insert, extent, sent_ns: now_ns }, write, orders);
                }
            }
            None => _ = self.inserts.remove(&insert),
        }
        self.part_done(now_ns, request, answer.failed, orders);
    }

    /// Maps what was inserted, unless it changed meanwhile.
    pub(super) fn insert_answered(
        &mut self,
        now_ns: u64,
        (insert, extent): (u32, Extent),
        answer: &Answer,
        orders: &mut Orders,
    ) {
        let state = self.inserts.get_mut(&insert).expect("it is under way");
        state.writes -= 1;
        let (is_stale, is_last) = (state.is_stale, state.writes == 0);
        if is_last {
            self.inserts.remove(&insert);
        }
        if answer.failed.is_none() && !is_stale && !self.map.holds_any(extent.start, extent.end()) {
            self.counters.inserted_bytes += u64::from(extent.length);
            self.map.map(extent, false);
            self.changes.mapped(extent.start, extent.end());
        }
        self.map.space.unpin(extent.place, extent.length);
        self.note_changes(now_ns, orders);
    }

    /// Notes that `[from, to)` was written: data that were read before must not be inserted.
    pub(super) fn make_stale(&mut self, from: u64, to: u64) {
        for insert in self.inserts.values_mut() {
            insert.is_stale |= insert.start < to && from < insert.end;
        }
    }
}

/// Returns the failure of an access to the cache device by its address above.
pub(super) fn failure_above(answer: &Answer, extent: &Extent) -> Option<(u64, bool)> {
    answer.failed.map(|(at_bytes, write)| {
        let inside = at_bytes.saturating_sub(extent.place).min(u64::from(extent.length) - 1);
        (extent.start + inside, write)
    })
}
