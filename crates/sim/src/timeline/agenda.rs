//! [`Agenda`]: events postponed by faults, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::drive::Completion;
use crate::pending_requests::Outcome;

/// Postponed events and held answers.
#[derive(Debug)]
pub struct Agenda {
    /// Time of the first postponed event or the next change of a fault, whichever is earlier.
    pub next_ns: u64,
    /// Events ordered by time, then by the order in which they were postponed.
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

/// Postponed event of a part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// The part reaches the system.
    Submit(u32),
    /// The part's answer leaves; with the time at which service started, and the outcome.
    Answer(u32, u64, Outcome),
}

impl Agenda {
    /// Postpones an event to `at_ns`.
    pub fn put_off(&mut self, at_ns: u64, item: Item) {
        self.items.push(Reverse((at_ns, self.numbered, item)));
        self.numbered += 1;
        self.next_ns = self.next_ns.min(at_ns);
    }

    /// Drops all postponed events and held answers. Faults stay active.
    pub fn clear(&mut self) {
        self.items.clear();
        self.held.clear();
    }

    /// Removes and returns the first event, if it is due at `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Item> {
        let Reverse((at_ns, ..)) = *self.items.peek()?;
        (at_ns <= now_ns).then(|| self.items.pop().expect("the queue is not empty").0.2)
    }

    /// Returns the time of the first event, or `u64::MAX` if there is none.
    pub fn first_ns(&self) -> u64 {
        self.items.peek().map_or(u64::MAX, |&Reverse((at_ns, ..))| at_ns)
    }
}
