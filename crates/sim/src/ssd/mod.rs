//! The solid-state drive: commands, write buffer, flash translation layer, dies.
//!
//! A read costs the controller's overhead, then for each row of a die that it touches a sensing and a transfer over the
//! die's channel, then the interface. A write is complete when its data are in the write buffer; rows leave it for the
//! dies in turn, each die collects its stale blocks at the pace at which it is given new rows, and writes wait while
//! the buffer is full.
//!
//! Left out: cache registers (a die senses nothing while it sends), pages of different speeds within a block, copies
//! inside a die, retries, refresh and static wear levelling, and what of the map is written.
//!
//! Memory is 4 bytes for each mapping unit of capacity and of flash, once they are written to: 1 TB on 1.10 TB of flash
//! with units of 16 KiB takes 491 MiB when full and 2 MiB when empty (measured; the sum over the units is 489 MiB).

mod agenda;
mod buffer;
mod check;
mod commands;
pub mod description;
mod flash;
mod ftl;
mod map_cache;
mod outside;
mod precondition;
mod unit_map;

pub use check::check;

use std::collections::VecDeque;

use headstack_workload::Request;

use crate::drive::port::Port;
use crate::drive::{Completion, InvalidDescription};
use crate::link::{Direction, Upstream};
use crate::media_defects::{Failures, MediaDefects};
use buffer::Buffer;
use commands::{Barrier, Command, Landing};
use description::{Controller, Interface, SsdDescription};
use flash::Flash;
use ftl::Ftl;
use map_cache::MapCache;

/// What a solid-state drive counts, in its own time: preconditioning leaves traces in the wear only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SsdCounters {
    /// Reads of the host's that began.
    pub reads: u64,
    /// Writes of the host's that began.
    pub writes: u64,
    /// Trims that began.
    pub trims: u64,
    /// Flushes that began.
    pub flushes: u64,
    /// Mapping units that writes touched.
    pub written_units: u64,
    /// Mapping units written again before they left the write buffer.
    pub write_hits: u64,
    /// Mapping units read from the write buffer.
    pub read_hits: u64,
    /// Mapping units read that nobody had written.
    pub unwritten_reads: u64,
    /// Mapping units whose rest had to be read because a part was written.
    pub partial_writes: u64,
    /// Pages read, for whatever purpose.
    pub page_reads: u64,
    /// Pages programmed, moved and padded ones included.
    pub page_programs: u64,
    /// Mapping units moved by garbage collection.
    pub moved_units: u64,
    /// Blocks erased, counted a plane.
    pub erases: u64,
    /// Reads of a die that found it programming, erasing or moving data.
    pub read_waits: u64,
    /// Pages of the map that had to be read from the flash.
    pub map_reads: u64,
    /// Programs and erases that reads interrupted.
    pub suspensions: u64,
    /// Dies were occupied, summed over them; waiting for the channel counts.
    pub dies_busy_ns: u64,
    /// Channels carried data, summed over them.
    pub channels_busy_ns: u64,
    /// The interface carried data, summed over its directions.
    pub interface_ns: u64,
    /// Most erases of a block since the drive was made, preconditioning included.
    pub erases_max: u32,
    /// Mean erases of a block since the drive was made.
    pub erases_mean: f64,
}

/// Time of a transfer.
#[inline]
fn transfer_ns(bytes: u32, ns_per_byte: f64) -> u64 {
    (f64::from(bytes) * ns_per_byte).round() as u64
}

/// The drive's end of the interface: every byte between host and drive passes here.
#[derive(Clone, Debug)]
struct HostPort {
    interface: Interface,
    ports: [Port; 2],
    /// The way through the controller, by direction, and the time of one byte on it.
    inside: [Port; 2],
    inside_ns_per_byte: [f64; 2],
    /// When the last transfer of each direction ends: data of one direction arrive in order.
    last_ns: [u64; 2],
}

impl HostPort {
    fn new(interface: Interface, controller: &Controller) -> Self {
        HostPort {
            interface,
            ports: [Port::new(); 2],
            inside: [Port::new(); 2],
            inside_ns_per_byte: [controller.read_ns_per_byte, controller.write_ns_per_byte],
            last_ns: [0; 2],
        }
    }

    /// Carries data that are ready at `ready_ns`; returns when the last byte is there.
    #[inline]
    fn carry(&mut self, upstream: &mut Upstream, direction: Direction, ready_ns: u64, bytes: u32) -> u64 {
        let (port, ns_per_byte) = match direction {
            Direction::Read => (0, self.interface.read_ns_per_byte),
            Direction::Write => (usize::from(self.interface.full_duplex), self.interface.write_ns_per_byte),
        };
        let inside = direction as usize;
        let inside_end_ns = self.inside[inside].carry(ready_ns, transfer_ns(bytes, self.inside_ns_per_byte[inside]));
        // Both carry the same bytes at once, so that the slower one decides.
        let port_end_ns = self.ports[port].carry(ready_ns, transfer_ns(bytes, ns_per_byte)).max(inside_end_ns);
        let end_ns = upstream.carry(ready_ns, u64::from(bytes), ns_per_byte, port_end_ns, direction);
        self.last_ns[direction as usize] = self.last_ns[direction as usize].max(end_ns);
        self.last_ns[direction as usize]
    }
}

/// A solid-state drive in virtual time.
#[derive(Clone, Debug)]
pub struct Ssd {
    description: SsdDescription,
    seed: u64,
    unit_shift: u32,
    ftl: Ftl,
    buffer: Buffer,
    flash: Flash,
    port: HostPort,
    /// Commands in the drive, by slot, and the slots that are free.
    commands: Vec<Command>,
    free: Vec<u32>,
    /// Commands beyond the queue depth.
    waiting: VecDeque<(u32, Request)>,
    controller_free_ns: u64,
    /// (End of the controller's overhead, slot), in order of time.
    decoding: VecDeque<(u64, u32)>,
    /// Writes that need space in the buffer, oldest first.
    pouring: VecDeque<u32>,
    /// Data on their way into the buffer, in order of time.
    landings: VecDeque<Landing>,
    /// Flushes and forced writes that wait for programs.
    barriers: Vec<Barrier>,
    /// (Time, slot), in order of time.
    completions: VecDeque<(u64, u32)>,
    counters: SsdCounters,
    /// The part of the map at hand; absent where all of it is.
    map_cache: Option<MapCache>,
    /// In mapping units.
    media_defects: MediaDefects,
    failures: Failures,
}

impl Ssd {
    /// A drive at rest: empty, or in the steady state if its description says so. `seed` drives the overwrites of
    /// preconditioning only.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(description: &SsdDescription, seed: u64) -> Result<Ssd, InvalidDescription> {
        check(description)?;
        let unit_bytes = description.capacity.mapping_unit_bytes;
        let depth = description.interface.queue_depth as usize;
        let mut ssd = Ssd {
            seed,
            unit_shift: unit_bytes.trailing_zeros(),
            ftl: Ftl::new(description),
            buffer: Buffer::new((description.buffer.bytes / u64::from(unit_bytes)) as u32),
            flash: Flash::new(description),
            port: HostPort::new(description.interface, &description.controller),
            commands: Vec::with_capacity(depth.min(1024)),
            free: Vec::with_capacity(depth.min(1024)),
            waiting: VecDeque::new(),
            controller_free_ns: 0,
            decoding: VecDeque::new(),
            pouring: VecDeque::new(),
            landings: VecDeque::new(),
            barriers: Vec::new(),
            completions: VecDeque::new(),
            counters: SsdCounters::default(),
            map_cache: description.controller.map_cache_bytes.map(|bytes| MapCache::new(description, bytes)),
            media_defects: MediaDefects::none(),
            failures: Failures::default(),
            description: description.clone(),
        };
        if description.preconditioned {
            ssd.precondition();
        }
        Ok(ssd)
    }

    /// Brings a drive that has served nothing yet into the steady state of random overwrites, in no virtual time: every
    /// mapping unit is written in order, then random ones in windows of a quarter of the capacity until the write
    /// amplification of the last five is steady by the SNIA's rule (within 20 % of their mean, with a slope of at most
    /// 10 % of it), 25 windows at most. Returns the write amplification of each window.
    ///
    /// # Panics
    /// If something is under way.
    pub fn precondition(&mut self) -> Vec<f64> {
        assert!(self.is_idle() && self.buffer.waiting == 0, "only a drive without work is preconditioned");
        let amplifications = precondition::precondition(&mut self.ftl, self.seed);
        (self.ftl.moved_units, self.ftl.erases) = (0, 0);
        amplifications
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        self.description.capacity.logical_bytes
    }

    /// Its description.
    pub fn description(&self) -> &SsdDescription {
        &self.description
    }

    /// What it has counted so far. Looks at every block for the wear.
    pub fn counters(&self) -> SsdCounters {
        let (erases_max, erases_mean) = self.ftl.wear();
        let mut counters = SsdCounters {
            moved_units: self.ftl.moved_units,
            erases: self.ftl.erases * u64::from(self.description.flash.planes_per_die),
            interface_ns: self.port.ports.iter().map(|port| port.busy_ns).sum(),
            erases_max,
            erases_mean,
            ..self.counters
        };
        self.flash.count(&mut counters);
        counters
    }

    /// When something happens next; `u64::MAX` if nothing will.
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

    /// No command is in the drive and no die works. Data may still wait in the write buffer, for others to fill a row
    /// with them or for a flush.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.commands.len() && self.waiting.is_empty() && self.flash.next_ns() == u64::MAX
    }

    /// Takes a command at `now_ns`. The caller has processed every event up to `now_ns`, keeps `id`s of commands under
    /// way apart and stays inside the capacity. Solid-state drives know no ordered commands: `ordered` is ignored.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        debug_assert!(request.offset_bytes + u64::from(request.length_bytes) <= self.capacity_bytes());
        if self.commands.len() - self.free.len() < self.description.interface.queue_depth as usize {
            self.begin(now_ns, id, request);
        } else {
            self.waiting.push_back((id, *request));
        }
    }

    /// Processes every event up to `now_ns`; hands each completion to `completed` in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, completed: impl FnMut(Completion)) {
        self.advance_behind(&mut Upstream::none(), now_ns, completed);
    }

    /// As [`Self::advance`], for a drive behind shared links.
    #[inline]
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let internal_ns = self.next_internal_ns();
            let done = self.completions.front().copied();
            // The dies first: they choose their next job before the host can answer a completion.
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
                }
                _ => return,
            }
        }
    }
}
