//! SIEVE: keeps ids in order of arrival. A hand moves from the oldest to the newest and evicts the first id that was
//! not used since the last pass (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is simpler than LRU", NSDI 2024).
//! Unlike in CLOCK, ids that the hand passes keep their place, so new ids are examined soon.

use crate::list::List;
use crate::nodes::{KEPT, NONE, Nodes};
use crate::policy::Policy;

const USED: u32 = 1;

#[derive(Clone, Debug)]
pub struct Sieve {
    nodes: Nodes,
    list: List,
    /// Next id to examine; [`NONE`] stands for the oldest.
    hand: u32,
}

impl Sieve {
    /// Removes an id from the list; the hand moves past it.
    fn unlist(&mut self, id: u32) {
        if self.hand == id {
            self.hand = self.nodes.at(id).newer;
        }
        self.list.remove(&mut self.nodes, id);
    }
}

impl Sieve {
    pub fn new(nodes: Nodes) -> Sieve {
        Sieve { nodes, list: List::default(), hand: NONE }
    }
}

impl Policy for Sieve {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        self.nodes.at_mut(id).mark |= USED;
    }

    #[inline]
    fn replace(&mut self) -> u32 {
        loop {
            let id = if self.hand == NONE { self.list.oldest } else { self.hand };
            self.hand = self.nodes.at(id).newer;
            if self.nodes.mark(id) & USED == 0 {
                self.list.remove(&mut self.nodes, id);
                self.nodes.forget(id);
                return id;
            }
            self.nodes.at_mut(id).mark &= !USED;
        }
    }

    #[inline]
    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.hold(id, weight, 0);
        self.list.push(&mut self.nodes, id);
    }

    #[inline]
    fn keep(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    #[inline]
    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        self.list.push(&mut self.nodes, id);
    }

    fn discard(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.forget(id);
    }
}
