//! [`CacheState`]: the controller's cache, which serves reads and writes.
//!
//! The number of destages in flight grows linearly from one at the low water mark to the maximum at the high water mark
//! (linear threshold scheduling: Varma and Jacobson, IEEE Transactions on Computers 47(2), 1998); below the low mark,
//! the cache destages only when idle. A write waits if the cache has no room for another dirty page; the policy also
//! decides then which page is freed next. (HP describes the saturated cache of the VA 7100 as a FIFO, which is its
//! policy.)

mod destage;
mod directory;
mod outside;
mod page;
mod prefetch;

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

use crate::description::array::{Cache, CacheWrites, Destage};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use directory::Directory;
pub use directory::parts_of;
use prefetch::Streams;

/// A run of bytes in transit between cache and members.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// Host request that waits for the transfer.
    pub request: Option<u32>,
    /// Number of operations and commands that the transfer waits for.
    pub pending: u32,
    /// Whether the transfer is a destage; otherwise it is a fill.
    pub leaves: bool,
    /// Whether the data must be read from flash before they are destaged.
    pub in_flash: bool,
    /// Whether part of the run could not be read or written.
    pub failed: bool,
}

/// The cache of an array.
#[derive(Clone, Debug)]
pub struct CacheState {
    pub directory: Directory,
    pub settings: Cache,
    pub page_bytes: u64,
    pub dirty_pages_max: u32,
    /// Whether the battery is charged, so that the cache may acknowledge writes.
    pub battery: bool,
    /// Writes that wait for a free page.
    pub waiting_writes: VecDeque<u32>,
    /// Reads that wait for a page that is being read, by page.
    pub waiting_reads: HashMap<u64, Vec<u32>, FxBuildHasher>,
    /// Fills and destages in flight.
    pub transfers: Slab<Transfer>,
    pub destages: u32,
    /// Share of dirty pages that warm-up leaves in the cache, of the maximum number of dirty pages.
    pub left_dirty: f64,
    /// Position of the sweep over the dirty pages, as a page number.
    pub sweep: u64,
    pub streams: Streams,
    pub counters: CacheCounters,
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheCounters {
    pub read_hits: u64,
    pub read_misses: u64,
    pub read_waits: u64,
    pub writes: u64,
    pub write_waits: u64,
    pub write_overwrites: u64,
    pub destages: u64,
    pub destaged_bytes: u64,
    pub prefetched_bytes: u64,
}

impl CacheState {
    /// Creates an empty cache.
    pub fn new(cache: &Cache) -> Self {
        let page_bytes = u64::from(cache.page_bytes);
        CacheState {
            directory: Directory::new((cache.data_bytes / page_bytes) as u32, cache.policy),
            page_bytes,
            dirty_pages_max: (cache.dirty_bytes_max / page_bytes) as u32,
            battery: cache.battery,
            waiting_writes: VecDeque::new(),
            waiting_reads: HashMap::default(),
            transfers: Slab::default(),
            destages: 0,
            left_dirty: cache.low_water,
            sweep: 0,
            streams: Streams::new(cache.prefetch),
            counters: CacheCounters::default(),
            settings: cache.clone(),
        }
    }

    /// Returns the number of pages with data that the members do not have yet.
    pub fn dirty_pages(&self) -> u32 {
        self.directory.dirty_pages
    }

    /// Returns the number of bytes destaged to the members.
    pub fn destaged_bytes(&self) -> u64 {
        self.counters.destaged_bytes
    }

    /// Adds the cache's counters to a snapshot.
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

    /// Returns the write policy currently in effect.
    pub fn writes(&self) -> CacheWrites {
        match self.settings.writes {
            CacheWrites::Back if !self.battery => CacheWrites::Through,
            writes @ (CacheWrites::Back | CacheWrites::Through | CacheWrites::Around) => writes,
        }
    }

    /// Whether the cache acknowledges a write of `length` bytes as soon as pages are free.
    pub fn takes(&self, length: u64) -> bool {
        self.writes() == CacheWrites::Back
            && length <= u64::from(self.dirty_pages_max.saturating_sub(1)) * self.page_bytes
    }

    /// Returns the keys of the pages that a run touches.
    pub fn keys(&self, offset: u64, length: u64) -> std::ops::RangeInclusive<u64> {
        offset / self.page_bytes..=(offset + length - 1) / self.page_bytes
    }

    /// Accepts a write if pages are free; returns false if the write must wait.
    pub fn accept(&mut self, offset: u64, length: u64) -> bool {
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
            // Each page is marked dirty before the next is taken: a clean page of this write could be evicted
            // otherwise.
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

    /// Marks a run as written to the members.
    pub fn finish_destage(&mut self, offset: u64, length: u64) {
        for key in self.keys(offset, length) {
            let slot = self.directory.find(key).expect("a page stays in the cache while it is being destaged");
            self.directory.mark_written(slot, parts_of(key, self.page_bytes, offset, length));
        }
    }

    /// Returns the smallest range that covers the missing bytes of a run, and a page of the run that is already being
    /// read, if any.
    pub fn missing(&self, offset: u64, length: u64) -> (Option<(u64, u64)>, Option<u64>) {
        let part = self.page_bytes / u64::from(page::PARTS);
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

    /// Adds pages for a run and marks them as being read; returns false if not all of them fit.
    pub fn prepare(&mut self, offset: u64, length: u64) -> bool {
        // Evictable pages of the run itself do not count as room: they stay, or are evicted and added again.
        let taken = |key: &u64| self.directory.find(*key).is_none_or(|slot| self.directory.page(slot).is_evictable());
        if self.keys(offset, length).filter(taken).count() as u32 > self.directory.room() {
            return false;
        }
        for key in self.keys(offset, length) {
            let slot = self.directory.find_or_take(key).expect("room for the run was checked above");
            let page = self.directory.page(slot);
            let parts = parts_of(key, self.page_bytes, offset, length) & !page.valid;
            self.directory.fill(slot, parts);
        }
        true
    }
}

impl CacheState {
    /// Handles a write that bypasses the cache: updates or invalidates cached parts of the run.
    pub fn write_around(&mut self, offset: u64, length: u64) {
        let keeps = self.writes() == CacheWrites::Through && self.settings.keeps_reads;
        for key in self.keys(offset, length) {
            let parts = parts_of(key, self.page_bytes, offset, length);
            if let Some(slot) = self.directory.find(key) {
                self.directory.forget(slot, parts);
            }
        }
        if keeps && self.prepare(offset, length) {
            for key in self.keys(offset, length) {
                let slot = self.directory.find(key).expect("`prepare` added the page");
                self.directory.filled(slot, parts_of(key, self.page_bytes, offset, length));
            }
        }
    }
}
