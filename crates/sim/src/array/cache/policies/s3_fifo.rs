//! S3-FIFO: new pages go through a small queue, which only those used again get out of into the main one; what the small queue gave
//! up lately comes back into the main one at once (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO queues are all you need for cache
//! eviction", SOSP 2023). One page goes at a time: where a move into the main queue fills that, its page is the one.

use super::ghosts::Ghosts;
use super::list::List;
use super::policy::Policy;
use crate::array::cache::page::Page;

/// Uses that are counted at most.
const USES_MAX: u8 = 3;
/// The page is in the main queue.
const MAIN: u8 = 0x80;

#[derive(Clone, Debug)]
pub struct S3Fifo {
    small: List,
    main: List,
    ghosts: Ghosts,
    /// A tenth of the cache is the small queue's.
    small_pages: u32,
    main_pages: u32,
}

impl S3Fifo {
    pub fn new(pages_max: u32) -> S3Fifo {
        let small_pages = (pages_max / 10).max(1);
        let main_pages = pages_max - small_pages.min(pages_max);
        S3Fifo { small: List::new(), main: List::new(), ghosts: Ghosts::default(), small_pages, main_pages }
    }

    fn remember(&mut self, key: u64) {
        self.ghosts.push(key);
        if self.ghosts.length() > self.main_pages {
            self.ghosts.pop();
        }
    }

    /// The first page of the main queue that was not used; each use saves a page once.
    fn take_from_main(&mut self, pages: &mut [Page]) -> u32 {
        loop {
            let slot = self.main.pop(pages);
            let mark = &mut pages[slot as usize].mark;
            if *mark == MAIN {
                return slot;
            }
            *mark -= 1;
            self.main.push(pages, slot);
        }
    }

    /// The first page of the small queue that was not used twice; the others go on into the main one.
    fn take_from_small(&mut self, pages: &mut [Page]) -> u32 {
        while self.small.length > 0 {
            let slot = self.small.pop(pages);
            let page = &mut pages[slot as usize];
            if page.mark <= 1 {
                let key = page.key;
                self.remember(key);
                return slot;
            }
            page.mark = MAIN;
            self.main.push(pages, slot);
            if self.main.length > self.main_pages {
                break;
            }
        }
        self.take_from_main(pages)
    }
}

impl Policy for S3Fifo {
    fn admit(&mut self, pages: &mut [Page], slot: u32) {
        let page = &mut pages[slot as usize];
        page.mark = if self.ghosts.remove(page.key) { MAIN } else { 0 };
        self.list(pages, slot);
    }

    fn hit(&mut self, pages: &mut [Page], slot: u32) {
        let mark = &mut pages[slot as usize].mark;
        if *mark & !MAIN < USES_MAX {
            *mark += 1;
        }
    }

    fn list(&mut self, pages: &mut [Page], slot: u32) {
        let queue = if pages[slot as usize].mark & MAIN == 0 { &mut self.small } else { &mut self.main };
        queue.push(pages, slot);
    }

    fn unlist(&mut self, pages: &mut [Page], slot: u32) {
        let queue = if pages[slot as usize].mark & MAIN == 0 { &mut self.small } else { &mut self.main };
        queue.remove(pages, slot);
    }

    fn replace(&mut self, pages: &mut [Page], _key: u64) -> u32 {
        if self.small.length >= self.small_pages || self.main.length == 0 {
            self.take_from_small(pages)
        } else {
            self.take_from_main(pages)
        }
    }
}
