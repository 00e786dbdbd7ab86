//! Which mirrored segments have not been written for longest.
//!
//! A write only stamps its segment. When victims are wanted, one pass over the stamps collects the oldest 64th; they stay
//! the oldest until they are written, which changes their stamp. So a victim costs 64 looks at a stamp, a write one store,
//! and nothing is kept for each segment but the stamp.

use std::collections::BinaryHeap;

use super::groups::{EMPTY, Groups, RESERVED};
use super::layout::{Class, Slot};

#[derive(Clone, Debug, Default)]
pub(super) struct Coldest {
    /// Stamp and cell, latest first.
    found: Vec<(u32, u32)>,
}

impl Coldest {
    /// The `count` segments written longest ago, oldest first; fewer if there are fewer. What compaction has moved since
    /// the last pass is found in the next.
    pub fn pop(&mut self, groups: &Groups, count: usize) -> Vec<Slot> {
        let popped = self.pop_found(groups, count);
        if popped.len() == count {
            return popped;
        }
        self.find(groups, count);
        self.pop_found(groups, count)
    }

    /// Forgets what it found.
    pub fn clear(&mut self) {
        self.found.clear();
    }

    fn pop_found(&mut self, groups: &Groups, count: usize) -> Vec<Slot> {
        let mut popped = Vec::with_capacity(count);
        while popped.len() < count {
            let Some((stamp, cell)) = self.found.pop() else { break };
            let slot = Slot::new(Class::Mirrored, cell);
            if groups.is_live(slot) && groups.stamp(slot) == stamp {
                popped.push(slot);
            }
        }
        popped
    }

    fn find(&mut self, groups: &Groups, count: usize) {
        let most = count.max(groups.total(Class::Mirrored).taken as usize / 64);
        let mut oldest = BinaryHeap::with_capacity(most + 1);
        for (group, _) in groups.of_class(Class::Mirrored) {
            for slot in groups.layout.slots_of(Class::Mirrored, group) {
                if matches!(groups.owner(slot), EMPTY | RESERVED) {
                    continue;
                }
                let found = (groups.stamp(slot), slot.cell());
                if oldest.len() < most {
                    oldest.push(found);
                } else if oldest.peek().is_some_and(|latest| found < *latest) {
                    oldest.pop();
                    oldest.push(found);
                }
            }
        }
        self.found = oldest.into_sorted_vec();
        self.found.reverse();
    }
}
