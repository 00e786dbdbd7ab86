//! [`Window`]: orders events by time before they are paired.

use crate::formats::blktrace::events::Event;

/// Events that were read, of which some not yet read may be older.
///
/// Buffers of different processors are read one after another, and an event's place in its buffer is reserved before it
/// is written: for a moment a newer one can be read while an older one cannot. After all buffers have been read to
/// their ends once more, events up to the newest of the previous round are complete.
#[derive(Debug, Default)]
pub(super) struct Window {
    held: Vec<Event>,
    /// Number of events so far.
    count: u64,
    /// Time of the newest one.
    newest_ns: u64,
    /// Newest event at the end of the previous round.
    settled_ns: u64,
}

impl Window {
    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        self.newest_ns = self.newest_ns.max(event.at_ns);
        self.count += 1;
        self.held.push(event);
    }

    /// Number of events added so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Time of the newest event.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    /// Ends a round of reading in which everything older than `read_to_ns` was read: takes the events that no older one
    /// can follow, in order.
    pub(super) fn settle(&mut self, read_to_ns: u64) -> impl Iterator<Item = Event> + '_ {
        let until_ns = self.settled_ns.min(read_to_ns);
        self.settled_ns = self.newest_ns;
        self.held.sort_by_key(|event| event.at_ns);
        let count = self.held.partition_point(|event| event.at_ns <= until_ns);
        self.held.drain(..count)
    }

    /// Takes all events in order, at the end.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.settled_ns = u64::MAX;
        self.settle(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::events::EventKind;
    use crate::record::{Flags, Operation};

    fn event(at_ns: u64, sector: u64) -> Event {
        Event {
            at_ns,
            sector,
            second_sector: 0,
            bytes: 512,
            device: 0,
            pid: 0,
            flags: Flags::default(),
            operation: Operation::Read,
            what: EventKind::Issue,
        }
    }

    fn times(events: impl Iterator<Item = Event>) -> Vec<u64> {
        events.map(|event| event.at_ns).collect()
    }

    #[test]
    fn an_event_that_is_read_late_finds_its_place() {
        let mut window = Window::default();
        for at_ns in [10, 30, 20] {
            window.push(event(at_ns, 0));
        }
        assert!(times(window.settle(u64::MAX)).is_empty(), "an older one may still come");
        for at_ns in [15, 40] {
            window.push(event(at_ns, 0));
        }
        assert_eq!(times(window.settle(u64::MAX)), [10, 15, 20, 30]);
        assert_eq!(times(window.settle(u64::MAX)), [40]);
        assert_eq!((window.count(), window.newest_ns()), (5, 40));
    }

    #[test]
    fn what_another_processor_may_precede_waits_for_it() {
        let mut window = Window::default();
        window.push(event(50, 0));
        assert!(times(window.settle(u64::MAX)).is_empty());
        window.push(event(20, 0));
        assert_eq!(times(window.settle(30)), [20]);
        window.push(event(60, 0));
        assert_eq!(times(window.finish()), [50, 60]);
    }

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut window = Window::default();
        for sector in [3, 1, 2] {
            window.push(event(7, sector));
        }
        assert_eq!(window.finish().map(|event| event.sector).collect::<Vec<_>>(), [3, 1, 2]);
    }
}
