//! [`Belady`]: Belady's policy evicts the id whose next use is latest, and first of all those that are never used again
//! (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966). With
//! equal weights no other policy misses less. It must know all future references.

use std::sync::Arc;

use crate::list::List;
use crate::nodes::{HELD, NONE, Nodes};
use crate::policy::Policy;

const WORD_BITS: usize = 64;

/// All future references, and when the same id is next used after each of them.
#[derive(Debug)]
pub struct Future {
    ids: Vec<u32>,
    next: Vec<u32>,
}

impl Future {
    /// Creates the future of references to ids below `ids_end`, in their order; fewer than 2^32 references.
    pub fn new(ids: Vec<u32>, ids_end: usize) -> Future {
        let mut last = vec![NONE; ids_end];
        let mut next = vec![NONE; ids.len()];
        for (number, &id) in ids.iter().enumerate().rev() {
            next[number] = last[id as usize];
            last[id as usize] = number as u32;
        }
        Future { ids, next }
    }
}

/// A set of numbers, and its maximum: each level has a bit for each word of the level below that is not 0.
#[derive(Clone, Debug)]
struct Numbers {
    levels: Vec<Vec<u64>>,
}

impl Numbers {
    fn new(end: usize) -> Numbers {
        let mut levels = vec![vec![0u64; end.div_ceil(WORD_BITS).max(1)]];
        while levels[levels.len() - 1].len() > 1 {
            let words = levels[levels.len() - 1].len().div_ceil(WORD_BITS);
            levels.push(vec![0; words]);
        }
        Numbers { levels }
    }

    #[inline]
    fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / WORD_BITS];
            let was_empty = *word == 0;
            *word |= 1 << (at % WORD_BITS);
            if !was_empty {
                return;
            }
            at /= WORD_BITS;
        }
    }

    #[inline]
    fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / WORD_BITS];
            *word &= !(1 << (at % WORD_BITS));
            if *word != 0 {
                return;
            }
            at /= WORD_BITS;
        }
    }

    fn greatest(&self) -> Option<u32> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * WORD_BITS + word.ilog2() as usize;
        }
        Some(at as u32)
    }
}

/// Belady's policy; the caller reports the next reference with [`Policy::is_at`].
#[derive(Clone, Debug)]
pub struct Belady {
    future: Arc<Future>,
    now: usize,
    nodes: Nodes,
    /// Cached ids that are used again, by their next use.
    coming: Numbers,
    due: Vec<u32>,
    /// Cached ids that are never used again.
    over: List,
}

impl Belady {
    /// Creates a policy that knows the future.
    pub fn new(future: Arc<Future>) -> Belady {
        let coming = Numbers::new(future.ids.len());
        Belady { future, now: 0, nodes: Nodes::default(), coming, due: Vec::new(), over: List::default() }
    }

    fn list(&mut self, id: u32) {
        let due = self.future.next[self.now];
        self.due[id as usize] = due;
        match due {
            NONE => self.over.push(&mut self.nodes, id),
            due => self.coming.insert(due),
        }
    }
}

impl Policy for Belady {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        debug_assert!(self.future.ids[self.now] == id, "only keys of the future trace are used");
        self.keep(id);
        self.list(id);
    }

    fn replace(&mut self) -> u32 {
        let id = match self.coming.greatest() {
            _ if !self.over.is_empty() => self.over.oldest,
            Some(due) => self.future.ids[due as usize],
            None => unreachable!("one entry can be evicted"),
        };
        self.discard(id);
        id
    }

    fn admit(&mut self, id: u32, weight: u32, _key: u64) {
        self.nodes.hold(id, weight, 0);
        if self.due.len() <= id as usize {
            self.due.resize(id as usize + 1, NONE);
        }
        self.list(id);
    }

    #[inline]
    fn keep(&mut self, id: u32) {
        match self.due[id as usize] {
            NONE => self.over.remove(&mut self.nodes, id),
            due => self.coming.remove(due),
        }
    }

    fn release(&mut self, id: u32) {
        match self.due[id as usize] {
            NONE => self.over.push(&mut self.nodes, id),
            due => self.coming.insert(due),
        }
    }

    fn discard(&mut self, id: u32) {
        self.keep(id);
        self.nodes.at_mut(id).mark &= !HELD;
    }

    #[inline]
    fn is_at(&mut self, number: usize) {
        self.now = number;
    }
}
