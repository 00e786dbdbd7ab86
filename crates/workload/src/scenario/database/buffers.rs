//! [`Buffers`]: the shared buffers of a database: which pages are in memory, and which were changed.

use std::collections::HashMap;

/// Highest usage count of a buffer (`BM_MAX_USAGE_COUNT`, buf_internals.h).
const USAGE_MAX: u8 = 5;

/// A page in memory.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u64,
    usage: u8,
    is_dirty: bool,
}

/// Buffers that a clock sweep replaces (freelist.c).
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    frames: Vec<Frame>,
    frames_max: usize,
    places: HashMap<u64, usize>,
    hand: usize,
}

impl Buffers {
    /// Creates empty buffers for `frames_max` pages.
    pub fn new(frames_max: usize) -> Buffers {
        Buffers { frames: Vec::new(), frames_max, places: HashMap::new(), hand: 0 }
    }

    /// Whether all buffers hold a page.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= self.frames_max
    }

    /// Uses a page; returns whether it is in memory.
    pub fn hit(&mut self, page: u64) -> bool {
        let Some(&place) = self.places.get(&page) else { return false };
        let frame = &mut self.frames[place];
        frame.usage = (frame.usage + 1).min(USAGE_MAX);
        true
    }

    /// Adds a page that is not in memory; returns the page that it replaces, if that was changed.
    pub fn add(&mut self, page: u64) -> Option<u64> {
        debug_assert!(!self.places.contains_key(&page), "page {page} is in memory");
        let frame = Frame { page, usage: 1, is_dirty: false };
        if !self.is_full() {
            self.places.insert(page, self.frames.len());
            self.frames.push(frame);
            return None;
        }
        while self.frames[self.hand].usage > 0 {
            self.frames[self.hand].usage -= 1;
            self.hand = (self.hand + 1) % self.frames.len();
        }
        let place = self.hand;
        self.hand = (self.hand + 1) % self.frames.len();
        let replaced = std::mem::replace(&mut self.frames[place], frame);
        self.places.remove(&replaced.page);
        self.places.insert(page, place);
        replaced.is_dirty.then_some(replaced.page)
    }

    /// Changes a page, if it is in memory.
    pub fn change(&mut self, page: u64) {
        if let Some(&place) = self.places.get(&page) {
            self.frames[place].is_dirty = true;
        }
    }

    /// Returns the changed pages in ascending order.
    pub fn changed(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.frames.iter().filter(|frame| frame.is_dirty).map(|frame| frame.page).collect();
        pages.sort_unstable();
        pages
    }

    /// Takes a page to write it; returns false if it is not in memory or was written already.
    pub fn clean(&mut self, page: u64) -> bool {
        let place = self.places.get(&page).copied();
        place.is_some_and(|place| std::mem::take(&mut self.frames[place].is_dirty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_replaces_pages_that_were_not_used_again() {
        let mut buffers = Buffers::new(3);
        assert!([10, 20, 30].iter().all(|&page| buffers.add(page).is_none()));
        assert!(buffers.hit(10) && !buffers.hit(40));
        buffers.change(20);
        assert_eq!(buffers.changed(), [20]);
        assert_eq!(buffers.add(40), Some(20), "the first page without a second use");
        assert!(buffers.hit(10) && !buffers.hit(20) && buffers.hit(30));
        buffers.change(10);
        assert!(buffers.clean(10) && !buffers.clean(10) && !buffers.clean(20));
    }
}
