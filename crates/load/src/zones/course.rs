//! A job's way through the zones of a target.

use std::ops::Range;

use headstack_workload::Kind;

/// A request as it was drawn, on its way to a zone.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub kind: Kind,
    /// How many were drawn before it.
    pub number: u64,
    /// Where it was drawn, counted from the start of the job's part.
    pub drawn_bytes: u64,
    /// Its place in the job's part, counted from the part's start.
    pub position_bytes: u64,
    pub length_bytes: u32,
    /// A write that resets its zone first.
    pub resets: bool,
}

/// Which zones a job goes to, and how.
#[derive(Clone, Debug)]
pub struct Course {
    /// Its number among the jobs of the target.
    pub job: u32,
    pub is_sequential: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Its shortest request: what is left of a zone and is less is not used.
    pub least_bytes: u64,
    pub writes_remainder: bool,
    pub reads_beyond_pointer: bool,
    /// Zones that may be open at a time, of all jobs and of this one.
    pub open_max: usize,
    pub job_open_max: usize,
    /// Its zones, of which a sequential job visits one in so many (fio's `zoneskip`).
    pub range: Range<usize>,
    pub stride: usize,
    pub zone_bytes: u64,
    pub passed: Passed,
}

/// What a sequential job has passed over since it could not use it: by so much it is further than its draws.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// Bytes of all draws that are not placed yet.
    bytes: u64,
    /// The last of it: by which draw, and how much. It holds for that draw and those behind it, not for an earlier one that
    /// waits for its zone.
    by: Vec<(u64, u64)>,
    /// Draws so far.
    draws: u64,
}

impl Course {
    /// Zones that it visits.
    pub fn zones(&self) -> usize {
        self.range.len().div_ceil(self.stride)
    }

    fn part_bytes(&self) -> u64 {
        self.zones() as u64 * self.zone_bytes
    }

    /// A request that was drawn so many bytes behind the start of its part; `oldest` is the first that waits.
    pub fn draw(&mut self, kind: Kind, drawn_bytes: u64, length_bytes: u32, oldest: Option<u64>) -> Want {
        let number = self.passed.draws;
        self.passed.draws += 1;
        let Passed { bytes, by, .. } = &mut self.passed;
        by.retain(|(passer, passed_bytes)| {
            let holds_for_all = *passer <= oldest.unwrap_or(number);
            *bytes += if holds_for_all { *passed_bytes } else { 0 };
            !holds_for_all
        });
        let mut want = Want { kind, number, drawn_bytes, position_bytes: 0, length_bytes, resets: false };
        want.position_bytes = self.position_bytes(&want);
        want
    }

    /// The place of a request as it is now.
    pub fn position_bytes(&self, want: &Want) -> u64 {
        let Passed { bytes, by, .. } = &self.passed;
        let own: u64 = by.iter().filter(|(passer, _)| *passer <= want.number).map(|(_, bytes)| bytes).sum();
        (want.drawn_bytes + bytes + own) % self.part_bytes()
    }

    /// The zone of a place, and how far in it.
    pub fn locate(&self, position_bytes: u64) -> (usize, u64) {
        let visit = (position_bytes / self.zone_bytes) as usize;
        (self.range.start + visit * self.stride, position_bytes % self.zone_bytes)
    }

    pub fn holds(&self, zone: usize) -> bool {
        self.range.contains(&zone)
    }

    /// Where a place lies in the part, from 0 to 1.
    pub fn share(&self, want: &Want) -> f64 {
        want.position_bytes as f64 / self.part_bytes() as f64
    }

    /// A request goes on in the next zone: from its start where requests follow each other, else as far in it.
    pub fn move_to_next_zone(&mut self, want: &mut Want) {
        let step_bytes = match self.is_sequential {
            true => self.zone_bytes - want.position_bytes % self.zone_bytes,
            false => self.zone_bytes,
        };
        self.jump(want, step_bytes);
    }

    /// A request goes further on, and so do those that follow it.
    pub fn jump(&mut self, want: &mut Want, bytes: u64) {
        want.position_bytes = (want.position_bytes + bytes) % self.part_bytes();
        if self.is_sequential {
            self.passed.by.push((want.number, bytes));
        }
    }
}
