//! [`Tending`]: directs one thread's requests to the zones of its targets.

use std::collections::VecDeque;
use std::sync::Arc;

use headstack_jobfiles::Zoning;
use headstack_result::{Counter, LatencyHistogram};
use headstack_workload::{Kind, Request};

use super::Zones;
use super::course::{Course, SkippedBytes, ZoneRequest};
use super::zone_table::{Step, ZoneKind};
use crate::LoadError;
use crate::clock::now_ns;
use crate::job::Job;
use crate::target::Target;
use crate::target_map::{TargetMap, TargetPlace};

/// The next step of a request.
pub enum Advance {
    /// Submit the request, as adapted to its zone.
    Submit(Request),
    /// The request is complete, with 0 after a zone reset or an error number.
    Done(Request, i32),
    /// Wait for the request's zone.
    Wait,
    /// There is nothing to read or reset, so the job is over.
    Nothing,
}

/// One thread's requests on their way to zones, and statistics of zone operations.
pub struct Tending {
    pieces: Vec<Piece>,
    slots: Vec<Slot>,
    map: TargetMap,
    /// Slots of waiting requests, in order.
    pub held: VecDeque<u32>,
    /// Durations of resets, whether requested or needed by a write, in ns.
    resets: LatencyHistogram,
    finishes: LatencyHistogram,
    reset_threshold: f64,
    /// Number of writes, above the threshold, per reset of a zone; 0 for no resets.
    writes_a_reset: u64,
    writes_to_reset: u64,
}

struct Piece {
    zones: Arc<Zones>,
    course: Course,
}

#[derive(Clone, Copy)]
struct Slot {
    piece: usize,
    want: ZoneRequest,
    /// The zone that the request keeps busy.
    written: Option<usize>,
}

impl Tending {
    /// Prepares the zones of a job's targets; `None` if the job does not use zones.
    ///
    /// # Errors
    /// Returns an error if targets have no such zones, or if the job's part has no whole zone.
    pub fn new(job: &Job) -> Result<Option<Tending>, LoadError> {
        let Some(zoning) = &job.zones else { return Ok(None) };
        let (map, span) = (job.target_map(), job.span()?);
        let mut pieces = Vec::new();
        let mut starts_bytes = 0u64;
        for (number, target) in job.targets.iter().enumerate() {
            let (start_bytes, length_bytes) = map
                .pieces()
                .get(number)
                .map_or((starts_bytes, map.capacity_bytes()), |piece| (piece.start_bytes, piece.length_bytes));
            starts_bytes = start_bytes + length_bytes;
            let end_bytes = (span.start_bytes + span.length_bytes).min(start_bytes + length_bytes);
            let part = span.start_bytes.max(start_bytes) - start_bytes..end_bytes.saturating_sub(start_bytes);
            let refused = |message| LoadError::Target { target: target.name().to_owned(), message };
            let zones = target.zones(zoning)?;
            let course = course(job, zoning, &zones, part).map_err(refused)?;
            pieces.push(Piece { zones, course });
        }
        for Piece { zones, course } in &mut pieces {
            course.job = zones.zone_table().begin();
        }
        let want = ZoneRequest {
            kind: Kind::Flush,
            number: 0,
            drawn_bytes: 0,
            position_bytes: 0,
            length_bytes: 0,
            resets: false,
        };
        let writes_a_reset = match zoning.reset_frequency > 0.0 {
            true => (1.0 / zoning.reset_frequency) as u64,
            false => 0,
        };
        Ok(Some(Tending {
            pieces,
            slots: vec![Slot { piece: 0, want, written: None }; job.depth() as usize],
            map,
            held: VecDeque::new(),
            resets: LatencyHistogram::new(),
            finishes: LatencyHistogram::new(),
            reset_threshold: zoning.reset_threshold,
            writes_a_reset,
            writes_to_reset: 0,
        }))
    }

    /// Returns the bytes of a pass over the job's part; for a sequential job, the capacity or the contents of its
    /// zones.
    pub fn pass_bytes(&self) -> u64 {
        self.pieces.iter().map(Piece::pass_bytes).sum()
    }

    /// Adds a drawn request that is not a flush; [`advance`](Self::advance) returns its next step.
    pub fn draw(&mut self, slot: u32, request: &Request) {
        let TargetPlace { piece, offset_bytes } = self.place(request);
        let oldest = self.held.iter().map(|slot| &self.slots[*slot as usize]).find(|slot| slot.piece == piece);
        let oldest = oldest.map(|slot| slot.want.number);
        let Piece { zones, course } = &mut self.pieces[piece];
        let start_bytes = course.range.start as u64 * course.zone_bytes;
        let drawn_bytes = offset_bytes.saturating_sub(start_bytes);
        let mut want = course.draw(request.kind, drawn_bytes, request.length_bytes, oldest);
        if request.kind == Kind::Write && self.writes_a_reset > 0 {
            let part_bytes = course.range.len() as f64 * course.zone_bytes as f64;
            if zones.zone_table().valid_bytes() as f64 >= self.reset_threshold * part_bytes {
                self.writes_to_reset = self.writes_to_reset.checked_sub(1).unwrap_or(self.writes_a_reset - 1);
                want.resets = self.writes_to_reset == 0;
            }
        }
        self.slots[slot as usize] = Slot { piece, want, written: None };
    }

    /// Returns the next step of the request in a slot. A reset of a device's zone goes through `reset`, which receives
    /// the piece, the zone's offset and length there, and a closure that executes the reset and returns whether it
    /// succeeded.
    pub fn advance(
        &mut self,
        slot: u32,
        request: &Request,
        mut reset: impl FnMut(usize, u64, u64, &mut dyn FnMut() -> bool),
    ) -> Advance {
        let here = &mut self.slots[slot as usize];
        let Slot { piece, ref mut want, .. } = *here;
        let Piece { zones, course } = &mut self.pieces[piece];
        let whole_start_bytes = self.map.pieces().get(piece).map_or(0, |piece| piece.start_bytes);
        loop {
            let step = zones.zone_table().step(course, want);
            let (zone, is_trim) = match step {
                Step::Wait => return Advance::Wait,
                Step::Nothing => return Advance::Nothing,
                Step::Go { zone, offset_bytes, length_bytes } => {
                    let is_pointed = zones.zone_table().zones()[zone].kind == ZoneKind::Sequential;
                    here.written = (want.kind == Kind::Write && is_pointed).then_some(zone);
                    let offset_bytes = whole_start_bytes + offset_bytes;
                    return Advance::Submit(Request { kind: want.kind, offset_bytes, length_bytes, ..*request });
                }
                Step::Finish(zone) => {
                    let start_ns = now_ns();
                    if let Err(error) = zones.finish(zone) {
                        return Advance::Done(*request, -error.raw_os_error().unwrap_or(libc::EIO));
                    }
                    self.finishes.record(now_ns() - start_ns);
                    continue;
                }
                Step::Reset(zone) => (zone, false),
                Step::Trim(zone) => (zone, true),
            };
            let (start_bytes, length_bytes) = zones.extent(zone);
            let start_ns = now_ns();
            let mut done = Ok(());
            let mut act = || {
                done = zones.reset(zone);
                done.is_ok()
            };
            match zones.are_of_device() {
                true => reset(piece, start_bytes, length_bytes, &mut act),
                // The data there remain, as in fio.
                false => drop(act()),
            }
            if let Err(error) = done {
                return Advance::Done(*request, -error.raw_os_error().unwrap_or(libc::EIO));
            }
            self.resets.record(now_ns() - start_ns);
            if is_trim {
                let offset_bytes = whole_start_bytes + start_bytes;
                // A zone above 4 GiB is longer than a request can be, so the length is limited.
                let length_bytes = u32::try_from(length_bytes).unwrap_or(u32::MAX / 4096 * 4096);
                return Advance::Done(Request { offset_bytes, length_bytes, ..*request }, 0);
            }
        }
    }

    /// Records that a request has completed, and whether it failed.
    #[inline(never)]
    pub fn came_back(&mut self, slot: u32, request: &Request, failed: bool) {
        let Slot { piece, written, .. } = &mut self.slots[slot as usize];
        let Some(zone) = written.take() else { return };
        let zones = &self.pieces[*piece].zones;
        match failed {
            true => zones.look_again(zone),
            false => zones.zone_table().came_back(zone, request.length_bytes.into()),
        }
    }

    /// Returns the counters of zone operations for results.
    pub fn counters(&self) -> Vec<Counter> {
        let mut counters = Vec::new();
        for (all, one, times) in
            [("zone_resets", "zone_reset", &self.resets), ("zone_finishes", "zone_finish", &self.finishes)]
        {
            let mut add = |name: String, value| counters.push(Counter { name, value });
            add(all.to_owned(), times.count());
            if times.count() > 0 {
                add(format!("{one}_p50_ns"), times.quantile_ns(0.5).unwrap_or(0));
                add(format!("{one}_max_ns"), times.max_ns());
            }
        }
        counters
    }

    fn place(&self, request: &Request) -> TargetPlace {
        match self.map.pieces() {
            // The null target has no file to locate a request in.
            [] => TargetPlace { piece: 0, offset_bytes: request.offset_bytes },
            _ => self.map.place(request),
        }
    }
}

impl Drop for Tending {
    fn drop(&mut self) {
        for Piece { zones, course } in &self.pieces {
            zones.zone_table().end(course.job);
        }
    }
}

impl Piece {
    fn pass_bytes(&self) -> u64 {
        let Piece { zones, course } = self;
        // As in fio, a job that skips zones continues until it has covered the length of its part.
        if course.stride > 1 {
            return course.range.len() as u64 * course.zone_bytes;
        }
        let zone_table = zones.zone_table();
        let visited = zone_table.zones()[course.range.clone()].iter();
        let of_zone = |zone: &super::zone_table::Zone| match (course.is_sequential, course.writes) {
            (false, _) => course.zone_bytes,
            (true, false) if course.reads_beyond_pointer => course.zone_bytes,
            (true, false) => zone.readable_bytes(),
            // A full zone is reset and written again.
            (true, true) if zone.left_bytes() == 0 => zone.capacity_end_bytes - zone.start_bytes,
            (true, true) => zone.left_bytes(),
        };
        visited.map(of_zone).sum()
    }
}

/// Returns the course of a job through the whole zones of its part of a target.
fn course(job: &Job, zoning: &Zoning, zones: &Zones, part: std::ops::Range<u64>) -> Result<Course, String> {
    let lines = &job.workload.specification.lines;
    let zone_bytes = zones.zone_table().zone_bytes();
    let count = zones.zone_table().zones().len();
    let first = part.start.div_ceil(zone_bytes) as usize;
    let end = ((part.end / zone_bytes) as usize).min(count);
    if first >= end {
        let size = headstack_workload::quantity::format_bytes(zone_bytes);
        return Err(format!("the part of job {} has no whole zone of {size}", job.name));
    }
    let longest_bytes = u64::from(job.longest_bytes());
    if longest_bytes > zone_bytes {
        return Err(format!("requests of {longest_bytes} bytes; the maximum is the zone size, {zone_bytes}"));
    }
    if !zoning.skip_bytes.is_multiple_of(zone_bytes) {
        return Err(format!(
            "zoneskip of {} bytes; must be a multiple of the zone size, {zone_bytes}",
            zoning.skip_bytes
        ));
    }
    let is_sequential = lines.iter().all(|line| line.random_percent == 0.0);
    let or_any = |limit: u32| if limit == 0 { usize::MAX } else { limit as usize };
    let block_bytes = Target::common_block_bytes(&job.targets);
    let least_bytes = lines.iter().map(|line| line.size_bytes).min().unwrap_or(block_bytes);
    Ok(Course {
        job: 0,
        is_sequential,
        writes: lines.iter().any(|line| line.read_percent < 100.0 && line.trim_percent < 100.0),
        least_bytes: least_bytes.into(),
        writes_remainder: zoning.writes_remainder,
        reads_beyond_pointer: zoning.reads_beyond_pointer,
        open_max: zones.open_max(zoning)?,
        job_open_max: or_any(zoning.job_open_max),
        range: first..end,
        stride: if is_sequential { 1 + (zoning.skip_bytes / zone_bytes) as usize } else { 1 },
        zone_bytes,
        passed: SkippedBytes::default(),
    })
}
