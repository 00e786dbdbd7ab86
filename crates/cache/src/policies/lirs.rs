//! LIRS: most cached ids are LIR, which means that their last two uses were close together. The few others (HIR) pass
//! through a queue, whose oldest id is evicted. A stack in order of use, down to the oldest LIR id, also remembers
//! evicted ids. An id that is used again while on the stack replaces the oldest LIR id, because its uses are closer
//! together (Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement policy", SIGMETRICS
//! 2002).

use crate::list::List;
use crate::nodes::{BACK, GHOST, KEPT, NONE, Nodes};
use crate::policy::Policy;

const LIR: u32 = 1;
const IN_STACK: u32 = 2;

#[derive(Clone, Debug)]
pub struct Lirs {
    /// Nodes of the ids on the stack.
    nodes: Nodes,
    stack: List,
    /// Nodes of the ids in the queue, and of evicted ids on the stack. No id is in both.
    queued: Nodes,
    queue: List,
    ghosts: List,
    /// Weight of the LIR ids.
    lir: u64,
    lir_max: u64,
    stack_max: u64,
}

impl Lirs {
    /// Creates a policy with 1 % of the cache for HIR ids. The stack holds at most twice as much as the cache; the ids
    /// evicted first are forgotten first.
    pub fn new(nodes: Nodes, capacity: u64) -> Lirs {
        Lirs {
            nodes,
            stack: List::default(),
            queued: Nodes::default(),
            queue: List::default(),
            ghosts: List::default(),
            lir: 0,
            lir_max: capacity - (capacity / 100).max(1).min(capacity),
            stack_max: 2 * capacity,
        }
    }

    fn weight(&self, id: u32) -> u64 {
        u64::from(self.nodes.at(id).weight)
    }

    fn raise(&mut self, id: u32) {
        if self.nodes.mark(id) & IN_STACK == 0 {
            self.nodes.at_mut(id).mark |= IN_STACK;
            self.stack.push(&mut self.nodes, id);
        } else {
            self.stack.renew(&mut self.nodes, id);
        }
    }

    fn off_stack(&mut self, id: u32) {
        self.stack.remove(&mut self.nodes, id);
        self.nodes.at_mut(id).mark &= !IN_STACK;
    }

    fn enqueue(&mut self, id: u32) {
        self.queue.push(&mut self.queued, id);
    }

    /// Makes an id LIR in place of the oldest LIR id, or HIR if there is no room for LIR ids at all.
    fn lift(&mut self, id: u32) {
        let weight = self.weight(id);
        while self.lir + weight > self.lir_max && self.lir > 0 {
            self.sink_oldest();
        }
        if weight <= self.lir_max {
            self.nodes.at_mut(id).mark |= LIR;
            self.lir += weight;
            // HIR ids may be below the first LIR id.
            self.prune();
        } else if self.nodes.mark(id) & KEPT == 0 {
            self.enqueue(id);
        }
    }

    /// Makes the oldest LIR id, at the bottom of the stack, HIR.
    fn sink_oldest(&mut self) {
        let id = self.stack.oldest;
        debug_assert!(self.nodes.mark(id) & LIR != 0, "the bottom of the stack is LIR");
        self.off_stack(id);
        self.lir -= self.weight(id);
        self.nodes.at_mut(id).mark &= !LIR;
        if self.nodes.mark(id) & KEPT == 0 {
            self.enqueue(id);
        }
        self.prune();
    }

    /// Removes ids from the bottom of the stack until the bottom is LIR. Never removes the id used last.
    fn prune(&mut self) {
        loop {
            let id = self.stack.oldest;
            if id == NONE || id == self.stack.newest || self.nodes.mark(id) & LIR != 0 {
                return;
            }
            self.off_stack(id);
            if self.nodes.mark(id) & GHOST != 0 {
                self.ghosts.remove(&mut self.queued, id);
                self.nodes.forget(id);
            }
        }
    }

    fn limit(&mut self) {
        while self.stack.weight > self.stack_max && !self.ghosts.is_empty() {
            let id = self.ghosts.pop(&mut self.queued);
            self.off_stack(id);
            self.nodes.forget(id);
        }
    }
}

impl Policy for Lirs {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    fn hit(&mut self, id: u32) {
        let mark = self.nodes.mark(id);
        self.raise(id);
        if mark & LIR != 0 {
            self.prune();
        } else if mark & IN_STACK != 0 {
            if mark & KEPT == 0 {
                self.queue.remove(&mut self.queued, id);
            }
            self.lift(id);
        } else if mark & KEPT == 0 {
            self.queue.renew(&mut self.queued, id);
        }
        self.limit();
    }

    fn recall(&mut self, id: u32) {
        self.nodes.reach(id as usize + 1);
        if self.nodes.mark(id) & GHOST != 0 {
            self.ghosts.remove(&mut self.queued, id);
            self.nodes.at_mut(id).mark = BACK | IN_STACK;
            self.raise(id);
        }
    }

    fn replace(&mut self) -> u32 {
        while self.queue.is_empty() {
            self.sink_oldest();
        }
        let id = self.queue.pop(&mut self.queued);
        if self.nodes.mark(id) & IN_STACK == 0 {
            self.nodes.forget(id);
        } else {
            self.nodes.at_mut(id).mark = GHOST | IN_STACK;
            self.ghosts.push(&mut self.queued, id);
        }
        id
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.reach(id as usize + 1);
        let comes_back = self.nodes.mark(id) & BACK != 0;
        if comes_back {
            // The id's weight may have changed.
            self.off_stack(id);
        }
        self.nodes.hold(id, weight, 0);
        self.queued.hold(id, weight, 0);
        self.raise(id);
        if comes_back || self.lir + u64::from(weight) <= self.lir_max {
            self.lift(id);
        } else {
            self.enqueue(id);
        }
        self.limit();
    }

    fn keep(&mut self, id: u32) {
        if self.nodes.mark(id) & LIR == 0 {
            self.queue.remove(&mut self.queued, id);
        }
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        if self.nodes.mark(id) & LIR == 0 {
            self.enqueue(id);
        }
    }

    fn discard(&mut self, id: u32) {
        let mark = self.nodes.mark(id);
        if mark & IN_STACK != 0 {
            self.off_stack(id);
        }
        if mark & LIR != 0 {
            self.lir -= self.weight(id);
        } else {
            self.queue.remove(&mut self.queued, id);
        }
        self.nodes.forget(id);
        self.prune();
    }
}
