//! LFU: evicts the id with the fewest uses since it was admitted; of several, the one that has had that number for
//! longest. An evicted id that comes back starts again.

use std::collections::BTreeMap;

use crate::list::List;
use crate::nodes::{KEPT, Nodes, OWN};
use crate::policy::Policy;

#[derive(Clone, Debug)]
pub struct Lfu {
    nodes: Nodes,
    /// Evictable ids by their number of uses, fewest first; no list is empty.
    by_uses: BTreeMap<u32, List>,
}

impl Lfu {
    pub fn new(nodes: Nodes) -> Lfu {
        Lfu { nodes, by_uses: BTreeMap::new() }
    }

    fn list(&mut self, id: u32) {
        let uses = self.nodes.mark(id) & OWN;
        self.by_uses.entry(uses).or_default().push(&mut self.nodes, id);
    }

    fn unlist(&mut self, id: u32) {
        let uses = self.nodes.mark(id) & OWN;
        let list = self.by_uses.get_mut(&uses).expect("every evictable entry is listed by its uses");
        list.remove(&mut self.nodes, id);
        if list.is_empty() {
            self.by_uses.remove(&uses);
        }
    }
}

impl Policy for Lfu {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    fn hit(&mut self, id: u32) {
        let can_go = self.nodes.mark(id) & KEPT == 0;
        if can_go {
            self.unlist(id);
        }
        let mark = &mut self.nodes.at_mut(id).mark;
        *mark += u32::from(*mark & OWN < OWN);
        if can_go {
            self.list(id);
        }
    }

    fn replace(&mut self) -> u32 {
        let (_, list) = self.by_uses.first_key_value().expect("one entry can be evicted");
        let id = list.oldest;
        self.discard(id);
        id
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.hold(id, weight, 1);
        self.list(id);
    }

    fn keep(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        self.list(id);
    }

    fn discard(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.forget(id);
    }
}
