//! The arm of a [`Drive`]: which job it serves next, and how long that occupies it and the host.

use super::buffer::Accepted;
use super::defective::Origin;
use super::geometry::Extent;
use super::media::{Access, Pass, ReadAheadRun};
use super::queue::{ArmState, HostJob, Job, Work};
use super::{Drive, NOWHERE, Service};
use crate::chronicle;
use crate::description::drive::ReadAhead;
use crate::link::{Direction, Upstream};
use crate::media_defects::Stretch;

impl Drive {
    pub(super) fn arm_becomes_free(&mut self, upstream: &mut Upstream) {
        let now_ns = self.arm_free_ns;
        (self.filling, self.serves_ordered) = (None, false);
        if let Some(Service::Destage(slot)) = self.in_service.take() {
            self.writes.finish(slot);
            self.log_destaged(now_ns);
            self.after_destage(upstream, now_ns);
        }
        if self.slow.recalibration_due(now_ns) {
            self.start_internal(now_ns);
        } else if !self.queue.is_empty() {
            self.dispatch(upstream, now_ns);
        }
    }

    /// Uses room in the write cache: accepts waiting writes, and completes flushes that are done.
    fn after_destage(&mut self, upstream: &mut Upstream, now_ns: u64) {
        while let Some((at, arrived_ns, job)) = self.queue.oldest_cacheable() {
            if !self.writes.has_room(job.block, job.block + u64::from(job.sectors)) {
                break;
            }
            // Its overhead was spent while it waited.
            match self.accept(upstream, arrived_ns, now_ns.max(arrived_ns + job.overhead_ns), &job) {
                Accepted::New(slot) => {
                    self.queue.cached(at, Some(slot));
                    self.log_wait_as_destage(now_ns, at);
                }
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
            self.report_deferred(id);
            self.complete(id, arrived_ns, now_ns);
        }
    }

    /// Gives the arm to the next job.
    fn dispatch(&mut self, upstream: &mut Upstream, now_ns: u64) {
        let free_ns = self.stop_read_ahead(now_ns);
        let overhead_ns = self.usual_overhead_ns();
        let start_ns = free_ns.max(now_ns + overhead_ns);
        while !self.queue.is_empty() {
            let arm = ArmState { head: self.head, continues: self.continues, start_ns };
            let job = self.queue.take(&self.media, arm, now_ns, overhead_ns);
            if !self.was_read_meanwhile(upstream, now_ns, &job) {
                return self.start(upstream, now_ns, free_ns, &job);
            }
        }
    }

    /// Serves a read that waited until others had brought its data into the buffer; returns whether it could.
    #[inline]
    fn was_read_meanwhile(&mut self, upstream: &mut Upstream, now_ns: u64, job: &Job) -> bool {
        let Work::Host(read) = &job.work else {
            return false;
        };
        let (block, sectors) = (read.block - u64::from(read.buffered), read.buffered + read.sectors);
        match self.segments.find(block) {
            Some(hit) if !read.write && hit.end >= block + u64::from(sectors) => {
                self.counters.read_hits += 1;
                self.serve_hit(upstream, now_ns, read.id, block, sectors, hit.segment);
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(super) fn start(&mut self, upstream: &mut Upstream, now_ns: u64, free_ns: u64, job: &Job) {
        self.serves_ordered = job.ordered;
        match &job.work {
            Work::Host(host) if host.write => {
                self.write_through(upstream, now_ns, free_ns, job.arrived_ns, host, &job.extent)
            }
            Work::Host(host) => self.read(upstream, now_ns, free_ns, host, &job.extent),
            Work::Destage(slot) => self.destage(job.arrived_ns.max(free_ns), *slot, &job.extent),
            Work::InternalAccess(access) => self.run_internal_access(now_ns, free_ns, access, &job.extent),
        }
    }

    /// Advances read-ahead and moves the heads to where it is; returns when the arm can be taken. A job that continues
    /// at that place may still join the read-ahead.
    #[inline]
    pub(super) fn stop_read_ahead(&mut self, now_ns: u64) -> u64 {
        let free_ns = self.update_read_ahead(now_ns);
        if let Some(run) = &self.read_ahead {
            self.head = run.head;
            self.continues = run.next;
        }
        free_ns
    }

    /// Returns the time that the scheduler expects a command to take before the arm moves.
    #[inline]
    fn usual_overhead_ns(&self) -> u64 {
        self.params.description.overheads.read_miss_ns.after_read
    }

    #[inline]
    fn read(&mut self, upstream: &mut Upstream, now_ns: u64, free_ns: u64, job: &HostJob, extent: &Extent) {
        // Counted only now: a waiting read may still find all its data in the buffer, and counters never decrease.
        self.counters.read_partial_hits += u64::from(job.segment.is_some());
        self.counters.read_misses += u64::from(job.segment.is_none());
        let overheads = self.params.description.overheads;
        let joined = self.read_ahead.is_some_and(|run| run.next == job.block && !run.is_done());
        let goes_on = joined || (job.block == self.continues && now_ns == self.arm_free_ns);
        // A read that continues where the heads are costs the arm nothing; the host still waits for the firmware.
        let hit_overhead_ns = overheads.read_hit_ns.after(job.after_read);
        let decoded_ns = self.decode(now_ns, if goes_on { hit_overhead_ns } else { job.overhead_ns });
        let (start_ns, from) = match self.read_ahead {
            Some(run) if joined => (run.ready_ns(&self.media), run.head),
            _ if goes_on => (now_ns, self.head),
            _ => (free_ns.max(decoded_ns), self.head),
        };
        self.read_ahead = None;
        let total = job.buffered + job.sectors;
        let settled_ns = if goes_on { start_ns } else { now_ns + overheads.read_settled_min_ns.after(job.after_read) };
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
        let (mut pass, bad) = self.pass_over(from, &access, extent, Origin::Host);
        self.retry(&mut pass);
        if let Some(bad) = bad {
            return self.fail_read(now_ns, decoded_ns, start_ns, job.id, &pass, bad);
        }
        let ready = match self.params.description.interface.disconnect {
            // The data in the buffer go out at once, and the drive keeps the bus for the rest.
            _ if job.buffered > 0 && goes_on => decoded_ns + overheads.data_preparation_ns,
            _ if job.buffered > 0 => now_ns + hit_overhead_ns + overheads.data_preparation_ns,
            None => pass.mark_ns.max(decoded_ns + overheads.data_preparation_ns),
            Some(disconnect) => {
                let off_bus_ns = decoded_ns + disconnect.read_ns.after(job.after_read);
                pass.mark_ns.max(off_bus_ns) + disconnect.first_reselect_ns + overheads.data_preparation_ns
            }
        };
        let transfer = u64::from(total) * self.params.sector_read_ns;
        let done = self.port.promise(ready, transfer, pass.end_ns + self.params.sector_read_ns);
        let done = self.pass_on(upstream, ready, total, done, Direction::Read);
        self.complete(job.id, now_ns, done + overheads.read_completion_ns);
        let segment = self.keep_read(job, &pass);
        self.filling = segment.map(|segment| (segment, job.block, pass.end_ns));
        self.log_access(now_ns, (chronicle::Work::Command, job.id, false), start_ns, &pass, extent);
        if let Some(segment) = segment {
            self.log_segment(pass.end_ns, segment);
        }
        self.account(&pass, start_ns);
        self.occupy(&pass, Service::Read, job.block + u64::from(job.sectors));
        if let Some(segment) = segment {
            self.start_read_ahead(&pass, job.block + u64::from(job.sectors), segment);
        }
    }

    /// Returns how many sectors of a read must be in the buffer before they go to the host.
    #[inline]
    fn mark(&self, sectors: u32) -> u32 {
        ((f64::from(sectors) * self.params.description.buffer.read_watermark) as u32).max(1)
    }

    /// Puts the data of a pass into the buffer.
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
            let mut from = job.block.saturating_sub(passed).max(first);
            if !self.media_defects.is_clean() {
                from = self.media_defects.clear_since(from, job.block);
            }
            self.segments.extend_front(segment, from);
        }
        Some(segment)
    }

    /// Starts read-ahead after a pass; its minimum belongs to the pass.
    #[inline]
    fn start_read_ahead(&mut self, pass: &Pass, end: u64, segment: usize) {
        if self.params.read_ahead == ReadAhead::None {
            return;
        }
        let track = (pass.followers > 0).then(|| (pass.track_first, end + u64::from(pass.followers)));
        let limit = self.read_ahead_limit(end, segment, track);
        if end >= limit {
            return;
        }
        self.read_ahead = Some(ReadAheadRun {
            segment,
            next: end,
            limit,
            at_ns: pass.end_ns,
            into: 0,
            head: pass.head,
            leaves: self.leaves(),
            sector_span: pass.sector_span,
            followers: pass.followers,
        });
        if self.params.description.buffer.read_ahead_min_sectors > 0 {
            self.read_least(end, limit);
        }
    }

    /// Reads the part of read-ahead after `end` that no other command interrupts.
    fn read_least(&mut self, end: u64, limit: u64) {
        let Some(run) = &mut self.read_ahead else { return };
        let least = limit.min(end + u64::from(self.params.description.buffer.read_ahead_min_sectors));
        run.limit = least;
        while !run.is_done() {
            // A wait and a track take at most two turns: each round reads something or moves the heads.
            run.advance(&self.media, run.ready_ns(&self.media) + 3 * self.media.spindle.revolution_ns());
        }
        if run.next == least {
            run.limit = limit;
        }
        if run.next > end {
            self.arm_free_ns = run.ready_ns(&self.media);
            self.segments.fill_to(run.segment, run.next);
        }
    }

    /// Serves a write that is complete when it is on the media.
    fn write_through(
        &mut self,
        upstream: &mut Upstream,
        now_ns: u64,
        free_ns: u64,
        arrived_ns: u64,
        job: &HostJob,
        extent: &Extent,
    ) {
        let overheads = self.params.description.overheads;
        let goes_on = job.block == self.continues && now_ns == self.arm_free_ns;
        let decoded_ns = self.decode(now_ns, job.overhead_ns);
        let transfer = u64::from(job.sectors) * self.params.sector_write_ns;
        let extra = self.params.description.interface.disconnect.and_then(|disconnect| disconnect.extra);
        let extra = extra.filter(|_| !job.sequential_write);
        let disconnect = self.params.description.interface.disconnect.unwrap_or_default();
        let (start, data_from, off_bus, reselect) = match extra {
            // It waited for the write that it follows: its data are there, and the arm need not wait for the firmware.
            None if goes_on => {
                let data_from = arrived_ns + job.overhead_ns + overheads.data_preparation_ns;
                (now_ns, data_from, disconnect.write_ns, disconnect.first_reselect_ns)
            }
            None => {
                let data_from = decoded_ns + overheads.data_preparation_ns;
                (decoded_ns, data_from, disconnect.write_ns, disconnect.first_reselect_ns)
            }
            Some(extra) => {
                let again = now_ns + extra.command_ns + extra.disconnect_ns + extra.between_ns;
                let data_from = again + disconnect.first_reselect_ns + overheads.data_preparation_ns;
                let start = now_ns + extra.command_ns + extra.seek_delta_ns;
                (start, data_from, extra.second_disconnect_ns, disconnect.other_reselect_ns)
            }
        };
        let start_ns = free_ns.max(start);
        let data_end = self.port.carry(data_from, transfer);
        let data_end = self.pass_on(upstream, data_from, job.sectors, data_end, Direction::Write);
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
        let (pass, bad) = self.write_pass(access, extent, job.partial);
        let on_bus =
            pass.end_ns.max(decoded_ns).max(data_end + off_bus) + if self.disconnects() { reselect } else { 0 };
        self.complete(job.id, now_ns, on_bus + overheads.write_completion_ns);
        self.segments.write(job.block, job.block + u64::from(job.sectors));
        if let Some(bad) = bad {
            self.segments.forget(job.block, job.block + u64::from(job.sectors));
            self.fail(job.id, bad, true);
        }
        self.log_access(now_ns, (chronicle::Work::Command, job.id, true), start_ns, &pass, extent);
        self.account(&pass, start_ns);
        self.occupy(&pass, Service::Write, job.block + u64::from(job.sectors));
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
        let (pass, bad) = self.write_pass(access, extent, dirty.partial);
        if let Some(bad) = bad {
            self.media_defects.defer(bad);
        }
        self.log_access(start_ns, (chronicle::Work::Destage, slot, true), start_ns, &pass, extent);
        self.account(&pass, start_ns);
        self.occupy(&pass, Service::Destage(slot), dirty.end);
    }

    /// Performs the media part of a write; returns where it failed, if it did.
    fn write_pass(&mut self, mut access: Access, extent: &Extent, partial: bool) -> (Pass, Option<Stretch>) {
        if partial {
            // Part of a physical sector: read it, and write it one turn later.
            self.counters.read_modify_writes += 1;
            let read = Access { write: false, ..access };
            let (read, bad) = self.pass_over(self.head, &read, extent, Origin::Host);
            if bad.is_some() {
                return (read, bad);
            }
            self.head = read.head;
            access.start_ns = read.end_ns;
            access.settled_ns = read.end_ns;
        }
        let (mut pass, bad) = self.pass_over(self.head, &access, extent, Origin::Host);
        self.retry(&mut pass);
        if self.slow.verifies_writes() {
            let turn_ns = self.media.spindle.revolution_ns();
            let written_ns = pass.end_ns - access.start_ns - pass.seek_ns - pass.rotation_ns;
            let read_back_ns = (written_ns / turn_ns + 1) * turn_ns;
            pass.end_ns += read_back_ns;
            pass.rotation_ns += read_back_ns;
        }
        (pass, bad)
    }

    /// Returns when a media write may begin whose data arrive evenly from `data_from` to `data_end`: once the buffer
    /// holds the share of the drive's watermark, and the media can no longer overtake the host.
    pub(super) fn data_ready_ns(&self, data_from: u64, data_end: u64, sectors: u32, extent: &Extent) -> u64 {
        let extra = self.params.description.interface.disconnect.and_then(|disconnect| disconnect.extra);
        let mark = match extra {
            Some(extra) => extra.prefill_sectors(sectors),
            None => ((f64::from(sectors) * self.params.description.buffer.write_watermark) as u32).max(1),
        };
        if mark >= sectors {
            return data_end;
        }
        let media_ns = self.media.spindle.turn_ns(u64::from(extent.sector_span));
        let prefilled = data_from + u64::from(mark) * self.params.sector_write_ns;
        prefilled.max(data_end.saturating_sub(u64::from(sectors - 1) * media_ns)).min(data_end)
    }

    /// Applies media errors: each failed pass costs a turn.
    #[inline]
    pub(super) fn retry(&mut self, pass: &mut Pass) {
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
    pub(super) fn account(&mut self, pass: &Pass, start_ns: u64) {
        self.counters.seek_ns += pass.seek_ns;
        self.counters.rotation_ns += pass.rotation_ns;
        let span = pass.end_ns.saturating_sub(start_ns);
        self.counters.transfer_ns += span.saturating_sub(pass.seek_ns + pass.rotation_ns);
        self.counters.mechanism_ns += span;
    }

    #[inline]
    pub(super) fn occupy(&mut self, pass: &Pass, service: Service, continues: u64) {
        self.head = pass.head;
        self.arm_free_ns = pass.end_ns;
        self.continues = continues;
        self.in_service = Some(service);
    }

    /// Starts recalibration or a step of the background scan.
    pub(super) fn start_internal(&mut self, now_ns: u64) {
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
