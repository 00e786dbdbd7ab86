//! [`Agenda`]: what faults have put off, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::drive::Completion;
use crate::flights::Outcome;

/// What faults have put off.
#[derive(Debug)]
pub struct Agenda {
    /// When the first of it is due, or a fault changes.
    pub next_ns: u64,
    /// By time, and in the order in which they were put off.
    items: BinaryHeap<Reverse<(u64, u64, Item)>>,
    numbered: u64,
    /// Answers that a hang holds, in the order in which they were ready.
    pub held: Vec<(Completion, Outcome)>,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda { next_ns: u64::MAX, items: BinaryHeap::new(), numbered: 0, held: Vec::new() }
    }
}

/// Something that is to be done with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// It reaches the system.
    Submit(u32),
    /// Its answer leaves: when the system began with it, and what became of it.
    Answer(u32, u64, Outcome),
}

impl Agenda {
    /// Puts an item off until `at_ns`.
    pub fn put_off(&mut self, at_ns: u64, item: Item) {
        self.items.push(Reverse((at_ns, self.numbered, item)));
        self.numbered += 1;
        self.next_ns = self.next_ns.min(at_ns);
    }

    /// Nothing is put off or held any more; faults go on.
    pub fn clear(&mut self) {
        self.items.clear();
        self.held.clear();
    }

    /// Takes out the first item, if it is due at `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Item> {
        let Reverse((at_ns, ..)) = *self.items.peek()?;
        (at_ns <= now_ns).then(|| self.items.pop().expect("it was seen").0.2)
    }

    /// When the first item is due; `u64::MAX` where there is none.
    pub fn first_ns(&self) -> u64 {
        self.items.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }
}
