//! Arrays: members under a layout, the links to them, and the controller in front.
//!
//! A host *request* meets the controller and its cache; what the members must do for it becomes *operations* on a group
//! (a read or a write of a run of its bytes); these become *commands* to members, for a partial write of a parity row in
//! two phases. Destages, prefetches and rebuilding are operations of nobody's. Everything happens at events: those of the
//! members, and those of the array's own heap.

mod cache;
mod check;
pub mod description;
mod errors;
mod health;
pub mod layout;
mod members;
mod operations;
mod outside;
mod parity;
mod places;
pub mod pool;
mod pooled;
mod rebuild;
mod requests;
mod slab;

pub use check::check;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{Component, Servers};
use headstack_workload::Request;

use crate::device::{Device, Traffic};
use crate::drive::{Completion, InvalidDescription};
use crate::flights::Failed;
use crate::link::Link;
use crate::snapshot::Snapshot;
use cache::CacheState;
use description::ArrayDescription;
use errors::Lost;
use health::GroupState;
use layout::Extent;
use members::{Command, Held, Port};
use operations::Operation;
use parity::{RowLocks, RowWrite};
use pool::Pool;
use pooled::Relay;
use requests::HostRequest;
use slab::Slab;

/// What an array counts, beside its members and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCounters {
    /// Reads of members for the data that somebody asked for.
    pub data_reads: u64,
    /// Writes of members with the data that somebody gave.
    pub data_writes: u64,
    /// Reads of old data, old parity or the rest of a row, to compute parity.
    pub parity_reads: u64,
    /// Writes of parity.
    pub parity_writes: u64,
    /// Rows written as a whole, without a read.
    pub full_rows: u64,
    /// Reads of other members in place of one that is missing.
    pub reconstruction_reads: u64,
    /// Reads and writes for rebuilding.
    pub rebuild_commands: u64,
    /// Bytes rebuilt.
    pub rebuilt_bytes: u64,
    /// Row writes that waited for another one of the same row.
    pub row_waits: u64,
    /// Segments of a pool that got their place.
    pub allocations: u64,
    /// Segments of a pool that a write brought back into the mirrored class.
    pub promotions: u64,
    /// Segments of a pool that changed their class, or their place within it, in the background.
    pub migrated_segments: u64,
    /// Bytes of members that a rebuild could not bring back.
    pub lost_bytes: u64,
}

/// An array in virtual time.
#[derive(Clone, Debug)]
pub struct Array {
    description: ArrayDescription,
    /// First address of each LUN in the array's address space, and the end of the last.
    lun_bases: Vec<u64>,
    members: Vec<Device>,
    /// When something happens next in each member, and which of them is the first.
    member_next_ns: Vec<u64>,
    first_member: usize,
    ports: Vec<Port>,
    links: Vec<Link>,
    held: Vec<Held>,
    groups: Vec<GroupState>,
    processors: Servers,
    cache: Option<CacheState>,
    requests: Slab<HostRequest>,
    operations: Slab<Operation>,
    commands: Slab<Command>,
    row_writes: Slab<RowWrite>,
    pools: Vec<Option<Pool>>,
    /// Number of each LUN within its group.
    lun_numbers: Vec<u32>,
    relays: Slab<Relay>,
    row_locks: RowLocks,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    event_number: u64,
    done: Vec<Completion>,
    counters: ArrayCounters,
    data_loss: Option<String>,
    /// How long each finished rebuild took.
    rebuilds_ns: Vec<u64>,
    /// Host requests under way.
    host_requests: u64,
    /// Members that answer no more.
    missing: Vec<bool>,
    /// What members do not hold as they should.
    lost: Vec<Lost>,
    /// Requests that completed in error, and that nobody has asked for.
    failed: Vec<Failed>,
    /// First address of what the cache could not get rid of: the next flush tells.
    deferred: Option<u64>,
    traffic: Vec<Traffic>,
    power_cycles: u32,
    seed: u64,
    extents: Vec<Extent>,
    batch: Vec<Completion>,
}

/// What happens at a time of the array's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A processor has looked at a host request, and its data are there.
    Begin(u32),
    /// The host has its data.
    Respond(u32),
    /// A processor has prepared a command.
    Offer(u32),
    /// A command has got over the links.
    HandOver(u32),
    /// Parity is computed.
    WriteRow(u32),
    /// A processor has allocated what a write needs.
    Relay(u32),
    /// Something breaks.
    Incident(u32),
    /// What was under way at a member that is gone is done otherwise, or fails, and spares take its place.
    Replace(u32),
    /// The next step of a group's rebuild may begin.
    Rebuild(u32),
}

impl Array {
    /// An array at rest. `seed` drives optional random processes only.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(description: &ArrayDescription, seed: u64) -> Result<Array, InvalidDescription> {
        check(description)?;
        let device = |at: usize| {
            let kind = description.members[at].device as usize;
            Device::new(&description.devices[kind], seed.wrapping_add(at as u64))
        };
        let count = description.members.len();
        let mut lun_bases = vec![0];
        for lun in &description.luns {
            lun_bases.push(lun_bases[lun_bases.len() - 1] + lun.length_bytes);
        }
        let number_of = |at: usize| {
            let earlier = description.luns[..at].iter();
            earlier.filter(|lun| lun.group == description.luns[at].group).count() as u32
        };
        let lun_numbers = (0..description.luns.len()).map(number_of).collect();
        let mut array = Array {
            lun_bases,
            members: (0..count).map(device).collect::<Result<_, _>>()?,
            member_next_ns: vec![u64::MAX; count],
            first_member: 0,
            ports: description.members.iter().map(|member| Port::new(description, member)).collect(),
            links: description.links.iter().map(Link::new).collect(),
            held: vec![Held::default(); description.links.len()],
            groups: description.groups.iter().map(GroupState::new).collect(),
            processors: Servers::new(description.controller.processors),
            cache: description.controller.cache.as_ref().map(CacheState::new),
            requests: Slab::new(),
            operations: Slab::new(),
            commands: Slab::new(),
            row_writes: Slab::new(),
            pools: pooled::pools(description)?,
            lun_numbers,
            relays: Slab::new(),
            row_locks: RowLocks::default(),
            events: BinaryHeap::new(),
            event_number: 0,
            done: Vec::new(),
            counters: ArrayCounters::default(),
            data_loss: None,
            rebuilds_ns: Vec::new(),
            host_requests: 0,
            missing: vec![false; count],
            lost: Vec::new(),
            failed: Vec::new(),
            deferred: None,
            traffic: vec![Traffic::default(); count],
            power_cycles: 1,
            seed,
            extents: Vec::new(),
            batch: Vec::new(),
            description: description.clone(),
        };
        for member in 0..count {
            array.set_member_next(member, array.members[member].next_event_ns());
        }
        for (number, incident) in description.incidents.iter().enumerate() {
            array.at(incident.at_ns, Event::Incident(number as u32));
        }
        Ok(array)
    }

    /// Puts an event on the heap; events of one moment happen in the order in which they were put there.
    fn at(&mut self, at_ns: u64, event: Event) {
        self.event_number += 1;
        self.events.push(Reverse((at_ns, self.event_number, event)));
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        let own = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let done = self.done.first().map_or(u64::MAX, |completion| completion.at_ns);
        self.member_next_ns[self.first_member].min(own).min(done)
    }

    /// Keeps track of a member's next event. The first of equals comes first.
    #[inline]
    fn set_member_next(&mut self, member: usize, at_ns: u64) {
        self.member_next_ns[member] = at_ns;
        let first = self.first_member;
        if member == first {
            self.first_member = earliest(&self.member_next_ns).0;
        } else if (at_ns, member) < (self.member_next_ns[first], first) {
            self.first_member = member;
        }
    }

    /// Takes a request at `now_ns`. The caller has processed every event up to `now_ns`.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        self.take(now_ns, id, request);
    }

    /// Processes every event up to `now_ns`, and appends what completes, in order of time. Stops at an event that loses
    /// data, so that a run can end there; what can be served after that is served, and the rest fails.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        let lost_before = self.data_loss.is_some();
        loop {
            let own_ns = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
            let (member, member_ns) = (self.first_member, self.member_next_ns[self.first_member]);
            let next_ns = own_ns.min(member_ns);
            if next_ns > now_ns || (self.data_loss.is_some() && !lost_before) {
                break;
            }
            if member_ns <= own_ns {
                self.member_event(member, member_ns);
            } else if let Some(Reverse((at_ns, _, event))) = self.events.pop() {
                self.own_event(at_ns, event);
            }
        }
        done.append(&mut self.done);
    }

    fn own_event(&mut self, now_ns: u64, event: Event) {
        match event {
            Event::Begin(request) => self.begin(now_ns, request),
            Event::Respond(request) => self.respond(now_ns, request),
            Event::Offer(command) => self.offer(now_ns, command),
            Event::HandOver(command) => self.hand_over(now_ns, command),
            Event::WriteRow(row) => self.write_row(now_ns, row),
            Event::Relay(number) => self.relay_part_done(now_ns, number),
            Event::Incident(number) => self.incident(now_ns, self.description.incidents[number as usize].what),
            Event::Replace(member) => self.replace_member(now_ns, member),
            Event::Rebuild(group) => self.rebuild_on(now_ns, group),
        }
    }

    /// What ended it: data that no redundancy could bring back.
    pub fn data_loss(&self) -> Option<&str> {
        self.data_loss.as_deref()
    }

    /// How long each finished rebuild took, in order of their ends.
    pub fn rebuilds_ns(&self) -> &[u64] {
        &self.rebuilds_ns
    }

    /// Pages of the cache that the members do not have yet.
    pub fn dirty_pages(&self) -> u32 {
        self.cache.as_ref().map_or(0, CacheState::dirty_pages)
    }

    /// Bytes that went from the cache to the members.
    pub fn destaged_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, CacheState::destaged_bytes)
    }

    /// What it has counted.
    pub fn counters(&self) -> ArrayCounters {
        self.counters
    }

    /// Adds what it, its links and its members have counted.
    pub fn snapshot(&self, into: &mut Snapshot) {
        let Component { name, servers, busy_ns, waited_ns } = self.processors.component("array processors");
        into.component(name, servers, busy_ns, waited_ns);
        self.links.iter().for_each(|link| into.add_link(link));
        for (device, member) in self.members.iter().zip(&self.description.members) {
            device.snapshot(&member.name, into);
        }
        let counters = &self.counters;
        for (name, value) in [
            ("data_reads", counters.data_reads),
            ("data_writes", counters.data_writes),
            ("parity_reads", counters.parity_reads),
            ("parity_writes", counters.parity_writes),
            ("full_rows", counters.full_rows),
            ("reconstruction_reads", counters.reconstruction_reads),
            ("rebuild_commands", counters.rebuild_commands),
            ("rebuilt_bytes", counters.rebuilt_bytes),
            ("row_waits", counters.row_waits),
            ("rebuilds", self.rebuilds_ns.len() as u64),
            ("rebuild_ns", self.rebuilds_ns.iter().sum()),
            ("allocations", counters.allocations),
            ("promotions", counters.promotions),
            ("migrated_segments", counters.migrated_segments),
        ] {
            into.count(name, value);
        }
        if let Some(cache) = &self.cache {
            cache.snapshot(into);
        }
    }
}

/// Place and value of the smallest, the first of equals.
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
