//! The least recently used goes.

use crate::list::List;
use crate::nodes::{KEPT, Nodes};
use crate::policy::Policy;

#[derive(Clone, Debug)]
pub struct Lru {
    nodes: Nodes,
    list: List,
}

impl Lru {
    pub fn new(nodes: Nodes) -> Lru {
        Lru { nodes, list: List::default() }
    }
}

impl Policy for Lru {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        if self.nodes.mark(id) & KEPT == 0 {
            self.list.renew(&mut self.nodes, id);
        }
    }

    #[inline]
    fn replace(&mut self) -> u32 {
        let id = self.list.pop(&mut self.nodes);
        self.nodes.forget(id);
        id
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
