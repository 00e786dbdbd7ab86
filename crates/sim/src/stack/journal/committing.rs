//! Commits: which requests they send to the journal, one after the other.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use headstack_workload::{Kind, Request};

use super::commit::Commit;
use super::{Journal, Sent, flush};
use crate::description::stack::{JournalDescription, JournalKind};
use crate::stack::orders::Orders;

impl Journal {
    /// Starts a commit if none is under way.
    pub(super) fn maybe_commit(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.commit.is_none() {
            self.begin_commit(now_ns, orders);
        }
    }

    /// Whether allocations of some files are not in the journal yet.
    pub(super) fn has_open_allocation(&self, files: RangeInclusive<usize>) -> bool {
        let commit = self.commit.as_ref().map(|commit| &commit.transaction);
        [Some(&self.running), commit].into_iter().flatten().any(|changes| changes.changes(files.clone()).allocation)
    }

    /// Starts to commit the running transaction.
    pub(super) fn begin_commit(&mut self, now_ns: u64, orders: &mut Orders) {
        let mut transaction = self.running.take();
        let changes = transaction.all();
        self.commit_due_ns = u64::MAX;
        self.counters.commits += 1;
        let blocks = if changes.allocation { u64::from(self.description.allocation_blocks) } else { 1 };
        let steps = self.steps(blocks);
        if self.description.kind == JournalKind::Xfs {
            // Extents count as unwritten until their data are on the device.
            transaction.data.clear();
        }
        let awaits_data = !transaction.data.is_empty();
        self.commit = Some(Commit {
            transaction,
            waiters: std::mem::take(&mut self.waiting),
            late_waiters: Vec::new(),
            has_flushed: false,
            steps,
            failed: None,
        });
        if self.checkpoint_due_ns == u64::MAX {
            self.checkpoint_due_ns = now_ns + self.description.checkpoint_ns;
        }
        if !awaits_data {
            self.next_step(now_ns, orders);
        }
    }

    /// Notes that a data write is on the device. In ordered mode, a commit begins only after the data in the space that
    /// it allocates (`jbd2_journal_finish_inode_data_buffers`).
    pub(super) fn allocated_data_written(&mut self, now_ns: u64, arrival: u64, orders: &mut Orders) {
        self.running.data.remove(&arrival);
        if let Some(commit) = &mut self.commit
            && commit.transaction.data.remove(&arrival)
            && commit.transaction.data.is_empty()
        {
            self.next_step(now_ns, orders);
        }
    }

    /// Returns the requests of a commit of `blocks` of metadata, with the system below that gets each.
    fn steps(&mut self, blocks: u64) -> VecDeque<(u32, Request)> {
        let port = u32::from(self.description.external);
        let mut steps = VecDeque::new();
        let barriers = self.description.barriers;
        if self.description.external && barriers {
            steps.push_back((0, flush()));
        }
        match self.description.kind {
            JournalKind::Ext4 => {
                // The descriptor block and the metadata; the commit block only after they are durable.
                steps.push_back((port, self.journal_write(1 + blocks, false)));
                self.push_forced(&mut steps, port, 1);
            }
            JournalKind::Xfs => self.push_forced(&mut steps, port, blocks.div_ceil(4)),
        }
        steps
    }

    /// Adds a journal write that is durable when it ends, and before which the cache is flushed.
    fn push_forced(&mut self, steps: &mut VecDeque<(u32, Request)>, port: u32, blocks: u64) {
        let (barriers, forces) = (self.description.barriers, self.forces());
        if barriers {
            steps.push_back((port, flush()));
        }
        let write = self.journal_write(blocks, forces);
        steps.push_back((port, write));
        if barriers && !forces {
            steps.push_back((port, flush()));
        }
    }

    /// Returns a write of the next blocks of the journal, which is used in a circle.
    fn journal_write(&mut self, blocks: u64, force_unit_access: bool) -> Request {
        let length_bytes = blocks * JournalDescription::BLOCK_BYTES;
        if self.head_bytes + length_bytes > self.description.journal_bytes {
            self.head_bytes = 0;
        }
        let offset_bytes = self.journal_at_bytes + self.head_bytes;
        self.head_bytes += length_bytes;
        self.counters.journal_bytes += length_bytes;
        Request {
            kind: Kind::Write,
            offset_bytes,
            length_bytes: length_bytes as u32,
            force_unit_access,
            ordered: false,
        }
    }

    fn next_step(&mut self, now_ns: u64, orders: &mut Orders) {
        let commit = self.commit.as_mut().expect("a commit is under way");
        if let Some((port, request)) = commit.steps.pop_front() {
            self.counters.flushes += u64::from(request.kind == Kind::Flush);
            commit.has_flushed |= request.kind == Kind::Flush && port == 0;
            return self.send(port, Sent::Commit, request, orders);
        }
        let commit = self.commit.take().expect("a commit is under way");
        for number in commit.waiters {
            self.requests.get_mut(number).failed = commit.failed;
            self.answer(number, orders);
        }
        for number in commit.late_waiters {
            self.flush(number, orders);
        }
        if !self.waiting.is_empty() {
            self.begin_commit(now_ns, orders);
        }
    }

    /// Goes on with the commit after one of its requests.
    pub(super) fn commit_step_done(&mut self, now_ns: u64, failed: Option<(u64, bool)>, orders: &mut Orders) {
        let commit = self.commit.as_mut().expect("a commit is under way");
        commit.failed = commit.failed.or(failed);
        self.next_step(now_ns, orders);
    }

    /// Writes metadata that were committed since the last time to their own place.
    pub(super) fn checkpoint(&mut self, orders: &mut Orders) {
        self.checkpoint_due_ns = u64::MAX;
        self.counters.checkpoints += 1;
        let length_bytes = u64::from(self.description.allocation_blocks) * JournalDescription::BLOCK_BYTES;
        let request = Request {
            kind: Kind::Write,
            offset_bytes: self.reserved_at_bytes,
            length_bytes: length_bytes as u32,
            force_unit_access: false,
            ordered: false,
        };
        self.send(0, Sent::Checkpoint, request, orders);
    }
}
