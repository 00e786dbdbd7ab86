//! [`Queue`]: policies with a single list, in order of arrival or of use. FIFO, LRU and CLOCK differ in what a use does
//! and in what spares the oldest id.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::list::List;
use crate::nodes::{KEPT, Nodes};
use crate::policy::Policy;

const USED: u32 = 1;

/// FIFO: evicts the id that was admitted first, however often it was used.
pub type Fifo = Queue<InOrderOfArrival>;
/// LRU: evicts the least recently used id.
pub type Lru = Queue<InOrderOfUse>;
/// CLOCK: a hand moves through the ids in order of arrival and evicts the first id that was not used since the last
/// pass (Corbato, "A paging experiment with the Multics system", MIT Project MAC, 1968). One bit records a use, and new
/// ids start unused. Here the ring is a list that starts at the hand, so ids that the hand passes become the newest.
pub type Clock = Queue<SparedIfUsed>;

/// Behavior that differs between the policies with a single list.
pub trait Order: Clone + Debug {
    /// Records a use of a cached id.
    fn use_of(list: &mut List, nodes: &mut Nodes, id: u32);

    /// Whether the oldest id becomes the newest instead of being evicted.
    #[inline]
    fn is_spared(_nodes: &mut Nodes, _id: u32) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub struct InOrderOfArrival;

impl Order for InOrderOfArrival {
    #[inline]
    fn use_of(_list: &mut List, _nodes: &mut Nodes, _id: u32) {}
}

#[derive(Clone, Debug)]
pub struct InOrderOfUse;

impl Order for InOrderOfUse {
    #[inline]
    fn use_of(list: &mut List, nodes: &mut Nodes, id: u32) {
        if nodes.mark(id) & KEPT == 0 {
            list.renew(nodes, id);
        }
    }
}

#[derive(Clone, Debug)]
pub struct SparedIfUsed;

impl Order for SparedIfUsed {
    #[inline]
    fn use_of(_list: &mut List, nodes: &mut Nodes, id: u32) {
        nodes.at_mut(id).mark |= USED;
    }

    #[inline]
    fn is_spared(nodes: &mut Nodes, id: u32) -> bool {
        let mark = &mut nodes.at_mut(id).mark;
        let was_used = *mark & USED != 0;
        *mark &= !USED;
        was_used
    }
}

/// A policy that keeps all evictable ids on one list.
#[derive(Clone, Debug)]
pub struct Queue<O> {
    nodes: Nodes,
    list: List,
    order: PhantomData<O>,
}

impl<O: Order> Queue<O> {
    pub fn new(nodes: Nodes) -> Queue<O> {
        Queue { nodes, list: List::default(), order: PhantomData }
    }
}

impl<O: Order> Policy for Queue<O> {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        O::use_of(&mut self.list, &mut self.nodes, id);
    }

    #[inline]
    fn replace(&mut self) -> u32 {
        loop {
            let id = self.list.pop(&mut self.nodes);
            if !O::is_spared(&mut self.nodes, id) {
                self.nodes.forget(id);
                return id;
            }
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
