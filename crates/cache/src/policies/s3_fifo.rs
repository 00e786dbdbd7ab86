//! S3-FIFO: new ids pass through a small queue. Only ids used at least twice more move to the main queue; ids that the
//! small queue evicted recently return directly to the main queue (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO queues are
//! all you need for cache eviction", SOSP 2023).

use crate::list::List;
use crate::nodes::{BACK, GHOST, KEPT, Nodes, OWN};
use crate::policy::Policy;

/// Largest count of uses, and the count with which a new id moves to the main queue.
const USES_MAX: u32 = 3;
const USES_TO_STAY: u32 = 2;
/// Bit of a mark: the id is in the main queue.
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
    /// Creates a policy with 10 % of the cache for the small queue and ghosts for 90 % of the cache.
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

    /// Removes and returns the first id of the main queue that has no uses left. Each use keeps an id for one more
    /// round.
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

    /// Removes and returns the first id of the small queue that was not used twice. Moves the others to the main queue.
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
