//! CLOCK: a hand goes round in order of arrival and takes the first that was not used since it passed last (Corbato, "A paging
//! experiment with the Multics system", MIT Project MAC, 1968). One bit remembers the use, and what comes begins unused.

use crate::list::List;
use crate::nodes::{KEPT, Nodes};
use crate::policy::Policy;

const USED: u32 = 1;

/// The ring, cut where the hand is: what it passes becomes the newest.
#[derive(Clone, Debug)]
pub struct Clock {
    nodes: Nodes,
    list: List,
}

impl Clock {
    pub fn new(nodes: Nodes) -> Clock {
        Clock { nodes, list: List::default() }
    }
}

impl Policy for Clock {
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
            let id = self.list.pop(&mut self.nodes);
            if self.nodes.mark(id) & USED == 0 {
                self.nodes.forget(id);
                return id;
            }
            self.nodes.at_mut(id).mark &= !USED;
            self.list.push(&mut self.nodes, id);
        }
    }

    #[inline]
    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.hold(id, weight, 0);
        self.list.push(&mut self.nodes, id);
    }

    #[inline]
    fn keep(&mut self, id: u32) {
        self.list.remove(&mut self.nodes, id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    #[inline]
    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        self.list.push(&mut self.nodes, id);
    }

    fn discard(&mut self, id: u32) {
        self.list.remove(&mut self.nodes, id);
        self.nodes.forget(id);
    }
}
