//! [`Cleaning`]: moves the contents of a media cache to their home location: first reads, then writes in ascending
//! order; then the cache drops the data.

use super::log::{Cached, Log};

/// One media access of a cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleaningStep {
    /// Whether the access is a write.
    pub write: bool,
    /// First sector.
    pub block: u64,
    /// Length in sectors.
    pub sectors: u32,
}

/// A sweep over the drive, or the rewrite of one band. The lists are reused by the next cleaning.
#[derive(Clone, Debug, Default)]
pub struct Cleaning {
    steps: Vec<CleaningStep>,
    /// Number of steps that are reads. All reads finish before the first write starts.
    reads: usize,
    next: usize,
    under_way: u32,
    /// Home ranges that the cleaning writes.
    moved: Vec<(u64, u64)>,
    /// Log position below which the cleaning moves data.
    below: u64,
}

/// Position of the home area on the media, and the length of the longest access to it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// First sector of the home area.
    pub home_block: u64,
    /// Number of sectors in the home area.
    pub home_sectors: u64,
    /// Number of sectors in the longest access, which cannot be interrupted.
    pub step_sectors: u32,
}

impl Cleaning {
    /// Whether all steps have been issued and completed.
    pub fn is_over(&self) -> bool {
        self.next == self.steps.len() && self.under_way == 0
    }

    /// Whether the cleaning writes any of the home sectors `[from, to)`.
    pub fn moves(&self, from: u64, to: u64) -> bool {
        self.moved.iter().any(|&(begin, end)| from < end && begin < to)
    }

    /// Returns the next access if fewer than `window` accesses are in flight.
    pub fn next_step(&mut self, window: u32) -> Option<CleaningStep> {
        let waits_for_reads = self.next == self.reads && self.under_way > 0;
        if self.under_way >= window || waits_for_reads {
            return None;
        }
        let step = *self.steps.get(self.next)?;
        self.next += 1;
        self.under_way += 1;
        Some(step)
    }

    /// Records that an access is done; returns true after the last access.
    pub fn step_done(&mut self) -> bool {
        self.under_way -= 1;
        self.is_over()
    }

    /// Drops the moved data from the log.
    pub fn finish(&mut self, log: &mut Log) {
        for &(from, to) in &self.moved {
            log.unmap(from, to, self.below);
        }
        self.clear();
        log.drop_dead();
    }

    /// Returns the first home range of a cleaning that is not finished, if any.
    pub fn unfinished(&self) -> Option<(u64, u64)> {
        if self.is_over() { None } else { self.moved.first().copied() }
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.moved.clear();
        (self.reads, self.next, self.below) = (0, 0, 0);
    }

    /// Prepares to move the oldest `sectors` of the log home, in order of home address. Returns the number of extents.
    pub fn sweep(&mut self, log: &Log, sectors: u64, shape: &Shape) -> usize {
        self.clear();
        let (mut from, mut to) = (u64::MAX, 0);
        for record in log.durable_records() {
            if to > from && record.at >= from + sectors {
                break;
            }
            for live in log.live(*record) {
                (from, to) = (from.min(record.at), record.at + u64::from(record.sectors));
                self.moved.push((live.home, live.home + u64::from(live.sectors)));
            }
        }
        self.below = to;
        // The log is read without gaps, because reading dead data costs less than skipping it.
        while from < to {
            let block = log.block(from);
            let lap = (from - block + log.sectors()).min(to);
            self.add_steps(false, block, block + (lap - from), shape.step_sectors);
            from = lap;
        }
        self.reads = self.steps.len();
        self.moved.sort_unstable();
        let extents = self.moved.len();
        for at in 0..extents {
            let (from, to) = self.moved[at];
            self.add_steps(true, shape.home_block + from, shape.home_block + to, shape.step_sectors);
        }
        extents
    }

    /// Prepares to rewrite the band that owns the oldest data of the log. Returns the number of extents.
    pub fn band(&mut self, log: &Log, band_sectors: u64, shape: &Shape) -> usize {
        self.clear();
        let Some(oldest) = log.durable_records().find_map(|record| log.live(*record).next()) else {
            return 0;
        };
        let from = oldest.home - oldest.home % band_sectors;
        let to = (from + band_sectors).min(shape.home_sectors);
        self.below = log.durable();
        self.moved.push((from, to));
        self.add_steps(false, shape.home_block + from, shape.home_block + to, shape.step_sectors);
        let home_steps = self.steps.len();
        let on_media = |cached: &Cached| cached.at < log.durable();
        for cached in log.cached(from, to).filter(on_media) {
            self.steps.push(CleaningStep { write: false, block: log.block(cached.at), sectors: cached.sectors });
        }
        self.steps[home_steps..].sort_unstable_by_key(|step| step.block);
        self.reads = self.steps.len();
        self.add_steps(true, shape.home_block + from, shape.home_block + to, shape.step_sectors);
        self.reads - home_steps
    }

    /// Prepares to rewrite the end of a band after its start was written in place.
    pub fn rest_of_band(&mut self, from: u64, to: u64, shape: &Shape) {
        self.clear();
        self.moved.push((from, to));
        self.add_steps(false, shape.home_block + from, shape.home_block + to, shape.step_sectors);
        self.reads = self.steps.len();
        self.add_steps(true, shape.home_block + from, shape.home_block + to, shape.step_sectors);
    }

    /// Drops a prepared cleaning that has not started.
    pub fn abandon(&mut self) {
        self.clear();
    }

    fn add_steps(&mut self, write: bool, from: u64, to: u64, step_sectors: u32) {
        let mut block = from;
        while block < to {
            let sectors = (to - block).min(u64::from(step_sectors)) as u32;
            self.steps.push(CleaningStep { write, block, sectors });
            block += u64::from(sectors);
        }
    }
}
