//! ARC: one list of pages that were used once lately, one of those used again, and the keys of what each gave up lately. A key that
//! comes back says that its list was too short, and moves the target (Megiddo and Modha, "ARC: a self-tuning, low overhead
//! replacement cache", FAST 2003, figure 4; its p, T1, T2, B1 and B2 are the target and the lists here).

use super::ghosts::Ghosts;
use super::list::List;
use super::policy::Policy;
use crate::array::cache::page::Page;

const ONCE: u8 = 0;
const AGAIN: u8 = 1;

/// Pages of one kind: those that can go by age, how many there are with those that must stay, and what went.
#[derive(Clone, Debug)]
struct Kind {
    listed: List,
    pages: u32,
    ghosts: Ghosts,
}

impl Kind {
    fn new() -> Kind {
        Kind { listed: List::new(), pages: 0, ghosts: Ghosts::default() }
    }

    /// Gives up the oldest page that can go, of which there is one.
    fn pop(&mut self, pages: &mut [Page]) -> u32 {
        self.pages -= 1;
        self.listed.pop(pages)
    }
}

#[derive(Clone, Debug)]
pub struct Arc {
    /// Pages used once, and pages used again.
    kinds: [Kind; 2],
    /// Pages used once that there should be.
    target: u32,
    pages_max: u32,
}

impl Arc {
    pub fn new(pages_max: u32) -> Arc {
        Arc { kinds: [Kind::new(), Kind::new()], target: 0, pages_max }
    }

    /// Gives up a page of the kind that is over its target, and remembers its key.
    fn give_up(&mut self, pages: &mut [Page], comes_from_again: bool) -> u32 {
        let once = self.kinds[ONCE as usize].pages;
        let over = once >= 1 && (once > self.target || (comes_from_again && once == self.target));
        let wanted = if over { ONCE } else { AGAIN };
        // Where all of one kind must stay, the other gives.
        let kind = if self.kinds[wanted as usize].listed.length > 0 { wanted } else { ONCE + AGAIN - wanted };
        let kind = &mut self.kinds[kind as usize];
        let slot = kind.pop(pages);
        kind.ghosts.push(pages[slot as usize].key);
        slot
    }
}

impl Policy for Arc {
    fn admit(&mut self, pages: &mut [Page], slot: u32) {
        let page = &mut pages[slot as usize];
        let came_back = self.kinds.iter_mut().any(|kind| kind.ghosts.remove(page.key));
        page.mark = if came_back { AGAIN } else { ONCE };
        let kind = &mut self.kinds[page.mark as usize];
        kind.pages += 1;
        kind.listed.push(pages, slot);
    }

    fn hit(&mut self, pages: &mut [Page], slot: u32) {
        let page = pages[slot as usize];
        if page.is_evictable() {
            self.unlist(pages, slot);
        }
        self.kinds[page.mark as usize].pages -= 1;
        self.kinds[AGAIN as usize].pages += 1;
        pages[slot as usize].mark = AGAIN;
        if page.is_evictable() {
            self.list(pages, slot);
        }
    }

    fn list(&mut self, pages: &mut [Page], slot: u32) {
        self.kinds[pages[slot as usize].mark as usize].listed.push(pages, slot);
    }

    fn unlist(&mut self, pages: &mut [Page], slot: u32) {
        self.kinds[pages[slot as usize].mark as usize].listed.remove(pages, slot);
    }

    fn replace(&mut self, pages: &mut [Page], key: u64) -> u32 {
        let [once, again] = &mut self.kinds;
        let (ghosts_once, ghosts_again) = (once.ghosts.length(), again.ghosts.length());
        if once.ghosts.holds(key) {
            let step = (ghosts_again / ghosts_once).max(1);
            self.target = (self.target + step).min(self.pages_max);
            return self.give_up(pages, false);
        }
        if again.ghosts.holds(key) {
            let step = (ghosts_once / ghosts_again).max(1);
            self.target = self.target.saturating_sub(step);
            return self.give_up(pages, true);
        }
        if once.pages + ghosts_once >= self.pages_max {
            if ghosts_once == 0 {
                // All pages were used once: the oldest goes, and nothing is learnt from it.
                return once.pop(pages);
            }
            once.ghosts.pop();
        } else if self.pages_max + ghosts_once + ghosts_again >= 2 * self.pages_max {
            again.ghosts.pop();
        }
        self.give_up(pages, false)
    }
}
