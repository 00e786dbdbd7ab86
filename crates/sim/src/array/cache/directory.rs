//! [`Directory`]: the pages of a cache with their valid, dirty, leaving or incoming parts, and the next victim.

use std::collections::{BTreeSet, HashMap, VecDeque};

use headstack_cache::{CachePolicy, Policy, Replacement};
use rustc_hash::FxBuildHasher;

use super::page::{PARTS, Page};

/// The pages of a cache. The replacement policy chooses among those that can be evicted.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Slots of the cached pages, and of those that the replacement policy remembers.
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
    /// Dirty pages by age, with entries that hold no more among them.
    by_age: VecDeque<(u64, u64)>,
    /// Pages that may begin to leave, by address.
    by_place: BTreeSet<u64>,
}

impl Directory {
    /// An empty cache of `pages_max` pages.
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

    /// The slot of a page that is there.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.slots.get(&key).copied().filter(|&slot| self.page(slot).held)
    }

    /// The page in a slot.
    #[inline]
    pub fn page(&self, slot: u32) -> &Page {
        &self.pages[slot as usize]
    }

    /// Pages that could be added now.
    pub fn room(&self) -> u32 {
        self.pages_max - self.held + self.evictable
    }

    /// Returns the slot of a page, which replaces another one if the cache is full; `None` if all pages must stay.
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
        let known = self.slots.get(&key).copied();
        if let Some(slot) = known {
            self.replacement.recall(slot);
        }
        if self.held == self.pages_max {
            let slot = self.replacement.replace();
            debug_assert!(self.page(slot).is_evictable(), "what the members do not have stays");
            self.pages[slot as usize].held = false;
            self.held -= 1;
            self.evictable -= 1;
        }
        let slot = known.or_else(|| self.free_slots.pop()).unwrap_or(self.pages.len() as u32);
        match self.pages.get_mut(slot as usize) {
            Some(page) => *page = Page::new(key),
            None => self.pages.push(Page::new(key)),
        }
        if known.is_none() {
            self.slots.insert(key, slot);
        }
        self.replacement.admit(slot, 1, key);
        self.held += 1;
        self.evictable += 1;
        debug_assert!(self.held <= self.pages_max, "a cache holds no more than it has room for");
        Some(slot)
    }

    /// Pages that hold something or wait for it.
    pub fn pages_held(&self) -> u32 {
        self.held
    }

    /// A page was used.
    pub fn touch(&mut self, slot: u32) {
        self.replacement.hit(slot);
    }

    /// Changes a page's masks, and keeps lists and counts true.
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

    /// Parts are written by the host; `renews` makes the page the youngest, otherwise it keeps the age of its first
    /// dirty part.
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

    /// The page that has been dirty for longest, among those that may leave.
    pub fn oldest_dirty(&mut self) -> Option<u64> {
        while let Some(&(key, stamp)) = self.by_age.front() {
            if self.is_ready_since(key, stamp) {
                return Some(key);
            }
            self.by_age.pop_front();
        }
        None
    }

    /// The first page that may leave from `key` on, and round to the start.
    pub fn next_dirty(&self, key: u64) -> Option<u64> {
        self.by_place.range(key..).next().or_else(|| self.by_place.first()).copied()
    }

    /// Parts begin to leave for the members.
    pub fn leave(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| {
            page.dirty &= !parts;
            page.leaving |= parts;
        });
    }

    /// Parts have arrived at the members.
    pub fn left(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.leaving &= !parts);
        let page = self.page(slot);
        if page.is_ready() {
            // It was passed over while it left.
            let entry = (page.key, page.stamp);
            self.by_age.push_front(entry);
        }
    }

    /// Parts begin to be read.
    pub fn fill(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.filling |= parts);
    }

    /// Parts were read.
    pub fn filled(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| {
            page.filling &= !parts;
            page.valid |= parts;
        });
    }

    /// Parts could not be read.
    pub fn unfill(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.filling &= !parts);
    }

    /// Power was cut: leaving pages have to leave again, incoming ones do not arrive.
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

    /// The pages that hold something, in no order.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.slots.values().map(|&slot| self.page(slot)).filter(|page| page.held)
    }

    /// Invalidates parts that were written elsewhere. Leaving or dirty parts stay.
    pub fn forget(&mut self, slot: u32, parts: u64) {
        self.change(slot, |page| page.valid &= !parts | page.dirty | page.leaving);
    }
}

/// The parts of page `key` that `length` bytes from `offset` on touch. With `whole`, only completely covered parts
/// count.
#[inline]
pub fn parts_of(key: u64, page_bytes: u64, offset: u64, length: u64) -> u64 {
    let part = page_bytes / u64::from(PARTS);
    let begin = key * page_bytes;
    let from = offset.saturating_sub(begin) / part;
    let to = (offset + length).saturating_sub(begin).div_ceil(part).min(u64::from(PARTS));
    mask(from, to)
}

/// Bits `from` to `to`, the last excluded.
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
    fn parts_cover_what_is_touched() {
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
        directory.left(slots[1], 1);
        assert!(directory.find_or_take(8).is_some());
        assert_eq!(directory.find(1), None, "it alone could go");
    }

    #[test]
    fn ages_and_places_order_what_is_dirty() {
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
        /// Counts and lists match the pages, for any sequence of operations.
        #[test]
        fn counts_are_true(steps in prop::collection::vec((0u64..12, 0u8..6), 1..400)) {
            let mut directory = Directory::new(8, CachePolicy::Lru);
            for (key, step) in steps {
                let Some(slot) = directory.find_or_take(key) else { continue };
                let page = *directory.page(slot);
                match step {
                    0 => directory.dirty(slot, 3, false),
                    1 => directory.leave(slot, page.dirty),
                    2 => directory.left(slot, page.leaving),
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

        /// For any operations and policies, dirty pages stay, the capacity is used, and a victim is found.
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
                        2 => directory.left(slot, page.leaving),
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
