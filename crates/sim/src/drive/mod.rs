//! The disk drive: what a command costs, from its arrival to its completion.
//!
//! Nothing here is simulated sector by sector. When the arm takes a job, the whole pass over the media is computed at
//! once ([`media`]); read-ahead is brought up to date when somebody looks; a drive therefore has two events a command:
//! the arm becomes free, the command completes.

pub mod buffer;
mod check;
pub mod description;
pub mod geometry;
mod link;
pub mod mechanics;
mod media;
mod queue;
mod slow;

pub use check::{Fault, check};

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

use buffer::{Accepted, Segments, WriteCache};
use description::{AfterReadWrite, DriveDescription, ReadAhead, WriteCache as WriteCacheKind};
use geometry::Extent;
use link::Link;
use media::{Access, Head, Leaves, Media, Pass, ReadAheadRun};
use queue::{ArmQueue, HostJob, Job, Work};
use slow::Slow;

/// A command that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When.
    pub at_ns: u64,
    /// The name that the host gave it.
    pub id: u32,
    /// When the drive began to work on it: from there to the completion is its service time.
    pub started_ns: u64,
}

/// What a drive counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads served from the buffer alone.
    pub read_hits: u64,
    /// Reads whose first part was in the buffer or on its way there.
    pub read_partial_hits: u64,
    /// Reads that needed the arm from their first sector on.
    pub read_misses: u64,
    /// Writes that were complete before they were on the media.
    pub cached_writes: u64,
    /// Writes joined to others that waited.
    pub coalesced_writes: u64,
    /// Dirty extents written to the media.
    pub destages: u64,
    /// Writes of parts of physical sectors, each a read and a turn before the write.
    pub read_modify_writes: u64,
    /// Media accesses repeated.
    pub retries: u64,
    /// Arm movement, head switches and settling.
    pub seek_ns: u64,
    /// Rotational latency.
    pub rotation_ns: u64,
    /// Sectors under the heads.
    pub transfer_ns: u64,
    /// Firmware overheads.
    pub overhead_ns: u64,
    /// The mechanism worked for a command or a destage.
    pub mechanism_ns: u64,
    /// The interface carried data.
    pub interface_ns: u64,
}

/// A drive in virtual time.
#[derive(Clone, Debug)]
pub struct Drive {
    media: Media,
    params: Parameters,
    segments: Segments,
    writes: WriteCache,
    queue: ArmQueue,
    link: Link,
    slow: Slow,
    head: Head,
    /// Block under the heads at `arm_free_ns`, for whoever can go on from there.
    continues: u64,
    arm_free_ns: u64,
    /// What the arm does now; nothing when idle.
    in_service: Option<Service>,
    read_ahead: Option<ReadAheadRun>,
    last_was_read: bool,
    last_write_end: u64,
    /// Latest first.
    completions: Vec<Completion>,
    /// Flushes: name, arrival, last write that they cover.
    flushes: VecDeque<(u32, u64, u64)>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
enum Service {
    Host,
    Destage(u32),
    /// Recalibration or scan: for nobody.
    Internal,
}

/// The numbers of the description that each command needs.
#[derive(Clone, Debug)]
struct Parameters {
    description: DriveDescription,
    /// log2 of the bytes of a physical sector.
    sector_shift: u32,
    read_ahead: ReadAhead,
    read_ahead_max: u64,
    /// Time to transfer one physical sector to the host.
    sector_read_ns: u64,
    /// Time to transfer one physical sector from the host.
    sector_write_ns: u64,
}

const NOWHERE: u64 = u64::MAX;

impl Drive {
    /// A drive at rest, heads on cylinder 0. `seed` drives the optional random processes only.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Drive, Fault> {
        check(description)?;
        let buffer = &description.buffer;
        let interface = &description.interface;
        let sector_bytes = description.geometry.physical_sector_bytes;
        let capacity = (description.queue.depth + buffer.dirty_extents_max) as usize + 1;
        Ok(Drive {
            media: Media::new(description),
            params: Parameters {
                sector_shift: sector_bytes.trailing_zeros(),
                read_ahead: if buffer.segments == 0 { ReadAhead::None } else { buffer.read_ahead },
                read_ahead_max: u64::from(buffer.read_ahead_max_sectors),
                sector_read_ns: (f64::from(sector_bytes) * interface.read_ns_per_byte).round() as u64,
                sector_write_ns: (f64::from(sector_bytes) * interface.write_ns_per_byte).round() as u64,
                description: description.clone(),
            },
            segments: Segments::new(buffer),
            writes: WriteCache::new(buffer),
            queue: ArmQueue::new(&description.queue, capacity),
            link: Link::new(),
            slow: Slow::new(&description.slow, seed),
            head: Head { cylinder: 0, head: 0 },
            continues: NOWHERE,
            arm_free_ns: 0,
            in_service: None,
            read_ahead: None,
            last_was_read: false,
            last_write_end: NOWHERE,
            completions: Vec::with_capacity(capacity),
            flushes: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        let geometry = &self.params.description.geometry;
        geometry.logical_blocks * u64::from(geometry.logical_block_bytes)
    }

    /// Its description.
    pub fn description(&self) -> &DriveDescription {
        &self.params.description
    }

    /// What it has counted so far.
    pub fn counters(&self) -> Counters {
        Counters { coalesced_writes: self.writes.coalesced, interface_ns: self.link.busy_ns, ..self.counters }
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        let done = self.completions.last().map_or(u64::MAX, |completion| completion.at_ns);
        let arm = if self.in_service.is_some() { self.arm_free_ns } else { self.slow.next_ns(self.arm_free_ns) };
        done.min(arm)
    }

    /// Nothing is queued, in service or dirty.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_service.is_none() && self.completions.is_empty() && self.writes.is_empty()
    }

    /// Takes a command at `now_ns`. The caller has processed every event up to `now_ns`, keeps `id`s of commands under
    /// way apart and stays inside the capacity.
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        match request.kind {
            Kind::Read => self.submit_read(now_ns, id, request),
            Kind::Write => self.submit_write(now_ns, id, request),
            Kind::Flush => self.submit_flush(now_ns, id),
            Kind::Trim => self.submit_trim(now_ns, id, request),
        }
    }

    /// Processes every event up to `now_ns`; hands each completion to `completed` in order of time.
    pub fn advance(&mut self, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let arm_ns = if self.in_service.is_some() { self.arm_free_ns } else { u64::MAX };
            let done_ns = self.completions.last().map_or(u64::MAX, |completion| completion.at_ns);
            // The arm first: firmware chooses the next command before the host can answer a completion.
            if arm_ns <= now_ns && arm_ns <= done_ns {
                self.arm_becomes_free();
            } else if done_ns <= now_ns {
                completed(self.completions.pop().expect("just seen"));
            } else if self.in_service.is_none() && self.slow.next_ns(self.arm_free_ns) <= now_ns {
                self.start_internal(self.slow.next_ns(self.arm_free_ns));
            } else {
                return;
            }
        }
    }

    /// (First physical sector, sectors, starts or ends inside one).
    #[inline]
    fn sectors_of(&self, request: &Request) -> (u64, u32, bool) {
        let shift = self.params.sector_shift;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let first = request.offset_bytes >> shift;
        let last = (end + (1 << shift) - 1) >> shift;
        let partial = (request.offset_bytes | end) & ((1 << shift) - 1) != 0;
        (first, (last - first) as u32, partial)
    }

    #[inline]
    fn after_last(&self, cost: AfterReadWrite) -> u64 {
        if self.last_was_read { cost.after_read } else { cost.after_write }
    }

    /// Brings read-ahead up to date and lets the buffer know what it has read.
    #[inline]
    fn update_read_ahead(&mut self, now_ns: u64) -> u64 {
        let Some(run) = &mut self.read_ahead else {
            return now_ns;
        };
        let before = run.next;
        let free_ns = run.advance(&self.media, now_ns);
        // A segment that was given to something else meanwhile does not end where read-ahead was.
        if self.segments.end_of(run.segment) == before {
            self.segments.fill_to(run.segment, run.next);
        }
        free_ns
    }

    fn submit_read(&mut self, now_ns: u64, id: u32, request: &Request) {
        let (block, sectors, _) = self.sectors_of(request);
        let end = block + u64::from(sectors);
        // Read-ahead since it was last looked at matters only to a read of what it may have added or pushed out.
        if let Some(run) = &self.read_ahead
            && block < run.limit
            && end > self.segments.start_of(run.segment)
        {
            self.update_read_ahead(now_ns);
        }
        let overheads = &self.params.description.overheads;
        let hit = self.segments.find(block);
        let mut job = HostJob {
            id,
            write: false,
            block,
            sectors,
            buffered: 0,
            partial: false,
            sequential_write: false,
            cacheable: false,
            overhead_ns: self.after_last(overheads.read_miss_ns),
            settled_min_ns: self.after_last(overheads.read_settled_min_ns),
            hit_overhead_ns: self.after_last(overheads.read_hit_ns),
            disconnect_ns: self
                .params
                .description
                .interface
                .disconnect
                .map_or(0, |disconnect| self.after_last(disconnect.read_ns)),
            segment: None,
        };
        match hit {
            Some(hit) if hit.end >= end => {
                self.counters.read_hits += 1;
                self.serve_hit(now_ns, id, block, sectors, hit.segment);
                self.last_was_read = true;
                return;
            }
            Some(hit) => {
                self.counters.read_partial_hits += 1;
                job.buffered = (hit.end - block) as u32;
                job.block = hit.end;
                job.sectors = (end - hit.end) as u32;
                job.segment = Some(hit.segment);
                self.segments.touch(hit.segment);
            }
            None => {
                let arriving = self.params.description.buffer.read_hits_on_arriving
                    && self.read_ahead.is_some_and(|run| run.next == block && !run.is_done());
                if arriving {
                    self.counters.read_partial_hits += 1;
                    job.segment = self.read_ahead.map(|run| run.segment);
                } else {
                    self.counters.read_misses += 1;
                }
            }
        }
        self.last_was_read = true;
        self.enqueue(now_ns, now_ns, Work::Host(job), request.ordered);
    }

    /// A read that is in the buffer: overhead, then the link.
    fn serve_hit(&mut self, now_ns: u64, id: u32, block: u64, sectors: u32, segment: usize) {
        let overheads = self.params.description.overheads;
        let overhead = self.after_last(overheads.read_hit_ns);
        self.counters.overhead_ns += overhead;
        let ready = now_ns + overhead + overheads.data_preparation_ns;
        let end = self.link.carry(ready, u64::from(sectors) * self.params.sector_read_ns);
        self.complete(id, now_ns, end + overheads.read_completion_ns);
        self.segments.touch(segment);
        self.read_on_after_hit(now_ns, block + u64::from(sectors), segment);
    }

    /// After a hit the segment's read-ahead goes further, or starts again.
    fn read_on_after_hit(&mut self, now_ns: u64, end: u64, segment: usize) {
        let limit = self.read_ahead_limit(end, segment);
        if let Some(run) = &mut self.read_ahead
            && run.segment == segment
        {
            run.limit = run.limit.max(limit);
            return;
        }
        let idle = self.in_service.is_none() && self.queue.is_empty();
        let next = self.segments.end_of(segment);
        if self.params.description.buffer.read_ahead_on_hit && idle && next < limit {
            let at_ns = now_ns.max(self.arm_free_ns) + self.after_last(self.params.description.overheads.read_miss_ns);
            let leaves = self.leaves();
            let head = self.head;
            self.read_ahead =
                Some(ReadAheadRun { segment, next, limit, at_ns, head, leaves, sector_span: 1, followers: 0 });
        }
    }

    fn leaves(&self) -> Leaves {
        match self.params.read_ahead {
            ReadAhead::None | ReadAhead::Track => Leaves::Nothing,
            ReadAhead::Cylinder => Leaves::Track,
            ReadAhead::Segment | ReadAhead::TrackAfterSequential => Leaves::Cylinder,
        }
    }

    /// One past the last block that read-ahead may read after a request that ends at `end`.
    #[inline]
    fn read_ahead_limit(&self, end: u64, segment: usize) -> u64 {
        let blocks = self.media.layout.blocks();
        match self.params.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track | ReadAhead::Cylinder | ReadAhead::Segment => {
                (end + self.params.read_ahead_max).min(blocks)
            }
            ReadAhead::TrackAfterSequential => {
                if end >= blocks {
                    return blocks;
                }
                let (first, last) = self.media.layout.track_bounds(end);
                let crossed = self.segments.start_of(segment) < first;
                let next_track = u64::from(self.media.layout.sectors_per_track(end));
                (last + if crossed { next_track } else { 0 }).min(blocks)
            }
        }
    }

    fn submit_write(&mut self, now_ns: u64, id: u32, request: &Request) {
        let (block, sectors, partial) = self.sectors_of(request);
        self.update_read_ahead(now_ns);
        let overheads = &self.params.description.overheads;
        let sequential = block == self.last_write_end;
        let cached = self.is_cached(request, block, block + u64::from(sectors));
        let overhead = if cached || sequential {
            self.after_last(overheads.write_hit_ns)
        } else {
            self.after_last(overheads.write_miss_ns)
        };
        let job = HostJob {
            id,
            write: true,
            block,
            sectors,
            buffered: 0,
            partial,
            sequential_write: sequential || self.last_was_read,
            cacheable: cached,
            overhead_ns: overhead,
            settled_min_ns: 0,
            hit_overhead_ns: 0,
            disconnect_ns: self.params.description.interface.disconnect.map_or(0, |disconnect| disconnect.write_ns),
            segment: None,
        };
        self.last_was_read = false;
        self.last_write_end = block + u64::from(sectors);
        if cached && self.writes.has_room(block, block + u64::from(sectors)) {
            let ready_ns = now_ns + overhead;
            match self.accept(now_ns, ready_ns, &job) {
                Accepted::New(slot) => self.enqueue(now_ns, ready_ns, Work::Destage(slot), request.ordered),
                Accepted::Joined(slot) => self.destage_grew(slot),
            }
        } else {
            // Through to the media, unless the write cache has room before the arm has time.
            self.enqueue(now_ns, now_ns, Work::Host(job), request.ordered);
        }
    }

    /// The write may complete before it is on the media.
    fn is_cached(&self, request: &Request, start: u64, end: u64) -> bool {
        if request.force_unit_access {
            return false;
        }
        match self.params.description.buffer.write_cache {
            WriteCacheKind::Off => false,
            WriteCacheKind::On => true,
            WriteCacheKind::Appending => {
                let idle = self.queue.is_empty() && self.in_service.is_none() && self.completions.is_empty();
                idle || (self.last_write_end == start && self.writes.has_room(start, end))
            }
        }
    }

    /// Takes a write into the cache, which has room: its data come over the link from `ready_ns` on, then it is
    /// complete.
    fn accept(&mut self, started_ns: u64, ready_ns: u64, job: &HostJob) -> Accepted {
        let overheads = self.params.description.overheads;
        let (start, end) = (job.block, job.block + u64::from(job.sectors));
        let transfer = u64::from(job.sectors) * self.params.sector_write_ns;
        let data_ns = self.link.carry(ready_ns + overheads.data_preparation_ns, transfer);
        self.counters.cached_writes += 1;
        self.counters.overhead_ns += job.overhead_ns;
        self.complete(job.id, started_ns, data_ns + overheads.write_completion_ns);
        self.segments.write(start, end);
        self.writes.accept(start, end, data_ns, job.partial)
    }

    /// A waiting extent took another write in.
    fn destage_grew(&mut self, slot: u32) {
        let dirty = self.writes.get(slot);
        let extent = self.media.layout.locate(dirty.start, (dirty.end - dirty.start) as u32);
        self.queue.replace_destage(slot, dirty.start, extent);
    }

    fn submit_flush(&mut self, now_ns: u64, id: u32) {
        if self.writes.is_empty() {
            let overhead = self.after_last(self.params.description.overheads.write_miss_ns);
            self.complete(id, now_ns, now_ns + overhead);
        } else {
            self.flushes.push_back((id, now_ns, self.writes.sequence()));
        }
    }

    /// A trim touches no media: the drive forgets what it had buffered of the range.
    fn submit_trim(&mut self, now_ns: u64, id: u32, request: &Request) {
        let overhead = self.after_last(self.params.description.overheads.write_miss_ns);
        let (block, sectors, _) = self.sectors_of(request);
        self.segments.forget(block, block + u64::from(sectors));
        self.complete(id, now_ns, now_ns + overhead);
    }

    /// Hands a job to the arm, or to its queue.
    #[inline]
    fn enqueue(&mut self, now_ns: u64, arrived_ns: u64, work: Work, ordered: bool) {
        let (block, sectors) = match work {
            Work::Host(job) => (job.block, job.sectors),
            Work::Destage(slot) => {
                let dirty = self.writes.get(slot);
                (dirty.start, (dirty.end - dirty.start) as u32)
            }
        };
        let job = Job { work, block, extent: self.media.layout.locate(block, sectors), arrived_ns, ordered };
        if self.in_service.is_none() && self.queue.is_empty() {
            let free_ns = self.stop_read_ahead(now_ns);
            self.start(now_ns, free_ns, &job);
        } else {
            self.queue.push(job);
        }
    }

    /// Puts a completion in its place (latest first).
    #[inline]
    fn complete(&mut self, id: u32, started_ns: u64, at_ns: u64) {
        let mut at = self.completions.len();
        while at > 0 && self.completions[at - 1].at_ns <= at_ns {
            at -= 1;
        }
        self.completions.insert(at, Completion { at_ns, id, started_ns });
    }

    fn arm_becomes_free(&mut self) {
        let now_ns = self.arm_free_ns;
        if let Some(Service::Destage(slot)) = self.in_service.take() {
            self.writes.finish(slot);
            self.after_destage(now_ns);
        }
        if self.slow.recalibration_due(now_ns) {
            self.start_internal(now_ns);
        } else if !self.queue.is_empty() {
            self.dispatch(now_ns);
        }
    }

    /// Room in the write cache: writes that wait move in, flushes may be done.
    fn after_destage(&mut self, now_ns: u64) {
        while let Some((at, arrived_ns, job)) = self.queue.oldest_cacheable() {
            if !self.writes.has_room(job.block, job.block + u64::from(job.sectors)) {
                break;
            }
            // Its overhead was spent while it waited.
            match self.accept(arrived_ns, now_ns.max(arrived_ns + job.overhead_ns), &job) {
                Accepted::New(slot) => self.queue.cached(at, Some(slot)),
                Accepted::Joined(slot) => {
                    self.queue.cached(at, None);
                    self.destage_grew(slot);
                }
            }
        }
        while let Some(&(id, arrived_ns, sequence)) = self.flushes.front() {
            if !self.writes.is_clean_up_to(sequence) {
                break;
            }
            self.flushes.pop_front();
            self.complete(id, arrived_ns, now_ns);
        }
    }

    /// Gives the arm to the next job.
    fn dispatch(&mut self, now_ns: u64) {
        let free_ns = self.stop_read_ahead(now_ns);
        let start_ns = free_ns.max(now_ns + self.usual_overhead_ns());
        let job = self.queue.take(&self.media, self.head, self.continues, now_ns, start_ns);
        self.start(now_ns, free_ns, &job);
    }

    #[inline]
    fn start(&mut self, now_ns: u64, free_ns: u64, job: &Job) {
        match job.work {
            Work::Host(host) if host.write => self.write_through(now_ns, free_ns, &host, &job.extent),
            Work::Host(host) => self.read(now_ns, free_ns, &host, &job.extent),
            Work::Destage(slot) => self.destage(job.arrived_ns.max(free_ns), slot, &job.extent),
        }
    }

    /// Brings read-ahead up to date and the heads to where it has got; the arm can be taken at the returned time. A job
    /// that goes on where read-ahead is may still join it.
    #[inline]
    fn stop_read_ahead(&mut self, now_ns: u64) -> u64 {
        let free_ns = self.update_read_ahead(now_ns);
        if let Some(run) = &self.read_ahead {
            self.head = run.head;
            self.continues = run.next;
        }
        free_ns
    }

    /// What the scheduler expects a command to cost before the arm moves.
    #[inline]
    fn usual_overhead_ns(&self) -> u64 {
        self.params.description.overheads.read_miss_ns.after_read
    }

    fn read(&mut self, now_ns: u64, free_ns: u64, job: &HostJob, extent: &Extent) {
        let overheads = self.params.description.overheads;
        let joined = self.read_ahead.is_some_and(|run| run.next == job.block && !run.is_done());
        let goes_on = joined || (job.block == self.continues && now_ns == self.arm_free_ns);
        let (start_ns, from) = match self.read_ahead {
            Some(run) if joined => (run.at_ns, run.head),
            _ if goes_on => (now_ns, self.head),
            _ => (free_ns.max(now_ns + job.overhead_ns), self.head),
        };
        self.read_ahead = None;
        let total = job.buffered + job.sectors;
        let settled_ns = if goes_on { start_ns } else { now_ns + job.settled_min_ns };
        let mark = self.mark(total).saturating_sub(job.buffered).clamp(1, job.sectors);
        let access = Access {
            block: job.block,
            sectors: job.sectors,
            write: false,
            start_ns,
            settled_ns,
            data_ns: start_ns,
            mark,
        };
        let mut pass = self.media.pass_from(from, &access, extent);
        self.retry(&mut pass);
        let overhead = if goes_on { 0 } else { job.overhead_ns };
        let ready = match self.params.description.interface.disconnect {
            // What the buffer holds goes out at once, and the drive keeps the bus for the rest.
            _ if job.buffered > 0 => now_ns + job.hit_overhead_ns + overheads.data_preparation_ns,
            None => pass.mark_ns.max(now_ns + overhead + overheads.data_preparation_ns),
            Some(disconnect) => {
                let off_bus_ns = now_ns + overhead + job.disconnect_ns;
                pass.mark_ns.max(off_bus_ns) + disconnect.first_reselect_ns + overheads.data_preparation_ns
            }
        };
        let transfer = u64::from(total) * self.params.sector_read_ns;
        let done = self.link.promise(ready, transfer, pass.end_ns + self.params.sector_read_ns);
        self.complete(job.id, now_ns, done + overheads.read_completion_ns);
        let segment = self.keep_read(job, &pass);
        self.account(&pass, overhead, start_ns);
        self.occupy(&pass, Service::Host, job.block + u64::from(job.sectors));
        if let Some(segment) = segment {
            self.read_on(&pass, job.block + u64::from(job.sectors), segment);
        }
    }

    /// Sectors of a read that must be in the buffer before they go to the host.
    #[inline]
    fn mark(&self, sectors: u32) -> u32 {
        ((f64::from(sectors) * self.params.description.buffer.read_watermark) as u32).max(1)
    }

    /// Puts what a pass read into the buffer.
    #[inline]
    fn keep_read(&mut self, job: &HostJob, pass: &Pass) -> Option<usize> {
        let end = job.block + u64::from(job.sectors);
        let segment = match job.segment {
            Some(segment) if self.segments.end_of(segment) == job.block => {
                self.segments.touch(segment);
                segment
            }
            _ => self.segments.take_for_read(job.block)?,
        };
        self.segments.fill_to(segment, end);
        if self.params.description.buffer.keep_passing_sectors && job.segment.is_none() {
            let (first, _) = self.media.layout.track_bounds(job.block);
            let passed = self.media.spindle.sectors_in(pass.first_wait_ns, pass.sector_span);
            let from = job.block.saturating_sub(passed).max(first);
            self.segments.extend_front(segment, from);
        }
        Some(segment)
    }

    /// Starts read-ahead behind a pass; its least part belongs to the pass.
    #[inline]
    fn read_on(&mut self, pass: &Pass, end: u64, segment: usize) {
        if self.params.read_ahead == ReadAhead::None {
            return;
        }
        let limit = self.read_ahead_limit(end, segment);
        if end >= limit {
            return;
        }
        let leaves = self.leaves();
        let mut run = ReadAheadRun {
            segment,
            next: end,
            limit,
            at_ns: pass.end_ns,
            head: pass.head,
            leaves,
            sector_span: pass.sector_span,
            followers: pass.followers,
        };
        let least = end + u64::from(self.params.description.buffer.read_ahead_min_sectors);
        while run.next < least.min(run.limit) {
            let sector_ns = self.media.spindle.revolution_ns();
            run.advance(&self.media, run.at_ns + sector_ns);
            self.arm_free_ns = self.arm_free_ns.max(run.at_ns);
        }
        self.read_ahead = Some(run);
    }

    /// A write that is complete when it is on the media.
    fn write_through(&mut self, now_ns: u64, free_ns: u64, job: &HostJob, extent: &Extent) {
        let overheads = self.params.description.overheads;
        let goes_on = job.block == self.continues && now_ns == self.arm_free_ns;
        let overhead = if goes_on { 0 } else { job.overhead_ns };
        let transfer = u64::from(job.sectors) * self.params.sector_write_ns;
        let extra = self.params.description.interface.disconnect.and_then(|disconnect| disconnect.extra);
        let extra = extra.filter(|_| !job.sequential_write);
        let disconnect = self.params.description.interface.disconnect.unwrap_or_default();
        let (start, data_from, off_bus, reselect) = match extra {
            None => {
                let data_from = now_ns + overhead + overheads.data_preparation_ns;
                (now_ns + overhead, data_from, disconnect.write_ns, disconnect.first_reselect_ns)
            }
            Some(extra) => {
                let again = now_ns + extra.command_ns + extra.disconnect_ns + extra.between_ns;
                let data_from = again + disconnect.first_reselect_ns + overheads.data_preparation_ns;
                let start = now_ns + extra.command_ns + extra.seek_delta_ns;
                (start, data_from, extra.second_disconnect_ns, disconnect.other_reselect_ns)
            }
        };
        let start_ns = free_ns.max(start);
        let data_end = self.link.carry(data_from, transfer);
        self.read_ahead = None;
        let settled_ns = if goes_on { start_ns } else { start_ns + overheads.minimum_seek_delay_ns };
        let data_ns = self.data_ready_ns(data_from, data_end, job.sectors, extent);
        let access = Access {
            block: job.block,
            sectors: job.sectors,
            write: true,
            start_ns,
            settled_ns,
            data_ns,
            mark: job.sectors,
        };
        let pass = self.write_pass(access, extent, job.partial);
        let on_bus = pass.end_ns.max(data_end + off_bus) + if self.disconnects() { reselect } else { 0 };
        self.complete(job.id, now_ns, on_bus + overheads.write_completion_ns);
        self.segments.write(job.block, job.block + u64::from(job.sectors));
        self.account(&pass, overhead, start_ns);
        self.occupy(&pass, Service::Host, job.block + u64::from(job.sectors));
    }

    fn disconnects(&self) -> bool {
        self.params.description.interface.disconnect.is_some()
    }

    /// Writes a dirty extent.
    fn destage(&mut self, start_ns: u64, slot: u32, extent: &Extent) {
        let dirty = self.writes.begin(slot);
        self.read_ahead = None;
        self.counters.destages += 1;
        let sectors = (dirty.end - dirty.start) as u32;
        let access = Access {
            block: dirty.start,
            sectors,
            write: true,
            start_ns,
            settled_ns: start_ns + self.params.description.overheads.minimum_seek_delay_ns,
            data_ns: dirty.data_ns,
            mark: sectors,
        };
        let pass = self.write_pass(access, extent, dirty.partial);
        self.account(&pass, 0, start_ns);
        self.occupy(&pass, Service::Destage(slot), dirty.end);
    }

    /// The media part of a write.
    fn write_pass(&mut self, mut access: Access, extent: &Extent, partial: bool) -> Pass {
        if partial {
            // Part of a physical sector: read it, and write it when it comes round again.
            self.counters.read_modify_writes += 1;
            let read = self.media.pass_from(self.head, &Access { write: false, ..access }, extent);
            self.head = read.head;
            access.start_ns = read.end_ns;
            access.settled_ns = read.end_ns;
        }
        let mut pass = self.media.pass_from(self.head, &access, extent);
        self.retry(&mut pass);
        pass
    }

    /// When a media write may begin whose data come evenly from `data_from` to `data_end`: once all of them are in the
    /// buffer, or, in a drive that is known to begin earlier, once its prefill is there and the media cannot overtake
    /// the host any more.
    fn data_ready_ns(&self, data_from: u64, data_end: u64, sectors: u32, extent: &Extent) -> u64 {
        let Some(extra) = self.params.description.interface.disconnect.and_then(|disconnect| disconnect.extra) else {
            return data_end;
        };
        let media_ns = self.media.spindle.turn_ns(u64::from(extent.sector_span));
        let prefilled = data_from + u64::from(extra.prefill_sectors(sectors)) * self.params.sector_write_ns;
        prefilled.max(data_end.saturating_sub(u64::from(sectors - 1) * media_ns)).min(data_end)
    }

    /// Media errors: each failed pass costs a turn.
    #[inline]
    fn retry(&mut self, pass: &mut Pass) {
        let repeated = self.slow.repeated_passes();
        if repeated > 0 {
            let lost = u64::from(repeated) * self.media.spindle.revolution_ns();
            self.counters.retries += u64::from(repeated);
            pass.mark_ns += lost;
            pass.end_ns += lost;
            pass.rotation_ns += lost;
        }
    }

    #[inline]
    fn account(&mut self, pass: &Pass, overhead_ns: u64, start_ns: u64) {
        self.counters.seek_ns += pass.seek_ns;
        self.counters.rotation_ns += pass.rotation_ns;
        let span = pass.end_ns.saturating_sub(start_ns);
        self.counters.transfer_ns += span.saturating_sub(pass.seek_ns + pass.rotation_ns);
        self.counters.mechanism_ns += span;
        self.counters.overhead_ns += overhead_ns;
    }

    #[inline]
    fn occupy(&mut self, pass: &Pass, service: Service, continues: u64) {
        self.head = pass.head;
        self.arm_free_ns = pass.end_ns;
        self.continues = continues;
        self.in_service = Some(service);
    }

    /// Recalibration or a step of the background scan.
    fn start_internal(&mut self, now_ns: u64) {
        let free_ns = self.update_read_ahead(now_ns);
        if let Some(run) = self.read_ahead.take() {
            self.head = run.head;
        }
        let (busy_ns, step) = self.slow.start(now_ns, self.media.layout.blocks());
        self.in_service = Some(Service::Internal);
        self.arm_free_ns = free_ns + busy_ns;
        self.continues = NOWHERE;
        if let Some((block, sectors)) = step {
            let pass = self.media.pass(
                self.head,
                &Access {
                    block,
                    sectors,
                    write: false,
                    start_ns: free_ns,
                    settled_ns: free_ns,
                    data_ns: free_ns,
                    mark: sectors,
                },
            );
            self.head = pass.head;
            self.arm_free_ns = pass.end_ns;
        }
    }
}
