//! Reads and writes of an [`Array`] that its controller's cache serves, and transfers between cache and members.

use headstack_workload::Kind;

use super::cache::{CacheState, Transfer, parts_of};
use super::levels::Extent;
use super::state::{Array, Event};
use super::under_way::{Origin, Owner, request};
use crate::link::Direction;

impl Array {
    pub(super) fn cache(&mut self) -> &mut CacheState {
        self.cache.as_mut().expect("only arrays with a cache come here")
    }

    /// Counts one more operation that a transfer waits for.
    pub(super) fn expect_transfer_part(&mut self, number: u32) {
        self.cache().transfers.get_mut(number).pending += 1;
    }

    /// Adds a past request to the cache, in no time; returns true if a read was a complete hit.
    pub(super) fn warm_cache(&mut self, kind: Kind, offset: u64, length: u64) -> bool {
        let Some(cache) = &mut self.cache else {
            return false;
        };
        if kind == Kind::Write && cache.takes(length) {
            self.warm_write(offset, length);
            return false;
        }
        let hit = cache.missing(offset, length).0.is_none();
        if cache.settings.keeps_reads && cache.prepare(offset, length) {
            for key in cache.keys(offset, length) {
                // A page of the run may have been evicted for a later one.
                if let Some(slot) = cache.directory.find(key) {
                    let parts = parts_of(key, cache.page_bytes, offset, length);
                    let is_used = cache.directory.page(slot).filling & parts == 0;
                    cache.directory.filled(slot, parts);
                    if is_used {
                        cache.directory.touch(slot);
                    }
                }
            }
        }
        hit && kind == Kind::Read
    }

    /// Adds a past write, which the cache has acknowledged: it is still dirty, except for what exceeds the share that
    /// stays dirty. That share is initially the low mark, below which nothing is destaged under a host that never
    /// rests.
    fn warm_write(&mut self, offset: u64, length: u64) {
        let cache = self.cache();
        let counters = cache.counters;
        // A write that finds no room would have waited for it: its pages would be among the dirty ones.
        let _ = cache.accept(offset, length);
        cache.counters = counters;
        let share = cache.left_dirty;
        self.leave_dirty(share);
    }

    /// Returns the dirty pages of a write-back cache as a share of the pages that may be dirty.
    pub fn dirty_share(&self) -> Option<f64> {
        self.cache.as_ref().filter(|cache| cache.takes(1)).map(CacheState::dirty_share)
    }

    /// Writes dirty pages above `share` to the members, in no time, and keeps to that share from now on.
    pub fn leave_dirty(&mut self, share: f64) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        cache.left_dirty = share;
        while self.cache().dirty_share() > share
            && let Some((from, length)) = self.begin_destage()
        {
            self.cache().finish_destage(from, length);
        }
    }

    /// Serves a read through the cache.
    pub(super) fn cached_read(&mut self, now_ns: u64, number: u32) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        self.follow_stream(now_ns, offset, length);
        self.look_up(now_ns, number);
    }

    /// Serves cached parts of a read, waits for parts that are being read, and reads the rest.
    fn look_up(&mut self, now_ns: u64, number: u32) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        let cache = self.cache();
        match cache.missing(offset, length) {
            (None, _) => {
                cache.counters.read_hits += 1;
                for key in cache.keys(offset, length) {
                    if let Some(slot) = cache.directory.find(key) {
                        cache.directory.touch(slot);
                    }
                }
                self.answer_from_cache(now_ns, number, Kind::Read);
            }
            (_, Some(key)) => {
                cache.counters.read_waits += 1;
                cache.waiting_reads.entry(key).or_default().push(number);
            }
            (Some((from, to)), None) => {
                cache.counters.read_misses += 1;
                let unit = u64::from(cache.settings.fill_bytes.max(1));
                let (from, to) = (from / unit * unit, to.next_multiple_of(unit));
                let keeps = cache.settings.keeps_reads && cache.prepare(from, to - from);
                if keeps {
                    self.fill(now_ns, from, to - from, Some(number))
                } else {
                    self.request_members(now_ns, number)
                }
            }
        }
    }

    /// Reads a run, for which pages are prepared, from the members.
    fn fill(&mut self, now_ns: u64, from: u64, length: u64, request: Option<u32>) {
        // The last page may reach beyond the last address.
        let end = (from + length).min(self.lun_bases[self.lun_bases.len() - 1]);
        let transfer = Transfer {
            offset_bytes: from,
            length_bytes: length,
            request,
            pending: 1,
            leaves: false,
            in_flash: false,
            failed: false,
        };
        let number = self.cache().transfers.insert(transfer);
        self.operate(now_ns, Origin::Transfer(number), false, from, end - from);
        self.transfer_part_done(now_ns, number);
    }

    /// Serves a write through the cache.
    pub(super) fn cached_write(&mut self, now_ns: u64, number: u32) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        let cache = self.cache();
        if !cache.takes(length) {
            cache.write_around(offset, length);
            return self.request_members(now_ns, number);
        }
        if cache.waiting_writes.is_empty() && cache.accept(offset, length) {
            self.write_taken(now_ns, number);
        } else {
            cache.counters.write_waits += 1;
            cache.waiting_writes.push_back(number);
        }
        self.destage(now_ns);
    }

    /// Continues a write whose data are in the cache: copies them to the partner controller, then acknowledges the
    /// write.
    fn write_taken(&mut self, now_ns: u64, number: u32) {
        let bytes = u64::from(self.requests.get(number).request.length_bytes);
        let safe_ns = match self.cache().settings.mirror_link {
            Some(link) => self.links[link as usize].carry(now_ns, now_ns, bytes, 0.0, Direction::Write),
            None => now_ns,
        };
        if !self.cache().settings.flash_members.is_empty() {
            self.answer_from_cache(safe_ns.max(now_ns), number, Kind::Write);
        } else if safe_ns > now_ns {
            self.at(safe_ns, Event::Respond(number));
        } else {
            self.respond(now_ns, number);
        }
    }

    /// Moves the data of a request from or to the cache itself: at once for a cache in memory, with commands for one in
    /// flash.
    fn answer_from_cache(&mut self, now_ns: u64, number: u32, kind: Kind) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        if self.cache().settings.flash_members.is_empty() {
            return self.answer(now_ns, number);
        }
        self.requests.get_mut(number).pending = 1;
        for (member, extent) in self.flash_places(offset, length, kind) {
            self.requests.get_mut(number).pending += 1;
            self.issue(now_ns, member, Owner::Request(number), request(kind, &extent));
        }
        self.part_done(now_ns, number);
    }

    /// Returns the places of a run's pages in flash. Pages are distributed over the cache's members; written data go to
    /// two of them where there are two, and the second half of each member holds the copies.
    pub(super) fn flash_places(&mut self, offset: u64, length: u64, kind: Kind) -> Vec<(u32, Extent)> {
        let cache = self.cache.as_ref().expect("only arrays with a cache come here");
        let flash = &cache.settings.flash_members;
        let members = flash.len() as u64;
        let pages_each = (cache.settings.data_bytes / cache.page_bytes).div_ceil(members);
        let mut places = Vec::new();
        for key in cache.keys(offset, length) {
            let Some(slot) = cache.directory.find(key).map(u64::from) else {
                continue;
            };
            let begin = (key * cache.page_bytes).max(offset);
            let end = ((key + 1) * cache.page_bytes).min(offset + length);
            let copies = if kind == Kind::Write && members > 1 { 2 } else { 1 };
            for copy in 0..copies {
                let member = flash[((slot + copy) % members) as usize];
                let page = slot / members + copy * pages_each;
                let at_bytes = page * cache.page_bytes + begin % cache.page_bytes;
                places.push((member, Extent { slot: 0, at_bytes, length_bytes: end - begin }));
            }
        }
        places
    }

    /// Counts one less thing that a fill or destage waits for.
    pub(super) fn transfer_part_done(&mut self, now_ns: u64, number: u32) {
        let transfer = self.cache().transfers.get_mut(number);
        debug_assert!(transfer.pending > 0, "it has no more pending parts than expected");
        transfer.pending -= 1;
        if transfer.pending > 0 {
            return;
        }
        if transfer.in_flash {
            transfer.in_flash = false;
            return self.write_out(now_ns, number);
        }
        let transfer = self.cache().transfers.remove(number);
        match (transfer.leaves, transfer.failed) {
            (true, _) => self.destaged(now_ns, &transfer),
            (false, true) => self.fill_failed(now_ns, &transfer),
            (false, false) => self.filled(now_ns, &transfer),
        }
    }

    /// Continues the requests that waited for data that the members have now delivered.
    fn filled(&mut self, now_ns: u64, transfer: &Transfer) {
        let (offset, length) = (transfer.offset_bytes, transfer.length_bytes);
        let cache = self.cache();
        let mut waiting = Vec::new();
        for key in cache.keys(offset, length) {
            // A page may be gone: where fills overlap, the first to finish completes it; and a page that was complete
            // when the run was prepared was not being read.
            if let Some(slot) = cache.directory.find(key) {
                let parts = parts_of(key, cache.page_bytes, offset, length) & cache.directory.page(slot).filling;
                cache.directory.filled(slot, parts);
            }
            waiting.extend(cache.waiting_reads.remove(&key).unwrap_or_default());
        }
        if !cache.settings.flash_members.is_empty() {
            for (member, extent) in self.flash_places(offset, length, Kind::Read) {
                self.issue(now_ns, member, Owner::Background, request(Kind::Write, &extent));
            }
        }
        if let Some(number) = transfer.request {
            self.answer(now_ns, number);
        }
        for number in waiting {
            self.look_up(now_ns, number);
        }
        self.admit_waiting(now_ns);
    }

    /// Gives free pages to writes that wait for one, first come, first served.
    pub(super) fn admit_waiting(&mut self, now_ns: u64) {
        while let Some(&number) = self.cache().waiting_writes.front() {
            let wanted = self.requests.get(number).request;
            if !self.cache().accept(wanted.offset_bytes, u64::from(wanted.length_bytes)) {
                break;
            }
            self.cache().waiting_writes.pop_front();
            self.write_taken(now_ns, number);
        }
    }

    /// Sets whether the battery is charged.
    pub(super) fn set_battery(&mut self, now_ns: u64, charged: bool) {
        if let Some(cache) = &mut self.cache {
            cache.battery = charged;
            self.destage(now_ns);
        }
    }

    /// Reads ahead if a read belongs to a sequential stream.
    pub(super) fn follow_stream(&mut self, now_ns: u64, offset: u64, length: u64) {
        let last = self.lun_bases[self.lun_bases.len() - 1];
        let cache = self.cache();
        let Some((from, to)) = cache.streams.see(offset, length) else {
            return;
        };
        // Reads up to the end of a page, so that the next run begins with the following one.
        let to = (to.next_multiple_of(cache.page_bytes)).min(last);
        if from >= to {
            return;
        }
        if let (Some((from, to)), _) = cache.missing(from, to - from)
            && cache.prepare(from, to - from)
        {
            cache.counters.prefetched_bytes += to - from;
            self.fill(now_ns, from, to - from, None);
        }
    }

    /// Returns the run of addresses that a transfer moves.
    pub(super) fn transfer_run(&self, number: u32) -> (u64, u64) {
        let cache = self.cache.as_ref().expect("only arrays with a cache come here");
        let transfer = cache.transfers.get(number);
        (transfer.offset_bytes, transfer.length_bytes)
    }

    /// Marks a transfer as failed: part of its run cannot be read or written.
    pub(super) fn fail_transfer(&mut self, number: u32) {
        self.cache().transfers.get_mut(number).failed = true;
    }

    /// Handles a fill that cannot be read: discards all of it; requests that wait read their data from the members.
    fn fill_failed(&mut self, now_ns: u64, transfer: &Transfer) {
        let (offset, length) = (transfer.offset_bytes, transfer.length_bytes);
        let cache = self.cache();
        let mut waiting = Vec::new();
        for key in cache.keys(offset, length) {
            if let Some(slot) = cache.directory.find(key) {
                cache.directory.unfill(slot, parts_of(key, cache.page_bytes, offset, length));
            }
            waiting.extend(cache.waiting_reads.remove(&key).unwrap_or_default());
        }
        for number in transfer.request.into_iter().chain(waiting) {
            self.request_members(now_ns, number);
        }
        self.admit_waiting(now_ns);
    }
}
