//! [`Course`]: a job's path through the zones of a target.

use std::ops::Range;

use headstack_workload::Kind;

/// A drawn request on its way to a zone.
#[derive(Clone, Copy, Debug)]
pub struct ZoneRequest {
    pub kind: Kind,
    /// Number of requests drawn earlier.
    pub number: u64,
    /// Drawn offset, in bytes from the start of the job's part.
    pub drawn_bytes: u64,
    /// Current offset, in bytes from the start of the job's part.
    pub position_bytes: u64,
    pub length_bytes: u32,
    /// Whether this write first resets its zone.
    pub resets: bool,
}

/// The zones of a job, and the order in which the job visits them.
#[derive(Clone, Debug)]
pub struct Course {
    /// Number of the job among the jobs of the target.
    pub job: u32,
    pub is_sequential: bool,
    /// Whether the job writes.
    pub writes: bool,
    /// Length of the shortest request, in bytes; a smaller remainder of a zone is not used.
    pub least_bytes: u64,
    pub writes_remainder: bool,
    pub reads_beyond_pointer: bool,
    /// Maximum number of open zones, of all jobs and of this job.
    pub open_max: usize,
    pub job_open_max: usize,
    /// Zones of the job; a sequential job visits every `stride`th of them (fio's `zoneskip`).
    pub range: Range<usize>,
    pub stride: usize,
    pub zone_bytes: u64,
    pub passed: SkippedBytes,
}

/// Unusable bytes that a sequential job has skipped; its offset is ahead of its draws by this amount.
#[derive(Clone, Debug, Default)]
pub struct SkippedBytes {
    /// Bytes that apply to all draws that are not placed yet.
    bytes: u64,
    /// Recently skipped bytes, each with the number of the draw that skipped them. They apply to that draw and later
    /// ones, but not to an earlier draw that waits for its zone.
    by: Vec<(u64, u64)>,
    /// Number of draws so far.
    draws: u64,
}

impl Course {
    /// Returns the number of zones that the job visits.
    pub fn zones(&self) -> usize {
        self.range.len().div_ceil(self.stride)
    }

    fn part_bytes(&self) -> u64 {
        self.zones() as u64 * self.zone_bytes
    }

    /// Draws a request at an offset from the start of the job's part. `oldest` is the first waiting request.
    pub fn draw(&mut self, kind: Kind, drawn_bytes: u64, length_bytes: u32, oldest: Option<u64>) -> ZoneRequest {
        let number = self.passed.draws;
        self.passed.draws += 1;
        let SkippedBytes { bytes, by, .. } = &mut self.passed;
        by.retain(|(passer, passed_bytes)| {
            let holds_for_all = *passer <= oldest.unwrap_or(number);
            *bytes += if holds_for_all { *passed_bytes } else { 0 };
            !holds_for_all
        });
        let mut want = ZoneRequest { kind, number, drawn_bytes, position_bytes: 0, length_bytes, resets: false };
        want.position_bytes = self.position_bytes(&want);
        want
    }

    /// Returns the current offset of a request, in bytes.
    pub fn position_bytes(&self, want: &ZoneRequest) -> u64 {
        let SkippedBytes { bytes, by, .. } = &self.passed;
        let own: u64 = by.iter().filter(|(passer, _)| *passer <= want.number).map(|(_, bytes)| bytes).sum();
        (want.drawn_bytes + bytes + own) % self.part_bytes()
    }

    /// Returns the zone of an offset, and the offset within it.
    pub fn locate(&self, position_bytes: u64) -> (usize, u64) {
        let visit = (position_bytes / self.zone_bytes) as usize;
        (self.range.start + visit * self.stride, position_bytes % self.zone_bytes)
    }

    pub fn holds(&self, zone: usize) -> bool {
        self.range.contains(&zone)
    }

    /// Returns the relative position of a request in the job's part, 0 to 1.
    pub fn share(&self, want: &ZoneRequest) -> f64 {
        want.position_bytes as f64 / self.part_bytes() as f64
    }

    /// Moves a request to the next zone: to its start for sequential jobs, otherwise to the same offset in it.
    pub fn move_to_next_zone(&mut self, want: &mut ZoneRequest) {
        let step_bytes = match self.is_sequential {
            true => self.zone_bytes - want.position_bytes % self.zone_bytes,
            false => self.zone_bytes,
        };
        self.jump(want, step_bytes);
    }

    /// Moves a request forward by `bytes`; in a sequential job, all later requests too.
    pub fn jump(&mut self, want: &mut ZoneRequest, bytes: u64) {
        want.position_bytes = (want.position_bytes + bytes) % self.part_bytes();
        if self.is_sequential {
            self.passed.by.push((want.number, bytes));
        }
    }
}
