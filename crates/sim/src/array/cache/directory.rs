//! [`Directory`]: the pages of a cache, the state of their parts (valid, dirty, leaving, filling), and which page is
//! evicted next.

use std::collections::{BTreeSet, HashMap, VecDeque};

use headstack_cache::{CachePolicy, Policy, Replacement};
use rustc_hash::FxBuildHasher;

use super::page::{PARTS, Page};

/// The pages of a cache. The replacement policy picks the victim among the evictable ones.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Slots of the pages in the cache, and of those that the replacement policy remembers.
    slots: HashMap<u64, u32, FxBuildHasher>,
    pages: Vec<Page>,
    free_slots: Vec<u32>,
    pages_max: u32,
    held: u32,
    replacement: Replacement,
    evictable: u32,
    /// Pages with dirty or leaving parts.
    pub dirty_pages: u32,
    clock: u64,
    /// Dirty pages by age; some entries are stale.
    by_age: VecDeque<(u64, u64)>,
    /// Pages that are ready to be destaged, by address.
    by_place: BTreeSet<u64>,
}

impl Directory {
    /// Creates an empty cache of `pages_max` pages.
    pub fn new(pages_max: u32, policy: CachePolicy) -> Self {
        Directory {
            slots: HashMap::default(),
            pages: Vec::new(),
            free_slots: Vec::new(),
            pages_max,
            held: 0,
            replacement: Replacement::new(policy, u64::from(pages_max), true),
            evictable: 0,
            dirty_pages: 0,
            clock: 0,
            by_age: VecDeque::new(),
            by_place: BTreeSet::new(),
        }
    }

    /// Returns the slot of a page that is in the cache.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.slots.get(&key).copied().filter(|&slot| self.page(slot).held)
    }

    /// Returns the page in a slot.
    #[inline]
    pub fn page(&self, slot: u32) -> &Page {
        &self.pages[slot as usize]
    }

    /// Returns how many pages could be added now.
    pub fn room(&self) -> u32 {
        self.pages_max - self.held + self.evictable
    }

    /// Returns the slot of a page, evicting another page if the cache is full; `None` if no page can be evicted.
    pub fn find_or_take(&mut self, key: u64) -> Option<u32> {
        if let Some(slot) = self.find(key) {
            return Some(slot);
        }
        if self.room() == 0 {
            return None;
        }
        while let Some(slot) = self.replacement.nodes().next_forgotten() {
            self.slots.remove(&self.pages[slot as usize].key);
            self.free_slots.push(slot);
        }
        let slot_of_key = self.slots.get(&key).copied();
        if let Some(slot) = slot_of_key {
            self.replacement.recall(slot);
        }
        if self.held == self.pages_max {
            let slot = self.replacement.replace();
            debug_assert!(self.page(slot).is_evictable(), "what the members do not have stays");
            self.pages[slot as usize].held = false;
            self.held -= 1;
            self.evictable -= 1;
        }
        let slot = slot_of_key.or_else(|| self.free_slots.pop()).unwrap_or(self.pages.len() as u32);
        match self.pages.get_mut(slot as usize) {
            Some(page) => *page = Page::new(key),
            None => self.pages.push(Page::new(key)),
        }
        if slot_of_key.is_none() {
            self.slots.insert(key, slot);
        }
        self.replacement.admit(slot, 1, key);
        self.held += 1;
        self.evictable += 1;
        debug_assert!(self.held <= self.pages_max, "a cache holds no more than it has room for");
        Some(slot)
    }

    /// Returns how many pages hold data or wait for some.
    pub fn pages_held(&self) -> u32 {
        self.held
    }

    /// Records that a page was used.
    pub fn touch(&mut self, slot: u32) {
        self.replacement.hit(slot);
    }

    /// Changes a page's masks and keeps lists and counts consistent with them.
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Page)) {
        let page = &mut self.pages[slot as usize];
        let before = *page;
        change(page);
        let after = *page;
        match (before.is_clean(), after.is_clean()) {
            (true, false) => self.dirty_pages += 1,
            (false, true) => self.dirty_pages -= 1,
            (true, true) | (false, false) => {}
        }
        match (before.is_evictable(), after.is_evictable()) {
            (true, false) => {
                self.replacement.keep(slot);
                self.evictable -= 1;
            }
            (false, true) => {
                self.replacement.release(slot);
                self.evictable += 1;
            }
            (true, true) | (false, false) => {}
        }
        match (before.is_ready(), after.is_ready()) {
            (false, true) => {
                self.by_place.insert(after.key);
            }
            (true, false) => {
                self.by_place.remove(&after.key);
            }
            (true, true) | (false, false) => {}
        }
        debug_assert!(after.dirty & !after.valid == 0 && after.leaving & !after.valid == 0, "dirty parts are held");
    }

    /// Marks parts as written by the host. With `renews` the page becomes the youngest; otherwise it keeps the age of
    /// its first dirty part.
    pub fn dirty(&mut self, slot: u32, parts: u64, renews: bool) {
        let (was_dirty, was_held) = (self.page(slot).dirty != 0, self.page(slot).valid != 0);
        self.change(slot, |page| {
            page.valid |= parts;
            page.dirty |= parts;
        });
        if was_held {
            self.touch(slot);
        }
        if !was_dirty || renews {
            self.clock += 1;
            let stamp = self.clock;
            let page = &mut self.pages[slot as usize];
            page.stamp = stamp;
            let key = page.key;
            self.by_age.push_back((key, stamp));
            if self.by_age.len() > 4 * self.dirty_pages as usize + 1024 {
                self.forget_ages();
            }
        }
    }

    fn forget_ages(&mut self) {
        let mut by_age = std::mem::take(&mut self.by_age);
        by_age.retain(|&(key, stamp)| self.is_ready_since(key, stamp));
        self.by_age = by_age;
    }

    fn is_ready_since(&self, key: u64, stamp: u64) -> bool {
        self.find(key).is_some_and(|slot| self.page(slot).is_ready() && self.page(slot).stamp == stamp)
    }

    /// Returns the page that has been dirty for longest among those that are ready to be destaged.
    pub fn oldest_dirty(&mut self) -> Option<u64> {
        while let Some(&(key, stamp)) = self.by_age.front() {
            if self.is_ready_since(key, stamp) {
                return Some(key);
            }
            self.by_age.pop_front();
        }
        None
    }

    /// Returns the first page at or above `key` that is ready to be destaged, wrapping around to the lowest.
    pub fn next_dirty(&self, key: u64) -> Option<u64> {
        self.by_place.range(key..).next().or_else(|| self.by_place.first()).copied()
    }

    /// Marks parts as being destaged.
    pub fn leave(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| {
            page.dirty &= !parts;
            page.leaving |= parts;
        });
    }

    /// Marks parts as written to the members.
    pub fn mark_written(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.leaving &= !parts);
        let page = self.page(slot);
        if page.is_ready() {
            // It was passed over while it was being destaged.
            let entry = (page.key, page.stamp);
            self.by_age.push_front(entry);
        }
    }

    /// Marks parts as being read.
    pub fn fill(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.filling |= parts);
    }

    /// Marks parts as read.
    pub fn filled(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| {
            page.filling &= !parts;
            page.valid |= parts;
        });
    }

    /// Marks parts as unreadable: they are no longer being read.
    pub fn unfill(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.filling &= !parts);
    }

    /// Handles a power loss: parts that were being destaged are dirty again, reads in progress are dropped.
    pub fn power_cut(&mut self) {
        for slot in 0..self.pages.len() as u32 {
            if self.find(self.page(slot).key) != Some(slot) {
                continue;
            }
            let leaving = self.page(slot).leaving;
            self.change(slot, |page| {
                page.dirty |= page.leaving;
                (page.leaving, page.filling) = (0, 0);
            });
            if leaving != 0 {
                let Page { key, stamp, .. } = *self.page(slot);
                self.by_age.push_front((key, stamp));
            }
        }
    }

    /// Returns the pages that hold data, in no order.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.slots.values().map(|&slot| self.page(slot)).filter(|page| page.held)
    }

    /// Invalidates parts that were written elsewhere. Parts that are dirty or being destaged stay.
    pub fn forget(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.valid &= !parts | page.dirty | page.leaving);
    }
}

/// Returns the parts of page `key` that the `length` bytes from `offset` overlap. With `whole`, only parts that are
/// covered completely count.
#[inline]
pub fn parts_of(key: u64, page_bytes: u64, offset: u64, length: u64) -> u64 {
    let part = page_bytes / u64::from(PARTS);
    let begin = key * page_bytes;
    let from = offset.saturating_sub(begin) / part;
    let to = (offset + length).saturating_sub(begin).div_ceil(part).min(u64::from(PARTS));
    mask(from, to)
}

/// Returns a mask of the bits from `from` up to, but not including, `to`.
#[inline]
fn mask(from: u64, to: u64) -> u64 {
    if from >= to {
        return 0;
    }
    (u64::MAX >> (u64::from(PARTS) - (to - from))) << from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_cover_the_touched_range() {
        assert_eq!(parts_of(0, 64, 0, 64), u64::MAX);
        assert_eq!(parts_of(1, 64, 64, 1), 1);
        assert_eq!(parts_of(1, 64, 60, 8), 0b1111);
        assert_eq!(parts_of(0, 64, 60, 8), 0b1111 << 60);
        assert_eq!(parts_of(2, 64, 0, 64), 0);
        assert_eq!(parts_of(0, 65536, 1000, 100), 0b11);
        assert_eq!(parts_of(0, 65536, 1000, 1100), 0b111);
    }

    #[test]
    fn the_least_recently_used_clean_page_goes_first() {
        let mut directory = Directory::new(3, CachePolicy::Lru);
        let slots: Vec<u32> = (0..3).map(|key| directory.find_or_take(key).unwrap()).collect();
        directory.touch(slots[0]);
        directory.dirty(slots[1], 1, false);
        assert_eq!(directory.room(), 2);
        let seven = directory.find_or_take(7).expect("1 is dirty, 0 was used: 2 goes");
        assert_eq!(directory.find(2), None);
        directory.leave(slots[1], 1);
        directory.dirty(slots[0], 1, false);
        directory.fill(seven, 1);
        assert_eq!(directory.find_or_take(8), None, "nothing can go");
        directory.mark_written(slots[1], 1);
        assert!(directory.find_or_take(8).is_some());
        assert_eq!(directory.find(1), None, "it alone could go");
    }

    #[test]
    fn dirty_pages_are_ordered_by_age_and_address() {
        let mut directory = Directory::new(8, CachePolicy::Lru);
        for key in [5, 1, 3] {
            let slot = directory.find_or_take(key).unwrap();
            directory.dirty(slot, 1, false);
        }
        let five = directory.find(5).unwrap();
        directory.dirty(five, 2, false);
        assert_eq!(directory.oldest_dirty(), Some(5));
        directory.dirty(five, 2, true);
        assert_eq!(directory.oldest_dirty(), Some(1));
        assert_eq!([0, 2, 4, 6].map(|key| directory.next_dirty(key).unwrap()), [1, 3, 5, 1]);
    }

    proptest! {
        /// Counts and lists agree with the pages after any sequence of steps.
        #[test]
        fn counts_are_true(steps in prop::collection::vec((0u64..12, 0u8..6), 1..400)) {
            let mut directory = Directory::new(8, CachePolicy::Lru);
            for (key, step) in steps {
                let Some(slot) = directory.find_or_take(key) else { continue };
                let page = *directory.page(slot);
                match step {
                    0 => directory.dirty(slot, 3, false),
                    1 => directory.leave(slot, page.dirty),
                    2 => directory.mark_written(slot, page.leaving),
                    3 => directory.fill(slot, 4),
                    4 => directory.filled(slot, page.filling),
                    _ => directory.touch(slot),
                }
                let pages = || directory.pages();
                prop_assert_eq!(directory.dirty_pages as usize, pages().filter(|page| !page.is_clean()).count());
                prop_assert_eq!(directory.evictable as usize, pages().filter(|page| page.is_evictable()).count());
                prop_assert_eq!(directory.by_place.len(), pages().filter(|page| page.is_ready()).count());
                prop_assert!(directory.pages_held() <= 8);
            }
        }

        /// After any sequence of steps, with every policy, dirty pages stay, the cache holds no more pages than fit,
        /// and an evictable page is found.
        #[test]
        fn what_the_members_lack_stays(steps in prop::collection::vec((0u64..30, 0u8..7), 1..600)) {
            for policy in CachePolicy::ALL {
                let mut directory = Directory::new(8, policy);
                for &(key, step) in &steps {
                    let mut must_stay: Vec<u64> =
                        directory.pages().filter(|page| !page.is_evictable()).map(|page| page.key).collect();
                    let room = directory.room();
                    let was_there = directory.find(key).is_some();
                    let taken = directory.find_or_take(key);
                    prop_assert_eq!(taken.is_some(), was_there || room > 0, "{:?}", policy);
                    must_stay.retain(|&key| directory.find(key).is_none());
                    prop_assert_eq!(must_stay, Vec::<u64>::new(), "{:?}", policy);
                    prop_assert!(directory.pages().count() <= 8);
                    let Some(slot) = taken else { continue };
                    let page = *directory.page(slot);
                    match step {
                        0 => directory.dirty(slot, 3, false),
                        1 => directory.leave(slot, page.ready_parts()),
                        2 => directory.mark_written(slot, page.leaving),
                        3 => directory.fill(slot, 4),
                        4 => directory.filled(slot, page.filling),
                        5 => directory.power_cut(),
                        _ => directory.touch(slot),
                    }
                }
            }
        }
    }
}
