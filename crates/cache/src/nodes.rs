//! What a policy stores for each id: its place on a list, its weight, and a mark.

/// No id.
pub const NONE: u32 = u32::MAX;

/// The id is in the cache.
pub(crate) const HELD: u32 = 1 << 31;
/// The id is pinned: it is on none of the lists that ids are evicted from.
pub(crate) const KEPT: u32 = 1 << 30;
/// The id is not in the cache, but remembered.
pub(crate) const GHOST: u32 = 1 << 29;
/// It was remembered, and comes back.
pub(crate) const BACK: u32 = 1 << 28;
/// The bits of a mark that are left for the policy.
pub(crate) const OWN: u32 = BACK - 1;

/// An id on at most one list. 16 bytes, so that fields used together share a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub newer: u32,
    pub older: u32,
    pub weight: u32,
    /// 0 for an unknown id.
    pub mark: u32,
}

/// All ids that were ever named.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    /// Ids that have become unknown, collected if the caller wants to use them again.
    forgotten: Option<Vec<u32>>,
}

impl Nodes {
    /// Creates an empty store. If ids are used again, those that become unknown are collected.
    pub fn new(ids_return: bool) -> Nodes {
        Nodes { nodes: Vec::new(), forgotten: ids_return.then(Vec::new) }
    }

    /// Makes room for ids below `count`.
    pub fn reach(&mut self, count: usize) {
        if self.nodes.len() < count {
            self.nodes.resize(count, Node { newer: NONE, older: NONE, weight: 0, mark: 0 });
        }
    }

    /// Weight of an id, or its weight when it was last held.
    #[inline]
    pub fn weight(&self, id: u32) -> u32 {
        self.at(id).weight
    }

    #[inline]
    pub(crate) fn at(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    #[inline]
    pub(crate) fn mark(&self, id: u32) -> u32 {
        self.at(id).mark
    }

    /// The id, which may never have been named, is in the cache.
    #[inline]
    pub fn is_held(&self, id: u32) -> bool {
        self.nodes.get(id as usize).is_some_and(|node| node.mark & HELD != 0)
    }

    /// It comes into the cache, with this mark of the policy's own.
    #[inline]
    pub fn hold(&mut self, id: u32, weight: u32, own: u32) {
        self.reach(id as usize + 1);
        let node = self.at_mut(id);
        (node.weight, node.mark) = (weight, HELD | own);
    }

    /// Forgets the id.
    #[inline]
    pub fn forget(&mut self, id: u32) {
        self.at_mut(id).mark = 0;
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.push(id);
        }
    }

    /// Takes one of the ids that have become unknown since the last call.
    #[inline]
    pub fn next_forgotten(&mut self) -> Option<u32> {
        self.forgotten.as_mut().and_then(Vec::pop)
    }
}
