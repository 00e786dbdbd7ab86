//! [`Shared`]: the state that the processes of a database share.

use std::collections::{HashSet, VecDeque};

use super::buffers::Buffers;
use super::log::Log;
use crate::generator::Generator;
use crate::request::{Kind, Request};
use crate::scenario::latencies::Latencies;
use crate::scenario::step::read;

/// State that the processes of a database share.
pub(super) struct Shared {
    pub stream: u32,
    pub buffers: Buffers,
    pub log: Log,
    /// Pages that were changed since the last checkpoint began.
    pub changed: HashSet<u64>,
    /// Clients to wake.
    pub woken: VecDeque<u32>,
    pub counters: Counters,
    pub times: Times,
    pub generator: Generator,
    /// Addresses of syncs of the log and of the data; 0 syncs everything.
    pub syncs_at: [u64; 2],
}

/// Times of transactions from the end of the think time, and of commits.
#[derive(Default)]
pub(super) struct Times {
    pub transactions: Latencies,
    pub commits: Latencies,
}

/// Counts since measuring started.
#[derive(Clone, Copy, Default)]
pub(super) struct Counters {
    pub read_pages: u64,
    pub evicted_pages: u64,
    pub full_pages: u64,
    pub checkpoint_pages: u64,
    pub checkpoints: u64,
}

impl Shared {
    /// Draws a page; its number is its address.
    pub fn draw_page(&mut self) -> u64 {
        self.generator.next().offset_bytes
    }

    /// Returns a sync of the log.
    pub fn sync_log(&self, with_metadata: bool) -> Request {
        sync(self.syncs_at[0], with_metadata)
    }

    /// Returns the sync of the data at the end of a checkpoint.
    pub fn sync_data(&self) -> Request {
        sync(self.syncs_at[1], true)
    }
}

fn sync(offset_bytes: u64, force_unit_access: bool) -> Request {
    Request { kind: Kind::Flush, force_unit_access, ..read(offset_bytes, 0) }
}
