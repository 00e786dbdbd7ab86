//! [`Transaction`]: metadata changes that one commit makes durable, and [`Commit`]: its way to the journal.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use headstack_workload::Request;

/// Metadata that a transaction changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Space was allocated: the inode and maps of free space.
    pub allocation: bool,
    /// Only timestamps of the inode.
    pub timestamps: bool,
}

/// Changes of all files, which are committed together.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    files: Vec<Changes>,
    /// Data writes under way, by their number of arrival, that allocated space.
    pub data: BTreeSet<u64>,
}

impl Transaction {
    /// Creates an empty transaction of `files` files.
    pub fn new(files: usize) -> Transaction {
        Transaction { files: vec![Changes::default(); files], data: BTreeSet::new() }
    }

    /// Adds changes of one file.
    pub fn change(&mut self, file: usize, changes: Changes) {
        self.files[file].allocation |= changes.allocation;
        self.files[file].timestamps |= changes.timestamps;
    }

    /// Returns the changes of some files.
    pub fn changes(&self, files: RangeInclusive<usize>) -> Changes {
        self.files[files].iter().fold(Changes::default(), |all, file| Changes {
            allocation: all.allocation | file.allocation,
            timestamps: all.timestamps | file.timestamps,
        })
    }

    /// Returns the changes of all files.
    pub fn all(&self) -> Changes {
        self.changes(0..=self.files.len() - 1)
    }

    /// Returns the transaction, and leaves an empty one.
    pub fn take(&mut self) -> Transaction {
        let next = Transaction::new(self.files.len());
        std::mem::replace(self, next)
    }
}

/// A commit under way.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    /// Metadata that it makes durable, and in ordered mode the data that it waits for.
    pub transaction: Transaction,
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
