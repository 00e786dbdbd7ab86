//! [`Nodes`]: a policy's state for each id: list links, weight, and a mark.

/// Marks the absence of an id.
pub const NONE: u32 = u32::MAX;

/// Bit of a mark: the id is in the cache.
pub(crate) const HELD: u32 = 1 << 31;
/// Bit of a mark: the id is pinned, so it is on no list from which ids are evicted.
pub(crate) const KEPT: u32 = 1 << 30;
/// Bit of a mark: the id is a ghost, which is not in the cache but remembered.
pub(crate) const GHOST: u32 = 1 << 29;
/// Bit of a mark: the id was a ghost and is being admitted again.
pub(crate) const BACK: u32 = 1 << 28;
/// Bits of a mark that the policy may use for its own purposes.
pub(crate) const OWN: u32 = BACK - 1;

/// State of an id, which is on at most one list. A node has 16 bytes, with fields used together next to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub newer: u32,
    pub older: u32,
    pub weight: u32,
    /// State bits; 0 for an unknown id.
    pub mark: u32,
}

/// Nodes of all ids used so far.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    /// Forgotten ids, if the caller wants to reuse them.
    forgotten: Option<Vec<u32>>,
}

impl Nodes {
    /// Creates an empty set. With `ids_return`, forgotten ids are collected for reuse.
    pub fn new(ids_return: bool) -> Nodes {
        Nodes { nodes: Vec::new(), forgotten: ids_return.then(Vec::new) }
    }

    /// Makes room for ids below `count`.
    pub fn reach(&mut self, count: usize) {
        if self.nodes.len() < count {
            self.nodes.resize(count, Node { newer: NONE, older: NONE, weight: 0, mark: 0 });
        }
    }

    /// Returns the weight of an id, or its weight when it was last cached.
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

    /// Whether the id, which may never have been used, is in the cache.
    #[inline]
    pub fn is_held(&self, id: u32) -> bool {
        self.nodes.get(id as usize).is_some_and(|node| node.mark & HELD != 0)
    }

    /// Marks an id as cached, with this mark of the policy's own.
    #[inline]
    pub fn hold(&mut self, id: u32, weight: u32, own: u32) {
        self.reach(id as usize + 1);
        let node = self.at_mut(id);
        (node.weight, node.mark) = (weight, HELD | own);
    }

    /// Forgets an id.
    #[inline]
    pub fn forget(&mut self, id: u32) {
        self.at_mut(id).mark = 0;
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.push(id);
        }
    }

    /// Returns an id that was forgotten since the last call.
    #[inline]
    pub fn next_forgotten(&mut self) -> Option<u32> {
        self.forgotten.as_mut().and_then(Vec::pop)
    }
}
