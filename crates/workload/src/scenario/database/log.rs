//! [`Log`]: the write-ahead log of a database, and who writes it: group commit.

use crate::request::Request;
use crate::scenario::step::write;
use crate::span::Span;

/// Size of a page of the log (`XLOG_BLCKSZ`).
const PAGE_BYTES: u64 = 8 << 10;
/// Size of a segment, within which a write ends (`wal_segment_size`).
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;

/// A log in a span of the system, used in a circle. Positions count bytes since the start.
#[derive(Clone, Debug)]
pub(super) struct Log {
    span: Span,
    /// End of the records that transactions have added.
    pub inserted: u64,
    /// End of the records that are on stable storage.
    pub flushed: u64,
    /// Client that writes the log, and the next position to write and the last that it writes.
    writer: Option<Writer>,
    /// Clients that wait until the writer is done.
    waiting: Vec<u32>,
    pub syncs: u64,
}

#[derive(Clone, Copy, Debug)]
struct Writer {
    client: u32,
    next: u64,
    target: u64,
}

/// Answer to a client that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its records are on stable storage.
    Done,
    /// It is the writer now.
    Write,
    /// Another client writes; it will be woken.
    Wait,
}

impl Log {
    /// Creates an empty log.
    pub fn new(span: Span) -> Log {
        Log { span, inserted: 0, flushed: 0, writer: None, waiting: Vec::new(), syncs: 0 }
    }

    /// Adds the records of a transaction; returns their end.
    pub fn insert(&mut self, bytes: u64) -> u64 {
        self.inserted += bytes;
        self.inserted
    }

    /// Lets a client commit records up to `end`: the first one becomes the writer, and the others wait until it is done
    /// (`WALWriteLock` in `XLogFlush`, xlog.c).
    pub fn commit(&mut self, client: u32, end: u64) -> Turn {
        if self.flushed >= end {
            return Turn::Done;
        }
        if self.writer.is_some() {
            self.waiting.push(client);
            return Turn::Wait;
        }
        self.writer = Some(Writer { client, next: self.flushed, target: self.flushed });
        Turn::Write
    }

    /// Starts the writer's work: it takes everything that was added by now.
    pub fn begin(&mut self, client: u32) {
        let (first, inserted) = (self.flushed / PAGE_BYTES * PAGE_BYTES, self.inserted);
        let writer = self.writer_mut(client);
        (writer.next, writer.target) = (first, inserted);
    }

    /// Returns the writer's next write, in whole pages up to the end of a segment; `None` if all is written.
    pub fn next_write(&mut self, client: u32) -> Option<Request> {
        let span = self.span;
        let writer = self.writer_mut(client);
        let end = writer.target.next_multiple_of(PAGE_BYTES);
        if writer.next >= end {
            return None;
        }
        let place = writer.next % span.length_bytes;
        let until_segment = SEGMENT_BYTES - place % SEGMENT_BYTES;
        let length = (end - writer.next).min(until_segment).min(span.length_bytes - place);
        writer.next += length;
        Some(write(span.start_bytes + place, length as u32))
    }

    /// Ends the writer's work after its sync; returns the clients to wake.
    pub fn end(&mut self, client: u32) -> Vec<u32> {
        self.flushed = self.writer_mut(client).target;
        self.writer = None;
        self.syncs += 1;
        std::mem::take(&mut self.waiting)
    }

    fn writer_mut(&mut self, client: u32) -> &mut Writer {
        let writer = self.writer.as_mut().expect("a client writes the log");
        debug_assert_eq!(writer.client, client, "one client at a time writes the log");
        writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_takes_what_was_added_before_it_began() {
        let mut log = Log::new(Span { start_bytes: 1 << 20, length_bytes: 2 * SEGMENT_BYTES });
        let first = log.insert(600);
        assert_eq!(log.commit(0, first), Turn::Write);
        log.begin(0);
        let second = log.insert(9_000);
        assert_eq!(log.commit(1, second), Turn::Wait);
        assert_eq!(log.next_write(0), Some(write(1 << 20, 8 << 10)));
        assert_eq!(log.next_write(0), None);
        assert_eq!(log.end(0), [1]);
        assert_eq!((log.commit(0, first), log.commit(1, second)), (Turn::Done, Turn::Write));
        log.begin(1);
        assert_eq!(log.next_write(1), Some(write(1 << 20, 16 << 10)), "the page that was written in part again");
        assert!(log.end(1).is_empty());
    }

    #[test]
    fn writes_end_with_their_segment_and_the_log_is_a_circle() {
        let mut log = Log::new(Span { start_bytes: 0, length_bytes: 2 * SEGMENT_BYTES });
        let end = log.insert(3 * SEGMENT_BYTES);
        assert_eq!(log.commit(7, end), Turn::Write);
        log.begin(7);
        let writes: Vec<_> = std::iter::from_fn(|| log.next_write(7)).map(|write| write.offset_bytes).collect();
        assert_eq!(writes, [0, SEGMENT_BYTES, 0]);
    }
}
