//! SIEVE: pages stay in order of their arrival; a hand goes from the oldest to the newest and takes the first that was not used
//! since it passed last (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is simpler than LRU", NSDI 2024). Unlike CLOCK's, what it
//! passes stays where it is, so that new pages are sifted soon.

use super::list::List;
use super::policy::Policy;
use crate::array::cache::page::{NONE, Page};

const UNUSED: u8 = 0;
const USED: u8 = 1;

#[derive(Clone, Debug)]
pub struct Sieve {
    pages: List,
    /// The page that it looks at next; the oldest where there is none.
    hand: u32,
}

impl Sieve {
    pub fn new() -> Sieve {
        Sieve { pages: List::new(), hand: NONE }
    }
}

impl Policy for Sieve {
    fn admit(&mut self, pages: &mut [Page], slot: u32) {
        self.pages.push(pages, slot);
    }

    fn hit(&mut self, pages: &mut [Page], slot: u32) {
        pages[slot as usize].mark = USED;
    }

    fn list(&mut self, pages: &mut [Page], slot: u32) {
        self.pages.push(pages, slot);
    }

    fn unlist(&mut self, pages: &mut [Page], slot: u32) {
        if self.hand == slot {
            self.hand = pages[slot as usize].newer;
        }
        self.pages.remove(pages, slot);
    }

    fn replace(&mut self, pages: &mut [Page], _key: u64) -> u32 {
        loop {
            let slot = if self.hand == NONE { self.pages.oldest } else { self.hand };
            self.hand = pages[slot as usize].newer;
            if pages[slot as usize].mark == UNUSED {
                self.pages.remove(pages, slot);
                return slot;
            }
            pages[slot as usize].mark = UNUSED;
        }
    }
}
