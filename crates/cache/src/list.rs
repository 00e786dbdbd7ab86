//! [`List`]: ids in an order, linked through their nodes.

use crate::nodes::{NONE, Nodes};

/// A list of ids, from the oldest to the newest.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The newest id, or [`NONE`].
    pub newest: u32,
    /// The oldest id, or [`NONE`].
    pub oldest: u32,
    /// Total weight of the ids on the list.
    pub weight: u64,
}

impl Default for List {
    fn default() -> List {
        List { newest: NONE, oldest: NONE, weight: 0 }
    }
}

impl List {
    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// Adds an id, which must be on no list, as the newest.
    #[inline]
    pub fn push(&mut self, nodes: &mut Nodes, id: u32) {
        let node = nodes.at_mut(id);
        (node.newer, node.older) = (NONE, self.newest);
        self.weight += u64::from(node.weight);
        match self.newest {
            NONE => self.oldest = id,
            newest => nodes.at_mut(newest).newer = id,
        }
        self.newest = id;
    }

    /// Removes an id from the list.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, id: u32) {
        let node = *nodes.at(id);
        debug_assert!(self.weight >= u64::from(node.weight), "only a listed entry is removed");
        match node.newer {
            NONE => self.newest = node.older,
            newer => nodes.at_mut(newer).older = node.older,
        }
        match node.older {
            NONE => self.oldest = node.newer,
            older => nodes.at_mut(older).newer = node.newer,
        }
        self.weight -= u64::from(node.weight);
    }

    /// Makes an id of the list its newest.
    #[inline]
    pub fn renew(&mut self, nodes: &mut Nodes, id: u32) {
        if self.newest != id {
            self.remove(nodes, id);
            self.push(nodes, id);
        }
    }

    /// Removes and returns the oldest id of the list, which must not be empty.
    #[inline]
    pub fn pop(&mut self, nodes: &mut Nodes) -> u32 {
        let id = self.oldest;
        debug_assert!(id != NONE, "somebody looked before");
        self.remove(nodes, id);
        id
    }
}
