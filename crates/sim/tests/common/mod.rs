//! Descriptions for tests, and an independent computation of the places of sectors and the times of the mechanism.

pub mod arrays;
pub mod bench;
pub mod flash;

use headstack_result::RunResult;
use headstack_sim::drive::description::{
    BlockOrder, Buffer, DriveDescription, Geometry, Interface, InterfaceKind, Mechanics, Overheads, Policy, Queue,
    ReadAhead, SeekCurve, SlowProcesses, Sparing, WriteCache, Zone,
};
use headstack_sim::drive::{Completion, Drive};
use headstack_sim::{RunSpec, run};
use headstack_workload::{
    AccessLine, AccessSpecification, Addresses, Arrivals, Kind, Request, RunLength, Think, WarmUp, Workload,
};

pub const MS: u64 = 1_000_000;
pub const US: u64 = 1_000;
/// One turn of the test drive: 10,000 rpm.
pub const TURN_NS: u64 = 6 * MS;
/// Sectors of a track of the test drive.
pub const TRACK: u64 = 100;
/// One of its sectors under the head.
pub const SECTOR_NS: u64 = TURN_NS / TRACK;
/// Surfaces of the test drive.
pub const HEADS: u64 = 4;
/// Sectors of a cylinder of the test drive.
pub const CYLINDER: u64 = TRACK * HEADS;
/// Cylinders of the test drive.
pub const CYLINDERS: u64 = 1000;

/// A zone without spares, whose skews just cover a head switch of 1 ms (17 sectors of 60 us) and a single-cylinder seek
/// of 1.5 ms (25 sectors).
pub fn zone(first_cylinder: u32, last_cylinder: u32, sectors_per_track: u32) -> Zone {
    Zone {
        first_cylinder,
        last_cylinder,
        sectors_per_track,
        offset_turns: 0.0,
        track_skew_turns: 0.17,
        cylinder_skew_turns: 0.25,
        reserved_sectors: 0,
        spares: 0,
        slips: vec![],
        remaps: vec![],
    }
}

/// A bare mechanism: 10,000 rpm, 4 surfaces, 1,000 cylinders of 100 sectors a track; no buffer, no overheads, an
/// interface that takes no time, one command at a time.
pub fn bare_drive() -> DriveDescription {
    DriveDescription {
        name: "test drive".to_owned(),
        geometry: Geometry {
            logical_block_bytes: 512,
            physical_sector_bytes: 512,
            logical_blocks: CYLINDERS * CYLINDER,
            heads: HEADS as u32,
            cylinders: CYLINDERS as u32,
            order: BlockOrder::CylinderMajor,
            sparing: Sparing::None,
            zones: vec![zone(0, CYLINDERS as u32 - 1, TRACK as u32)],
        },
        mechanics: Mechanics {
            rpm: 10_000.0,
            seek: SeekCurve::Points(vec![(1, 1_500_000), (200, 4_000_000), (999, 10_000_000)]),
            read_settle_ns: 0,
            write_settle_ns: 0,
            head_switch_ns: MS,
            read_on_arrival: false,
            write_on_arrival: false,
        },
        queue: Queue::NONE,
        buffer: Buffer {
            segments: 0,
            segment_sectors: 256,
            read_ahead: ReadAhead::None,
            read_ahead_max_sectors: 256,
            read_ahead_min_sectors: 0,
            read_ahead_on_hit: false,
            keep_passing_sectors: false,
            read_hits_on_arriving: false,
            read_hits_on_writes: false,
            write_cache: WriteCache::Off,
            dirty_extents_max: 1,
            dirty_sectors_max: 1 << 20,
            separate_write_segment: false,
            read_watermark: 0.0,
            write_watermark: 1.0,
        },
        overheads: Overheads::default(),
        interface: Interface {
            kind: InterfaceKind::Scsi,
            read_ns_per_byte: 0.0,
            write_ns_per_byte: 0.0,
            host_tags: 256,
            host_elevator: Policy::Fcfs,
            host: None,
            disconnect: None,
        },
        slow: SlowProcesses::default(),
        flash_cache: None,
        media_cache: None,
        shingles: None,
        actuators: 1,
        power: None,
    }
}

/// The bare drive with a queue of `depth` under `policy`.
pub fn queueing_drive(policy: Policy, depth: u32) -> DriveDescription {
    let mut drive = bare_drive();
    (drive.queue.policy, drive.queue.depth, drive.interface.host_tags) = (policy, depth, depth);
    drive
}

pub fn read(sector: u64, sectors: u64) -> Request {
    request(Kind::Read, sector * 512, sectors * 512)
}

pub fn write(sector: u64, sectors: u64) -> Request {
    request(Kind::Write, sector * 512, sectors * 512)
}

pub fn flush() -> Request {
    request(Kind::Flush, 0, 0)
}

pub fn request(kind: Kind, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { kind, offset_bytes, length_bytes: length_bytes as u32, force_unit_access: false, ordered: false }
}

/// Submits each request at its time, in order, and runs until nothing is in flight; returns completions in order of
/// time.
pub fn serve_all(drive: &mut Drive, requests: &[(u64, Request)]) -> Vec<Completion> {
    let mut done = Vec::new();
    for (id, &(at_ns, ref request)) in requests.iter().enumerate() {
        drive.advance(at_ns, |completion| done.push(completion));
        drive.submit(at_ns, id as u32, request);
    }
    while !drive.is_idle() {
        let next_ns = drive.next_event_ns();
        drive.advance(next_ns, |completion| done.push(completion));
    }
    done
}

/// Submits one request and returns its latency; the drive may continue with destages or read-ahead.
pub fn serve(drive: &mut Drive, at_ns: u64, request: &Request) -> u64 {
    drive.advance(at_ns, |_| panic!("nothing else is under way"));
    drive.submit(at_ns, 0, request);
    loop {
        let mut done = None;
        drive.advance(drive.next_event_ns(), |completion| done = Some(completion.at_ns));
        if let Some(done_ns) = done {
            return done_ns - at_ns;
        }
    }
}

/// Small reproducible random numbers for the tests themselves (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Place of a sector.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub cylinder: u64,
    pub head: u64,
    pub turns: f64,
    pub sectors_per_track: u64,
    pub sectors_left_on_track: u64,
}

/// The mechanism in floating point, from the description and for cylinder-major zones without spares.
pub struct Mechanism<'a> {
    pub drive: &'a DriveDescription,
    pub cylinder: u64,
    pub head: u64,
}

impl<'a> Mechanism<'a> {
    pub fn at_rest(drive: &'a DriveDescription) -> Self {
        Mechanism { drive, cylinder: 0, head: 0 }
    }

    pub fn turn_ns(&self) -> f64 {
        60e9 / self.drive.mechanics.rpm
    }

    pub fn place(&self, sector: u64) -> Place {
        let heads = u64::from(self.drive.geometry.heads);
        let mut rest = sector;
        for zone in &self.drive.geometry.zones {
            let track = u64::from(zone.sectors_per_track);
            let sectors = u64::from(zone.last_cylinder - zone.first_cylinder + 1) * heads * track;
            if rest >= sectors {
                rest -= sectors;
                continue;
            }
            let (cylinder, head, on_track) = (rest / (heads * track), rest / track % heads, rest % track);
            let head_skews = (cylinder * (heads - 1) + head) as f64 * zone.track_skew_turns;
            let turns = zone.offset_turns
                + head_skews
                + cylinder as f64 * zone.cylinder_skew_turns
                + on_track as f64 / track as f64;
            return Place {
                cylinder: u64::from(zone.first_cylinder) + cylinder,
                head,
                turns: turns.rem_euclid(1.0),
                sectors_per_track: track,
                sectors_left_on_track: track - on_track,
            };
        }
        panic!("sector {sector} is beyond the drive");
    }

    /// Returns the time until `turns` is under the heads.
    pub fn wait_ns(&self, now_ns: f64, turns: f64) -> f64 {
        let ahead = (turns - now_ns / self.turn_ns()).rem_euclid(1.0);
        if ahead > 1.0 - 2e-6 { 0.0 } else { ahead * self.turn_ns() }
    }

    /// Seek over measured points, head switch and settling.
    pub fn position_ns(&self, to: Place, write: bool) -> f64 {
        let SeekCurve::Points(points) = &self.drive.mechanics.seek else { panic!("points are expected") };
        let distance = self.cylinder.abs_diff(to.cylinder) as f64;
        let mut seek = 0.0;
        if distance > 0.0 {
            let mut from = (0.0, 0.0);
            for &(d, ns) in points {
                let to = (f64::from(d), ns as f64);
                if distance > from.0 {
                    seek = from.1 + (to.1 - from.1) * (distance - from.0) / (to.0 - from.0);
                }
                from = to;
            }
        }
        if self.head != to.head {
            seek = f64::max(seek, self.drive.mechanics.head_switch_ns as f64);
        }
        let mechanics = &self.drive.mechanics;
        let settle = if write { mechanics.write_settle_ns } else { mechanics.read_settle_ns };
        if seek > 0.0 { seek + settle as f64 } else { 0.0 }
    }

    /// Moves to each track of a request in turn and transfers; returns (end of the first sector, end of the last).
    pub fn access(&mut self, start_ns: f64, sector: u64, sectors: u64, write: bool) -> (f64, f64) {
        let (mut now, mut done, mut first) = (start_ns, 0, None);
        while done < sectors {
            let place = self.place(sector + done);
            now += self.position_ns(place, write);
            now += self.wait_ns(now, place.turns);
            let here = place.sectors_left_on_track.min(sectors - done);
            let sector_ns = self.turn_ns() / place.sectors_per_track as f64;
            first.get_or_insert(now + sector_ns);
            now += here as f64 * sector_ns;
            (self.cylinder, self.head) = (place.cylinder, place.head);
            done += here;
        }
        (first.expect("a request has a sector"), now)
    }
}

/// Asserts that two times agree within a few nanoseconds of rounding.
#[track_caller]
pub fn assert_ns(found_ns: u64, expected_ns: f64, what: &str) {
    assert!((found_ns as f64 - expected_ns).abs() < 20.0, "{what}: {found_ns} ns, expected {expected_ns}");
}

/// Asserts that `found` is within `percent` of `expected`.
#[track_caller]
pub fn assert_close(found: f64, expected: f64, percent: f64, what: &str) {
    let error = 100.0 * (found / expected - 1.0);
    assert!(error.abs() <= percent, "{what}: {found}, expected {expected} ({error:+.3} %)");
}

/// Requests of one size, read and random by their percentages.
pub fn line(size_bytes: u32, read_percent: f64, random_percent: f64) -> AccessLine {
    AccessLine {
        size_bytes,
        share_percent: 100.0,
        read_percent,
        random_percent,
        trim_percent: 0.0,
        delay_ns: 0,
        burst: 1,
        align_bytes: None,
    }
}

/// `requests` of one kind of line under `arrivals`, without a warm-up.
pub fn workload(line: AccessLine, arrivals: Arrivals, requests: u64) -> Workload {
    Workload {
        name: "test workload".to_owned(),
        source: String::new(),
        specification: AccessSpecification { name: "test workload".to_owned(), lines: vec![line] },
        addresses: Addresses::Uniform,
        streams: 1,
        stream_turn: 1,
        flush_every: 0,
        sync_every: 0,
        dsync_every: 0,
        sequence: headstack_workload::Sequence::default(),
        arrivals,
        warm_up: WarmUp { requests: 0, time_ns: 0 },
        run_length: RunLength::Requests(requests),
    }
}

pub fn closed(queue_depth: u32) -> Arrivals {
    Arrivals::Closed { queue_depth, think: Think::None }
}

pub fn spec(drive: &DriveDescription, workload: Workload) -> RunSpec {
    let system = drive.clone().into();
    RunSpec {
        system_name: "test".to_owned(),
        system,
        demand: workload.into(),
        span: None,
        seed: 7,
        interval_ns: None,
        preload: 0,
        faults: None,
    }
}

/// Runs a specification and asserts that its own checks passed.
#[track_caller]
pub fn run_spec(spec: &RunSpec) -> RunResult {
    let result = run(spec, &|_| true).expect("the specification is possible");
    assert!(result.passed(), "{:?}", result.checks);
    result
}

/// Runs `requests` in a closed loop with this queue depth.
#[track_caller]
pub fn run_closed(drive: &DriveDescription, line: AccessLine, queue_depth: u32, requests: u64) -> RunResult {
    run_spec(&spec(drive, workload(line, closed(queue_depth), requests)))
}

pub fn counter(result: &RunResult, name: &str) -> u64 {
    result.counters.iter().find(|counter| counter.name == name).expect("a counter of that name").value
}

/// The part of a result that does not name what was run.
pub fn outcome(result: &RunResult) -> String {
    let mut anonymous = result.clone();
    (anonymous.system.name, anonymous.system.kind) = (String::new(), String::new());
    anonymous.system.description = Default::default();
    anonymous.system.hash = String::new();
    (anonymous.workload, anonymous.notes) = (Default::default(), vec![]);
    anonymous.to_json().expect("results are plain data")
}
