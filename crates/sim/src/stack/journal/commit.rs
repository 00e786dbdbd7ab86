//! [`Commit`]: a transaction on its way to the journal.

use std::collections::VecDeque;

use headstack_workload::Request;

/// Metadata that a transaction changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Space was allocated: the inode and maps of free space.
    pub allocation: bool,
    /// Only timestamps of the inode.
    pub timestamps: bool,
}

/// A commit under way.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    /// Metadata that it makes durable.
    pub changes: Changes,
    /// Requests from above that it answers.
    pub waiters: Vec<u32>,
    /// Requests that came after its flush began: their data need one more
    /// (`jbd2_trans_will_send_data_barrier` in `fs/jbd2/journal.c`).
    pub late_waiters: Vec<u32>,
    /// Whether its flush of the data has begun.
    pub has_flushed: bool,
    /// Steps that remain. Each waits for the one before.
    pub steps: VecDeque<(u32, Request)>,
    pub failed: Option<(u64, bool)>,
}

impl Commit {
    /// Lets a request wait whose metadata are in this commit.
    pub fn join(&mut self, number: u32) {
        if self.has_flushed { self.late_waiters.push(number) } else { self.waiters.push(number) }
    }
}
