//! [`Store`]: what BlueStore of one OSD has queued: transactions, the log, and deferred writes.

use std::collections::VecDeque;

use crate::description::stack::{BLOCK_BYTES, CephDescription, OsdLayout};

/// Bytes of a data device: first and end.
pub(super) type Extent = (u64, u64);

/// Bytes that the removal of a deferred write takes in the log: its key in RocksDB. Assumed.
const REMOVAL_BYTES: u64 = 64;

/// Step of the thread that commits transactions (`kv_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    Idle,
    /// Flushes the data device.
    FlushingData,
    /// Appends to the log.
    Appending,
    /// Flushes the log's device.
    FlushingLog,
}

/// BlueStore of an OSD.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// System below that holds the data.
    pub data_port: u32,
    /// System below that holds the log.
    pub log_port: u32,
    log_start_bytes: u64,
    log_bytes: u64,
    /// Next byte of the log.
    log_at: u64,
    /// Step of the current commit.
    pub commit: Commit,
    began_ns: u64,
    /// Time that commits took, in ns.
    pub busy_ns: u64,
    /// Transactions for the next commit, with the bytes of their records and whether any wrote data.
    queue: Vec<u32>,
    queued_bytes: u64,
    queue_wrote_data: bool,
    /// Transactions of the current commit.
    pub committing: Vec<u32>,
    commit_bytes: u64,
    /// Deferred writes that are only in the log.
    waiting: Vec<Extent>,
    /// Deferred writes on their way to their places, and commands without an answer.
    writing: Vec<Extent>,
    writes_left: u32,
    /// Deferred writes in their places, without a flush; the current commit covers the first `settling`.
    written: Vec<Extent>,
    settling: usize,
    /// Deferred writes that are not settled, and those that wait because there are too many.
    deferred: u32,
    throttled: VecDeque<u32>,
    timer_runs: bool,
}

impl Store {
    /// Creates an idle store of OSD number `osd`.
    pub fn new(ceph: &CephDescription, layout: &OsdLayout, osd: u32) -> Store {
        let (log_port, place) = match ceph.osds_per_db {
            Some(per_db) => (ceph.osds + osd / per_db, osd % per_db),
            None => (osd, 0),
        };
        Store {
            data_port: osd,
            log_port,
            log_start_bytes: layout.log_start_bytes + u64::from(place) * layout.log_stride_bytes,
            log_bytes: layout.log_bytes,
            log_at: 0,
            commit: Commit::Idle,
            began_ns: 0,
            busy_ns: 0,
            queue: Vec::new(),
            queued_bytes: 0,
            queue_wrote_data: false,
            committing: Vec::new(),
            commit_bytes: 0,
            waiting: Vec::new(),
            writing: Vec::new(),
            writes_left: 0,
            written: Vec::new(),
            settling: 0,
            deferred: 0,
            throttled: VecDeque::new(),
            timer_runs: false,
        }
    }

    /// Queues a transaction whose record has `bytes`.
    pub fn queue(&mut self, task: u32, bytes: u64, wrote_data: bool) {
        self.queue.push(task);
        self.queued_bytes += bytes;
        self.queue_wrote_data |= wrote_data;
    }

    /// Starts a commit of all that is queued, if none runs. Returns its first step.
    pub fn begin(&mut self, now_ns: u64) -> Option<Commit> {
        if self.commit != Commit::Idle || (self.queue.is_empty() && self.written.is_empty()) {
            return None;
        }
        debug_assert!(self.committing.is_empty(), "the commit before is complete");
        std::mem::swap(&mut self.queue, &mut self.committing);
        self.settling = self.written.len();
        self.commit_bytes = std::mem::take(&mut self.queued_bytes) + self.settling as u64 * REMOVAL_BYTES;
        let flushes = std::mem::take(&mut self.queue_wrote_data) || self.settling > 0;
        self.began_ns = now_ns;
        self.commit = if flushes { Commit::FlushingData } else { Commit::Appending };
        Some(self.commit)
    }

    /// Returns the next place in the log for the current commit, and its length; the log is a ring.
    pub fn append(&mut self) -> (u64, u32) {
        let bytes = self.commit_bytes.next_multiple_of(BLOCK_BYTES).min(self.log_bytes).min(u64::from(u32::MAX / 2));
        if self.log_at + bytes > self.log_bytes {
            self.log_at = 0;
        }
        let at = self.log_start_bytes + self.log_at;
        self.log_at += bytes;
        (at, bytes as u32)
    }

    /// Ends the current commit; returns the number of deferred writes that it settled.
    pub fn end(&mut self, now_ns: u64) -> u32 {
        self.commit = Commit::Idle;
        self.busy_ns += now_ns - self.began_ns;
        self.written.drain(..self.settling);
        let settled = std::mem::take(&mut self.settling) as u32;
        self.deferred -= settled;
        settled
    }

    /// Counts a deferred write; returns false if it has to wait.
    pub fn admit(&mut self, task: u32, deferred_max: u32) -> bool {
        if self.deferred >= deferred_max {
            self.throttled.push_back(task);
            return false;
        }
        self.deferred += 1;
        true
    }

    /// Returns the next deferred write that may proceed after it had to wait.
    pub fn admit_waiting(&mut self, deferred_max: u32) -> Option<u32> {
        if self.deferred >= deferred_max {
            return None;
        }
        let task = self.throttled.pop_front()?;
        self.deferred += 1;
        Some(task)
    }

    /// Adds a deferred write that was committed.
    pub fn defer(&mut self, extent: Extent) {
        self.waiting.push(extent);
    }

    /// Returns whether a timer has to be set for the deferred writes.
    pub fn needs_timer(&mut self) -> bool {
        let needs = !self.waiting.is_empty() && !self.timer_runs;
        self.timer_runs |= needs;
        needs
    }

    /// Notes that the timer has ended.
    pub fn timer_ended(&mut self) {
        self.timer_runs = false;
    }

    /// Takes the deferred writes that wait, merged and in order of addresses, if they fill a batch, others wait for
    /// them, or `is_due`. One batch runs at a time. The caller writes each of the returned extents.
    pub fn begin_batch(&mut self, batch: u32, is_due: bool) -> &[Extent] {
        let starts = is_due || self.waiting.len() >= batch as usize || !self.throttled.is_empty();
        if !self.writing.is_empty() || !starts {
            return &[];
        }
        std::mem::swap(&mut self.waiting, &mut self.writing);
        self.writing.sort_unstable();
        self.writing.as_slice()
    }

    /// Notes the commands of a batch.
    pub fn batch_sent(&mut self, writes: u32) {
        self.writes_left = writes;
    }

    /// Processes the answer to a command of a batch; returns whether the batch is complete.
    pub fn batch_answered(&mut self) -> bool {
        self.writes_left -= 1;
        if self.writes_left == 0 {
            self.written.append(&mut self.writing);
        }
        self.writes_left == 0
    }

    /// Returns the places of deferred writes whose newest data are safe in the log only.
    pub fn deferred_extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.waiting.iter().chain(&self.writing).chain(&self.written).copied()
    }
}
