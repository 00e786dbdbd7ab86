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
use super::slab::Slab;
use super::under_way::{Command, HostRequest, Operation, Relay, RowLocks, RowWrite};
use crate::adapter::Adapter;
use crate::description::array::ArrayDescription;
use crate::device::{Device, Traffic};
use crate::drive::Completion;
use crate::link::Link;
use crate::pending_requests::Failed;

/// Counters of an array, without those of its members and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCounters {
    /// Reads of members for requested data.
    pub data_reads: u64,
    /// Writes of members with data that were given to the array.
    pub data_writes: u64,
    /// Reads of old data, old parity or the rest of a row, to compute parity.
    pub parity_reads: u64,
    /// Writes of parity.
    pub parity_writes: u64,
    /// Rows written whole, without a read.
    pub full_rows: u64,
    /// Reads of other members in place of a missing one.
    pub reconstruction_reads: u64,
    /// Reads and writes for rebuilding.
    pub rebuild_commands: u64,
    /// Bytes rebuilt.
    pub rebuilt_bytes: u64,
    /// Row writes that waited for another one of the same row.
    pub row_waits: u64,
    /// Segments of a pool that were given a place.
    pub allocations: u64,
    /// Segments of a pool that a write moved back into the mirrored class.
    pub promotions: u64,
    /// Segments of a pool that changed class, or place within it, in the background.
    pub migrated_segments: u64,
    /// Bytes of members that a rebuild could not restore.
    pub lost_bytes: u64,
}

/// An array in virtual time.
#[derive(Clone, Debug)]
pub struct Array {
    pub(super) description: ArrayDescription,
    /// First address of each LUN in the array's address space, and the end of the last.
    pub(super) lun_bases: Vec<u64>,
    pub(super) members: Vec<Device>,
    /// Time of the next event of each member, and which member is first.
    pub(super) member_next_ns: Vec<u64>,
    pub(super) first_member: usize,
    pub(super) ports: Vec<Port>,
    pub(super) links: Vec<Link>,
    pub(super) held: Vec<HeldLink>,
    pub(super) groups: Vec<GroupState>,
    pub(super) processors: Servers,
    /// Host adapter that reports completions; without one they are reported at once.
    pub(super) adapter: Option<Adapter>,
    pub(super) cache: Option<CacheState>,
    pub(super) requests: Slab<HostRequest>,
    pub(super) operations: Slab<Operation>,
    pub(super) commands: Slab<Command>,
    pub(super) row_writes: Slab<RowWrite>,
    pub(super) pools: Vec<Option<Pool>>,
    /// The bitmap of each group that has one.
    pub(super) intents: Vec<Option<Intent>>,
    /// Number of each LUN within its group.
    pub(super) lun_numbers: Vec<u32>,
    /// The last pass over the stripes of each group.
    pub(super) passes: Vec<Option<Pass>>,
    pub(super) pass_number: u32,
    /// The parts of each group that will be resynced when power is back.
    pub(super) unclean: Vec<Vec<Range<u64>>>,
    /// Number of changes of the standing: who serves what, and steps of rebuilds and passes.
    pub(super) standing: u64,
    pub(super) relays: Slab<Relay>,
    pub(super) row_locks: RowLocks,
    pub(super) events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pub(super) event_number: u64,
    pub(super) done: Vec<Completion>,
    pub(super) counters: ArrayCounters,
    pub(super) data_loss: Option<String>,
    /// Durations of finished rebuilds.
    pub(super) rebuilds_ns: Vec<u64>,
    /// Host requests in flight.
    pub(super) host_requests: u64,
    /// Whether each member is missing: it no longer responds.
    pub(super) missing: Vec<bool>,
    /// Bytes of members whose contents are lost.
    pub(super) lost: Vec<LostBytes>,
    /// Requests that completed in error and have not been collected.
    pub(super) failed: Vec<Failed>,
    /// First address that the cache could not destage: the next flush reports it.
    pub(super) deferred: Option<u64>,
    pub(super) traffic: Vec<Traffic>,
    pub(super) power_cycles: u32,
    pub(super) seed: u64,
    pub(super) extents: Vec<Extent>,
    /// Reused buffer for the extents of a run, between the layout and the commands.
    pub(super) places: Vec<Extent>,
    pub(super) batch: Vec<Completion>,
}

/// Event of the array's own heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A processor has decoded a host request, and its data are there.
    Begin(u32),
    /// The host has its data.
    Respond(u32),
    /// A processor has prepared a command.
    Offer(u32),
    /// The adapter has time for a command.
    Deliver(u32),
    /// A command has crossed the links.
    HandOver(u32),
    /// Parity is computed.
    WriteRow(u32),
    /// A processor has allocated the space that a write needs.
    Relay(u32),
    /// An incident happens.
    Incident(u32),
    /// Commands of a failed member are served by others, or fail, and spares replace it.
    Replace(u32),
    /// The next step of a group's rebuild may begin.
    Rebuild(u32),
    /// The bitmap daemon looks for bits of a group to clear.
    Bitmap(u32),
    /// The next step of a pass over a group may begin.
    Pass(u32),
}

impl Array {
    /// Schedules an event; events of the same time happen in the order in which they were scheduled.
    pub(super) fn at(&mut self, at_ns: u64, event: Event) {
        self.event_number += 1;
        self.events.push(Reverse((at_ns, self.event_number, event)));
    }

    /// Records the time of a member's next event. Of equal times the first member's is first.
    #[inline]
    pub(super) fn set_member_next(&mut self, member: usize, at_ns: u64) {
        debug_assert!(at_ns == u64::MAX || !self.missing[member], "a member that is gone has no events");
        self.member_next_ns[member] = at_ns;
        let first = self.first_member;
        if member == first {
            self.first_member = earliest(&self.member_next_ns).0;
        } else if (at_ns, member) < (self.member_next_ns[first], first) {
            self.first_member = member;
        }
    }
}

/// Returns position and value of the smallest time, the first of equals.
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
