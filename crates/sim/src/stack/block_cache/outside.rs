//! [`BlockCache`] as a layer: requests and answers, places, data at risk, power, counters.

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use super::BlockCache;
use super::bypass::Bypass;
use super::candidates::Candidates;
use super::jobs::Jobs;
use super::map::Piece;
use super::rate::Rate;
use super::reads::failure_above;
use super::under_way::{CACHE, Due, ORIGIN, Sent};
use crate::description::stack::{CacheMode, CacheSoftware};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use crate::spans::{common, put_in_order};
use crate::stack::extents::Extent;
use crate::stack::orders::{Answer, LayerModel, Orders};

/// Indexes of fill levels in [`headstack_result::LEVEL_NAMES`].
const IN_WRITE_CACHES: usize = 0;
const IN_FLASH_CACHES: usize = 2;

impl BlockCache {
    fn deliver(&mut self, now_ns: u64, purpose: Sent, answer: &Answer, orders: &mut Orders) {
        let done = answer.failed.is_none();
        match purpose {
            Sent::Origin { request } => self.part_done(now_ns, request, answer.failed, orders),
            Sent::Hit { request, extent, is_clean, .. } => {
                self.hit_answered(now_ns, (request, extent, is_clean), answer, orders);
            }
            Sent::Write { request, extent, .. } => {
                if self.takes_in_order() {
                    self.writing.remove(&answer.id);
                    self.apply_run(now_ns, request, &extent, done, orders);
                }
                self.part_done(now_ns, request, failure_above(answer, &extent), orders);
            }
            Sent::Miss { request, insert } => self.miss_answered(now_ns, (request, insert), answer, orders),
            Sent::Insert { insert, extent, .. } => self.insert_answered(now_ns, (insert, extent), answer, orders),
            Sent::Flush { request, overwrites } => {
                self.flush_answered(now_ns, (request, overwrites), answer, orders);
            }
            Sent::Commit => self.commit_answered(now_ns, answer, orders),
            Sent::JobRead { job } => self.job_read(now_ns, job, answer, orders),
            Sent::JobWrite { job } => self.job_ended(now_ns, job, done, orders),
            Sent::JobFlush => self.jobs_flushed(now_ns, answer, orders),
            Sent::PromotionRead { promotion } => self.promotion_read(now_ns, promotion, done, orders),
            Sent::PromotionWrite { promotion } => self.end_promotion(now_ns, promotion, done, orders),
        }
    }

    /// Notes how long bcache's cache device took.
    fn measure(&mut self, now_ns: u64, purpose: &Sent) {
        let CacheSoftware::Bcache(rules) = &self.description.software else { return };
        let (sent_ns, threshold_ns) = match purpose {
            Sent::Hit { sent_ns, .. } => (sent_ns, rules.congested_read_ns),
            Sent::Write { sent_ns, .. } | Sent::Insert { sent_ns, .. } => (sent_ns, rules.congested_write_ns),
            Sent::Origin { .. }
            | Sent::Miss { .. }
            | Sent::Flush { .. }
            | Sent::Commit
            | Sent::JobRead { .. }
            | Sent::JobWrite { .. }
            | Sent::JobFlush
            | Sent::PromotionRead { .. }
            | Sent::PromotionWrite { .. } => return,
        };
        self.bypass.measure(now_ns, now_ns - sent_ns, threshold_ns);
    }

    /// Passes on the place of clean data of dm-cache, block by block.
    fn clean_pieces(&self, extent: Extent, each: &mut dyn FnMut(u32, u64, Span)) {
        let mut at = extent.start;
        while at < extent.end() {
            let until = extent.end().min(self.block_end(self.block_of(at)));
            let Some(part) = extent.clip(at, until) else { return };
            if self.changes.is_fresh(at) {
                each(ORIGIN, part.start, span_of(&part));
            } else {
                each(CACHE, part.place, span_of(&part));
            }
            at = until;
        }
    }

    /// Caches what a past request used.
    fn warm(&mut self, start: u64, end: u64) {
        match &self.description.software {
            CacheSoftware::Bcache(_) => {
                let mut pieces = Vec::new();
                self.map.pieces(start, end, &mut pieces);
                for piece in pieces {
                    let Piece::Gap(from, to) = piece else { continue };
                    for extent in self.map.allocate(from, to).unwrap_or_default() {
                        self.map.map(extent, false);
                        self.map.space.unpin(extent.place, extent.length);
                    }
                }
            }
            CacheSoftware::DmCache(rules) => {
                let promote_after = rules.promote_after;
                let mut block = self.block_of(start);
                while block < end {
                    if self.map.starting_at(block).is_none() && self.candidates.count(block) >= promote_after {
                        self.warm_block(block);
                    }
                    block += self.description.bucket_bytes;
                }
            }
            CacheSoftware::DmWritecache(_) => {}
        }
    }

    fn warm_block(&mut self, block: u64) {
        if self.map.space.free_buckets() == 0 && !self.map.evict() {
            return;
        }
        let place = self.map.space.take().expect("a bucket is free");
        let length = (self.block_end(block) - block) as u32;
        self.candidates.forget(block);
        self.map.map(Extent { start: block, length, place }, false);
        self.map.space.unpin(place, length);
    }
}

impl LayerModel for BlockCache {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        self.take(now_ns, id, request, orders);
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        let purpose = self.sent.remove(answer.id);
        self.measure(now_ns, &purpose);
        self.deliver(now_ns, purpose, answer, orders);
        self.pump(now_ns, orders);
    }

    fn next_event_ns(&self) -> u64 {
        self.beginning.peek().map_or(u64::MAX, |begins| begins.0.0).min(self.due.next_ns())
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        self.begin_due(now_ns, orders);
        if self.due.commit_ns <= now_ns {
            self.start_commit(orders);
        }
        if self.due.settle_ns <= now_ns {
            self.flush_jobs(orders);
        }
        if self.due.update_ns <= now_ns {
            self.update_rate(now_ns);
        }
        self.pump(now_ns, orders);
    }

    /// Dirty data are on the cache device, and so are the data of dm-cache's committed blocks, which a crash makes dirty.
    /// The origin has everything else; clean copies in the cache do not count.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        let Some(span) = common(span, 0, self.capacity_bytes) else { return };
        let mut pieces = Vec::new();
        self.map.pieces(span.start_bytes, span.start_bytes + span.length_bytes, &mut pieces);
        for piece in pieces {
            match piece {
                Piece::Dirty(extent) => each(CACHE, extent.place, span_of(&extent)),
                Piece::Gap(from, to) => each(ORIGIN, from, Span { start_bytes: from, length_bytes: to - from }),
                Piece::Clean(extent) => match self.description.software {
                    CacheSoftware::Bcache(_) | CacheSoftware::DmWritecache(_) => {
                        each(ORIGIN, extent.start, span_of(&extent));
                    }
                    CacheSoftware::DmCache(_) => self.clean_pieces(extent, each),
                },
            }
        }
    }

    fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        let first = into.len();
        spans.iter().for_each(|span| self.changes.at_risk(*span, into));
        put_in_order(into, first);
    }

    fn holds_data(&self) -> bool {
        self.description.mode != CacheMode::Passthrough
    }

    /// Entries of the map that were not committed are gone. For dm-cache, all others count as dirty.
    fn power_cycle(&mut self, now_ns: u64) {
        for (from, to) in self.changes.power_cycle() {
            self.map.unmap(from, to);
        }
        self.map.space.unpin_all();
        match self.description.software {
            CacheSoftware::DmCache(_) => self.map.make_all_dirty(),
            CacheSoftware::Bcache(_) | CacheSoftware::DmWritecache(_) => {}
        }
        self.reset_commit();
        self.cores.reset();
        self.requests = Slab::default();
        self.beginning.clear();
        self.sent = Slab::default();
        self.writing.clear();
        self.inserts.clear();
        self.jobs = Jobs::default();
        self.is_writing_back = false;
        self.order = self.map.dirty().starts().collect();
        self.rate = Rate::default();
        self.promotions = Slab::default();
        self.candidates = Candidates::new(self.map.space.count());
        self.locked.clear();
        self.full.clear();
        self.bypass = Bypass::default();
        self.flushed_overwrites = self.overwrites;
        self.used_ns = now_ns;
        self.due = Due::NEVER;
        if self.map.dirty().len() > 0 {
            self.due.writeback_ns = now_ns;
        }
    }

    fn snapshot(&self, into: &mut Snapshot) {
        into.component("block cache CPU".to_owned(), self.cores.count(), self.cores.busy_ns, self.cores.waited_ns);
        let (counters, map) = (&self.counters, &self.map);
        for (name, value) in [
            ("block_cache_hit_bytes", counters.hit_bytes),
            ("block_cache_missed_bytes", counters.missed_bytes),
            ("block_cache_inserted_bytes", counters.inserted_bytes),
            ("block_cache_bypassed_bytes", counters.bypassed_bytes),
            ("block_cache_dirtied_bytes", map.dirtied_bytes),
            ("block_cache_overwritten_bytes", map.overwritten_bytes),
            ("block_cache_written_back_bytes", map.written_back_bytes),
            ("block_cache_commits", counters.commits),
            ("block_cache_metadata_bytes", counters.metadata_bytes),
            ("block_cache_promotions", counters.promotions),
            ("block_cache_demotions", counters.demotions),
            ("block_cache_waiting_writes", counters.waits),
            ("block_cache_failed_copies", counters.failed_copies),
        ] {
            into.count(name, value);
        }
    }

    fn add_levels(&self, into: &mut Levels) {
        into[IN_WRITE_CACHES] += self.map.dirty().bytes();
        into[IN_FLASH_CACHES] += self.map.clean().bytes();
    }

    fn warm_with(&mut self, request: &Request) -> bool {
        let (start, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        let is_around = self.description.mode == CacheMode::Writearound;
        match (self.description.mode, request.kind) {
            (CacheMode::Passthrough, _) | (_, Kind::Flush | Kind::Trim) => true,
            (_, Kind::Write) if is_around => {
                self.map.unmap(start, end);
                true
            }
            (_, Kind::Read | Kind::Write) => {
                let mut pieces = Vec::new();
                self.map.pieces(start, end, &mut pieces);
                let is_hit = !pieces.iter().any(|piece| matches!(piece, Piece::Gap(..)));
                self.warm(start, end);
                request.kind == Kind::Write || !is_hit
            }
        }
    }
}

/// Returns the bytes of the origin that an extent has.
fn span_of(extent: &Extent) -> Span {
    Span { start_bytes: extent.start, length_bytes: u64::from(extent.length) }
}
