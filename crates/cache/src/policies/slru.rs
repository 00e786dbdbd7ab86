//! SLRU: several segments, each in order of use. A use moves an id to the next higher segment; overflow moves to the
//! next lower one (Karedla, Love and Wherry, "Caching strategies to improve disk system performance", IEEE Computer
//! 27(3), 1994). The paper has two segments; this has four, each 25 % of the cache.

use crate::list::List;
use crate::nodes::{KEPT, NONE, Nodes};
use crate::policy::Policy;

const SEGMENTS: u64 = 4;
/// Bits of a mark that hold the segment number.
const SEGMENT: u32 = 15;

/// Segments, lowest first.
#[derive(Clone, Debug)]
pub struct Segments {
    lists: Vec<List>,
    most: Vec<u64>,
}

impl Segments {
    pub fn new(most: Vec<u64>) -> Segments {
        Segments { lists: vec![List::default(); most.len()], most }
    }

    pub fn weight(&self) -> u64 {
        self.lists.iter().map(|list| list.weight).sum()
    }

    /// Admits an id into the lowest segment that has room.
    pub fn insert(&mut self, nodes: &mut Nodes, id: u32) {
        let weight = u64::from(nodes.at(id).weight);
        let has_room = |number: &usize| self.lists[*number].weight + weight <= self.most[*number];
        let segment = (0..self.lists.len()).find(has_room).unwrap_or(0);
        let node = nodes.at_mut(id);
        node.mark = node.mark & !SEGMENT | segment as u32;
        self.lists[segment].push(nodes, id);
    }

    pub fn hit(&mut self, nodes: &mut Nodes, id: u32) {
        let segment = (nodes.mark(id) & SEGMENT) as usize;
        if segment + 1 == self.lists.len() {
            return self.lists[segment].renew(nodes, id);
        }
        self.lists[segment].remove(nodes, id);
        nodes.at_mut(id).mark += 1;
        self.lists[segment + 1].push(nodes, id);
        // Overflow moves to lower segments.
        for above in (1..=segment + 1).rev() {
            while self.lists[above].weight > self.most[above] {
                let sinks = self.lists[above].pop(nodes);
                nodes.at_mut(sinks).mark -= 1;
                self.lists[above - 1].push(nodes, sinks);
            }
        }
    }

    /// Returns the next id to evict, or [`NONE`] if there is none.
    pub fn oldest(&self) -> u32 {
        self.lists.iter().find(|list| !list.is_empty()).map_or(NONE, |list| list.oldest)
    }

    pub fn remove(&mut self, nodes: &mut Nodes, id: u32) {
        self.lists[(nodes.mark(id) & SEGMENT) as usize].remove(nodes, id);
    }

    /// Returns an unpinned id to its segment.
    pub fn release(&mut self, nodes: &mut Nodes, id: u32) {
        self.lists[(nodes.mark(id) & SEGMENT) as usize].push(nodes, id);
    }
}

#[derive(Clone, Debug)]
pub struct Slru {
    nodes: Nodes,
    segments: Segments,
}

impl Slru {
    pub fn new(nodes: Nodes, capacity: u64) -> Slru {
        // The lowest segment gets the remainder of the division.
        let quarter = capacity / SEGMENTS;
        let mut most = vec![quarter; SEGMENTS as usize];
        most[0] = capacity - quarter * (SEGMENTS - 1);
        Slru { nodes, segments: Segments::new(most) }
    }
}

impl Policy for Slru {
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
            self.segments.hit(&mut self.nodes, id);
        }
    }

    fn replace(&mut self) -> u32 {
        let id = self.segments.oldest();
        self.discard(id);
        id
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.hold(id, weight, 0);
        self.segments.insert(&mut self.nodes, id);
    }

    fn keep(&mut self, id: u32) {
        self.segments.remove(&mut self.nodes, id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        self.segments.release(&mut self.nodes, id);
    }

    fn discard(&mut self, id: u32) {
        self.segments.remove(&mut self.nodes, id);
        self.nodes.forget(id);
    }
}
