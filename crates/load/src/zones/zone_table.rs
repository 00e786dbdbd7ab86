//! [`ZoneTable`]: the zone table of a target, which decides where a request may go. It does no I/O.

use headstack_workload::Kind;

use super::course::{Course, ZoneRequest};

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    pub kind: ZoneKind,
    pub start_bytes: u64,
    /// Write pointer, in bytes; for a conventional zone, the end of its capacity.
    pub pointer_bytes: u64,
    pub capacity_end_bytes: u64,
    /// Whether the zone counts toward the limit of open zones, which it does until it is full or reset.
    pub is_open: bool,
    /// Whether a write, reset or finish is in flight. Only one is allowed at a time, so that no two can overtake each
    /// other on any kernel.
    pub is_busy: bool,
    /// Number of the job that opened the zone; 0 if it was already open.
    pub job: u32,
}

/// Type of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Readable and writable anywhere.
    Conventional,
    /// Writable only at its write pointer.
    Sequential,
    /// Offline or read-only, so not used.
    Lost,
}

impl Zone {
    /// Returns the number of readable bytes: those below the write pointer.
    pub fn readable_bytes(&self) -> u64 {
        match self.kind {
            ZoneKind::Lost => 0,
            ZoneKind::Conventional | ZoneKind::Sequential => self.pointer_bytes - self.start_bytes,
        }
    }

    /// Returns the number of bytes that may be written before a reset.
    pub fn left_bytes(&self) -> u64 {
        self.capacity_end_bytes - self.pointer_bytes
    }

    fn is_empty(&self) -> bool {
        self.pointer_bytes == self.start_bytes
    }
}

/// The next step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submit the request there; call [`ZoneTable::came_back`] when a write completes.
    Go { zone: usize, offset_bytes: u64, length_bytes: u32 },
    /// Reset the zone ([`ZoneTable::was_reset`]), then call `step` again.
    Reset(usize),
    /// Finish the zone ([`ZoneTable::was_finished`]), then call `step` again.
    Finish(usize),
    /// The request is a reset of this zone ([`ZoneTable::was_reset`]).
    Trim(usize),
    /// Wait until another request of the zone has completed.
    Wait,
    /// The job's zones have nothing to read or reset.
    Nothing,
}

/// The zones of a target.
#[derive(Clone, Debug)]
pub struct ZoneTable {
    zones: Vec<Zone>,
    zone_bytes: u64,
    /// Open zones.
    open: Vec<usize>,
    /// Bytes written and not reset, in zones with write pointers.
    valid_bytes: u64,
    /// Numbers of active jobs.
    jobs: Vec<u32>,
}

impl ZoneTable {
    pub fn new(zones: Vec<Zone>, zone_bytes: u64) -> ZoneTable {
        let open = (0..zones.len()).filter(|&zone| zones[zone].is_open).collect();
        let sequential = zones.iter().filter(|zone| zone.kind == ZoneKind::Sequential);
        let valid_bytes = sequential.map(Zone::readable_bytes).sum();
        ZoneTable { zones, zone_bytes, open, valid_bytes, jobs: Vec::new() }
    }

    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    pub fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// Starts a job. Returns its number, from 1.
    pub fn begin(&mut self) -> u32 {
        let job = (1..).find(|job| !self.jobs.contains(job) && !self.zones.iter().any(|zone| zone.job == *job));
        let job = job.expect("there are fewer jobs than numbers");
        self.jobs.push(job);
        job
    }

    /// Ends a job. Zones that it left open may then be finished to make room for other jobs.
    pub fn end(&mut self, job: u32) {
        self.jobs.retain(|known| *known != job);
    }

    /// Returns the next step of a job's request.
    pub fn step(&mut self, course: &mut Course, want: &mut ZoneRequest) -> Step {
        // Zones skipped since the draw are also skipped by waiting requests.
        if course.is_sequential {
            want.position_bytes = course.position_bytes(want);
        }
        match want.kind {
            Kind::Read => self.read(course, want),
            Kind::Write => self.write(course, want),
            Kind::Trim => self.trim(course, want),
            Kind::Flush => unreachable!("a flush goes to no zone"),
        }
    }

    fn write(&mut self, course: &mut Course, want: &mut ZoneRequest) -> Step {
        let least = course.least_bytes;
        // Each iteration but the last moves on to another zone.
        for _ in 0..=course.zones() {
            let (drawn, at_bytes) = course.locate(want.position_bytes);
            let zone = self.zones[drawn];
            match zone.kind {
                ZoneKind::Lost => {
                    course.move_to_next_zone(want);
                    continue;
                }
                ZoneKind::Conventional => return self.plain(drawn, at_bytes, want),
                ZoneKind::Sequential => {}
            }
            if course.is_sequential {
                let written = zone.pointer_bytes - zone.start_bytes;
                // The job passed this zone, or other jobs filled it; the remainder belongs to the next zone.
                if at_bytes >= zone.capacity_end_bytes - zone.start_bytes || (zone.left_bytes() == 0 && at_bytes > 0) {
                    course.move_to_next_zone(want);
                    continue;
                }
                if !zone.is_busy && zone.left_bytes() > 0 && at_bytes < written {
                    course.jump(want, written - at_bytes);
                }
            }
            let index = match zone.is_open || self.may_open(course) {
                true => drawn,
                false => match self.pick(course, want) {
                    ZonePick::Open(index) => index,
                    ZonePick::ToFinish(index) => {
                        self.zones[index].is_busy = true;
                        return Step::Finish(index);
                    }
                    ZonePick::Nothing => return Step::Wait,
                },
            };
            let zone = &mut self.zones[index];
            if zone.is_busy {
                return Step::Wait;
            }
            let left = zone.left_bytes();
            if left > 0 && left < least && !course.writes_remainder {
                zone.is_busy = true;
                if index == drawn {
                    course.move_to_next_zone(want);
                }
                return Step::Finish(index);
            }
            if left == 0 || (want.resets && !zone.is_empty()) {
                want.resets = false;
                zone.is_busy = true;
                return Step::Reset(index);
            }
            if !zone.is_open {
                (zone.is_open, zone.job) = (true, course.job);
                self.open.push(index);
            }
            let zone = &mut self.zones[index];
            zone.is_busy = true;
            let length_bytes = whole(u64::from(want.length_bytes).min(left), least);
            return Step::Go { zone: index, offset_bytes: zone.pointer_bytes, length_bytes };
        }
        Step::Nothing
    }

    fn read(&mut self, course: &mut Course, want: &mut ZoneRequest) -> Step {
        let least = course.least_bytes;
        for _ in 0..=course.zones() {
            let (index, at_bytes) = course.locate(want.position_bytes);
            let zone = self.zones[index];
            if course.reads_beyond_pointer && zone.kind != ZoneKind::Lost {
                return self.plain(index, at_bytes, want);
            }
            let readable = zone.readable_bytes();
            if readable < least || (course.is_sequential && at_bytes + least > readable) {
                course.move_to_next_zone(want);
                continue;
            }
            let wanted = u64::from(want.length_bytes).min(readable);
            let at_bytes = match course.is_sequential {
                true => at_bytes,
                false => at_bytes / least % ((readable - wanted) / least + 1) * least,
            };
            let length_bytes = whole(wanted.min(readable - at_bytes), least);
            return Step::Go { zone: index, offset_bytes: zone.start_bytes + at_bytes, length_bytes };
        }
        match course.writes {
            // As in fio, a job that reads and writes begins with writes.
            true => {
                want.kind = Kind::Write;
                self.write(course, want)
            }
            false => Step::Nothing,
        }
    }

    fn trim(&mut self, course: &mut Course, want: &mut ZoneRequest) -> Step {
        let mut waits = false;
        for _ in 0..=course.zones() {
            let (index, at_bytes) = course.locate(want.position_bytes);
            let zone = &mut self.zones[index];
            match zone.kind {
                ZoneKind::Conventional => return self.plain(index, at_bytes, want),
                ZoneKind::Sequential if zone.is_busy => {
                    waits = true;
                    if course.is_sequential {
                        return Step::Wait;
                    }
                }
                ZoneKind::Sequential if course.is_sequential || !zone.is_empty() => {
                    zone.is_busy = true;
                    return Step::Trim(index);
                }
                ZoneKind::Sequential | ZoneKind::Lost => {}
            }
            course.move_to_next_zone(want);
        }
        if waits { Step::Wait } else { Step::Nothing }
    }

    /// Returns the step for the drawn place, cut at the end of the zone.
    fn plain(&self, index: usize, at_bytes: u64, want: &ZoneRequest) -> Step {
        let zone = &self.zones[index];
        let offset_bytes = zone.start_bytes + at_bytes;
        let length_bytes = u64::from(want.length_bytes).min(self.zone_bytes - at_bytes) as u32;
        Step::Go { zone: index, offset_bytes, length_bytes }
    }

    fn may_open(&self, course: &Course) -> bool {
        let own = || self.open.iter().filter(|&&zone| self.zones[zone].job == course.job).count();
        self.open.len() < course.open_max && (course.job_open_max == usize::MAX || own() < course.job_open_max)
    }

    /// Returns an open zone to use instead of a zone that may not be opened: the zone whose rank among open zones
    /// corresponds to the drawn zone's rank among all, or the next free zone.
    fn pick(&self, course: &Course, want: &ZoneRequest) -> ZonePick {
        let is_job_full = self.open.len() < course.open_max;
        let is_candidate = |zone: &usize| course.holds(*zone) && (!is_job_full || self.zones[*zone].job == course.job);
        let mut candidates: Vec<usize> = self.open.iter().copied().filter(is_candidate).collect();
        candidates.sort_unstable();
        if candidates.is_empty() {
            let is_left = |zone: &&usize| {
                let Zone { is_busy, job, .. } = self.zones[**zone];
                !is_busy && !self.jobs.contains(&job)
            };
            return self.open.iter().find(is_left).map_or(ZonePick::Nothing, |zone| ZonePick::ToFinish(*zone));
        }
        let first = (course.share(want) * candidates.len() as f64) as usize;
        let in_turn = candidates.iter().cycle().skip(first).take(candidates.len());
        let free = in_turn.copied().find(|zone| !self.zones[*zone].is_busy);
        free.map_or(ZonePick::Nothing, ZonePick::Open)
    }

    /// Records that a write of `written_bytes` has completed.
    pub fn came_back(&mut self, index: usize, written_bytes: u64) {
        self.set_pointer(index, self.zones[index].pointer_bytes + written_bytes);
    }

    /// Sets the write pointer of a zone to that of the device.
    pub fn set_pointer(&mut self, index: usize, pointer_bytes: u64) {
        let zone = &mut self.zones[index];
        zone.is_busy = false;
        if zone.kind == ZoneKind::Sequential {
            self.valid_bytes = self.valid_bytes + pointer_bytes - zone.pointer_bytes;
            zone.pointer_bytes = pointer_bytes;
        }
        debug_assert!((zone.start_bytes..=zone.capacity_end_bytes).contains(&zone.pointer_bytes));
        if zone.left_bytes() == 0 {
            self.close(index);
        }
    }

    /// Records that a zone was reset.
    pub fn was_reset(&mut self, index: usize) {
        self.set_pointer(index, self.zones[index].start_bytes);
        self.close(index);
    }

    /// Records that a zone was finished.
    pub fn was_finished(&mut self, index: usize) {
        self.set_pointer(index, self.zones[index].capacity_end_bytes);
    }

    fn close(&mut self, index: usize) {
        let zone = &mut self.zones[index];
        if std::mem::take(&mut zone.is_open) {
            zone.job = 0;
            self.open.retain(|open| *open != index);
        }
    }

    /// Returns the number of bytes written and not reset.
    pub fn valid_bytes(&self) -> u64 {
        self.valid_bytes
    }
}

enum ZonePick {
    Open(usize),
    /// No active job opened this zone, so it can be finished to make room.
    ToFinish(usize),
    Nothing,
}

/// Rounds down to whole units; less than a unit is returned unchanged.
fn whole(bytes: u64, unit_bytes: u64) -> u32 {
    (if bytes < unit_bytes { bytes } else { bytes / unit_bytes * unit_bytes }) as u32
}
