//! The least recently used page goes.

use super::list::List;
use super::policy::Policy;
use crate::array::cache::page::Page;

#[derive(Clone, Debug)]
pub struct Lru {
    pages: List,
}

impl Lru {
    pub fn new() -> Lru {
        Lru { pages: List::new() }
    }
}

impl Policy for Lru {
    #[inline]
    fn admit(&mut self, pages: &mut [Page], slot: u32) {
        self.pages.push(pages, slot);
    }

    #[inline]
    fn hit(&mut self, pages: &mut [Page], slot: u32) {
        if pages[slot as usize].is_evictable() && self.pages.newest != slot {
            self.pages.remove(pages, slot);
            self.pages.push(pages, slot);
        }
    }

    #[inline]
    fn list(&mut self, pages: &mut [Page], slot: u32) {
        self.pages.push(pages, slot);
    }

    #[inline]
    fn unlist(&mut self, pages: &mut [Page], slot: u32) {
        self.pages.remove(pages, slot);
    }

    #[inline]
    fn replace(&mut self, pages: &mut [Page], _key: u64) -> u32 {
        self.pages.pop(pages)
    }
}
