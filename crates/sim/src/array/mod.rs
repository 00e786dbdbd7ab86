//! [`Array`]: members under a layout, the links to them, and the controller. See docs/design/arrays.md.
//!
//! A host *request* passes through the controller and its cache. The work for the members becomes *operations* on a
//! group (reads or writes of a run of bytes), and operations become *commands* to members, in two phases for a partial
//! write of a parity row. Destages, prefetches and rebuilds are operations without a host request. Everything happens
//! at events, either of the members or on the array's own heap.

mod cache;
mod cached;
mod check;
mod chronicled;
mod derived;
mod destaging;
mod errors;
mod failures;
mod health;
mod intended;
mod intent;
pub mod levels;
mod members;
mod operations;
mod outside;
mod parity;
mod pass;
mod passes;
mod places;
pub mod pool;
mod pooled;
mod ports;
mod ppl;
mod ppl_writes;
mod rebuild;
mod requests;
mod restoring;
mod state;
mod sync_speed;
mod under_way;

pub use crate::description::array as description;
pub use check::check;
pub use pass::{GroupStatus, Pass, PassKind, PassState};
pub use state::{Array, ArrayCounters};

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{Component, Servers};
use headstack_workload::Request;

use crate::adapter::Adapter;
use crate::description::array::ArrayDescription;
use crate::device::{Device, Traffic};
use crate::drive::Completion;
use crate::error::InvalidDescription;
use crate::link::Link;
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use cache::CacheState;
use health::GroupState;
use intent::Intent;
use ports::{HeldLink, Port};
use ppl::Ppl;
use state::Event;
use under_way::{Owner, RowLocks};

impl Array {
    /// Creates an idle array. `seed` determines the phases and speeds of spindles, and optional random processes.
    ///
    /// # Errors
    /// If the description has an impossible value; the error names the first.
    pub fn new(description: &ArrayDescription, seed: u64) -> Result<Array, InvalidDescription> {
        check(description)?;
        let count = description.members.len();
        let mut members: Vec<Device> = Vec::with_capacity(count);
        let variations = description.spindles.variations(seed);
        for ((at, member), variation) in description.members.iter().enumerate().zip(variations) {
            let seed_of_member = seed.wrapping_add(at as u64);
            let like = description.members[..at].iter().position(|other| other.device == member.device);
            let mut device = match like {
                Some(like) => members[like].another(seed_of_member),
                None => Device::new(&description.devices[member.device as usize], seed_of_member)?,
            };
            device.vary_spindle(variation);
            members.push(device);
        }
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
            members,
            member_next_ns: vec![u64::MAX; count],
            first_member: 0,
            ports: description.members.iter().map(|member| Port::new(description, member)).collect(),
            links: description.links.iter().map(Link::new).collect(),
            held: vec![HeldLink::default(); description.links.len()],
            groups: description.groups.iter().map(GroupState::new).collect(),
            processors: Servers::new(description.controller.processors),
            adapter: description.controller.adapter.map(Adapter::of_requests),
            cache: description.controller.cache.as_ref().map(CacheState::new),
            requests: Slab::default(),
            operations: Slab::default(),
            commands: Slab::default(),
            row_writes: Slab::default(),
            pools: pooled::pools(description)?,
            intents: description.groups.iter().map(|group| group.bitmap.map(Intent::new)).collect(),
            ppls: ppls(description),
            lun_numbers,
            relays: Slab::default(),
            passes: vec![None; description.groups.len()],
            pass_number: 0,
            unclean: vec![Vec::new(); description.groups.len()],
            standing: 0,
            row_locks: RowLocks::default(),
            events: BinaryHeap::new(),
            event_number: 0,
            done: Vec::new(),
            counters: ArrayCounters::default(),
            data_loss: None,
            rebuilds_ns: Vec::new(),
            host_requests: 0,
            host_arrivals: 0,
            missing: vec![false; count],
            fillings_changed: false,
            lost: Vec::new(),
            failed: Vec::new(),
            deferred: None,
            traffic: vec![Traffic::default(); count],
            power_cycles: 1,
            seed,
            extents: Vec::new(),
            places: Vec::new(),
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

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        let own = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let done = self.done.first().map_or(u64::MAX, |completion| completion.at_ns);
        self.member_next_ns[self.first_member].min(own).min(done).min(self.next_delivery_ns())
    }

    /// Returns the time of the adapter's next completion to the host.
    #[inline]
    fn next_delivery_ns(&self) -> u64 {
        self.adapter.as_ref().map_or(u64::MAX, Adapter::next_event_ns)
    }

    /// Takes a request at `now_ns`. The caller has processed every event up to `now_ns`.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        debug_assert!(self.next_event_ns() >= now_ns, "the caller has processed all earlier events");
        if let Some(adapter) = &mut self.adapter {
            adapter.expect();
        }
        self.take(now_ns, id, request);
    }

    /// Processes every event up to `now_ns`, and appends completions in order of time. Stops at an event that loses
    /// data, so that a run can end there; after a data loss, requests fail only if their data are lost.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        let lost_before = self.data_loss.is_some();
        let mut last_ns = 0;
        loop {
            let own_ns = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
            let (member, member_ns) = (self.first_member, self.member_next_ns[self.first_member]);
            let next_delivery_ns = self.next_delivery_ns();
            let next_ns = own_ns.min(member_ns).min(next_delivery_ns);
            debug_assert!(next_ns >= last_ns, "time went back: {next_ns} after {last_ns}");
            if next_ns > now_ns || (self.data_loss.is_some() && !lost_before) {
                debug_assert!(next_ns < u64::MAX || self.is_clear(), "no event is scheduled, but requests are pending");
                break;
            }
            last_ns = next_ns;
            if next_delivery_ns < own_ns.min(member_ns) {
                let reported = std::iter::from_fn(|| self.adapter.as_mut()?.report(next_delivery_ns));
                self.done.extend(reported);
            } else if member_ns <= own_ns {
                self.member_event(member, member_ns);
            } else if let Some(Reverse((at_ns, _, event))) = self.events.pop() {
                self.own_event(at_ns, event);
            }
        }
        done.append(&mut self.done);
    }

    /// Whether neither requests nor work for them is in flight, as after the last event. Commands to a failed member
    /// may remain, without an owner.
    fn is_clear(&self) -> bool {
        let is_idle = |(port, missing): (&Port, &bool)| *missing || port.outstanding() == 0;
        self.host_requests == 0
            && self.requests.is_empty()
            && self.operations.is_empty()
            && self.row_writes.is_empty()
            && self.relays.is_empty()
            && self.row_locks.is_empty()
            && self.commands.iter().all(|(_, command)| command.owner == Owner::Nobody)
            && self.ports.iter().zip(&self.missing).all(is_idle)
            && self.held.iter().all(|held| !held.by_command && held.waiting.is_empty())
            && self.adapter.as_ref().is_none_or(Adapter::is_idle)
    }

    fn own_event(&mut self, now_ns: u64, event: Event) {
        match event {
            Event::Begin(request) => self.begin(now_ns, request),
            Event::Respond(request) => self.respond(now_ns, request),
            Event::Offer(command) => self.offer(now_ns, command),
            Event::Deliver(command) => self.cross_links(now_ns, command),
            Event::HandOver(command) => self.hand_over(now_ns, command),
            Event::WriteRow(row) => self.write_row(now_ns, row),
            Event::Relay(number) => self.relay_part_done(now_ns, number),
            Event::Incident(number) => self.incident(now_ns, self.description.incidents[number as usize].what),
            Event::Replace(member) => self.replace_member(now_ns, member),
            Event::Rebuild(group) => self.continue_steps(now_ns, group),
            Event::Bitmap(group) => self.bitmap_daemon(now_ns, group),
            Event::Pass(group) => self.continue_pass(now_ns, group),
            Event::WriteLog(group, slot) => self.write_log(now_ns, group, slot),
        }
    }

    /// Returns a description of the first data loss that redundancy could not prevent, if any.
    pub fn data_loss(&self) -> Option<&str> {
        self.data_loss.as_deref()
    }

    /// Returns the duration of each finished rebuild, in order of completion, in ns.
    pub fn rebuilds_ns(&self) -> &[u64] {
        &self.rebuilds_ns
    }

    /// Returns the number of cached pages with data that the members do not have yet.
    pub fn dirty_pages(&self) -> u32 {
        self.cache.as_ref().map_or(0, CacheState::dirty_pages)
    }

    /// Returns the number of bytes destaged from the cache to the members.
    pub fn destaged_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, CacheState::destaged_bytes)
    }

    /// Returns the counters of the array.
    pub fn counters(&self) -> ArrayCounters {
        self.counters
    }

    /// Adds the counters of the array, its links and its members to a snapshot.
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
        if counters.scrubs_begun > 0 {
            into.count("scrubbed_bytes", counters.scrubbed_bytes);
            into.count("scrubs", counters.scrubs);
            into.count("scrub_ns", counters.scrub_ns);
        }
        if counters.degraded_requests > 0 {
            into.count("degraded_requests", counters.degraded_requests);
        }
        let bitmaps: Vec<u64> = self.intents.iter().flatten().map(|intent| intent.written).collect();
        if !bitmaps.is_empty() {
            into.count("bitmap_writes", bitmaps.iter().sum());
        }
        if self.ppls.iter().any(Option::is_some) {
            let logs = || self.ppls.iter().flatten();
            into.count("ppl_writes", logs().map(|ppl| ppl.written).sum());
            into.count("ppl_bytes", logs().map(|ppl| ppl.written_bytes).sum());
        }
        if let Some(cache) = &self.cache {
            cache.snapshot(into);
        }
    }
}

/// Returns the empty partial parity log of each group that has one.
fn ppls(description: &ArrayDescription) -> Vec<Option<Ppl>> {
    description.groups.iter().map(|group| group.ppl.map(|ppl| Ppl::new(ppl, group.members.len()))).collect()
}
