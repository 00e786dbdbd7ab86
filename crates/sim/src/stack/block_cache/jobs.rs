//! [`Jobs`]: copies of dirty data to the origin.

use std::collections::BTreeMap;

use crate::stack::extents::{Extent, cut};

/// A copy of dirty data, which are contiguous on the origin.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub start: u64,
    pub end: u64,
    /// Data that are to become clean; parts that were written again meanwhile are cut out.
    pub pieces: Vec<Extent>,
    /// Places on the cache device that it reads.
    pub sources: Vec<Extent>,
    /// Reads without an answer.
    pub reads: u32,
    pub has_failed: bool,
}

/// Copies under way, and those that wait for a flush of the origin.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    jobs: BTreeMap<u32, Job>,
    next: u32,
    /// Jobs by the start of their range: end and number. Ranges are disjoint.
    ranges: BTreeMap<u64, (u64, u32)>,
    bytes: u64,
    /// Bytes of jobs that read or write.
    pub copying_bytes: u64,
    /// Jobs that read or write.
    pub copying: u32,
    /// Jobs whose data the origin has, but perhaps only in its cache.
    pub written: Vec<u32>,
    /// Jobs that the flush under way covers.
    pub flushing: Option<Vec<u32>>,
}

impl Jobs {
    /// Adds a job that copies `[start, end)` from `sources` and makes `pieces` clean; returns its number.
    pub fn add(&mut self, (start, end): (u64, u64), sources: Vec<Extent>, pieces: Vec<Extent>) -> u32 {
        debug_assert!(self.at(start, end).is_none(), "a range is copied once");
        let number = self.next;
        self.next += 1;
        let reads = sources.len() as u32;
        self.jobs.insert(number, Job { start, end, pieces, sources, reads, has_failed: false });
        self.ranges.insert(start, (end, number));
        self.bytes += end - start;
        self.copying_bytes += end - start;
        self.copying += 1;
        number
    }

    /// Returns the places of pieces, as few runs of bytes on the cache device.
    pub fn sources_of(pieces: &[Extent]) -> Vec<Extent> {
        let mut sources: Vec<Extent> = Vec::new();
        for piece in pieces {
            match sources.last_mut() {
                Some(last) if last.continues_in(piece) => last.length += piece.length,
                Some(_) | None => sources.push(*piece),
            }
        }
        sources
    }

    /// Returns a job.
    pub fn get_mut(&mut self, number: u32) -> &mut Job {
        self.jobs.get_mut(&number).expect("the job is under way")
    }

    /// Returns the first job, if any, whose range overlaps `[from, to)`.
    pub fn at(&self, from: u64, to: u64) -> Option<u32> {
        let (_, &(end, number)) = self.ranges.range(..to).next_back()?;
        (end > from).then_some(number)
    }

    /// Cuts a range out of all jobs, because it changed: what they write is no longer the newest.
    pub fn forget(&mut self, from: u64, to: u64) {
        let Jobs { jobs, ranges, .. } = self;
        for (_, (end, number)) in ranges.range(..to).rev() {
            if *end <= from {
                return;
            }
            if let Some(job) = jobs.get_mut(number) {
                cut(&mut job.pieces, from, to);
            }
        }
    }

    /// Notes that a job no longer reads or writes.
    pub fn copied(&mut self, number: u32) {
        let Job { start, end, .. } = self.jobs[&number];
        self.copying_bytes -= end - start;
        self.copying -= 1;
    }

    /// Removes a job.
    pub fn remove(&mut self, number: u32) -> Job {
        let job = self.jobs.remove(&number).expect("the job is under way");
        self.ranges.remove(&job.start);
        self.bytes -= job.end - job.start;
        job
    }

    /// Returns the bytes of all jobs that are not clean yet.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
