//! Finds the mirrored segments that have not been written for longest.
//!
//! A write only stamps its segment. When victims are needed, one pass over all stamps collects the oldest 64th of the
//! segments; these stay the oldest until they are written, which changes their stamp. A write thus costs one store, a
//! victim 64 reads of a stamp, and the stamp is all that is kept for each segment.

use std::collections::BinaryHeap;

use super::layout::Class;
use super::luns::{Entry, Luns};

#[derive(Clone, Debug, Default)]
pub(super) struct Coldest {
    /// Stamp and owner number, latest first.
    found: Vec<(u32, u32)>,
}

impl Coldest {
    /// Returns the `count` mirrored segments written longest ago, oldest first, with their owner numbers; `live`
    /// segments have space in all.
    pub fn pop(&mut self, luns: &Luns, count: u32, live: u32) -> Vec<(u32, Entry)> {
        let popped = self.pop_coldest(luns, count as usize);
        if popped.len() == count as usize {
            return popped;
        }
        self.find(luns, count.max(live / 64) as usize);
        self.pop_coldest(luns, count as usize)
    }

    /// Forgets the collected segments.
    pub fn clear(&mut self) {
        self.found.clear();
    }

    fn pop_coldest(&mut self, luns: &Luns, count: usize) -> Vec<(u32, Entry)> {
        let mut popped = Vec::with_capacity(count);
        while popped.len() < count {
            let Some((stamp, owner)) = self.found.pop() else { break };
            let entry = luns.get_owned(owner);
            if entry.slot.class() == Class::Mirrored && entry.stamp == stamp {
                popped.push((owner, entry));
            }
        }
        popped
    }

    fn find(&mut self, luns: &Luns, most: usize) {
        let mut oldest = BinaryHeap::with_capacity(most + 1);
        for (owner, entry) in luns.all().filter(|(_, entry)| entry.slot.class() == Class::Mirrored) {
            let found = (entry.stamp, owner);
            if oldest.len() < most {
                oldest.push(found);
            } else if oldest.peek().is_some_and(|latest| found < *latest) {
                oldest.pop();
                oldest.push(found);
            }
        }
        self.found = oldest.into_sorted_vec();
        self.found.reverse();
    }
}
