//! Requests of a journal: those from above, their parts, and those to the systems below.

use headstack_workload::Request;

use crate::stripes::StripeWrite;

/// The array, among the systems below.
pub(super) const ARRAY: u32 = 0;
/// The journal device.
pub(super) const JOURNAL: u32 = 1;
/// Bytes of a page: height of a stripe, and unit of the log (`BLOCK_SECTORS`, raid5-cache.c).
pub(super) const PAGE_BYTES: u64 = 4096;

/// Purpose of a request to a system below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Part of a request from above that needs no log.
    Forward { request: u32 },
    /// Part of a write, after it is logged.
    Write { write: u32 },
    /// Stripes that are written out.
    Batch { batch: u32 },
    /// Flush of the journal device before a log unit.
    Preflush { unit: u64 },
    /// Part of a log unit.
    Unit { unit: u64 },
    /// Flush of the journal device after log units.
    LogFlush,
    /// Flush of the members before the tail of the log moves.
    MemberFlush,
    /// Discard of the space behind the tail.
    Discard,
}

/// A request from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRequest {
    pub id: u32,
    pub request: Request,
    pub started_ns: u64,
    /// Parts without an answer.
    pub parts: u32,
    pub failed: Option<(u64, bool)>,
}

/// A part of a write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub request: u32,
    pub start: u64,
    pub end: u64,
    pub forced: bool,
    /// Log units that hold it, and those of them that are not durable yet.
    pub units: Vec<u64>,
    pub unlogged: usize,
}

impl Write {
    /// Returns its pages.
    pub fn pages(&self) -> (u64, u64) {
        (self.start / PAGE_BYTES * PAGE_BYTES, self.end.next_multiple_of(PAGE_BYTES))
    }
}

/// Neighbouring stripes of a row with pages of the same data units, which are written out together.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub stripes: Vec<u64>,
    pub write: StripeWrite,
    /// Log units that hold its parity, and those of them that are not durable yet.
    pub units: Vec<u64>,
    pub unlogged: usize,
}
