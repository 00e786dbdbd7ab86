//! [`Ssd`]: commands, write buffer, flash translation layer, dies. See docs/design/solid-state.md.
//!
//! A read costs the controller's overhead, then for each row of a die that it touches a sensing and a transfer over the
//! die's channel, then the interface. A write is complete when its data are in the write buffer; rows leave it for the
//! dies in turn, each die collects its stale blocks at the pace at which it is given new rows, and writes wait while
//! the buffer is full.
//!
//! Not modelled: cache registers (a die senses nothing while it sends), pages of different speeds within a block,
//! copies inside a die, retries, refresh and static wear levelling, and writes of the map.
//!
//! Memory is 4 bytes for each mapping unit of capacity and of flash, once they are written to: 1 TB on 1.10 TB of flash
//! with units of 16 KiB takes 491 MiB when full and 2 MiB when empty (measured; the sum over the units is 489 MiB). A
//! drive that starts filled or worn in takes memory for what is written since, and 20 bytes for each block of a die once
//! the die is written to.

mod agenda;
mod buffer;
mod check;
mod class_counts;
mod commands;
mod counters;
mod die_space;
mod flash;
mod ftl;
mod host_port;
mod layout;
mod map_cache;
mod outside;
mod overwriting;
mod unit_map;
mod worn_in;

pub use crate::description::ssd as description;
pub use check::check;
pub use counters::SsdCounters;

use std::collections::VecDeque;

use headstack_workload::Request;

use crate::description::ssd::SsdDescription;
use crate::drive::Completion;
use crate::error::InvalidDescription;
use crate::link::Upstream;
use crate::media_defects::{Failures, MediaDefects};
use buffer::Buffer;
use flash::Flash;
use ftl::Ftl;
use host_port::HostPort;
use map_cache::MapCache;

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct Command {
    id: u32,
    started_ns: u64,
    request: Request,
    /// Reads: parts that dies still have to deliver. Writes: parts in transit to the buffer.
    parts: u32,
    /// Reads: end of the last transfer reserved so far. Writes: unused.
    done_ns: u64,
    /// Reads: parts of the map that it waits for.
    map_parts: u32,
    /// Writes: bytes for which the buffer had space.
    poured_bytes: u32,
}

/// A part of a write in transit to the buffer.
#[derive(Clone, Copy, Debug)]
struct BufferTransfer {
    at_ns: u64,
    command: u32,
    offset_bytes: u64,
    length_bytes: u32,
}

/// A command that waits until every row formed before it is programmed.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    command: u32,
    before_serial: u64,
    rows_left: u32,
}

/// An SSD in virtual time.
#[derive(Clone, Debug)]
pub struct Ssd {
    description: SsdDescription,
    unit_shift: u32,
    ftl: Ftl,
    buffer: Buffer,
    flash: Flash,
    port: HostPort,
    /// Commands in the drive, by slot, and the free slots.
    commands: Vec<Command>,
    free: Vec<u32>,
    /// Commands in excess of the queue depth.
    waiting: VecDeque<(u32, Request)>,
    controller_free_ns: u64,
    /// (End of the controller's overhead, slot), in order of time.
    decoding: VecDeque<(u64, u32)>,
    /// Writes that need space in the buffer, oldest first.
    pouring: VecDeque<u32>,
    /// Data in transit to the buffer, in order of time.
    landings: VecDeque<BufferTransfer>,
    /// Flushes and forced writes that wait for programs.
    barriers: Vec<Barrier>,
    /// Die of the last row that was formed.
    last_row_die: u32,
    /// Flushes with programs since the map was last programmed.
    flushes_since_map_update: u32,
    /// (Time, slot), in order of time.
    completions: VecDeque<(u64, u32)>,
    counters: SsdCounters,
    /// The cached part of the map; `None` if all of it is in memory.
    map_cache: Option<MapCache>,
    /// Media defects, in mapping units.
    media_defects: MediaDefects,
    failures: Failures,
}

impl Ssd {
    /// Creates an idle drive in the state of its description. `seed` drives the draws of that state.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &SsdDescription, seed: u64) -> Result<Ssd, InvalidDescription> {
        Ssd::with_ftl(description, seed, |description, seed| Ftl::new(description, seed, overwriting::run))
    }

    /// Creates an idle drive without data: a replacement.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn empty(description: &SsdDescription, seed: u64) -> Result<Ssd, InvalidDescription> {
        Ssd::with_ftl(description, seed, Ftl::fresh)
    }

    fn with_ftl(
        description: &SsdDescription,
        seed: u64,
        ftl: fn(&SsdDescription, u64) -> Ftl,
    ) -> Result<Ssd, InvalidDescription> {
        check(description)?;
        let unit_bytes = description.capacity.mapping_unit_bytes;
        let depth = description.interface.queue_depth as usize;
        Ok(Ssd {
            unit_shift: unit_bytes.trailing_zeros(),
            ftl: ftl(description, seed),
            buffer: Buffer::new((description.buffer.bytes / u64::from(unit_bytes)) as u32),
            flash: Flash::new(description, seed),
            port: HostPort::new(description.interface, &description.controller),
            commands: Vec::with_capacity(depth.min(1024)),
            free: Vec::with_capacity(depth.min(1024)),
            waiting: VecDeque::new(),
            controller_free_ns: 0,
            decoding: VecDeque::new(),
            pouring: VecDeque::new(),
            landings: VecDeque::new(),
            barriers: Vec::new(),
            last_row_die: 0,
            flushes_since_map_update: 0,
            completions: VecDeque::new(),
            counters: SsdCounters::default(),
            map_cache: description.controller.map_cache_bytes.map(|bytes| MapCache::new(description, bytes)),
            media_defects: MediaDefects::none(),
            failures: Failures::default(),
            description: description.clone(),
        })
    }

    /// Returns the bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        self.description.capacity.logical_bytes
    }

    /// Returns its description.
    pub fn description(&self) -> &SsdDescription {
        &self.description
    }

    /// Returns its counters. Visits every block for the wear.
    pub fn counters(&self) -> SsdCounters {
        let (erases_max, erases_mean) = self.ftl.wear();
        let mut counters = SsdCounters {
            moved_units: self.ftl.moved_units,
            erases: self.ftl.erases * u64::from(self.description.flash.planes_per_die),
            interface_ns: self.port.busy_ns(),
            erases_max,
            erases_mean,
            ..self.counters
        };
        self.flash.count(&mut counters);
        counters
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        let done_ns = self.completions.front().map_or(u64::MAX, |&(at_ns, _)| at_ns);
        self.next_internal_ns().min(done_ns)
    }

    #[inline]
    fn next_internal_ns(&self) -> u64 {
        let decoded_ns = self.decoding.front().map_or(u64::MAX, |&(at_ns, _)| at_ns);
        let landed_ns = self.landings.front().map_or(u64::MAX, |landing| landing.at_ns);
        self.flash.next_ns().min(decoded_ns).min(landed_ns)
    }

    /// Whether no command is in the drive and no die works. Data may still be in the write buffer and wait for a full
    /// row or a flush.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.commands.len() && self.waiting.is_empty() && self.flash.next_ns() == u64::MAX
    }

    /// Takes a command at `now_ns`. The caller has processed every event up to `now_ns`, gives commands in flight
    /// different `id`s and stays inside the capacity. SSDs have no ordered commands: `ordered` is ignored.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        debug_assert!(request.offset_bytes + u64::from(request.length_bytes) <= self.capacity_bytes());
        if self.commands.len() - self.free.len() < self.description.interface.queue_depth as usize {
            self.begin(now_ns, id, request);
        } else {
            self.waiting.push_back((id, *request));
        }
    }

    /// Whether it works on no more commands than its queue depth, and none waits while one more could be started.
    fn has_what_it_may(&self) -> bool {
        let (works_on, depth) =
            (self.commands.len() - self.free.len(), self.description.interface.queue_depth as usize);
        works_on == depth || (works_on < depth && self.waiting.is_empty())
    }

    /// Whether no command is left: the state after the last event.
    fn is_clear(&self) -> bool {
        self.is_idle() && self.pouring.is_empty() && self.landings.is_empty() && self.barriers.is_empty()
    }

    /// Processes every event up to `now_ns`; calls `completed` with each completion in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, completed: impl FnMut(Completion)) {
        self.advance_behind(&mut Upstream::none(), now_ns, completed);
    }

    /// Like [`Self::advance`], for a drive behind shared links.
    #[inline]
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let internal_ns = self.next_internal_ns();
            let done = self.completions.front().copied();
            // The dies are first: they choose their next job before the host can respond to a completion.
            if internal_ns <= now_ns && done.is_none_or(|(done_ns, _)| internal_ns <= done_ns) {
                self.handle_internal(upstream, internal_ns);
                continue;
            }
            match done {
                Some((done_ns, slot)) if done_ns <= now_ns => {
                    self.completions.pop_front();
                    let command = &self.commands[slot as usize];
                    completed(Completion { at_ns: done_ns, id: command.id, started_ns: command.started_ns });
                    self.free.push(slot);
                    if let Some((id, request)) = self.waiting.pop_front() {
                        self.begin(done_ns, id, &request);
                    }
                    debug_assert!(self.has_what_it_may(), "a drive works on as many commands as it may, and no more");
                }
                _ => {
                    debug_assert!(
                        self.next_event_ns() < u64::MAX || self.is_clear(),
                        "commands are left in a drive at rest"
                    );
                    return;
                }
            }
        }
    }
}
