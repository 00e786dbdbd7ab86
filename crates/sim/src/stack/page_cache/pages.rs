//! [`Pages`]: the pages in memory, least recently used first, and which of them are dirty.

use headstack_cache::{List, Nodes};
use rustc_hash::FxHashMap;

/// State of a page in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) enum PageState {
    /// As on the device; can be evicted.
    Clean,
    /// Newer than on the device.
    Dirty,
    /// On the way to the device.
    Writing,
    /// On the way to the device, and written again meanwhile.
    WritingDirty,
}

/// Pages in memory.
#[derive(Clone, Debug)]
pub(in crate::stack) struct Pages {
    pages_max: u64,
    slots: FxHashMap<u64, u32>,
    entries: Vec<(u64, PageState)>,
    free: Vec<u32>,
    nodes: Nodes,
    /// Clean pages, the least recently used first.
    clean: List,
    clean_pages: u64,
    /// Pages that are dirty or on the way to the device.
    pub dirty_pages: u64,
}

impl Pages {
    /// Creates an empty memory of `pages_max` pages.
    pub fn new(pages_max: u64) -> Pages {
        Pages {
            pages_max,
            slots: FxHashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            nodes: Nodes::new(false),
            clean: List::default(),
            clean_pages: 0,
            dirty_pages: 0,
        }
    }

    /// Returns the number of pages in memory.
    pub fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns the state of a page in memory.
    pub fn state(&self, page: u64) -> Option<PageState> {
        self.slots.get(&page).map(|&slot| self.entries[slot as usize].1)
    }

    /// Notes a use of a page; returns whether it is in memory.
    pub fn hit(&mut self, page: u64) -> bool {
        let Some(&slot) = self.slots.get(&page) else { return false };
        if self.entries[slot as usize].1 == PageState::Clean {
            self.clean.renew(&mut self.nodes, slot);
        }
        true
    }

    /// Adds a clean page, unless it is in memory. Evicts the least recently used clean page if memory is full.
    pub fn add_clean(&mut self, page: u64) {
        if self.slots.contains_key(&page) || (self.len() >= self.pages_max && !self.evict()) {
            return;
        }
        let slot = self.add(page, PageState::Clean);
        self.clean.push(&mut self.nodes, slot);
        self.clean_pages += 1;
    }

    /// Makes a page dirty; returns whether it now has to be written to the device, and had not before.
    pub fn make_dirty(&mut self, page: u64) -> bool {
        let Some(&slot) = self.slots.get(&page) else {
            if self.len() >= self.pages_max {
                self.evict();
            }
            self.add(page, PageState::Dirty);
            self.dirty_pages += 1;
            return true;
        };
        let state = self.entries[slot as usize].1;
        match state {
            PageState::Clean => {
                self.clean.remove(&mut self.nodes, slot);
                self.clean_pages -= 1;
                self.dirty_pages += 1;
                self.entries[slot as usize].1 = PageState::Dirty;
                true
            }
            PageState::Writing => {
                self.entries[slot as usize].1 = PageState::WritingDirty;
                true
            }
            PageState::Dirty | PageState::WritingDirty => false,
        }
    }

    /// Sends a dirty page to the device.
    pub fn begin_writing(&mut self, page: u64) {
        self.set(page, PageState::Dirty, PageState::Writing);
    }

    /// Notes that a page is on the device.
    pub fn end_writing(&mut self, page: u64) {
        let Some(&slot) = self.slots.get(&page) else { return };
        match self.entries[slot as usize].1 {
            PageState::Writing => {
                self.entries[slot as usize].1 = PageState::Clean;
                self.clean.push(&mut self.nodes, slot);
                self.clean_pages += 1;
                self.dirty_pages -= 1;
            }
            PageState::WritingDirty => self.entries[slot as usize].1 = PageState::Dirty,
            state @ (PageState::Clean | PageState::Dirty) => debug_assert!(false, "{state:?} page ends its writing"),
        }
    }

    /// Drops a page that is not on the way to the device; returns whether it was dirty.
    pub fn drop_page(&mut self, page: u64) -> bool {
        let Some(&slot) = self.slots.get(&page) else { return false };
        let was_dirty = match self.entries[slot as usize].1 {
            PageState::Clean => {
                self.clean.remove(&mut self.nodes, slot);
                self.clean_pages -= 1;
                false
            }
            PageState::Dirty => {
                self.dirty_pages -= 1;
                true
            }
            PageState::Writing | PageState::WritingDirty => return false,
        };
        self.slots.remove(&page);
        self.free.push(slot);
        was_dirty
    }

    fn set(&mut self, page: u64, from: PageState, to: PageState) {
        let slot = self.slots[&page] as usize;
        debug_assert_eq!(self.entries[slot].1, from, "page {page}");
        self.entries[slot].1 = to;
    }

    fn add(&mut self, page: u64, state: PageState) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push((page, state));
            self.nodes.reach(self.entries.len());
            (self.entries.len() - 1) as u32
        });
        self.entries[slot as usize] = (page, state);
        self.slots.insert(page, slot);
        slot
    }

    /// Evicts the least recently used clean page; returns false if there is none.
    fn evict(&mut self) -> bool {
        if self.clean.is_empty() {
            return false;
        }
        let slot = self.clean.pop(&mut self.nodes);
        self.clean_pages -= 1;
        self.slots.remove(&self.entries[slot as usize].0);
        self.free.push(slot);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_clean_page_is_evicted() {
        let mut pages = Pages::new(3);
        (0..3).for_each(|page| pages.add_clean(page));
        assert!(pages.hit(0));
        assert!(pages.make_dirty(1));
        pages.add_clean(3);
        assert_eq!(
            [0, 1, 2, 3].map(|page| pages.state(page)),
            [Some(PageState::Clean), Some(PageState::Dirty), None, Some(PageState::Clean)]
        );
    }

    #[test]
    fn a_page_written_again_on_its_way_stays_dirty() {
        let mut pages = Pages::new(3);
        assert!(pages.make_dirty(7));
        pages.begin_writing(7);
        assert!(pages.make_dirty(7));
        assert!(!pages.make_dirty(7));
        pages.end_writing(7);
        assert_eq!((pages.state(7), pages.dirty_pages), (Some(PageState::Dirty), 1));
        pages.begin_writing(7);
        pages.end_writing(7);
        assert_eq!((pages.state(7), pages.dirty_pages), (Some(PageState::Clean), 0));
    }
}
