//! [`Zfs`] as a layer: requests and answers, places, data at risk, power, counters.

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use super::groups::{Change, Groups};
use super::log::Log;
use super::{HostRequest, Timer, Zfs};
use crate::repair::Filling;
use crate::snapshot::Snapshot;
use crate::spans::put_in_order;
use crate::stack::orders::{Answer, LayerModel, Orders};

/// Indexes of fill levels in [`headstack_result::LEVEL_NAMES`].
const IN_WRITE_CACHES: usize = 0;
const IN_READ_CACHES: usize = 1;
const IN_FLASH_CACHES: usize = 2;

impl LayerModel for Zfs {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let host = HostRequest { request: *request, submitted_ns: now_ns, began_ns: now_ns, records: 0, failed: None };
        if self.requests.len() <= id as usize {
            self.requests.resize(id as usize + 1, host);
        }
        self.requests[id as usize] = host;
        let work_ns = match request.kind {
            Kind::Read => self.zfs.read_ns,
            Kind::Write | Kind::Trim => self.zfs.write_ns,
            Kind::Flush => 0,
        };
        let at_ns = self.cores.work(now_ns, work_ns);
        if at_ns <= now_ns {
            return self.fire(now_ns, Timer::Begin(id), orders);
        }
        self.set_timer(at_ns, Timer::Begin(id));
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        let mut finished = std::mem::take(&mut self.finished);
        self.queues.finish(answer.id, orders, &mut finished);
        for io in &finished {
            let end = io.request.offset_bytes + u64::from(io.request.length_bytes);
            let is_flush = io.request.kind == Kind::Flush;
            let failed = answer.failed.map(|(at_bytes, _)| at_bytes).filter(|&at_bytes| is_flush || at_bytes < end);
            self.io_done(now_ns, io, failed, orders);
        }
        finished.clear();
        self.finished = finished;
    }

    fn next_event_ns(&self) -> u64 {
        self.timers.peek().map_or(u64::MAX, |timer| timer.0.0)
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(timer) = self.timers.peek()
            && timer.0.0 <= now_ns
        {
            let timer = timer.0.2;
            self.timers.pop();
            self.fire(now_ns, timer, orders);
        }
    }

    fn fillings_changed(&mut self, now_ns: u64, port: u32, fillings: &[Filling], orders: &mut Orders) {
        self.resilver(now_ns, port, fillings, orders);
    }

    fn scrub(&mut self, now_ns: u64, orders: &mut Orders) -> Option<Result<(), String>> {
        Some(self.begin_scrub(now_ns, orders))
    }

    /// The place of a record is that of the last synced group. A compressed record begins at its place.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        let end = (span.start_bytes + span.length_bytes).min(self.zfs.capacity_bytes);
        let mut run: Option<(u64, Span)> = None;
        let mut at = span.start_bytes;
        while at < end {
            let record = at / self.record_bytes;
            let next = ((record + 1) * self.record_bytes).min(end);
            let part = Span { start_bytes: at, length_bytes: next - at };
            let place = self.space.place(record).map(|slot| self.space.address(slot) + at % self.record_bytes);
            at = next;
            match (&mut run, place) {
                (Some((start, length)), Some(place)) if *start + length.length_bytes == place => {
                    length.length_bytes += part.length_bytes;
                }
                (_, place) => {
                    if let Some((place, part)) = run.take() {
                        each(self.data_port, place, part);
                    }
                    run = place.map(|place| (place, part));
                }
            }
        }
        if let Some((place, part)) = run {
            each(self.data_port, place, part);
        }
    }

    fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        let first = into.len();
        spans.iter().for_each(|span| self.unstable.within(*span, self.record_bytes, into));
        put_in_order(into, first);
    }

    /// A record is written to a new place, and a log record is replayed whole.
    fn atomic_bytes(&self) -> Option<u64> {
        Some(self.record_bytes)
    }

    fn holds_data(&self) -> bool {
        true
    }

    /// Memory is empty. Committed log records count as replayed: their data are where they were written.
    fn power_cycle(&mut self, now_ns: u64) {
        self.release_places();
        self.queues.power_cycle();
        self.arc.power_cycle();
        if let Some(l2arc) = &mut self.l2arc {
            l2arc.power_cycle(now_ns);
        }
        self.fetch.power_cycle();
        self.unstable.clear();
        self.groups = Groups::new(&self.zfs, now_ns);
        self.log = Log::new(self.files.count());
        self.cores.reset();
        self.timers.clear();
        self.requests.clear();
        self.reading.clear();
        self.failed_write = None;
        (self.scan, self.turn) = (None, None);
    }

    fn snapshot(&self, into: &mut Snapshot) {
        into.component("zfs CPU".to_owned(), self.cores.count(), self.cores.busy_ns, self.cores.waited_ns);
        let counters = &self.counters;
        for (name, value) in [
            ("arc_hits", counters.arc_hits),
            ("arc_misses", counters.arc_misses),
            ("zfs_prefetched_records", counters.prefetched),
            ("zfs_reads_for_writes", counters.reads_for_writes),
            ("l2arc_hits", counters.l2arc_hits),
            ("l2arc_written_bytes", self.l2arc.as_ref().map_or(0, |l2arc| l2arc.written_bytes)),
            ("zfs_changed_records", counters.changed_records),
            ("zfs_overwritten_records", counters.overwritten_records),
            ("zil_commits", counters.commits),
            ("zil_blocks", counters.log_blocks),
            ("zil_bytes", counters.log_bytes),
            ("zil_indirect_records", counters.indirect_records),
            ("txg_syncs", counters.groups),
            ("txg_data_bytes", counters.data_bytes),
            ("txg_metadata_bytes", counters.metadata_bytes),
            ("txg_flush_rounds", counters.group_flushes),
            ("dirty_throttle_ns", counters.throttle_ns),
            ("zfs_merged_io", self.queues.merged),
            ("zfs_failed_writes", counters.failed_writes),
        ] {
            into.count(name, value);
        }
        self.scans.snapshot(into);
    }

    fn add_levels(&self, into: &mut Levels) {
        into[IN_WRITE_CACHES] += self.groups.dirty_bytes;
        into[IN_READ_CACHES] += self.arc.cached_bytes();
        let stored = u64::from(self.stored_bytes);
        into[IN_FLASH_CACHES] += self.l2arc.as_ref().map_or(0, |l2arc| l2arc.cached_bytes(stored));
    }

    fn warm_with(&mut self, request: &Request) -> bool {
        if !self.caches_data || matches!(request.kind, Kind::Trim | Kind::Flush) {
            return true;
        }
        let mut missed = false;
        for record in self.records_of(request) {
            missed |= !self.arc.warm(record, self.stored_bytes);
        }
        missed || request.kind == Kind::Write
    }
}

impl Zfs {
    /// Makes the places free that groups took which will not sync.
    fn release_places(&mut self) {
        let mut slots = Vec::new();
        let mut of_group = |group: &super::groups::Group| {
            slots.extend_from_slice(&group.unused_slots);
            slots.extend(group.changes.values().filter_map(|change| match change {
                Change::Data { slot, .. } => *slot,
                Change::Free => None,
            }));
        };
        of_group(&self.groups.open);
        self.groups.quiesced.iter().for_each(&mut of_group);
        if let Some(syncing) = &self.groups.syncing {
            slots.extend_from_slice(&syncing.group.unused_slots);
            slots.extend(syncing.moves.iter().filter_map(|(_, slot)| *slot));
        }
        slots.into_iter().for_each(|slot| self.space.release(slot));
    }
}
