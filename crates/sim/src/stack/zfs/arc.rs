//! [`ArcCache`]: the data class of the ARC (arc.c): records by bytes in lists of recent and frequent ones, with ghosts.
//! The lists are those of the crate `headstack-cache`. Metadata take a stated share of the memory and are always cached.

use std::collections::VecDeque;

use headstack_cache::{CachePolicy, Policy, Replacement};
use rustc_hash::FxHashMap;

/// Time after the previous access from which a hit counts as another use (`ARC_MINTIME`, 62 ms).
const AGAIN_NS: u64 = 62_000_000;
/// Mark of a record that only prefetch has used.
const PREFETCHED: u64 = u64::MAX;

/// State of an id.
#[derive(Clone, Copy, Debug)]
struct Entry {
    record: u64,
    used_ns: u64,
    /// Number of its last admission.
    admission: u64,
}

/// Records in memory.
#[derive(Clone, Debug)]
pub(super) struct ArcCache {
    replacement: Replacement,
    capacity_bytes: u64,
    cached_bytes: u64,
    /// Ids of records in the cache and of ghosts.
    ids: FxHashMap<u64, u32>,
    entries: Vec<Entry>,
    unused: Vec<u32>,
    /// Whether it was full once.
    pub was_full: bool,
    /// Ids and numbers in order of admission, for the feed of the cache device; `None` without one.
    admitted: Option<VecDeque<(u32, u64)>>,
    admissions: u64,
}

impl ArcCache {
    /// Creates an empty cache.
    pub fn new(capacity_bytes: u64, feeds: bool) -> ArcCache {
        ArcCache {
            replacement: Replacement::new(CachePolicy::Arc, capacity_bytes, true),
            capacity_bytes,
            cached_bytes: 0,
            ids: FxHashMap::default(),
            entries: Vec::new(),
            unused: Vec::new(),
            was_full: false,
            admitted: feeds.then(VecDeque::new),
            admissions: 0,
        }
    }

    /// Returns the bytes of its records.
    pub fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// Whether it holds a record.
    pub fn holds(&self, record: u64) -> bool {
        self.ids.get(&record).is_some_and(|&id| self.replacement.holds(id))
    }

    /// Uses a record; returns whether it is in the cache.
    pub fn hit(&mut self, now_ns: u64, record: u64) -> bool {
        let Some(&id) = self.ids.get(&record).filter(|&&id| self.replacement.holds(id)) else { return false };
        let used_ns = std::mem::replace(&mut self.entries[id as usize].used_ns, now_ns);
        if used_ns != PREFETCHED && now_ns >= used_ns + AGAIN_NS {
            self.replacement.hit(id);
        }
        true
    }

    /// Admits a record that was read or written. A record in the cache counts as used.
    pub fn admit(&mut self, now_ns: u64, record: u64, bytes: u32, prefetched: bool) {
        if self.hit(now_ns, record) {
            return;
        }
        let id = self.id_of(record);
        self.admissions += 1;
        let used_ns = if prefetched { PREFETCHED } else { now_ns };
        self.entries[id as usize] = Entry { record, used_ns, admission: self.admissions };
        self.replacement.recall(id);
        while self.cached_bytes + u64::from(bytes) > self.capacity_bytes && self.cached_bytes > 0 {
            let evicted = self.replacement.replace();
            self.cached_bytes -= u64::from(self.replacement.nodes().weight(evicted));
            self.was_full = true;
            self.collect();
        }
        self.replacement.admit(id, bytes, record);
        self.cached_bytes += u64::from(bytes);
        if let Some(admitted) = &mut self.admitted
            && !prefetched
        {
            admitted.push_back((id, self.admissions));
            // Removes records that left, often enough to bound the memory.
            if admitted.len() > 2 * self.ids.len() + 16 {
                let mut admitted = std::mem::take(admitted);
                admitted.retain(|entry| self.is_current(*entry));
                self.admitted = Some(admitted);
            }
        }
    }

    fn is_current(&self, (id, admission): (u32, u64)) -> bool {
        self.entries[id as usize].admission == admission && self.replacement.holds(id)
    }

    /// Adds a past use of a record; returns whether it was in the cache.
    pub fn warm(&mut self, record: u64, bytes: u32) -> bool {
        if let Some(&id) = self.ids.get(&record).filter(|&&id| self.replacement.holds(id)) {
            self.replacement.hit(id);
            return true;
        }
        self.admit(0, record, bytes, false);
        false
    }

    /// Takes the next record that may go to the cache device: the oldest by admission that is still in the cache.
    pub fn next_for_feed(&mut self) -> Option<u64> {
        loop {
            let entry = self.admitted.as_mut()?.pop_front()?;
            if self.is_current(entry) {
                return Some(self.entries[entry.0 as usize].record);
            }
        }
    }

    /// Whether records wait for the cache device.
    pub fn has_feed(&self) -> bool {
        self.admitted.as_ref().is_some_and(|admitted| !admitted.is_empty())
    }

    /// Removes a record.
    pub fn discard(&mut self, record: u64) {
        if let Some(&id) = self.ids.get(&record)
            && self.replacement.holds(id)
        {
            self.cached_bytes -= u64::from(self.replacement.nodes().weight(id));
            self.replacement.discard(id);
            self.collect();
        }
    }

    /// Empties it.
    pub fn power_cycle(&mut self) {
        *self = ArcCache::new(self.capacity_bytes, self.admitted.is_some());
    }

    fn id_of(&mut self, record: u64) -> u32 {
        if let Some(&id) = self.ids.get(&record) {
            return id;
        }
        let id = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(Entry { record, used_ns: 0, admission: 0 });
            self.entries.len() as u32 - 1
        });
        self.entries[id as usize].record = record;
        self.ids.insert(record, id);
        id
    }

    /// Makes the ids of forgotten records available.
    fn collect(&mut self) {
        while let Some(id) = self.replacement.nodes().next_forgotten() {
            let record = self.entries[id as usize].record;
            if self.ids.get(&record) == Some(&id) {
                self.ids.remove(&record);
            }
            self.unused.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: u32 = 1000;

    /// A scan does not evict records that were used again after 62 ms; it evicts those used again sooner.
    #[test]
    fn a_second_use_after_62_ms_protects_from_a_scan() {
        for (again_ns, protected) in [(AGAIN_NS, true), (AGAIN_NS - 1, false)] {
            let mut arc = ArcCache::new(10 * u64::from(RECORD), false);
            (0..5).for_each(|record| arc.admit(0, record, RECORD, false));
            (0..5).for_each(|record| assert!(arc.hit(again_ns, record)));
            (100..200).for_each(|record| arc.admit(again_ns, record, RECORD, false));
            assert_eq!((0..5).all(|record| arc.holds(record)), protected);
            assert_eq!(arc.cached_bytes(), 10 * u64::from(RECORD));
        }
    }

    #[test]
    fn memory_is_bounded_by_the_size_of_the_cache() {
        let mut arc = ArcCache::new(100 * u64::from(RECORD), true);
        for record in 0..100_000 {
            arc.admit(record * AGAIN_NS, record * 7919 % 30_011, RECORD, false);
        }
        assert!(arc.ids.len() <= 200, "{}", arc.ids.len());
        assert!(arc.entries.len() <= 202, "{}", arc.entries.len());
        assert!(arc.admitted.as_ref().unwrap().len() <= 420);
    }
}
