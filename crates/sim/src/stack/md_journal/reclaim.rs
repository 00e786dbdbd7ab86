//! Reclaim: the members are flushed, and then the tail of the log moves. md flushes them with the superblocks that
//! record the new tail (`r5l_write_super_and_discard_space`); the writes of the superblocks are left out.

use headstack_workload::Kind;

use super::under_way::{ARRAY, JOURNAL, Sent};
use super::{FLUSH, MdJournal, access};
use crate::description::stack::MdJournalMode;
use crate::stack::orders::{Answer, Orders};

/// Longest discard, in bytes: lengths of requests have 32 bits.
const DISCARD_BYTES_MAX: u64 = 1 << 30;

impl MdJournal {
    /// Makes space: begins blocked writes, writes out stripes, moves the tail.
    pub(super) fn reclaim(&mut self, now_ns: u64, orders: &mut Orders) {
        self.retry_blocked(now_ns, orders);
        match self.description.mode {
            MdJournalMode::WriteThrough => {}
            MdJournalMode::WriteBack => self.reclaim_stripes(now_ns, orders),
        }
        let (tail, checkpoint) = self.log.bounds();
        let to = self.stripes.first_in_log().map_or(checkpoint, |first| first.min(checkpoint));
        let is_due = to - tail > self.description.reclaim_bytes || self.lacks_space;
        if self.moving_to.is_none() && to > tail && is_due {
            self.moving_to = Some(to);
            self.counters.reclaims += 1;
            self.send(ARRAY, Sent::MemberFlush, FLUSH, orders);
        }
    }

    /// Discards the space behind the new tail: nothing there is needed once the members are flushed.
    pub(super) fn members_flushed(&mut self, now_ns: u64, answer: &Answer, orders: &mut Orders) {
        let Some(to) = self.moving_to else { return };
        if answer.failed.is_some() {
            // The tail stays; the next write that ends tries again.
            self.moving_to = None;
            return;
        }
        let (tail, _) = self.log.bounds();
        let runs: Vec<(u64, u64)> = self.log.runs(tail, to).collect();
        // Start at one, so that the tail moves only after all discards have been sent.
        self.discards = 1;
        for (mut at, end) in runs {
            while at < end {
                let until = end.min(at + DISCARD_BYTES_MAX);
                self.discards += 1;
                self.send(JOURNAL, Sent::Discard, access(Kind::Trim, at, until, false), orders);
                at = until;
            }
        }
        self.discarded(now_ns, orders);
    }

    /// Counts an ended discard; the tail moves after the last one. Errors of discards do not matter.
    pub(super) fn discarded(&mut self, now_ns: u64, orders: &mut Orders) {
        self.discards -= 1;
        if self.discards > 0 {
            return;
        }
        if let Some(to) = self.moving_to.take() {
            self.log.move_tail(to);
            self.reclaim(now_ns, orders);
        }
    }
}
