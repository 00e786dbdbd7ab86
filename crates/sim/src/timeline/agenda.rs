//! [`Agenda`]: actions postponed by faults, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::drive::Completion;
use crate::flights::Outcome;

/// Actions postponed by faults.
#[derive(Debug)]
pub struct Agenda {
    /// When the first action is due, or a fault changes.
    pub next_ns: u64,
    /// By time, and in the order in which they were put off.
    items: BinaryHeap<Reverse<(u64, u64, Item)>>,
    numbered: u64,
    /// Answers held by a hang, in the order in which they were ready.
    pub held: Vec<(Completion, Outcome)>,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda { next_ns: u64::MAX, items: BinaryHeap::new(), numbered: 0, held: Vec::new() }
    }
}

/// A postponed action on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// It reaches the system.
    Submit(u32),
    /// Sends the answer: when the system began with the part, and its outcome.
    Answer(u32, u64, Outcome),
}

impl Agenda {
    /// Puts an item off until `at_ns`.
    pub fn put_off(&mut self, at_ns: u64, item: Item) {
        self.items.push(Reverse((at_ns, self.numbered, item)));
        self.numbered += 1;
        self.next_ns = self.next_ns.min(at_ns);
    }

    /// Drops everything postponed or held; faults continue.
    pub fn clear(&mut self) {
        self.items.clear();
        self.held.clear();
    }

    /// Takes out the first item, if it is due at `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Item> {
        let Reverse((at_ns, ..)) = *self.items.peek()?;
        (at_ns <= now_ns).then(|| self.items.pop().expect("it was seen").0.2)
    }

    /// When the first item is due; `u64::MAX` if there is none.
    pub fn first_ns(&self) -> u64 {
        self.items.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }
}
