//! Write-back: which dirty data are copied to the origin, and when. After the copies the origin is flushed; then the
//! data are clean.

use headstack_workload::Kind;

use super::jobs::Jobs;
use super::under_way::{CACHE, ORIGIN, Sent};
use super::{BlockCache, FLUSH, access};
use crate::description::stack::{BcacheRules, CacheSoftware, DmCacheRules, DmWritecacheRules};
use crate::stack::extents::Extent;
use crate::stack::orders::{Answer, Orders};

/// Most copies of bcache at a time (`in_flight` of struct cached_dev).
const BCACHE_JOBS_MAX: u32 = 64;
/// Most keys and bytes of a copy of bcache (`MAX_WRITEBACKS_IN_PASS`, `MAX_WRITESIZE_IN_PASS` of 5,000 sectors).
const BCACHE_KEYS_MAX: usize = 5;
const BCACHE_BYTES_MAX: u64 = 5_000 * 512;
/// Most blocks of a copy of dm-writecache (`BIO_MAX_PAGES`).
const WRITECACHE_BLOCKS_MAX: usize = 256;

impl BlockCache {
    /// Starts copies that may begin now.
    pub(super) fn pump(&mut self, now_ns: u64, orders: &mut Orders) {
        match self.description.software {
            CacheSoftware::Bcache(rules) => self.pump_bcache(now_ns, &rules, orders),
            CacheSoftware::DmCache(rules) => self.pump_dm_cache(now_ns, &rules, orders),
            CacheSoftware::DmWritecache(rules) => self.pump_writecache(&rules, orders),
        }
    }

    fn may_copy(&self, extent: &Extent) -> bool {
        self.jobs.at(extent.start, extent.end()).is_none() && !self.is_being_written(extent.start, extent.end())
    }

    /// Returns the next dirty extent from the cursor on that may be copied.
    fn next_dirty(&mut self) -> Option<Extent> {
        while let Some(extent) = self.map.dirty().next_from(self.cursor) {
            self.cursor = extent.end();
            if self.may_copy(&extent) {
                return Some(extent);
            }
        }
        None
    }

    /// bcache: in the order of addresses, at the rate of the controller, with a pause after each pass.
    fn pump_bcache(&mut self, now_ns: u64, rules: &BcacheRules, orders: &mut Orders) {
        if self.map.dirty().len() == 0 {
            self.is_writing_back = false;
            self.due.writeback_ns = u64::MAX;
            return;
        }
        if !self.is_writing_back {
            self.is_writing_back = true;
            self.cursor = 0;
            self.rate.next_ns = now_ns + rules.writeback_delay_ns;
            self.due.update_ns = self.due.update_ns.min(now_ns + rules.update_interval_ns);
        }
        while now_ns >= self.rate.next_ns && self.jobs.copying < BCACHE_JOBS_MAX {
            let Some(first) = self.next_dirty() else {
                self.cursor = 0;
                self.rate.next_ns = now_ns + rules.writeback_delay_ns.max(1_000_000);
                break;
            };
            let mut pieces = vec![first];
            while let Some(next) = self.map.dirty().next_from(self.cursor) {
                let is_next = next.start == pieces[pieces.len() - 1].end();
                let fits = next.end() - first.start <= BCACHE_BYTES_MAX && pieces.len() < BCACHE_KEYS_MAX;
                if !is_next || !fits || !self.may_copy(&next) {
                    break;
                }
                self.cursor = next.end();
                pieces.push(next);
            }
            self.rate.spend(now_ns, pieces.iter().map(|piece| u64::from(piece.length)).sum());
            self.copy(pieces, orders);
        }
        let has_place = self.jobs.copying < BCACHE_JOBS_MAX;
        self.due.writeback_ns = if has_place { self.rate.next_ns } else { u64::MAX };
    }

    /// Updates the rate of bcache, as long as data are dirty.
    pub(super) fn update_rate(&mut self, now_ns: u64) {
        self.due.update_ns = u64::MAX;
        match &self.description.software {
            CacheSoftware::Bcache(rules) if self.map.dirty().len() > 0 => {
                let cache_bytes = u64::from(self.map.space.count()) * self.description.bucket_bytes;
                self.rate.update(now_ns, rules, self.map.dirty().bytes(), cache_bytes);
                self.due.update_ns = now_ns + rules.update_interval_ns;
            }
            CacheSoftware::Bcache(_) | CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) => {}
        }
    }

    /// dm-cache: when no request has come for a while, or when a promotion found no clean block.
    fn pump_dm_cache(&mut self, now_ns: u64, rules: &DmCacheRules, orders: &mut Orders) {
        self.due.writeback_ns = u64::MAX;
        if self.map.dirty().len() == 0 {
            self.is_writing_back = false;
            return;
        }
        let idle_at_ns = self.used_ns + rules.idle_ns;
        let is_idle = self.requests.is_empty() && now_ns >= idle_at_ns;
        if !is_idle && !self.is_writing_back {
            if self.requests.is_empty() {
                self.due.writeback_ns = idle_at_ns;
            }
            return;
        }
        let mut wrapped = false;
        while self.migrating_bytes() + self.description.bucket_bytes <= rules.migration_bytes {
            match self.map.dirty().next_from(self.cursor) {
                Some(extent) => {
                    let block = self.block_of(extent.start);
                    self.cursor = self.block_end(block);
                    self.copy_block(block, orders);
                }
                None if wrapped => break,
                None => (self.cursor, wrapped) = (0, true),
            }
        }
    }

    /// Copies a whole block of dm-cache to the origin, unless it is in use or its place is not committed.
    fn copy_block(&mut self, block: u64, orders: &mut Orders) {
        let end = self.block_end(block);
        if self.changes.is_fresh(block)
            || self.jobs.at(block, end).is_some()
            || self.is_being_written(block, end)
            || self.locked.contains_key(&block)
        {
            return;
        }
        let Some((first, _)) = self.map.starting_at(block) else { return };
        let source = Extent { start: block, length: (end - block) as u32, place: first.place };
        let pieces = self.map.dirty().overlapping(block, end).collect();
        self.locked.insert(block, Vec::new());
        self.is_writing_back = false;
        self.start_job((block, end), vec![source], pieces, orders);
    }

    /// Returns the bytes that dm-cache copies in either direction.
    pub(super) fn migrating_bytes(&self) -> u64 {
        self.jobs.copying_bytes + self.promotions.len() as u64 * self.description.bucket_bytes
    }

    /// dm-writecache: from the high watermark down to the low one, the oldest blocks first.
    fn pump_writecache(&mut self, rules: &DmWritecacheRules, orders: &mut Orders) {
        self.due.writeback_ns = u64::MAX;
        let count = u64::from(self.map.space.count());
        let used = count - u64::from(self.map.space.free_buckets());
        self.is_writing_back |= used * 100 >= count * u64::from(rules.high_percent);
        let mut tries = self.order.len();
        while self.is_writing_back && self.jobs.copying < rules.writeback_jobs && tries > 0 {
            tries -= 1;
            let left = used.saturating_sub(self.jobs.bytes() / self.description.bucket_bytes);
            if left * 100 <= count * u64::from(rules.low_percent) {
                self.is_writing_back = false;
                break;
            }
            let Some(start) = self.order.pop_front() else { break };
            let Some(first) = self.map.dirty().starting_at(start) else { continue };
            if self.jobs.at(first.start, first.end()).is_some() {
                continue;
            }
            if !self.may_copy(&first) {
                self.order.push_back(start);
                continue;
            }
            let mut pieces = vec![first];
            while let Some(next) = self.map.dirty().starting_at(pieces[pieces.len() - 1].end()) {
                let is_next = pieces[pieces.len() - 1].continues_in(&next);
                if !is_next || pieces.len() == WRITECACHE_BLOCKS_MAX || !self.may_copy(&next) {
                    break;
                }
                pieces.push(next);
            }
            self.copy(pieces, orders);
        }
    }

    /// Begins to copy dirty extents, which continue each other on the origin.
    fn copy(&mut self, pieces: Vec<Extent>, orders: &mut Orders) {
        let range = (pieces[0].start, pieces[pieces.len() - 1].end());
        self.start_job(range, Jobs::sources_of(&pieces), pieces, orders);
    }

    fn start_job(&mut self, range: (u64, u64), sources: Vec<Extent>, pieces: Vec<Extent>, orders: &mut Orders) {
        let job = self.jobs.add(range, sources, pieces);
        for source in self.jobs.get_mut(job).sources.clone() {
            self.map.space.pin(source.place, source.length);
            let read = access(Kind::Read, source.place, source.place + u64::from(source.length), false);
            self.send(CACHE, Sent::JobRead { job }, read, orders);
        }
    }

    /// Writes the data of a job to the origin once all are read.
    pub(super) fn job_read(&mut self, now_ns: u64, number: u32, answer: &Answer, orders: &mut Orders) {
        let job = self.jobs.get_mut(number);
        job.reads -= 1;
        job.has_failed |= answer.failed.is_some();
        if job.reads > 0 {
            return;
        }
        let (start, end, has_failed) = (job.start, job.end, job.has_failed);
        for source in std::mem::take(&mut job.sources) {
            self.map.space.unpin(source.place, source.length);
        }
        if has_failed {
            return self.job_ended(now_ns, number, false, orders);
        }
        self.send(ORIGIN, Sent::JobWrite { job: number }, access(Kind::Write, start, end, false), orders);
    }

    /// Handles a job that the origin has, or that failed; its data stay dirty for now.
    pub(super) fn job_ended(&mut self, now_ns: u64, number: u32, done: bool, orders: &mut Orders) {
        self.jobs.copied(number);
        let start = self.jobs.get_mut(number).start;
        let waits_ns = match self.description.software {
            CacheSoftware::Bcache(rules) => rules.update_interval_ns,
            CacheSoftware::DmCache(_) => self.description.commit_interval_ns,
            CacheSoftware::DmWritecache(_) => 0,
        };
        if done {
            self.jobs.written.push(number);
            self.due.settle_ns = self.due.settle_ns.min(now_ns + waits_ns);
        } else {
            self.counters.failed_copies += 1;
            let job = self.jobs.remove(number);
            self.order.extend(
                self.takes_in_order().then(|| job.pieces.iter().map(|piece| piece.start)).into_iter().flatten(),
            );
        }
        self.unlock(now_ns, start, orders);
        if self.due.settle_ns <= now_ns {
            self.flush_jobs(orders);
        }
    }

    /// Whether blocks are written back in the order of their writes, and freed then.
    pub(super) fn takes_in_order(&self) -> bool {
        match self.description.software {
            CacheSoftware::Bcache(_) | CacheSoftware::DmCache(_) => false,
            CacheSoftware::DmWritecache(_) => true,
        }
    }

    /// Flushes the origin, unless such a flush is under way.
    pub(super) fn flush_jobs(&mut self, orders: &mut Orders) {
        self.due.settle_ns = u64::MAX;
        if self.jobs.flushing.is_some() || self.jobs.written.is_empty() {
            return;
        }
        self.jobs.flushing = Some(std::mem::take(&mut self.jobs.written));
        self.send(ORIGIN, Sent::JobFlush, FLUSH, orders);
    }

    /// Makes the data of flushed jobs clean, or frees their blocks.
    pub(super) fn jobs_flushed(&mut self, now_ns: u64, answer: &Answer, orders: &mut Orders) {
        let flushed = self.jobs.flushing.take().expect("a flush is under way");
        let keep = !self.takes_in_order();
        if answer.failed.is_some() {
            self.counters.failed_copies += 1;
            self.jobs.written.extend(flushed);
            self.due.settle_ns = now_ns + self.description.commit_interval_ns;
            return;
        }
        for number in flushed {
            for piece in self.jobs.remove(number).pieces {
                self.map.settle(&piece, keep);
                self.changes.unmapped();
            }
        }
        match self.description.software {
            CacheSoftware::Bcache(_) | CacheSoftware::DmCache(_) => self.note_changes(now_ns, orders),
            // Freed blocks are committed at once (`writecache_commit_flushed`).
            CacheSoftware::DmWritecache(_) => self.start_commit(orders),
        }
        if !self.jobs.written.is_empty() {
            self.due.settle_ns = self.due.settle_ns.min(now_ns + self.description.commit_interval_ns);
            if self.takes_in_order() {
                self.flush_jobs(orders);
            }
        }
        self.retry_full(now_ns, orders);
    }
}
