//! S3-FIFO: new ids enter a small queue, and only those used twice more move from there to the main one; an id that the
//! small queue evicted lately returns to the main one at once (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO queues are all
//! you need for cache eviction", SOSP 2023).

use crate::list::List;
use crate::nodes::{BACK, GHOST, KEPT, Nodes, OWN};
use crate::policy::Policy;

/// Uses that are counted at most, and with which a newcomer goes on into the main queue.
const USES_MAX: u32 = 3;
const USES_TO_STAY: u32 = 2;
/// The id is in the main queue.
const MAIN: u32 = 4;

#[derive(Clone, Debug)]
pub struct S3Fifo {
    nodes: Nodes,
    small: List,
    main: List,
    ghosts: List,
    main_max: u64,
    ghosts_max: u64,
}

impl S3Fifo {
    /// A tenth of the cache is the small queue's, and nine tenths are remembered.
    pub fn new(nodes: Nodes, capacity: u64) -> S3Fifo {
        let (main_max, ghosts_max) = (capacity - capacity / 10, capacity * 9 / 10);
        S3Fifo { nodes, small: List::default(), main: List::default(), ghosts: List::default(), main_max, ghosts_max }
    }

    fn remember(&mut self, id: u32) {
        self.nodes.at_mut(id).mark = GHOST;
        self.ghosts.push(&mut self.nodes, id);
        while self.ghosts.weight > self.ghosts_max {
            let oldest = self.ghosts.pop(&mut self.nodes);
            self.nodes.forget(oldest);
        }
    }

    /// The first of the main queue that was not used; each use saves once.
    fn take_from_main(&mut self) -> u32 {
        loop {
            let id = self.main.pop(&mut self.nodes);
            let mark = &mut self.nodes.at_mut(id).mark;
            if *mark & USES_MAX == 0 {
                self.nodes.forget(id);
                return id;
            }
            *mark -= 1;
            self.main.push(&mut self.nodes, id);
        }
    }

    /// Evicts the first id of the small queue that was not used twice; those before it move to the main one.
    fn take_from_small(&mut self) -> Option<u32> {
        while !self.small.is_empty() {
            let id = self.small.pop(&mut self.nodes);
            let mark = &mut self.nodes.at_mut(id).mark;
            if *mark & USES_MAX < USES_TO_STAY {
                self.remember(id);
                return Some(id);
            }
            *mark = *mark & !OWN | MAIN;
            self.main.push(&mut self.nodes, id);
        }
        None
    }

    fn queue(&mut self, id: u32) -> (&mut List, &mut Nodes) {
        let queue = if self.nodes.mark(id) & MAIN == 0 { &mut self.small } else { &mut self.main };
        (queue, &mut self.nodes)
    }

    fn unlist(&mut self, id: u32) {
        let (queue, nodes) = self.queue(id);
        queue.remove(nodes, id);
    }
}

impl Policy for S3Fifo {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        let mark = &mut self.nodes.at_mut(id).mark;
        *mark += u32::from(*mark & USES_MAX < USES_MAX);
    }

    #[inline]
    fn recall(&mut self, id: u32) {
        self.nodes.reach(id as usize + 1);
        if self.nodes.mark(id) & GHOST != 0 {
            self.ghosts.remove(&mut self.nodes, id);
            self.nodes.at_mut(id).mark = BACK;
        }
    }

    #[inline]
    fn replace(&mut self) -> u32 {
        let small = if self.main.weight > self.main_max { None } else { self.take_from_small() };
        small.unwrap_or_else(|| self.take_from_main())
    }

    #[inline]
    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.reach(id as usize + 1);
        let own = if self.nodes.mark(id) & BACK == 0 { 0 } else { MAIN };
        self.nodes.hold(id, weight, own);
        let (queue, nodes) = self.queue(id);
        queue.push(nodes, id);
    }

    fn keep(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        self.nodes.at_mut(id).mark &= !KEPT;
        let (queue, nodes) = self.queue(id);
        queue.push(nodes, id);
    }

    fn discard(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.forget(id);
    }
}
