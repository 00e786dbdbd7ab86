//! The controller's cache: what reads and writes meet there.
//!
//! The number of destages under way grows linearly from one at the low water mark to all that are allowed at the high one
//! (linear threshold scheduling: Varma and Jacobson, IEEE Transactions on Computers 47(2), 1998); below the low mark
//! the cache is cleaned in idle moments alone. A write that finds no room for another dirty page waits, and while writes
//! wait the cache is a FIFO: it frees its oldest page next, as HP describes the VA 7100.

mod destage;
mod directory;
mod outside;
mod prefetch;

use std::collections::{HashMap, VecDeque};

use headstack_workload::Kind;
use rustc_hash::FxBuildHasher;

use super::description::{Cache, CacheWrites, Destage};
use super::members::Owner;
use super::operations::{Origin, request};
use super::slab::Slab;
use super::{Array, Event};
use crate::array::layout::Extent;
use crate::link::Direction;
use crate::snapshot::Snapshot;
use directory::{Directory, parts_of};
use prefetch::Streams;

/// A run of bytes that moves between cache and members.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    offset_bytes: u64,
    length_bytes: u64,
    /// The host request that waits for it.
    request: Option<u32>,
    /// Operations and commands that it waits for.
    pending: u32,
    /// It goes to the members.
    leaves: bool,
    /// What leaves is read from the flash first.
    in_flash: bool,
    /// Something of it could not be had, or given.
    failed: bool,
}

/// The cache of an array.
#[derive(Clone, Debug)]
pub struct CacheState {
    directory: Directory,
    settings: Cache,
    page_bytes: u64,
    dirty_pages_max: u32,
    /// Its battery is charged: written data may stay in it.
    battery: bool,
    /// Writes that wait for a page.
    waiting_writes: VecDeque<u32>,
    /// Reads that wait for a page that is on its way.
    waiting_reads: HashMap<u64, Vec<u32>, FxBuildHasher>,
    /// Fills and destages under way.
    transfers: Slab<Transfer>,
    destages: u32,
    /// Where the sweep over dirty pages is.
    sweep: u64,
    streams: Streams,
    counters: CacheCounters,
}

/// What a cache counts.
#[derive(Clone, Copy, Debug, Default)]
struct CacheCounters {
    read_hits: u64,
    read_misses: u64,
    read_waits: u64,
    writes: u64,
    write_waits: u64,
    write_overwrites: u64,
    destages: u64,
    destaged_bytes: u64,
    prefetched_bytes: u64,
}

impl CacheState {
    /// An empty cache.
    pub fn new(cache: &Cache) -> Self {
        let page_bytes = u64::from(cache.page_bytes);
        CacheState {
            directory: Directory::new((cache.data_bytes / page_bytes) as u32),
            page_bytes,
            dirty_pages_max: (cache.dirty_bytes_max / page_bytes) as u32,
            battery: cache.battery,
            waiting_writes: VecDeque::new(),
            waiting_reads: HashMap::default(),
            transfers: Slab::new(),
            destages: 0,
            sweep: 0,
            streams: Streams::new(cache.prefetch),
            counters: CacheCounters::default(),
            settings: cache.clone(),
        }
    }

    /// Pages with data that the members do not have yet.
    pub fn dirty_pages(&self) -> u32 {
        self.directory.dirty_pages
    }

    /// Bytes that went to the members.
    pub fn destaged_bytes(&self) -> u64 {
        self.counters.destaged_bytes
    }

    /// Adds what it has counted.
    pub fn snapshot(&self, into: &mut Snapshot) {
        let counters = &self.counters;
        for (name, value) in [
            ("cache_read_hits", counters.read_hits),
            ("cache_read_misses", counters.read_misses),
            ("cache_read_waits", counters.read_waits),
            ("cache_writes", counters.writes),
            ("cache_write_waits", counters.write_waits),
            ("cache_overwrites", counters.write_overwrites),
            ("cache_destages", counters.destages),
            ("cache_destaged_bytes", counters.destaged_bytes),
            ("cache_prefetched_bytes", counters.prefetched_bytes),
        ] {
            into.count(name, value);
        }
    }

    fn writes(&self) -> CacheWrites {
        match self.settings.writes {
            CacheWrites::Back if !self.battery => CacheWrites::Through,
            writes => writes,
        }
    }

    /// The pages that a run touches.
    fn keys(&self, offset: u64, length: u64) -> std::ops::RangeInclusive<u64> {
        offset / self.page_bytes..=(offset + length - 1) / self.page_bytes
    }

    /// Takes a write that finds room; false if it must wait.
    fn accept(&mut self, offset: u64, length: u64) -> bool {
        let (mut newly_dirty, mut new) = (0, 0);
        for key in self.keys(offset, length) {
            match self.directory.find(key) {
                Some(slot) => {
                    newly_dirty += u32::from(self.directory.page(slot).dirty | self.directory.page(slot).leaving == 0)
                }
                None => (newly_dirty, new) = (newly_dirty + 1, new + 1),
            }
        }
        if self.directory.dirty_pages + newly_dirty > self.dirty_pages_max || new > self.directory.room() {
            return false;
        }
        let renews = self.settings.destage == Destage::Lru;
        for key in self.keys(offset, length) {
            // Pages of this write that are clean could be thrown out for its new ones: each is dirty before the next.
            let Some(slot) = self.directory.find_or_take(key) else {
                return false;
            };
            let parts = parts_of(key, self.page_bytes, offset, length);
            self.counters.write_overwrites += u64::from(self.directory.page(slot).dirty & parts != 0);
            self.directory.dirty(slot, parts, renews);
        }
        self.counters.writes += 1;
        true
    }

    /// What of a run is not there: the hull of it, and whether some of it is on its way already.
    fn missing(&self, offset: u64, length: u64) -> (Option<(u64, u64)>, Option<u64>) {
        let part = self.page_bytes / u64::from(directory::PARTS);
        let (mut hull, mut arriving): (Option<(u64, u64)>, _) = (None, None);
        for key in self.keys(offset, length) {
            let wanted = parts_of(key, self.page_bytes, offset, length);
            let (valid, filling) = match self.directory.find(key) {
                Some(slot) => (self.directory.page(slot).valid, self.directory.page(slot).filling),
                None => (0, 0),
            };
            let missing = wanted & !valid;
            if missing & filling != 0 {
                arriving = arriving.or(Some(key));
            }
            if missing != 0 {
                let begin = key * self.page_bytes;
                let from = begin + u64::from(missing.trailing_zeros()) * part;
                let to = begin + u64::from(u64::BITS - missing.leading_zeros()) * part;
                hull = Some(hull.map_or((from, to), |(first, _)| (first, to)));
            }
        }
        (hull, arriving)
    }

    /// Makes pages for a run that will be read, and marks them; false if there is no room for all of it.
    fn prepare(&mut self, offset: u64, length: u64) -> bool {
        // Pages of the run that could go are no room for it: they are kept, or thrown out and taken again.
        let taken = |key: &u64| self.directory.find(*key).is_none_or(|slot| self.directory.page(slot).is_evictable());
        if self.keys(offset, length).filter(taken).count() as u32 > self.directory.room() {
            return false;
        }
        for key in self.keys(offset, length) {
            let slot = self.directory.find_or_take(key).expect("there is room for the run");
            let page = self.directory.page(slot);
            let parts = parts_of(key, self.page_bytes, offset, length) & !page.valid;
            self.directory.fill(slot, parts);
        }
        true
    }
}

impl Array {
    fn cache(&mut self) -> &mut CacheState {
        self.cache.as_mut().expect("only arrays with a cache come here")
    }

    /// A transfer waits for one operation more.
    pub(super) fn expect_transfer_part(&mut self, number: u32) {
        self.cache().transfers.get_mut(number).pending += 1;
    }

    /// Keeps what a request of the past left in the cache; true if a read found all of it there.
    pub(super) fn warm_cache(&mut self, kind: Kind, offset: u64, length: u64) -> bool {
        let Some(cache) = &mut self.cache else {
            return false;
        };
        let hit = cache.missing(offset, length).0.is_none();
        if cache.settings.keeps_reads && cache.prepare(offset, length) {
            for key in cache.keys(offset, length) {
                // A page that was there may have made room for the next ones.
                if let Some(slot) = cache.directory.find(key) {
                    cache.directory.filled(slot, parts_of(key, cache.page_bytes, offset, length));
                    cache.directory.touch(slot);
                }
            }
        }
        hit && kind == Kind::Read
    }

    /// A read meets the cache.
    pub(super) fn cached_read(&mut self, now_ns: u64, number: u32) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        self.follow_stream(now_ns, offset, length);
        self.look_up(now_ns, number);
    }

    /// What is there is given out; what is on its way is waited for; the rest is read.
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

    /// A write meets the cache.
    pub(super) fn cached_write(&mut self, now_ns: u64, number: u32) {
        let wanted = self.requests.get(number).request;
        let (offset, length) = (wanted.offset_bytes, u64::from(wanted.length_bytes));
        let cache = self.cache();
        if cache.writes() != CacheWrites::Back
            || length > u64::from(cache.dirty_pages_max.saturating_sub(1)) * cache.page_bytes
        {
            cache.write_past(offset, length);
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

    /// The cache has a write's data: the partner gets a copy, then the host its answer.
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

    /// Data of a request come from, or go to, the cache itself: at once where that is memory, by commands where it is
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

    /// Where a run's pages lie in the flash: pages are dealt over its members; what is written goes to two of them where
    /// there are two, each member's second half holding the copies.
    fn flash_places(&mut self, offset: u64, length: u64, kind: Kind) -> Vec<(u32, Extent)> {
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

    /// A fill or destage waits for one thing less.
    pub(super) fn transfer_part_done(&mut self, now_ns: u64, number: u32) {
        let transfer = self.cache().transfers.get_mut(number);
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

    /// Data have come from the members: whoever waited for them goes on.
    fn filled(&mut self, now_ns: u64, transfer: &Transfer) {
        let (offset, length) = (transfer.offset_bytes, transfer.length_bytes);
        let cache = self.cache();
        let mut waiting = Vec::new();
        for key in cache.keys(offset, length) {
            // A page may be gone: where fills overlap, the first to come completes it, and of one that was all there when
            // the run was prepared, nothing was on its way.
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

    /// Writes that waited for a page take those that are free now, first come, first served.
    fn admit_waiting(&mut self, now_ns: u64) {
        while let Some(&number) = self.cache().waiting_writes.front() {
            let wanted = self.requests.get(number).request;
            if !self.cache().accept(wanted.offset_bytes, u64::from(wanted.length_bytes)) {
                break;
            }
            self.cache().waiting_writes.pop_front();
            self.write_taken(now_ns, number);
        }
    }

    /// The battery goes or comes.
    pub(super) fn set_battery(&mut self, now_ns: u64, charged: bool) {
        if let Some(cache) = &mut self.cache {
            cache.battery = charged;
            self.destage(now_ns);
        }
    }
}

impl CacheState {
    /// A write goes past the cache: what it holds of it is kept true, or forgotten.
    fn write_past(&mut self, offset: u64, length: u64) {
        let keeps = self.writes() == CacheWrites::Through && self.settings.keeps_reads;
        for key in self.keys(offset, length) {
            let parts = parts_of(key, self.page_bytes, offset, length);
            if let Some(slot) = self.directory.find(key) {
                self.directory.forget(slot, parts);
            }
        }
        if keeps && self.prepare(offset, length) {
            for key in self.keys(offset, length) {
                let slot = self.directory.find(key).expect("just prepared");
                self.directory.filled(slot, parts_of(key, self.page_bytes, offset, length));
            }
        }
    }
}
