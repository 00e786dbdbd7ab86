//! [`Staging`]: writes on their way to the home location: first in the buffer, then in the media cache until a sweep
//! moves them home.

use std::collections::VecDeque;

use super::cleaning::{Cleaning, Shape};
use super::log::{Batch, Log, Piece};
use super::runs::Runs;
use crate::description::drive::{DriveDescription, MediaCache, WriteCache};
use crate::drive::InternalAccess;
use crate::drive::{Counters, Drive};
use crate::link::Upstream;

/// Id of an append to the log, which is an internal access. Ids of host commands are smaller.
pub const APPEND: u32 = u32::MAX;
/// Id of a media access of a cleaning.
pub const CLEANING: u32 = u32::MAX - 1;

/// Maximum size of a background access, in bytes. At 4 to 20 ms, such an access delays the host no longer than its own
/// requests do. Based on general knowledge; low confidence.
const STEP_BYTES: u32 = 2 << 20;

/// A write that has arrived but is not on the media yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    name: u32,
    started_ns: u64,
    data_ns: u64,
    /// Log position after the last sector of the write.
    end: u64,
    sectors: u64,
    /// Whether the host has already received the completion. Such a write counts toward the buffer's limit.
    early: bool,
    /// Whether the write must not complete before it is on the media.
    forced: bool,
}

/// A write that goes directly to its home location.
#[derive(Clone, Copy, Debug)]
struct Direct {
    name: u32,
    from: u64,
    to: u64,
}

/// Staging of writes: part of the buffer, the media cache, and the writes to the home location.
#[derive(Clone, Debug)]
pub struct Staging {
    cache: MediaCache,
    /// Number of sectors in a band of a shingled drive.
    band_sectors: Option<u64>,
    shape: Shape,
    sector_bytes: u64,
    /// Time from the firmware's decision to write until the first sector, in ns.
    overhead_ns: u64,
    early_sectors_max: u64,
    early_sectors: u64,
    log: Log,
    runs: Runs,
    pending: VecDeque<Pending>,
    /// Index of the first pending write that waits for room in the buffer to complete.
    first_waiting: usize,
    /// Flushes that wait for the media: name, start, and the log position up to which data must be on the media.
    flushes: VecDeque<(u32, u64, u64)>,
    latest_data_ns: u64,
    append: Option<Batch>,
    cleaning: Cleaning,
    directs: Vec<Direct>,
    /// End of the written part of a band that is being written from its start.
    open_band: Option<u64>,
    /// Rest of a band whose rewrite was interrupted.
    unfinished: Option<(u64, u64)>,
    /// Whether the cleaning in progress rewrites such a rest of a band.
    finishes: bool,
    writes: u64,
    appends: u64,
    hits: u64,
    destages: u64,
    cleanings: u64,
    direct_writes: u64,
}

impl Staging {
    /// Creates an empty media cache for the drive of a checked description.
    pub fn new(description: &DriveDescription, cache: &MediaCache) -> Self {
        let sector_bytes = u64::from(description.geometry.physical_sector_bytes);
        let per_sector = sector_bytes / u64::from(description.geometry.logical_block_bytes);
        let is_early = cache.dram_is_protected || description.buffer.write_cache != WriteCache::Off;
        let log = Log::new(cache.size_bytes / sector_bytes, cache.extents_max);
        Staging {
            cache: *cache,
            band_sectors: description.shingles.map(|shingles| shingles.band_bytes / sector_bytes),
            shape: Shape {
                home_block: log.sectors(),
                home_sectors: description.geometry.logical_blocks.div_ceil(per_sector),
                step_sectors: STEP_BYTES / sector_bytes as u32,
            },
            sector_bytes,
            overhead_ns: description.overheads.write_miss_ns.after_write,
            early_sectors_max: if is_early { cache.dram_bytes / sector_bytes } else { 0 },
            early_sectors: 0,
            log,
            runs: Runs::default(),
            pending: VecDeque::new(),
            first_waiting: 0,
            flushes: VecDeque::new(),
            latest_data_ns: 0,
            append: None,
            cleaning: Cleaning::default(),
            directs: Vec::new(),
            open_band: None,
            unfinished: None,
            finishes: false,
            writes: 0,
            appends: 0,
            hits: 0,
            destages: 0,
            cleanings: 0,
            direct_writes: 0,
        }
    }

    /// Returns the number of media sectors before the home area.
    pub fn home_block(&self) -> u64 {
        self.shape.home_block
    }

    /// Returns how long the host must be idle before cleaning starts, in ns.
    pub fn idle_ns(&self) -> u64 {
        self.cache.idle_ns
    }

    /// Whether there are data to move home.
    pub fn has_work(&self) -> bool {
        !self.log.is_clean() || !self.cleaning.is_over() || self.unfinished.is_some()
    }

    /// Whether no data are only in the buffer.
    pub fn is_durable(&self) -> bool {
        self.log.is_durable()
    }

    /// Adds the counters of the media cache to `counters`.
    pub fn count(&self, counters: &mut Counters) {
        counters.media_cache_writes = self.writes;
        counters.media_cache_appends = self.appends;
        counters.media_cache_hits = self.hits;
        counters.media_cache_destages = self.destages;
        counters.media_cache_cleanings = self.cleanings;
        counters.direct_writes = self.direct_writes;
    }

    /// Appends the pieces of the home sectors `[from, to)` with their locations.
    pub fn find(&mut self, from: u64, to: u64, pieces: &mut Vec<Piece>) {
        self.log.pieces(from, to, pieces);
        self.hits += u64::from(pieces.iter().any(|piece| piece.place != super::log::LogPlace::Home));
    }

    /// Whether a write goes directly to its home location. On a shingled drive, the write must be within one band. Must
    /// be called exactly once for every write; if it returns true, the caller must call [`Self::direct_done`] later.
    pub fn goes_direct(&mut self, name: u32, from: u64, to: u64) -> bool {
        let is_sequential = self.runs.extend(from, to - from) * self.sector_bytes >= self.cache.sequential_bytes;
        let direct = is_sequential
            && match self.band_sectors {
                None => self.is_at_home(from, to),
                Some(band) => self.opens_band(from, to, band),
            };
        if direct {
            self.directs.push(Direct { name, from, to });
            self.direct_writes += 1;
        } else if let (Some(next), Some(band)) = (self.open_band, self.band_sectors)
            && self.unfinished.is_none()
            && from < next.next_multiple_of(band)
            && to > next - next % band
        {
            self.leave_band(next, band);
        }
        direct
    }

    /// Whether no sector of a home range is in the log or being moved.
    fn is_at_home(&self, from: u64, to: u64) -> bool {
        !self.log.holds_any(from, to) && !self.cleaning.moves(from, to)
    }

    /// Whether a sequential write continues the open band, or starts a band that has no cached data.
    fn opens_band(&mut self, from: u64, to: u64, band: u64) -> bool {
        let goes_on = self.open_band == Some(from);
        let first = from - from % band;
        if !(goes_on || from == first) || self.unfinished.is_some() || !self.is_at_home(first, first + band) {
            return false;
        }
        if let Some(next) = self.open_band.filter(|_| !goes_on) {
            self.leave_band(next, band);
        }
        self.open_band = Some(to).filter(|&to| !to.is_multiple_of(band) && to < self.shape.home_sectors);
        true
    }

    /// Closes the open band. The rest of the band must be rewritten, because its start was overwritten in place.
    fn leave_band(&mut self, next: u64, band: u64) {
        self.open_band = None;
        self.unfinished = Some((next, next.next_multiple_of(band).min(self.shape.home_sectors)));
    }

    /// Records that a command is done. If the command was a direct write, its data are now at their home location.
    pub fn direct_done(&mut self, name: u32) {
        self.directs.retain(|direct| direct.name != name);
    }

    /// Drops the data of a trimmed range.
    pub fn trim(&mut self, from: u64, to: u64) {
        self.log.unmap(from, to, u64::MAX);
        self.log.drop_dead();
    }

    /// Accepts a write into the buffer and the log.
    #[allow(clippy::too_many_arguments)] // A command and its context.
    pub fn write(
        &mut self,
        drive: &mut Drive,
        upstream: &mut Upstream,
        now_ns: u64,
        name: u32,
        (from, to): (u64, u64),
        forced: bool,
    ) {
        self.writes += 1;
        let data_ns = drive.receive(upstream, now_ns, (to - from) as u32);
        self.latest_data_ns = self.latest_data_ns.max(data_ns);
        let mut next = from;
        while next < to {
            let sectors = (to - next).min(u64::from(self.log.record_max())) as u32;
            self.log.write(next, sectors);
            next += u64::from(sectors);
        }
        let forced = forced && !self.cache.dram_is_protected;
        let (end, sectors) = (self.log.head(), to - from);
        self.pending.push_back(Pending { name, started_ns: now_ns, data_ns, end, sectors, early: false, forced });
        self.complete_early(drive, now_ns);
        self.grow_append(drive, now_ns);
    }

    /// Completes writes that fit in the buffer, oldest first.
    fn complete_early(&mut self, drive: &mut Drive, now_ns: u64) {
        while let Some(write) = self.pending.get_mut(self.first_waiting) {
            if !write.forced {
                if self.early_sectors + write.sectors > self.early_sectors_max {
                    return;
                }
                self.early_sectors += write.sectors;
                write.early = true;
                drive.complete_write(write.name, write.started_ns, now_ns.max(write.data_ns));
            }
            self.first_waiting += 1;
        }
    }

    /// Extends an append that waits for the arm with the writes that arrived since it was queued.
    fn grow_append(&mut self, drive: &mut Drive, now_ns: u64) {
        if self.append.is_none() {
            return;
        }
        let Some(internal_access) = drive.waiting_internal_access(APPEND) else {
            return;
        };
        if let Some(batch) = self.log.next_batch(self.shape.step_sectors) {
            internal_access.sectors = batch.sectors;
            internal_access.ready_ns = internal_access.ready_ns.max(self.latest_data_ns.max(now_ns));
            self.append = Some(batch);
        }
    }

    /// Whether a power loss would lose the writes in the buffer.
    pub fn is_volatile(&self) -> bool {
        !self.cache.dram_is_protected && self.early_sectors_max + self.early_sectors > 0
    }

    /// Calls `each` with the parts of the home sectors `[from, to)` whose newest data are only in the buffer.
    pub fn buffered(&self, from: u64, to: u64, each: impl FnMut(u64, u64)) {
        self.log.undurable(from, to, each);
    }

    /// Returns the number of media cache sectors in use.
    pub fn logged_sectors(&self) -> u64 {
        self.log.used_sectors()
    }

    /// Returns the number of buffer sectors occupied by writes.
    pub fn buffered_sectors(&self) -> u64 {
        self.pending.iter().map(|write| write.sectors).sum()
    }

    /// Sets whether writes complete in the buffer or only when they are on the media.
    pub fn set_write_cache(&mut self, on: bool) {
        let is_early = self.cache.dram_is_protected || on;
        self.early_sectors_max = if is_early { self.cache.dram_bytes / self.sector_bytes } else { 0 };
    }

    /// Applies a power cycle. The contents of a protected buffer still go to the log, and an interrupted cleaning
    /// restarts.
    pub fn power_cycle(&mut self) {
        if self.cache.dram_is_protected {
            self.pending.iter_mut().for_each(|write| write.early = true);
            self.early_sectors = self.buffered_sectors();
            self.first_waiting = self.pending.len();
        } else {
            self.log.lose_undurable();
            self.pending.clear();
            (self.early_sectors, self.first_waiting) = (0, 0);
        }
        self.flushes.clear();
        self.append = None;
        self.directs.clear();
        self.unfinished = self.unfinished.or(self.cleaning.unfinished().filter(|_| self.finishes));
        self.finishes = false;
        self.cleaning = Cleaning::default();
    }

    /// Returns the number of flush parts that must wait for the media cache.
    pub fn flush_parts(&self) -> u32 {
        u32::from(!self.cache.dram_is_protected && self.early_sectors > 0)
    }

    /// Starts a flush part, which completes when all data written so far are on the media.
    pub fn flush(&mut self, now_ns: u64, name: u32) {
        self.flushes.push_back((name, now_ns, self.log.head()));
    }

    /// Records that an internal access of the media cache is done.
    pub fn internal_access_done(&mut self, drive: &mut Drive, now_ns: u64, id: u32) {
        if id == APPEND {
            let batch = self.append.take().expect("an append is in progress");
            self.log.appended(&batch);
            self.settle_pending(drive, now_ns);
        } else if self.cleaning.step_done() {
            self.cleaning.finish(&mut self.log);
            self.finishes = false;
        }
    }

    /// Completes writes and flushes whose data are now on the media.
    fn settle_pending(&mut self, drive: &mut Drive, now_ns: u64) {
        let durable = self.log.durable();
        while let Some(write) = self.pending.front().filter(|write| write.end <= durable) {
            if write.early {
                self.early_sectors -= write.sectors;
            } else {
                drive.complete_write(write.name, write.started_ns, now_ns);
            }
            self.pending.pop_front();
            self.first_waiting = self.first_waiting.saturating_sub(1);
        }
        self.complete_early(drive, now_ns);
        while let Some(&(name, started_ns, _)) = self.flushes.front().filter(|&&(_, _, end)| end <= durable) {
            drive.complete_write(name, started_ns, now_ns);
            self.flushes.pop_front();
        }
    }

    /// Submits internal accesses to the arm: appends at once, and cleaning when the host is `away` or the cache is
    /// nearly full.
    pub fn work(&mut self, drive: &mut Drive, upstream: &mut Upstream, now_ns: u64, away: bool) {
        let mut is_full = false;
        if self.append.is_none() && !self.log.is_durable() {
            self.append = self.log.next_batch(self.shape.step_sectors);
            is_full = self.append.is_none();
            if let Some(batch) = self.append {
                let ready_ns = self.latest_data_ns.max(now_ns + self.overhead_ns);
                let Batch { block, sectors, .. } = batch;
                self.appends += 1;
                drive.submit_internal_access(
                    upstream,
                    now_ns,
                    InternalAccess { id: APPEND, write: true, block, sectors, ready_ns },
                );
            }
        }
        let has_to = is_full || self.finishes || self.unfinished.is_some();
        if !away && !has_to && self.log.used_share() < self.cache.busy_share {
            return;
        }
        if self.cleaning.is_over() {
            self.start_cleaning();
        }
        while let Some(step) = self.cleaning.next_step(self.cache.sweep_window) {
            let (write, block, sectors) = (step.write, step.block, step.sectors);
            drive.submit_internal_access(
                upstream,
                now_ns,
                InternalAccess { id: CLEANING, write, block, sectors, ready_ns: now_ns },
            );
        }
    }

    fn start_cleaning(&mut self) {
        if let Some((from, to)) = self.unfinished.take() {
            self.finishes = true;
            return self.cleaning.rest_of_band(from, to, &self.shape);
        }
        let extents = match self.band_sectors {
            Some(band) => self.cleaning.band(&self.log, band, &self.shape),
            None => self.cleaning.sweep(&self.log, self.cache.sweep_bytes / self.sector_bytes, &self.shape),
        };
        if self.directs.iter().any(|direct| self.cleaning.moves(direct.from, direct.to)) {
            // Cleaning waits for the direct writes; otherwise it would overwrite them with older data.
            self.cleaning.abandon();
        } else if extents > 0 {
            self.destages += extents as u64;
            self.cleanings += 1;
        }
    }
}
