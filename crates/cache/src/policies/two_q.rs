//! 2Q: new ids pass through a queue, where uses have no effect. Recently evicted ids that return go onto an LRU list
//! (Johnson and Shasha, "2Q: a low overhead high performance buffer management replacement algorithm", VLDB 1994, full
//! version; A1in, A1out and Am in the paper are the queue, the ghosts and the list here).

use crate::list::List;
use crate::nodes::{BACK, GHOST, KEPT, Nodes};
use crate::policy::Policy;

/// Bit of a mark: the id returned and is on the LRU list.
const MAIN: u32 = 1;

#[derive(Clone, Debug)]
pub struct TwoQ {
    nodes: Nodes,
    queue: List,
    main: List,
    ghosts: List,
    queue_max: u64,
    ghosts_max: u64,
}

impl TwoQ {
    /// Creates a policy with 25 % of the cache for the queue and ghosts for 50 % of the cache.
    pub fn new(nodes: Nodes, capacity: u64) -> TwoQ {
        let (queue_max, ghosts_max) = (capacity / 4, capacity / 2);
        TwoQ { nodes, queue: List::default(), main: List::default(), ghosts: List::default(), queue_max, ghosts_max }
    }

    fn list(&mut self, id: u32) -> (&mut List, &mut Nodes) {
        let list = if self.nodes.mark(id) & MAIN == 0 { &mut self.queue } else { &mut self.main };
        (list, &mut self.nodes)
    }

    fn unlist(&mut self, id: u32) {
        let (list, nodes) = self.list(id);
        list.remove(nodes, id);
    }
}

impl Policy for TwoQ {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        if self.nodes.mark(id) & (MAIN | KEPT) == MAIN {
            self.main.renew(&mut self.nodes, id);
        }
    }

    fn recall(&mut self, id: u32) {
        self.nodes.reach(id as usize + 1);
        if self.nodes.mark(id) & GHOST != 0 {
            self.ghosts.remove(&mut self.nodes, id);
            self.nodes.at_mut(id).mark = BACK;
        }
    }

    fn replace(&mut self) -> u32 {
        if self.main.is_empty() || (self.queue.weight > self.queue_max && !self.queue.is_empty()) {
            let id = self.queue.pop(&mut self.nodes);
            self.nodes.at_mut(id).mark = GHOST;
            self.ghosts.push(&mut self.nodes, id);
            while self.ghosts.weight > self.ghosts_max {
                let oldest = self.ghosts.pop(&mut self.nodes);
                self.nodes.forget(oldest);
            }
            return id;
        }
        let id = self.main.pop(&mut self.nodes);
        self.nodes.forget(id);
        id
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.reach(id as usize + 1);
        let own = if self.nodes.mark(id) & BACK == 0 { 0 } else { MAIN };
        self.nodes.hold(id, weight, own);
        let (list, nodes) = self.list(id);
        list.push(nodes, id);
    }

    fn keep(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        let (list, nodes) = self.list(id);
        list.push(nodes, id);
    }

    fn discard(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.forget(id);
    }
}
