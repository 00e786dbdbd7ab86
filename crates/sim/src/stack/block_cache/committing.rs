//! Commits of a block cache: how changes of its map reach the cache device.
//!
//! bcache writes a journal entry, with a flush before it (`journal_write_unlocked`). dm-cache and dm-writecache write
//! metadata blocks, flush, and write a superblock. Commits run one at a time; all who wait share the next one.

use headstack_workload::Kind;

use super::commit::{Commit, Step, Waiter};
use super::under_way::{CACHE, Sent};
use super::{BlockCache, FLUSH, access};
use crate::description::stack::CacheSoftware;
use crate::stack::orders::{Answer, Orders};

const BLOCK_BYTES: u64 = 4096;
/// Bytes of a key in bcache's journal, and of the entry's head.
const BCACHE_KEY_BYTES: u64 = 24;
const BCACHE_HEAD_BYTES: u64 = 256;
/// Entries of dm-writecache in a metadata block: 16 bytes each.
const WRITECACHE_ENTRIES: u64 = 256;
/// Blocks that dm-cache's metadata trees copy with each commit: roots of the mapping and of the space maps.
const DM_CACHE_BLOCKS: u64 = 3;
/// Most leaves of the mapping that a commit of dm-cache changes.
const DM_CACHE_LEAVES_MAX: u64 = 64;

impl BlockCache {
    /// Whether a flush has to wait for a commit.
    pub(super) fn needs_commit(&self) -> bool {
        self.commit.step.is_some() || self.changes.entries() > 0
    }

    /// Lets a commit that begins now or later serve `waiter`.
    pub(super) fn wait_for_commit(&mut self, waiter: Waiter, orders: &mut Orders) {
        self.commit.waiting.push(waiter);
        self.start_commit(orders);
    }

    /// Starts a commit if none runs.
    pub(super) fn start_commit(&mut self, orders: &mut Orders) {
        if self.commit.step.is_some() {
            return;
        }
        let entries = self.changes.begin();
        self.due.commit_ns = u64::MAX;
        self.commit.served = std::mem::take(&mut self.commit.waiting);
        self.commit.overwrites = self.overwrites;
        self.counters.commits += 1;
        let (metadata_bytes, seal_bytes) = match self.description.software {
            CacheSoftware::Bcache(_) => {
                let bytes = entries * BCACHE_KEY_BYTES + BCACHE_HEAD_BYTES;
                (0, bytes.next_multiple_of(BLOCK_BYTES))
            }
            CacheSoftware::DmCache(_) => {
                ((DM_CACHE_BLOCKS + entries.min(DM_CACHE_LEAVES_MAX)) * BLOCK_BYTES, BLOCK_BYTES)
            }
            CacheSoftware::DmWritecache(_) => (entries.div_ceil(WRITECACHE_ENTRIES) * BLOCK_BYTES, BLOCK_BYTES),
        };
        self.commit.seal_bytes = seal_bytes.min(self.description.metadata_bytes);
        if metadata_bytes > 0 {
            self.commit.step = Some(Step::Metadata);
            self.write_metadata(metadata_bytes, false, orders);
        } else {
            self.commit.step = Some(Step::Flush);
            self.send(CACHE, Sent::Commit, FLUSH, orders);
        }
    }

    /// Writes metadata to their next place, in circles.
    fn write_metadata(&mut self, bytes: u64, forced: bool, orders: &mut Orders) {
        let region_bytes = self.description.metadata_bytes;
        let bytes = bytes.min(region_bytes);
        if self.commit.head_bytes + bytes > region_bytes {
            self.commit.head_bytes = 0;
        }
        let start = self.commit.head_bytes;
        self.commit.head_bytes += bytes;
        self.counters.metadata_bytes += bytes;
        self.send(CACHE, Sent::Commit, access(Kind::Write, start, start + bytes, forced), orders);
    }

    /// Continues a commit after a step.
    pub(super) fn commit_answered(&mut self, now_ns: u64, answer: &Answer, orders: &mut Orders) {
        let step = self.commit.step.expect("a commit is under way");
        if answer.failed.is_some() {
            return self.end_commit(now_ns, false, orders);
        }
        match step {
            Step::Metadata => {
                self.commit.step = Some(Step::Flush);
                self.send(CACHE, Sent::Commit, FLUSH, orders);
            }
            Step::Flush => {
                self.commit.step = Some(Step::Seal);
                self.write_metadata(self.commit.seal_bytes, true, orders);
            }
            Step::Seal => self.end_commit(now_ns, true, orders),
        }
    }

    fn end_commit(&mut self, now_ns: u64, done: bool, orders: &mut Orders) {
        self.commit.step = None;
        self.changes.end(done);
        if done {
            self.flushed_overwrites = self.flushed_overwrites.max(self.commit.overwrites);
        }
        for waiter in std::mem::take(&mut self.commit.served) {
            match waiter {
                Waiter::Request(number) => {
                    let at_bytes = self.requests.get(number).request.offset_bytes;
                    self.part_done(now_ns, number, (!done).then_some((at_bytes, true)), orders);
                }
                Waiter::Promotion(number) => self.begin_promotion(now_ns, number, done, orders),
            }
        }
        if self.commit.waiting.is_empty() {
            self.note_changes(now_ns, orders);
        } else {
            self.start_commit(orders);
        }
    }

    /// Schedules a commit of changes, or starts it if there are many.
    pub(super) fn note_changes(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.changes.entries() == 0 || self.commit.step.is_some() {
            return;
        }
        self.due.commit_ns = self.due.commit_ns.min(now_ns + self.description.commit_interval_ns);
        match &self.description.software {
            CacheSoftware::Bcache(_) | CacheSoftware::DmCache(_) => {}
            CacheSoftware::DmWritecache(rules) => {
                if self.changes.entries() >= u64::from(rules.autocommit_blocks) {
                    self.start_commit(orders);
                }
            }
        }
    }

    /// Forgets commits, as after a power cycle.
    pub(super) fn reset_commit(&mut self) {
        self.commit = Commit { head_bytes: self.commit.head_bytes, ..Commit::default() };
    }
}
