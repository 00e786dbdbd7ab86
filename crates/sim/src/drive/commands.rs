//! Arrival of commands at a [`Drive`]: they are served from the buffer, accepted by the write cache, or queued for the
//! arm.

use headstack_workload::Request;

use super::buffer::Accepted;
use super::media::{ReadAheadReach, ReadAheadRun};
use super::queue::{HostJob, Job, Work};
use super::{Completion, Drive};
use crate::description::drive::{AfterReadWrite, ReadAhead, WriteCache as WriteCacheKind};
use crate::link::{Direction, Upstream};

impl Drive {
    /// Returns the first physical sector, the number of sectors, and whether the request starts or ends inside one.
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
    pub(super) fn after_last(&self, cost: AfterReadWrite) -> u64 {
        cost.after(self.last_was_read)
    }

    /// Occupies the firmware with a command for `overhead_ns`, one command at a time; returns when it is done.
    #[inline]
    pub(super) fn decode(&mut self, now_ns: u64, overhead_ns: u64) -> u64 {
        self.counters.overhead_ns += overhead_ns;
        self.firmware_free_ns = now_ns.max(self.firmware_free_ns) + overhead_ns;
        self.firmware_free_ns
    }

    /// Advances read-ahead and adds what it has read to the buffer.
    #[inline]
    pub(super) fn update_read_ahead(&mut self, now_ns: u64) -> u64 {
        let Some(run) = &mut self.read_ahead else {
            return now_ns;
        };
        let before = run.next;
        let free_ns = run.advance(&self.media, now_ns);
        self.counters.read_ahead_ns += (run.next - before) * self.media.spindle.turn_ns(u64::from(run.sector_span));
        // A segment that was reused meanwhile does not end where read-ahead was.
        if self.segments.end_of(run.segment) == before {
            self.segments.fill_to(run.segment, run.next);
            let segment = run.segment;
            self.log_segment(now_ns, segment);
        }
        free_ns
    }

    pub(super) fn submit_read(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let (block, sectors, _) = self.sectors_of(request);
        let end = block + u64::from(sectors);
        // Progress of read-ahead matters only to a read of blocks that it may have added or pushed out.
        if let Some(run) = &self.read_ahead
            && block < run.limit
            && end > self.segments.start_of(run.segment)
        {
            self.update_read_ahead(now_ns);
        }
        let overheads = &self.params.description.overheads;
        // An ordered command also holds back commands that the buffer could serve at once.
        let hit = if self.is_held_back(request.ordered) { None } else { self.segments.find(block) };
        let mut job = HostJob {
            id,
            write: false,
            block,
            sectors,
            buffered: 0,
            partial: false,
            sequential_write: false,
            cacheable: false,
            after_read: self.last_was_read,
            overhead_ns: self.after_last(overheads.read_miss_ns),
            segment: None,
        };
        match hit {
            Some(hit) if hit.end >= end => {
                self.counters.read_hits += 1;
                self.serve_hit(upstream, now_ns, id, block, sectors, hit.segment);
                self.last_was_read = true;
                return;
            }
            Some(hit) => {
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
                    job.segment = self.read_ahead.map(|run| run.segment);
                }
            }
        }
        self.last_was_read = true;
        self.enqueue(upstream, now_ns, now_ns, Work::Host(job), request.ordered);
    }

    /// Serves a read from the buffer: overhead, then the link.
    pub(super) fn serve_hit(
        &mut self,
        upstream: &mut Upstream,
        now_ns: u64,
        id: u32,
        block: u64,
        sectors: u32,
        segment: usize,
    ) {
        Self::log_hit(now_ns, id);
        let overheads = self.params.description.overheads;
        let decoded = self.decode(now_ns, self.after_last(overheads.read_hit_ns));
        let there = match self.filling {
            Some((filled, from, end_ns)) if filled == segment && block + u64::from(sectors) > from => end_ns,
            _ => 0,
        };
        let ready = decoded.max(there) + overheads.data_preparation_ns;
        let end = self.port.carry(ready, u64::from(sectors) * self.params.sector_read_ns);
        let end = self.pass_on(upstream, ready, sectors, end, Direction::Read);
        self.complete(id, now_ns, end + overheads.read_completion_ns);
        self.segments.touch(segment);
        self.continue_read_ahead(now_ns, block + u64::from(sectors), segment);
    }

    /// Continues the segment's read-ahead after a hit; restarts one that had ended if the drive does that.
    fn continue_read_ahead(&mut self, now_ns: u64, end: u64, segment: usize) {
        let limit = self.read_ahead_limit(end, segment, None);
        if let Some(run) = &mut self.read_ahead {
            if run.segment == segment && !run.is_done() {
                run.limit = run.limit.max(limit);
                return;
            }
            self.head = run.head;
        }
        let idle = self.in_service.is_none() && self.queue.is_empty();
        let next = self.segments.end_of(segment);
        if self.params.description.buffer.read_ahead_on_hit && idle && next < limit {
            let at_ns = now_ns.max(self.arm_free_ns) + self.after_last(self.params.description.overheads.read_miss_ns);
            let (head, leaves) = (self.head, self.leaves());
            let (into, sector_span, followers) = (0, 1, 0);
            self.read_ahead =
                Some(ReadAheadRun { segment, next, limit, at_ns, into, head, leaves, sector_span, followers });
        }
    }

    pub(super) fn leaves(&self) -> ReadAheadReach {
        match self.params.read_ahead {
            ReadAhead::None | ReadAhead::Track => ReadAheadReach::Nothing,
            ReadAhead::Cylinder => ReadAheadReach::Track,
            ReadAhead::Segment | ReadAhead::TrackAfterSequential => ReadAheadReach::Cylinder,
        }
    }

    /// Returns the end of the blocks that read-ahead may read after a request that ends at `end`. `track` holds the
    /// bounds of its track, if known.
    #[inline]
    pub(super) fn read_ahead_limit(&self, end: u64, segment: usize, track: Option<(u64, u64)>) -> u64 {
        let limit = self.wanted_read_ahead_limit(end, segment, track);
        if self.media_defects.is_clean() { limit } else { limit.min(self.media_defects.next_from(end)) }
    }

    #[inline]
    fn wanted_read_ahead_limit(&self, end: u64, segment: usize, track: Option<(u64, u64)>) -> u64 {
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
                let (first, last) = track.unwrap_or_else(|| self.media.layout.track_bounds(end));
                let crossed = self.segments.start_of(segment) < first;
                let next_track = if crossed { u64::from(self.media.layout.sectors_per_track(end)) } else { 0 };
                (last + next_track).min(blocks)
            }
        }
    }

    pub(super) fn submit_write(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let (block, sectors, partial) = self.sectors_of(request);
        self.update_read_ahead(now_ns);
        let overheads = &self.params.description.overheads;
        let sequential = block == self.last_write_end;
        let cached = !self.is_held_back(request.ordered) && self.is_cached(request, block, block + u64::from(sectors));
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
            after_read: self.last_was_read,
            overhead_ns: overhead,
            segment: None,
        };
        self.last_was_read = false;
        self.last_write_end = block + u64::from(sectors);
        if cached && self.writes.has_room(block, block + u64::from(sectors)) {
            let ready_ns = self.decode(now_ns, overhead);
            match self.accept(upstream, now_ns, ready_ns, &job) {
                Accepted::New(slot) => self.enqueue(upstream, now_ns, ready_ns, Work::Destage(slot), request.ordered),
                Accepted::Joined(slot) => self.destage_grew(slot),
            }
        } else {
            // Write through to the media, unless the write cache has room before the arm has time.
            self.enqueue(upstream, now_ns, now_ns, Work::Host(job), request.ordered);
        }
    }

    /// Whether a command must wait for the arm's queue: it is ordered and others are before it, or an ordered one is.
    #[inline]
    pub(super) fn is_held_back(&self, ordered: bool) -> bool {
        let busy = self.in_service.is_some() || !self.queue.is_empty();
        self.queue.has_ordered() || self.serves_ordered || (ordered && busy)
    }

    /// Whether the write may complete before it is on the media.
    fn is_cached(&self, request: &Request, start: u64, end: u64) -> bool {
        if request.force_unit_access && self.params.write_cache != WriteCacheKind::Protected {
            return false;
        }
        match self.params.write_cache {
            WriteCacheKind::Off => false,
            WriteCacheKind::On | WriteCacheKind::Protected => true,
            WriteCacheKind::Appending => {
                let idle = self.queue.is_empty() && self.in_service.is_none() && self.completions.is_empty();
                idle || (self.last_write_end == start && self.writes.has_room(start, end))
            }
        }
    }

    /// Accepts a write into the cache, which has room: its data cross the link from `ready_ns` on, then it is complete.
    pub(super) fn accept(
        &mut self,
        upstream: &mut Upstream,
        started_ns: u64,
        ready_ns: u64,
        job: &HostJob,
    ) -> Accepted {
        let overheads = self.params.description.overheads;
        let (start, end) = (job.block, job.block + u64::from(job.sectors));
        let transfer = u64::from(job.sectors) * self.params.sector_write_ns;
        let ready_ns = ready_ns + overheads.data_preparation_ns;
        let data_ns = self.port.carry(ready_ns, transfer);
        let data_ns = self.pass_on(upstream, ready_ns, job.sectors, data_ns, Direction::Write);
        self.counters.cached_writes += 1;
        self.complete(job.id, started_ns, data_ns + overheads.write_completion_ns);
        self.segments.write(start, end);
        let media_from_ns = if self.params.description.buffer.write_watermark < 1.0 {
            let extent = self.media.layout.locate(start, job.sectors);
            let data_from_ns = data_ns.saturating_sub(transfer).max(ready_ns);
            self.data_ready_ns(data_from_ns, data_ns, job.sectors, &extent)
        } else {
            data_ns
        };
        let accepted = self.writes.accept(start, end, media_from_ns, job.partial);
        self.log_cached(data_ns, job.id);
        accepted
    }

    /// Updates a waiting extent that another write joined.
    pub(super) fn destage_grew(&mut self, slot: u32) {
        let dirty = self.writes.get(slot);
        let extent = self.media.layout.locate(dirty.start, (dirty.end - dirty.start) as u32);
        self.queue.replace_destage(slot, dirty.start, extent);
    }

    pub(super) fn submit_flush(&mut self, now_ns: u64, id: u32) {
        if self.writes.is_empty() || self.params.write_cache == WriteCacheKind::Protected {
            let overhead = self.after_last(self.params.description.overheads.write_miss_ns);
            self.report_deferred(id);
            self.complete(id, now_ns, now_ns + overhead);
        } else {
            self.flushes.push_back((id, now_ns, self.writes.sequence()));
        }
    }

    /// Serves a trim, which does not touch the media: the buffered data of the range are dropped.
    pub(super) fn submit_trim(&mut self, now_ns: u64, id: u32, request: &Request) {
        let overhead = self.after_last(self.params.description.overheads.write_miss_ns);
        let (block, sectors, _) = self.sectors_of(request);
        self.segments.forget(block, block + u64::from(sectors));
        self.complete(id, now_ns, now_ns + overhead);
    }

    /// Gives a job to the arm, or adds it to the arm's queue.
    #[inline]
    fn enqueue(&mut self, upstream: &mut Upstream, now_ns: u64, arrived_ns: u64, work: Work, ordered: bool) {
        let (block, sectors) = match work {
            Work::Host(job) => (job.block, job.sectors),
            Work::Destage(slot) => {
                let dirty = self.writes.get(slot);
                (dirty.start, (dirty.end - dirty.start) as u32)
            }
            Work::InternalAccess(access) => (access.block, access.sectors),
        };
        let job = Job { work, block, extent: self.media.layout.locate(block, sectors), arrived_ns, ordered };
        self.hand_to_arm(upstream, now_ns, job);
    }

    #[inline(always)]
    pub(super) fn hand_to_arm(&mut self, upstream: &mut Upstream, now_ns: u64, job: Job) {
        if self.in_service.is_none() && self.queue.is_empty() {
            let free_ns = self.stop_read_ahead(now_ns);
            self.start(upstream, now_ns, free_ns, &job);
        } else {
            Self::log_wait(now_ns, &job);
            self.queue.push(job);
        }
    }

    /// Moves data that the port has transferred over the links behind it; returns when they have passed.
    #[inline]
    pub(super) fn pass_on(
        &self,
        upstream: &mut Upstream,
        ready_ns: u64,
        sectors: u32,
        port_end_ns: u64,
        direction: Direction,
    ) -> u64 {
        let interface = &self.params.description.interface;
        let ns_per_byte = match direction {
            Direction::Read => interface.read_ns_per_byte,
            Direction::Write => interface.write_ns_per_byte,
        };
        upstream.carry(ready_ns, u64::from(sectors) << self.params.sector_shift, ns_per_byte, port_end_ns, direction)
    }

    /// Inserts a completion in order (latest first).
    #[inline]
    pub(super) fn complete(&mut self, id: u32, started_ns: u64, at_ns: u64) {
        debug_assert!(started_ns <= at_ns, "a command ends after its begin");
        let completion = Completion { at_ns, id, started_ns };
        if self.completions.last().is_none_or(|next| next.at_ns > at_ns) {
            return self.completions.push(completion);
        }
        let at = self.completions.iter().rposition(|other| other.at_ns > at_ns).map_or(0, |at| at + 1);
        self.completions.insert(at, completion);
    }
}
