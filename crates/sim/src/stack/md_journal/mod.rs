//! [`MdJournal`]: the write journal of Linux md RAID 5 and 6 (drivers/md/raid5-cache.c). See docs/design/stacks.md.
//!
//! - [`geometry`]: stripes of the array, which are a page high;
//! - [`log`]: the ring of log units on the journal device; [`logging`]: their writes, flushes and order;
//! - [`requests`]: requests from above; [`writes`]: the parts of writes;
//! - [`stripes`] and [`writing_out`]: stripes that write-back keeps in memory, and their way to the members;
//! - [`reclaim`]: the flush of the members after which the tail of the log moves.

mod geometry;
mod log;
mod logging;
mod outside;
mod reclaim;
mod requests;
mod stripes;
#[cfg(test)]
mod tests;
mod under_way;
mod writes;
mod writing_out;

use std::collections::{BTreeMap, VecDeque};

use headstack_workload::{Kind, Request};

use self::geometry::Geometry;
use self::log::Log;
use self::stripes::StripeCache;
use self::under_way::{Batch, HostRequest, Sent, Write};
use super::orders::{Order, Orders};
use crate::description::array::ArrayDescription;
use crate::description::stack::MdJournalDescription;
use crate::slab::Slab;

/// The journal of an array, in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct MdJournal {
    description: MdJournalDescription,
    geometry: Geometry,
    log: Log,
    requests: Slab<HostRequest>,
    writes: Slab<Write>,
    /// Writes that wait for space in the log or for stripes, in order of arrival.
    blocked: VecDeque<u32>,
    /// Whether the first of them waits for space.
    lacks_space: bool,
    /// Writes that wait for a stripe to be logged or written out.
    parked: BTreeMap<u64, Vec<u32>>,
    stripes: StripeCache,
    batches: Slab<Batch>,
    sent: Slab<Sent>,
    /// When the log unit that gathers pages is submitted: at the end of the moment.
    due_ns: u64,
    /// New tail of the log, while the members are flushed and the space is discarded.
    moving_to: Option<u64>,
    /// Discards of the journal device without an answer.
    discards: u32,
    /// Whether the journal device failed a request; md then refuses writes.
    has_failed: bool,
    counters: Counters,
}

/// Counters of a journal.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    units: u64,
    bytes: u64,
    flushes: u64,
    reclaims: u64,
    stripes: u64,
    full_stripes: u64,
    waits: u64,
    failed_writes: u64,
}

impl MdJournal {
    /// Creates the empty journal of an array.
    pub fn new(description: &MdJournalDescription, array: &ArrayDescription, journal_bytes: u64) -> MdJournal {
        MdJournal::with_geometry(description, Geometry::of(array), journal_bytes)
    }

    fn with_geometry(description: &MdJournalDescription, geometry: Geometry, journal_bytes: u64) -> MdJournal {
        MdJournal {
            description: description.clone(),
            geometry,
            log: Log::new(journal_bytes),
            requests: Slab::default(),
            writes: Slab::default(),
            blocked: VecDeque::new(),
            lacks_space: false,
            parked: BTreeMap::new(),
            stripes: StripeCache::default(),
            batches: Slab::default(),
            sent: Slab::default(),
            due_ns: u64::MAX,
            moving_to: None,
            discards: 0,
            has_failed: false,
            counters: Counters::default(),
        }
    }

    fn send(&mut self, port: u32, purpose: Sent, request: Request, orders: &mut Orders) {
        let id = self.sent.insert(purpose);
        orders.push_back(Order::Send { port, id, request });
    }
}

/// Returns a request for `[start, end)`.
fn access(kind: Kind, start: u64, end: u64, forced: bool) -> Request {
    let length_bytes = (end - start) as u32;
    Request { kind, offset_bytes: start, length_bytes, force_unit_access: forced, ordered: false }
}

/// A flush.
const FLUSH: Request =
    Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
