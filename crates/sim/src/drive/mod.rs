//! [`Drive`]: the disk drive, which times a command from its arrival to its completion. See docs/design/disks.md.
//!
//! Nothing is simulated sector by sector. When the arm takes a job, the whole pass over the media is computed at once
//! ([`media`]); read-ahead is advanced only when its state is needed. A drive therefore has two events per command: the
//! arm becomes free, the command completes.

mod arm;
pub mod buffer;
pub(crate) mod check;
mod chronicled;
mod commands;
mod defective;
pub mod geometry;
mod internal_access;
pub mod mechanics;
mod media;
mod outside;
pub(crate) mod port;
mod queue;
mod recency;
mod slow;
mod standby;

pub use crate::description::drive as description;
pub use check::check;
pub(crate) use queue::InternalAccess;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use headstack_workload::{Kind, Request};

use crate::description::drive::{DriveDescription, ReadAhead, WriteCache as WriteCacheKind};
use buffer::{Segments, WriteCache};
use mechanics::{Spindle, SpindleVariation};
use media::{Head, Media, ReadAheadRun};
use port::Port;
use queue::ArmQueue;
use slow::Slow;

use crate::derived_cache::DerivedCache;
use crate::error::InvalidDescription;
use crate::link::Upstream;
use crate::media_defects::{Failures, MediaDefects};

/// Completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Time of completion.
    pub at_ns: u64,
    /// The host's id of the command.
    pub id: u32,
    /// Time at which the drive began to work on it: from there to the completion is its service time.
    pub started_ns: u64,
}

/// Counters of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads served entirely from the buffer.
    pub read_hits: u64,
    /// Reads whose first part was in the buffer or being read into it.
    pub read_partial_hits: u64,
    /// Reads that needed the arm from their first sector on.
    pub read_misses: u64,
    /// Writes that completed before they were on the media.
    pub cached_writes: u64,
    /// Writes that joined waiting ones.
    pub coalesced_writes: u64,
    /// Dirty extents written to the media.
    pub destages: u64,
    /// Writes of parts of physical sectors, each with a read and a turn before the write.
    pub read_modify_writes: u64,
    /// Repeated media accesses.
    pub retries: u64,
    /// Time of arm movement, head switches and settling.
    pub seek_ns: u64,
    /// Time of rotational latency.
    pub rotation_ns: u64,
    /// Time that requested sectors were under the heads.
    pub transfer_ns: u64,
    /// Time of firmware overheads.
    pub overhead_ns: u64,
    /// Time that the mechanism worked for a command or a destage.
    pub mechanism_ns: u64,
    /// Time that the interface carried data.
    pub interface_ns: u64,
    /// Reads served from flash.
    pub flash_hits: u64,
    /// Blocks admitted to flash.
    pub flash_fills: u64,
    /// Time that the flash was read or written.
    pub flash_ns: u64,
    /// Writes that went to the media cache.
    pub media_cache_writes: u64,
    /// Accesses that wrote them there, one after the other.
    pub media_cache_appends: u64,
    /// Reads that found at least part of their data in the media cache.
    pub media_cache_hits: u64,
    /// Extents moved home from it.
    pub media_cache_destages: u64,
    /// Sweeps or bands that moved them.
    pub media_cache_cleanings: u64,
    /// Writes that went home directly and bypassed the media cache.
    pub direct_writes: u64,
    /// Time that sectors were under the heads for read-ahead, not included in `transfer_ns`.
    pub read_ahead_ns: u64,
    /// Time that the spindle was stopping or at rest.
    pub standby_ns: u64,
    /// Spin-ups of the spindle.
    pub spin_ups: u64,
}

impl Counters {
    /// Returns the sum of both.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            read_hits: self.read_hits + other.read_hits,
            read_partial_hits: self.read_partial_hits + other.read_partial_hits,
            read_misses: self.read_misses + other.read_misses,
            cached_writes: self.cached_writes + other.cached_writes,
            coalesced_writes: self.coalesced_writes + other.coalesced_writes,
            destages: self.destages + other.destages,
            read_modify_writes: self.read_modify_writes + other.read_modify_writes,
            retries: self.retries + other.retries,
            seek_ns: self.seek_ns + other.seek_ns,
            rotation_ns: self.rotation_ns + other.rotation_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
            overhead_ns: self.overhead_ns + other.overhead_ns,
            mechanism_ns: self.mechanism_ns + other.mechanism_ns,
            interface_ns: self.interface_ns + other.interface_ns,
            flash_hits: self.flash_hits + other.flash_hits,
            flash_fills: self.flash_fills + other.flash_fills,
            flash_ns: self.flash_ns + other.flash_ns,
            media_cache_writes: self.media_cache_writes + other.media_cache_writes,
            media_cache_appends: self.media_cache_appends + other.media_cache_appends,
            media_cache_hits: self.media_cache_hits + other.media_cache_hits,
            media_cache_destages: self.media_cache_destages + other.media_cache_destages,
            media_cache_cleanings: self.media_cache_cleanings + other.media_cache_cleanings,
            direct_writes: self.direct_writes + other.direct_writes,
            read_ahead_ns: self.read_ahead_ns + other.read_ahead_ns,
            standby_ns: self.standby_ns + other.standby_ns,
            spin_ups: self.spin_ups + other.spin_ups,
        }
    }
}

/// The immutable part of a drive.
type Compiled = (Media, Arc<DriveDescription>);

thread_local! {
    static COMPILED: RefCell<DerivedCache<DriveDescription, Compiled>> = RefCell::default();
}

/// A drive in virtual time.
///
/// Clones and [others](Self::another) of the kind share what is compiled from its description, which never changes.
#[derive(Clone, Debug)]
pub struct Drive {
    media: Media,
    params: Parameters,
    /// Whether the spindle stops when the drive is idle.
    sleeps: bool,
    segments: Segments,
    writes: WriteCache,
    queue: ArmQueue,
    port: Port,
    slow: Slow,
    head: Head,
    /// Block under the heads at `arm_free_ns`, for jobs that continue from there.
    continues: u64,
    arm_free_ns: u64,
    /// Time at which the firmware has decoded all commands so far.
    firmware_free_ns: u64,
    /// Segment, first block and end of the pass in progress that fills it: none of it can be hit before.
    filling: Option<(usize, u64, u64)>,
    /// Whether the job in service is an ordered command's.
    serves_ordered: bool,
    /// The arm's job; `None` when idle.
    in_service: Option<Service>,
    read_ahead: Option<ReadAheadRun>,
    last_was_read: bool,
    last_write_end: u64,
    /// Completions, latest first.
    completions: Vec<Completion>,
    /// Flushes: id, arrival, last write that they cover.
    flushes: VecDeque<(u32, u64, u64)>,
    counters: Counters,
    media_defects: MediaDefects,
    failures: Failures,
    /// After a power loss, the time from which the spindle turns.
    ready_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Service {
    /// A read of the host.
    Read,
    /// A write of the host that is not a destage.
    Write,
    Destage(u32),
    /// Background I/O: an internal access, recalibration or a scan.
    Internal,
}

/// Values of the description that each command needs.
#[derive(Clone, Debug)]
struct Parameters {
    description: Arc<DriveDescription>,
    /// log2 of the bytes of a physical sector.
    sector_shift: u32,
    /// The write cache setting in force; the description has the factory setting.
    write_cache: WriteCacheKind,
    read_ahead: ReadAhead,
    read_ahead_max: u64,
    /// Time to transfer one physical sector to the host.
    sector_read_ns: u64,
    /// Time to transfer one physical sector from the host.
    sector_write_ns: u64,
}

const NOWHERE: u64 = u64::MAX;

impl Drive {
    /// Creates an idle drive with its heads on cylinder 0. `seed` drives only the optional random processes.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Drive, InvalidDescription> {
        let (media, description) = COMPILED.with_borrow_mut(|compiled| {
            compiled.of(description, || {
                check(description)?;
                Ok((Media::new(description), Arc::new(description.clone())))
            })
        })?;
        Ok(Drive::at_rest(media, description, seed))
    }

    /// Creates another idle drive of the same description.
    pub fn another(&self, seed: u64) -> Drive {
        Drive::at_rest(self.media.clone(), Arc::clone(&self.params.description), seed)
    }

    /// Gives the spindle of an idle drive its own phase and speed.
    pub fn vary_spindle(&mut self, variation: SpindleVariation) {
        self.media.spindle = Spindle::varied(self.params.description.mechanics.rpm, variation);
    }

    fn at_rest(media: Media, description: Arc<DriveDescription>, seed: u64) -> Drive {
        let buffer = &description.buffer;
        let interface = &description.interface;
        let sector_bytes = description.geometry.physical_sector_bytes;
        let capacity = (description.queue.depth + buffer.dirty_extents_max) as usize + 1;
        Drive {
            media,
            sleeps: description.power.is_some_and(|power| power.idle_timeout_ns.is_some()),
            segments: Segments::new(buffer),
            writes: WriteCache::new(buffer),
            queue: ArmQueue::new(&description.queue, capacity),
            slow: Slow::new(&description.slow, seed),
            params: Parameters {
                sector_shift: sector_bytes.trailing_zeros(),
                write_cache: buffer.write_cache,
                read_ahead: if buffer.segments == 0 { ReadAhead::None } else { buffer.read_ahead },
                // A longer read-ahead would drop blocks from the segment that were not read yet.
                read_ahead_max: u64::from(buffer.read_ahead_max_sectors.min(buffer.segment_sectors)),
                sector_read_ns: (f64::from(sector_bytes) * interface.read_ns_per_byte).round() as u64,
                sector_write_ns: (f64::from(sector_bytes) * interface.write_ns_per_byte).round() as u64,
                description,
            },
            port: Port::new(),
            head: Head { cylinder: 0, head: 0 },
            continues: NOWHERE,
            arm_free_ns: 0,
            firmware_free_ns: 0,
            filling: None,
            serves_ordered: false,
            in_service: None,
            read_ahead: None,
            last_was_read: false,
            last_write_end: NOWHERE,
            completions: Vec::with_capacity(capacity),
            flushes: VecDeque::new(),
            counters: Counters::default(),
            media_defects: MediaDefects::none(),
            failures: Failures::default(),
            ready_ns: 0,
        }
    }

    /// Returns the bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        let geometry = &self.params.description.geometry;
        geometry.logical_blocks * u64::from(geometry.logical_block_bytes)
    }

    /// Returns its description.
    pub fn description(&self) -> &DriveDescription {
        &self.params.description
    }

    /// Returns its counters.
    pub fn counters(&self) -> Counters {
        Counters { coalesced_writes: self.writes.coalesced, interface_ns: self.port.busy_ns, ..self.counters }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        let done = self.completions.last().map_or(u64::MAX, |completion| completion.at_ns);
        let arm = if self.in_service.is_some() { self.arm_free_ns } else { self.slow.next_ns(self.arm_free_ns) };
        done.min(arm)
    }

    /// Whether nothing is queued, in service or dirty.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_service.is_none() && self.completions.is_empty() && self.writes.is_empty()
    }

    /// Takes a command at `now_ns`. The caller has processed every event up to `now_ns`, gives commands in flight
    /// different `id`s and stays inside the capacity.
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        self.submit_behind(&mut Upstream::none(), now_ns, id, request);
    }

    /// Like [`Self::submit`], for a drive behind shared links.
    #[inline]
    pub fn submit_behind(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let uses_media = matches!(request.kind, Kind::Read | Kind::Write);
        let now_ns = if (self.sleeps || now_ns < self.ready_ns) && uses_media { self.wake(now_ns) } else { now_ns };
        match request.kind {
            Kind::Read => self.submit_read(upstream, now_ns, id, request),
            Kind::Write => self.submit_write(upstream, now_ns, id, request),
            Kind::Flush => self.submit_flush(now_ns, id),
            Kind::Trim => self.submit_trim(now_ns, id, request),
        }
    }

    /// Processes every event up to `now_ns`; calls `completed` with each completion in order of time.
    pub fn advance(&mut self, now_ns: u64, completed: impl FnMut(Completion)) {
        self.advance_behind(&mut Upstream::none(), now_ns, completed);
    }

    /// Like [`Self::advance`], for a drive behind shared links.
    #[inline]
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let arm_ns = if self.in_service.is_some() { self.arm_free_ns } else { u64::MAX };
            let done_ns = self.completions.last().map_or(u64::MAX, |completion| completion.at_ns);
            // The arm first: the firmware chooses the next command before the host can respond to a completion.
            if arm_ns <= now_ns && arm_ns <= done_ns {
                self.arm_becomes_free(upstream);
            } else if done_ns <= now_ns {
                completed(self.completions.pop().expect("just seen"));
            } else if self.in_service.is_none() && self.slow.next_ns(self.arm_free_ns) <= now_ns {
                self.start_internal(self.slow.next_ns(self.arm_free_ns));
            } else {
                return;
            }
        }
    }
}
