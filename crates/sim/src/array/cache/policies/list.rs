//! Pages in an order, linked through the pages themselves.

use crate::array::cache::page::{NONE, Page};

/// From the oldest to the newest.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The newest page, or `NONE`.
    pub newest: u32,
    /// The oldest page, or `NONE`.
    pub oldest: u32,
    /// Pages on it.
    pub length: u32,
}

impl List {
    /// An empty list.
    pub fn new() -> List {
        List { newest: NONE, oldest: NONE, length: 0 }
    }

    /// Adds a page, which is on no list, as the newest.
    #[inline]
    pub fn push(&mut self, pages: &mut [Page], slot: u32) {
        let page = &mut pages[slot as usize];
        (page.newer, page.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = slot,
            newest => pages[newest as usize].newer = slot,
        }
        self.newest = slot;
        self.length += 1;
    }

    /// Takes a page off the list.
    #[inline]
    pub fn remove(&mut self, pages: &mut [Page], slot: u32) {
        debug_assert!(self.length > 0, "only what is on a list leaves it");
        let Page { newer, older, .. } = pages[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => pages[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => pages[older as usize].newer = newer,
        }
        self.length -= 1;
    }

    /// Takes the oldest page off the list, which is not empty.
    #[inline]
    pub fn pop(&mut self, pages: &mut [Page]) -> u32 {
        let slot = self.oldest;
        debug_assert!(slot != NONE, "somebody looked before");
        self.remove(pages, slot);
        slot
    }
}
