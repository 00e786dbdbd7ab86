//! Events put in order of time before they are paired.

use crate::formats::blktrace::events::Event;

/// Events that were read, of which some that are not yet read may be older.
///
/// Buffers of different processors are read one after the other, and an event's place in its buffer is taken before it is
/// written: for a moment a newer one can be read and an older one not. After all buffers were read to their ends once
/// more, what is as old as the newest event of the time before is complete.
#[derive(Debug, Default)]
pub(super) struct Window {
    held: Vec<Event>,
    /// Events so far.
    count: u64,
    /// The newest of them.
    newest_ns: u64,
    /// The newest event when the round before ended.
    settled_ns: u64,
}

impl Window {
    /// Another event.
    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        self.newest_ns = self.newest_ns.max(event.at_ns);
        self.count += 1;
        self.held.push(event);
    }

    /// Events that were put in so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The time of the newest of them.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    /// A round of reading is over, in which all that is older than `read_to_ns` was read: takes out what nothing older can
    /// follow, in order.
    pub(super) fn settle(&mut self, read_to_ns: u64) -> impl Iterator<Item = Event> + '_ {
        let until_ns = self.settled_ns.min(read_to_ns);
        self.settled_ns = self.newest_ns;
        self.held.sort_by_key(|event| event.at_ns);
        let count = self.held.partition_point(|event| event.at_ns <= until_ns);
        self.held.drain(..count)
    }

    /// Nothing follows: takes out all, in order.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.settled_ns = u64::MAX;
        self.settle(u64::MAX)
    }
}
