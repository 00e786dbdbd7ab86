//! Writes of a block cache: to which device they go, and what they change in the map.

use headstack_workload::Kind;

use super::reads::CUTOFF_INSERT_PERCENT;
use super::under_way::{CACHE, ORIGIN, Part, Placed, Sent};
use super::{BlockCache, access};
use crate::description::stack::{BcacheRules, CacheMode, CacheSoftware, WhenFull};
use crate::stack::extents::Extent;
use crate::stack::orders::Orders;

/// Route of a write of bcache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// To the cache; later to the origin.
    Back,
    /// To both.
    Through,
    /// To the origin; cached data are dropped.
    Around,
}

impl BlockCache {
    /// Sends the parts of a write.
    pub(super) fn write(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let (start, end) = self.requests.get(number).range();
        match self.description.software {
            CacheSoftware::Bcache(rules) => {
                let route = self.route(now_ns, number, &rules);
                self.write_routed(now_ns, number, route, orders);
            }
            CacheSoftware::DmCache(_) => {
                let mut at = start;
                while at < end {
                    let until = end.min(self.block_of(at) + self.description.bucket_bytes);
                    self.write_block(now_ns, Part { request: number, start: at, end: until }, orders);
                    at = until;
                }
            }
            CacheSoftware::DmWritecache(rules) => {
                let part = Part { request: number, start, end };
                self.write_blocks(now_ns, part, rules.when_full, orders);
            }
        }
    }

    /// Decides where a write of bcache goes (`check_should_bypass`, `should_writeback`).
    fn route(&mut self, now_ns: u64, number: u32, rules: &BcacheRules) -> Route {
        let state = self.requests.get(number);
        let (start, end) = state.range();
        let is_sync = rules.synchronous_writes || state.request.force_unit_access;
        let in_use = self.map.space.dirty_percent();
        let is_writeback = self.description.mode == CacheMode::Writeback;
        let bypasses = self.description.mode == CacheMode::Writearound
            || in_use > CUTOFF_INSERT_PERCENT
            || self.bypass.decide(now_ns, rules, start, end - start, is_writeback && is_sync);
        let limit = if is_sync { rules.cutoff_sync_percent } else { rules.cutoff_percent };
        if self.jobs.at(start, end).is_some() || (is_writeback && !bypasses && in_use <= limit) {
            Route::Back
        } else if bypasses {
            Route::Around
        } else {
            Route::Through
        }
    }

    fn write_routed(&mut self, now_ns: u64, number: u32, route: Route, orders: &mut Orders) {
        let (start, end) = self.requests.get(number).range();
        if route != Route::Back {
            self.send_to_origin(number, orders);
        }
        let places = if route == Route::Around { None } else { self.map.allocate(start, end) };
        let Some(places) = places else {
            if self.jobs.at(start, end).is_some() {
                // The origin must not get these bytes before the older ones that are on their way.
                return self.wait_for_space(Part { request: number, start, end });
            }
            self.counters.bypassed_bytes += end - start;
            self.requests.get_mut(number).unmaps = true;
            if route == Route::Back {
                self.send_to_origin(number, orders);
            }
            return;
        };
        for extent in places {
            self.place(number, Placed { extent, dirty: route == Route::Back, is_new: true });
            self.write_cache(now_ns, number, extent, false, orders);
        }
    }

    /// Notes a place that a write writes; it is pinned.
    fn place(&mut self, number: u32, placed: Placed) {
        self.requests.get_mut(number).placed.push(placed);
    }

    /// Writes a part of a request to the cache device.
    fn write_cache(&mut self, now_ns: u64, number: u32, extent: Extent, forced: bool, orders: &mut Orders) {
        self.requests.get_mut(number).parts += 1;
        let write = access(Kind::Write, extent.place, extent.place + u64::from(extent.length), forced);
        let id = self.send(CACHE, Sent::Write { request: number, extent, sent_ns: now_ns }, write, orders);
        if self.takes_in_order() {
            self.writing.insert(id, (extent.start, extent.end()));
        }
    }

    /// Writes a part of a request to the origin.
    fn write_origin(&mut self, number: u32, start: u64, end: u64, orders: &mut Orders) {
        let state = self.requests.get_mut(number);
        state.parts += 1;
        let forced = state.request.force_unit_access;
        self.send(ORIGIN, Sent::Origin { request: number }, access(Kind::Write, start, end, forced), orders);
    }

    fn wait_for_space(&mut self, part: Part) {
        self.counters.waits += 1;
        self.requests.get_mut(part.request).parts += 1;
        self.full.push_back(part);
    }

    /// Writes the part of a request within a block of dm-cache.
    fn write_block(&mut self, now_ns: u64, part: Part, orders: &mut Orders) {
        let Part { request: number, start, end } = part;
        let block = self.block_of(start);
        if let Some(waiting) = self.locked.get_mut(&block) {
            waiting.push(part);
            self.counters.waits += 1;
            self.requests.get_mut(number).parts += 1;
            return;
        }
        let forced = self.requests.get(number).request.force_unit_access;
        let is_writeback = self.description.mode == CacheMode::Writeback;
        let is_whole = start == block && end == self.block_end(block);
        if let Some((first, _)) = self.map.starting_at(block) {
            let place = first.place + (start - block);
            let extent = Extent { start, length: (end - start) as u32, place };
            // A block that is dirty since a crash stays so.
            let dirty = is_writeback || self.map.dirty().overlapping(start, end).next().is_some();
            self.map.space.pin(extent.place, extent.length);
            self.map.space.used(extent.place, extent.length);
            self.place(number, Placed { extent, dirty, is_new: false });
            self.write_cache(now_ns, number, extent, forced, orders);
            if !is_writeback {
                self.write_origin(number, start, end, orders);
            }
        } else if let Some(place) = if is_writeback && is_whole { self.map.space.take() } else { None } {
            // A write of a whole block needs no copy (`optimisable_bio`).
            let extent = Extent { start, length: (end - start) as u32, place };
            self.candidates.forget(block);
            self.place(number, Placed { extent, dirty: true, is_new: true });
            self.write_cache(now_ns, number, extent, forced, orders);
        } else {
            self.write_origin(number, start, end, orders);
        }
    }

    /// Writes a part of a request to blocks of dm-writecache: in place, or to free blocks. Blocks that continue each
    /// other are one request (since Linux 5.12, dcd195071f).
    fn write_blocks(&mut self, now_ns: u64, part: Part, when_full: WhenFull, orders: &mut Orders) {
        let number = part.request;
        let mut run: Option<Extent> = None;
        let mut at = part.start;
        while at < part.end {
            let until = self.block_end(self.block_of(at)).min(part.end);
            let own = self.map.starting_at(at).map(|(extent, _)| extent);
            let in_place = own.filter(|_| self.jobs.at(at, until).is_none());
            let placed = match in_place {
                Some(extent) => {
                    self.map.space.pin(extent.place, extent.length);
                    Some(Placed { extent, dirty: true, is_new: false })
                }
                None => self.map.space.take().map(|place| {
                    let extent = Extent { start: at, length: (until - at) as u32, place };
                    Placed { extent, dirty: true, is_new: true }
                }),
            };
            match placed {
                Some(placed) => {
                    self.place(number, placed);
                    match &mut run {
                        Some(run) if run.continues_in(&placed.extent) => run.length += placed.extent.length,
                        Some(_) | None => {
                            if let Some(run) = run.replace(placed.extent) {
                                self.write_cache(now_ns, number, run, false, orders);
                            }
                        }
                    }
                }
                None if own.is_none() && when_full == WhenFull::Origin => {
                    self.counters.bypassed_bytes += until - at;
                    self.write_origin(number, at, until, orders);
                }
                None => self.wait_for_space(Part { request: number, start: at, end: until }),
            }
            at = until;
        }
        if let Some(run) = run {
            self.write_cache(now_ns, number, run, false, orders);
        }
    }

    /// Tries again the writes that wait for a free block.
    pub(super) fn retry_full(&mut self, now_ns: u64, orders: &mut Orders) {
        for part in std::mem::take(&mut self.full) {
            match self.description.software {
                CacheSoftware::Bcache(_) => self.write_routed(now_ns, part.request, Route::Back, orders),
                CacheSoftware::DmCache(_) => self.write_block(now_ns, part, orders),
                CacheSoftware::DmWritecache(rules) => self.write_blocks(now_ns, part, rules.when_full, orders),
            }
            self.requests.get_mut(part.request).parts -= 1;
        }
    }

    /// Ends the copy of a block of dm-cache: writes to it go on.
    pub(super) fn unlock(&mut self, now_ns: u64, block: u64, orders: &mut Orders) {
        for part in self.locked.remove(&block).unwrap_or_default() {
            self.write_block(now_ns, part, orders);
            self.requests.get_mut(part.request).parts -= 1;
        }
    }

    /// Changes the map after a write or a trim.
    pub(super) fn apply(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        if !self.takes_in_order() {
            self.writing.remove(&number);
        }
        let state = self.requests.get_mut(number);
        let ((start, end), placed) = (state.range(), std::mem::take(&mut state.placed));
        let (unmaps, has_failed) = (state.unmaps, state.failed.is_some());
        self.make_stale(start, end);
        if unmaps && !has_failed && self.map.holds_any(start, end) {
            self.jobs.forget(start, end);
            self.map.unmap(start, end);
            self.changes.unmapped();
            self.changes.endanger(start, end);
        }
        self.map_all(now_ns, &placed, !has_failed, orders);
    }

    /// Changes the map after a write of dm-writecache to neighbouring blocks, which need not wait for the other parts
    /// of the request.
    pub(super) fn apply_run(&mut self, now_ns: u64, number: u32, run: &Extent, done: bool, orders: &mut Orders) {
        let placed = &mut self.requests.get_mut(number).placed;
        let own: Vec<Placed> = placed
            .extract_if(.., |placed| run.start <= placed.extent.start && placed.extent.end() <= run.end())
            .collect();
        self.map_all(now_ns, &own, done, orders);
    }

    /// Maps places if their write is done, and ends their pins.
    fn map_all(&mut self, now_ns: u64, places: &[Placed], done: bool, orders: &mut Orders) {
        for placed in places {
            if done {
                self.map_placed(placed);
            }
            self.map.space.unpin(placed.extent.place, placed.extent.length);
        }
        self.note_changes(now_ns, orders);
    }

    fn map_placed(&mut self, placed: &Placed) {
        let Placed { extent, dirty, is_new } = *placed;
        let (start, end) = (extent.start, extent.end());
        let was_mapped = self.map.holds_any(start, end);
        self.jobs.forget(start, end);
        self.map.map(extent, dirty);
        if is_new {
            self.changes.mapped(start, end);
        }
        let needs_commit = match self.description.software {
            CacheSoftware::Bcache(_) => dirty || was_mapped,
            CacheSoftware::DmCache(_) => {
                if dirty {
                    self.changes.written_in_place(start, end);
                }
                false
            }
            CacheSoftware::DmWritecache(_) => {
                if is_new {
                    self.order.push_back(start);
                } else {
                    self.overwrites += 1;
                }
                is_new
            }
        };
        if needs_commit {
            self.changes.endanger(start, end);
        }
    }
}
