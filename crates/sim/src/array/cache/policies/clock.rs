//! CLOCK: a hand goes round the pages in order of their arrival and takes the first that was not used since it passed last
//! (Corbato, "A paging experiment with the Multics system", MIT Project MAC, 1968). A page begins unused.

use super::list::List;
use super::policy::Policy;
use crate::array::cache::page::Page;

const UNUSED: u8 = 0;
const USED: u8 = 1;

/// The ring, cut where the hand is: what it passes becomes the newest.
#[derive(Clone, Debug)]
pub struct Clock {
    pages: List,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { pages: List::new() }
    }
}

impl Policy for Clock {
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
        self.pages.remove(pages, slot);
    }

    fn replace(&mut self, pages: &mut [Page], _key: u64) -> u32 {
        loop {
            let slot = self.pages.pop(pages);
            if pages[slot as usize].mark == UNUSED {
                return slot;
            }
            pages[slot as usize].mark = UNUSED;
            self.pages.push(pages, slot);
        }
    }
}
