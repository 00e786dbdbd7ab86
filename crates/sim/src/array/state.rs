//! [`Array`]: the state of an array, its heap of events, and its counters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use headstack_result::Servers;

use super::cache::CacheState;
use super::health::{GroupState, LostBytes};
use super::intent::Intent;
use super::levels::Extent;
use super::pass::Pass;
use super::pool::Pool;
use super::ports::{HeldLink, Port};
use super::ppl::Ppl;
use super::under_way::{Command, HostRequest, Operation, Relay, RowLocks, RowWrite};
use crate::adapter::Adapter;
use crate::description::array::ArrayDescription;
use crate::device::{Device, Traffic};
use crate::drive::Completion;
use crate::link::Link;
use crate::pending_requests::Failed;
use crate::slab::Slab;

/// Counters of an array, excluding those of its members and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCounters {
    /// Number of member reads for requested data.
    pub data_reads: u64,
    /// Number of member writes for data given to the array.
    pub data_writes: u64,
    /// Number of member reads of old data, old parity or the rest of a row, to compute parity.
    pub parity_reads: u64,
    /// Number of member writes of parity.
    pub parity_writes: u64,
    /// Number of rows written as a whole, without any read.
    pub full_rows: u64,
    /// Number of member reads to reconstruct data of a missing member.
    pub reconstruction_reads: u64,
    /// Number of reads and writes for rebuilds.
    pub rebuild_commands: u64,
    /// Number of bytes rebuilt.
    pub rebuilt_bytes: u64,
    /// Number of bytes of each member that checks and repairs of stripes (scrubs) have read.
    pub scrubbed_bytes: u64,
    /// Number of scrubs that have begun.
    pub scrubs_begun: u64,
    /// Number of complete scrubs.
    pub scrubs: u64,
    /// Duration of the complete scrubs, in ns.
    pub scrub_ns: u64,
    /// Number of host requests that arrived while a member was missing or being filled.
    pub degraded_requests: u64,
    /// Number of row writes that waited for another write to the same row.
    pub row_waits: u64,
    /// Number of pool segments for which space was allocated.
    pub allocations: u64,
    /// Number of pool segments that a write moved back to the mirrored class.
    pub promotions: u64,
    /// Number of pool segments that moved between or within classes in the background.
    pub migrated_segments: u64,
    /// Number of bytes that rebuilds could not restore.
    pub lost_bytes: u64,
}

/// A simulated array.
#[derive(Clone, Debug)]
pub struct Array {
    pub(super) description: ArrayDescription,
    /// First address of each LUN in the array's address space, followed by the end of the last LUN.
    pub(super) lun_bases: Vec<u64>,
    pub(super) members: Vec<Device>,
    /// Time of the next event of each member, and the member with the earliest event.
    pub(super) member_next_ns: Vec<u64>,
    pub(super) first_member: usize,
    pub(super) ports: Vec<Port>,
    pub(super) links: Vec<Link>,
    pub(super) held: Vec<HeldLink>,
    pub(super) groups: Vec<GroupState>,
    pub(super) processors: Servers,
    /// Host adapter that reports completions; without an adapter, completions are reported at once.
    pub(super) adapter: Option<Adapter>,
    pub(super) cache: Option<CacheState>,
    pub(super) requests: Slab<HostRequest>,
    pub(super) operations: Slab<Operation>,
    pub(super) commands: Slab<Command>,
    pub(super) row_writes: Slab<RowWrite>,
    pub(super) pools: Vec<Option<Pool>>,
    /// The bitmap of each group that has one.
    pub(super) intents: Vec<Option<Intent>>,
    /// The partial parity log of each group that has one.
    pub(super) ppls: Vec<Option<Ppl>>,
    /// Number of each LUN within its group.
    pub(super) lun_numbers: Vec<u32>,
    /// The last pass over the stripes of each group.
    pub(super) passes: Vec<Option<Pass>>,
    pub(super) pass_number: u32,
    /// Ranges of each group that will be resynced after power-on.
    pub(super) unclean: Vec<Vec<Range<u64>>>,
    /// Number of changes to the status of the groups: members that serve slots, and steps of rebuilds and passes.
    pub(super) standing: u64,
    pub(super) relays: Slab<Relay>,
    pub(super) row_locks: RowLocks,
    pub(super) events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pub(super) event_number: u64,
    pub(super) done: Vec<Completion>,
    pub(super) counters: ArrayCounters,
    pub(super) data_loss: Option<String>,
    /// Duration of each finished rebuild, in ns.
    pub(super) rebuilds_ns: Vec<u64>,
    /// Number of host requests in flight.
    pub(super) host_requests: u64,
    /// Number of host requests that have arrived.
    pub(super) host_arrivals: u64,
    /// Whether each member is missing, that is, no longer responds.
    pub(super) missing: Vec<bool>,
    /// Whether the members that the layer above fills have changed since it last looked.
    pub(super) fillings_changed: bool,
    /// Bytes of members whose contents are lost.
    pub(super) lost: Vec<LostBytes>,
    /// Failed requests that have not been collected yet.
    pub(super) failed: Vec<Failed>,
    /// First address that the cache could not destage; the next flush reports it.
    pub(super) deferred: Option<u64>,
    pub(super) traffic: Vec<Traffic>,
    pub(super) power_cycles: u32,
    pub(super) seed: u64,
    pub(super) extents: Vec<Extent>,
    /// Reused buffer for the extents of a run.
    pub(super) places: Vec<Extent>,
    pub(super) batch: Vec<Completion>,
}

/// An event on the array's own heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A processor has decoded a host request, and any write data have arrived.
    Begin(u32),
    /// The data of a host request have arrived at the host.
    Respond(u32),
    /// A processor has prepared a command.
    Offer(u32),
    /// The adapter can take a command.
    Deliver(u32),
    /// A command has crossed the links.
    HandOver(u32),
    /// The parity of a row write is computed.
    WriteRow(u32),
    /// A processor has allocated the space for a write.
    Relay(u32),
    /// An incident of the description occurs.
    Incident(u32),
    /// Commands of a failed member are served by other members or fail, and a spare takes its slot.
    Replace(u32),
    /// The next step of a group's rebuild may begin.
    Rebuild(u32),
    /// The bitmap daemon looks for bits of a group to clear.
    Bitmap(u32),
    /// The next step of a pass over a group may begin.
    Pass(u32),
    /// The next unit of a partial parity log can be written: (group, slot).
    WriteLog(u32, u32),
}

impl Array {
    /// Schedules an event. Events at the same time happen in the order in which they were scheduled.
    pub(super) fn at(&mut self, at_ns: u64, event: Event) {
        self.event_number += 1;
        self.events.push(Reverse((at_ns, self.event_number, event)));
    }

    /// Records the time of a member's next event. Among equal times, the event of the lowest member is first.
    #[inline]
    pub(super) fn set_member_next(&mut self, member: usize, at_ns: u64) {
        debug_assert!(at_ns == u64::MAX || !self.missing[member], "a missing member has no events");
        self.member_next_ns[member] = at_ns;
        let first = self.first_member;
        if member == first {
            self.first_member = earliest(&self.member_next_ns).0;
        } else if (at_ns, member) < (self.member_next_ns[first], first) {
            self.first_member = member;
        }
    }
}

/// Returns the index and the value of the smallest time, the first of equal times.
#[inline]
fn earliest(times_ns: &[u64]) -> (usize, u64) {
    let mut best = (0, u64::MAX);
    for (at, &time_ns) in times_ns.iter().enumerate() {
        if time_ns < best.1 {
            best = (at, time_ns);
        }
    }
    best
}
