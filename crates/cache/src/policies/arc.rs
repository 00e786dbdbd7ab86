//! ARC: one list of ids recently used once, one of ids used again, and ghosts of what each recently evicted. A hit on a
//! ghost shows that its list was too short, and moves the target (Megiddo and Modha, "ARC: a self-tuning, low overhead
//! replacement cache", FAST 2003, figure 4; its p, T1, T2, B1 and B2 are the target and the lists here).

use crate::list::List;
use crate::nodes::{BACK, GHOST, HELD, KEPT, Nodes, OWN};
use crate::policy::Policy;

const ONCE: u32 = 0;
const AGAIN: u32 = 1;

/// Ids used once, or more than once: the evictable ones, their weight with that of pinned ids, and the ghosts.
#[derive(Clone, Debug, Default)]
struct Kind {
    listed: List,
    weight: u64,
    ghosts: List,
}

#[derive(Clone, Debug)]
pub struct Arc {
    nodes: Nodes,
    kinds: [Kind; 2],
    /// Target share of the cache for ids used once.
    target: f64,
    capacity: u64,
    /// The kind that evicted the id that is about to be admitted.
    coming_from: Option<u32>,
}

impl Arc {
    pub fn new(nodes: Nodes, capacity: u64) -> Arc {
        Arc { nodes, kinds: Default::default(), target: 0.0, capacity, coming_from: None }
    }

    fn kind(&mut self, id: u32) -> &mut Kind {
        &mut self.kinds[(self.nodes.mark(id) & OWN) as usize]
    }

    /// Evicts the oldest id of the kind that exceeds its target, and remembers it.
    fn give_up(&mut self) -> u32 {
        let once = self.kinds[ONCE as usize].weight;
        let share = once as f64;
        let over = once >= 1 && (share > self.target || (self.coming_from == Some(AGAIN) && share == self.target));
        let wanted = if over { ONCE } else { AGAIN };
        // If all ids of one kind are pinned, the other evicts.
        let kind = if self.kinds[wanted as usize].listed.is_empty() { ONCE + AGAIN - wanted } else { wanted };
        let kind_of = &mut self.kinds[kind as usize];
        let id = kind_of.listed.pop(&mut self.nodes);
        let node = self.nodes.at_mut(id);
        kind_of.weight -= u64::from(node.weight);
        node.mark = GHOST | kind;
        kind_of.ghosts.push(&mut self.nodes, id);
        id
    }

    fn forget_oldest(&mut self, kind: u32) {
        let id = self.kinds[kind as usize].ghosts.pop(&mut self.nodes);
        self.nodes.forget(id);
    }
}

impl Policy for Arc {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        let node = *self.nodes.at(id);
        let (kind, can_go) = (node.mark & OWN, node.mark & KEPT == 0);
        if kind == AGAIN && can_go {
            return self.kinds[AGAIN as usize].listed.renew(&mut self.nodes, id);
        }
        if can_go {
            self.kinds[kind as usize].listed.remove(&mut self.nodes, id);
        }
        self.kinds[kind as usize].weight -= u64::from(node.weight);
        self.kinds[AGAIN as usize].weight += u64::from(node.weight);
        self.nodes.at_mut(id).mark = node.mark & !OWN | AGAIN;
        if can_go {
            self.kinds[AGAIN as usize].listed.push(&mut self.nodes, id);
        }
    }

    fn recall(&mut self, id: u32) {
        self.nodes.reach(id as usize + 1);
        let node = *self.nodes.at(id);
        self.coming_from = (node.mark & GHOST != 0).then_some(node.mark & OWN);
        let Some(kind) = self.coming_from else { return };
        let [once, again] = self.kinds.each_ref().map(|kind| kind.ghosts.weight);
        let step = |own: u64, other: u64| (other as f64 / own as f64).max(1.0) * f64::from(node.weight);
        self.target = match kind {
            ONCE => (self.target + step(once, again)).min(self.capacity as f64),
            _ => (self.target - step(again, once)).max(0.0),
        };
        self.kinds[kind as usize].ghosts.remove(&mut self.nodes, id);
        self.nodes.at_mut(id).mark = BACK;
    }

    fn replace(&mut self) -> u32 {
        if self.coming_from.is_some() {
            return self.give_up();
        }
        let [once, again] = &self.kinds;
        let all = once.weight + again.weight + once.ghosts.weight + again.ghosts.weight;
        if once.weight + once.ghosts.weight >= self.capacity {
            if once.ghosts.is_empty() && !once.listed.is_empty() {
                // All were used once: the oldest is evicted, and nothing is learned from it.
                let id = self.kinds[ONCE as usize].listed.pop(&mut self.nodes);
                self.kinds[ONCE as usize].weight -= u64::from(self.nodes.at(id).weight);
                self.nodes.forget(id);
                return id;
            }
            if !once.ghosts.is_empty() {
                self.forget_oldest(ONCE);
            }
        } else if all >= 2 * self.capacity && !again.ghosts.is_empty() {
            self.forget_oldest(AGAIN);
        }
        self.give_up()
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        let kind = if self.coming_from.take().is_some() { AGAIN } else { ONCE };
        self.nodes.hold(id, weight, kind);
        let kind = &mut self.kinds[kind as usize];
        kind.weight += u64::from(weight);
        kind.listed.push(&mut self.nodes, id);
    }

    fn keep(&mut self, id: u32) {
        let kind = (self.nodes.mark(id) & OWN) as usize;
        self.kinds[kind].listed.remove(&mut self.nodes, id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        let kind = (self.nodes.mark(id) & OWN) as usize;
        self.nodes.at_mut(id).mark &= !KEPT;
        self.kinds[kind].listed.push(&mut self.nodes, id);
    }

    fn discard(&mut self, id: u32) {
        debug_assert!(self.nodes.mark(id) & HELD != 0, "only a cached entry can be evicted");
        let weight = u64::from(self.nodes.at(id).weight);
        self.kind(id).weight -= weight;
        let kind = (self.nodes.mark(id) & OWN) as usize;
        self.kinds[kind].listed.remove(&mut self.nodes, id);
        self.nodes.forget(id);
    }
}
