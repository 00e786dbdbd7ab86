//! [`Agenda`]: events that faults have postponed, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::drive::Completion;
use crate::pending_requests::Outcome;

/// Postponed events.
#[derive(Debug)]
pub struct Agenda {
    /// Time of the first of them, or of the next change of a fault.
    pub next_ns: u64,
    /// Events by time, and in the order in which they were postponed.
    items: BinaryHeap<Reverse<(u64, u64, Item)>>,
    numbered: u64,
    /// Answers held by a hang, in the order in which they became ready.
    pub held: Vec<(Completion, Outcome)>,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda { next_ns: u64::MAX, items: BinaryHeap::new(), numbered: 0, held: Vec::new() }
    }
}

/// A postponed event of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// It reaches the system.
    Submit(u32),
    /// Its answer leaves: when the system began to work on it, and its outcome.
    Answer(u32, u64, Outcome),
}

impl Agenda {
    /// Postpones an event until `at_ns`.
    pub fn put_off(&mut self, at_ns: u64, item: Item) {
        self.items.push(Reverse((at_ns, self.numbered, item)));
        self.numbered += 1;
        self.next_ns = self.next_ns.min(at_ns);
    }

    /// Drops all postponed events and held answers; faults stay.
    pub fn clear(&mut self) {
        self.items.clear();
        self.held.clear();
    }

    /// Removes and returns the first event, if it is due at `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Item> {
        let Reverse((at_ns, ..)) = *self.items.peek()?;
        (at_ns <= now_ns).then(|| self.items.pop().expect("it was seen").0.2)
    }

    /// Returns the time of the first event; `u64::MAX` if there is none.
    pub fn first_ns(&self) -> u64 {
        self.items.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }
}
