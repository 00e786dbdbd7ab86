//! The bare loop: what any simulation of a drive does at the least, written without a simulator round it.
//!
//! A random block becomes a cylinder and an angle by division, the seek is looked up by distance, the wait follows from
//! a fixed-point angle, the response time goes into a histogram; with a queue, every candidate's seek and wait are
//! computed and the shortest wins. No zones, skews, buffer, overheads, interface, bookkeeping, checks or events: the
//! distance between this and the simulator is the price of all of those.

use std::hint::black_box;
use std::time::Instant;

use headstack_result::content_hash;
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::drive::mechanics::Arm;

use crate::rows::deep_drive;
use crate::size::Size;

/// A drive of one zone.
pub struct BareDrive {
    blocks: u64,
    blocks_per_cylinder: u64,
    blocks_per_track: u64,
    /// 2^-32 turns of one block.
    block_angle: u32,
    /// Blocks of a request.
    request_blocks: u64,
    /// By distance in cylinders.
    seek_ns: Vec<u32>,
    /// 2^-64 turns in a nanosecond.
    turns_per_ns: u64,
    /// 2^-36 ns in 2^-32 turns.
    ns_per_angle: u64,
}

#[derive(Clone, Copy)]
struct Candidate {
    cylinder: u32,
    angle: u32,
    arrived_ns: u64,
}

impl BareDrive {
    /// The drive's capacity, speed and seeks, with one mean track for all of its zones.
    pub fn new(description: &DriveDescription, request_bytes: u64) -> BareDrive {
        let geometry = &description.geometry;
        let blocks = geometry.logical_blocks;
        let cylinders = u64::from(geometry.cylinders);
        let blocks_per_track = blocks.div_ceil(cylinders * u64::from(geometry.heads));
        let turn_ns = 60e9 / description.mechanics.rpm;
        let arm = Arm::new(&description.mechanics, geometry.cylinders);
        BareDrive {
            blocks,
            blocks_per_cylinder: blocks_per_track * u64::from(geometry.heads),
            blocks_per_track,
            block_angle: (4_294_967_296.0 / blocks_per_track as f64) as u32,
            request_blocks: request_bytes / u64::from(geometry.logical_block_bytes),
            seek_ns: (0..geometry.cylinders).map(|distance| arm.seek_ns(distance)).collect(),
            turns_per_ns: (18_446_744_073_709_551_616.0 / turn_ns) as u64,
            ns_per_angle: (turn_ns * 16.0) as u64,
        }
    }

    #[inline]
    fn random_candidate(&self, random: &mut SplitMix, arrived_ns: u64) -> Candidate {
        let places = self.blocks / self.request_blocks;
        let block = random.below(places) * self.request_blocks;
        Candidate {
            cylinder: (block / self.blocks_per_cylinder) as u32,
            angle: ((block % self.blocks_per_track) as u32).wrapping_mul(self.block_angle),
            arrived_ns,
        }
    }

    /// Time from `now_ns` until the heads, now on `cylinder`, reach the candidate's first sector.
    #[inline]
    fn positioning_ns(&self, now_ns: u64, cylinder: u32, candidate: &Candidate) -> u64 {
        let seek_ns = u64::from(self.seek_ns[cylinder.abs_diff(candidate.cylinder) as usize]);
        let under_heads = ((now_ns + seek_ns).wrapping_mul(self.turns_per_ns) >> 32) as u32;
        seek_ns + ((u64::from(candidate.angle.wrapping_sub(under_heads)) * self.ns_per_angle) >> 36)
    }

    fn transfer_ns(&self) -> u64 {
        (self.request_blocks * u64::from(self.block_angle) * self.ns_per_angle) >> 36
    }

    /// Serves `requests` one after another.
    pub fn one_at_a_time(&self, requests: u64) -> Outcome {
        let mut random = SplitMix(1);
        let mut outcome = Outcome::new();
        let (mut cylinder, transfer_ns) = (0, self.transfer_ns());
        for _ in 0..requests {
            let next = self.random_candidate(&mut random, outcome.now_ns);
            outcome.now_ns += self.positioning_ns(outcome.now_ns, cylinder, &next) + transfer_ns;
            outcome.record(outcome.now_ns - next.arrived_ns);
            cylinder = next.cylinder;
        }
        outcome
    }

    /// Serves `requests` with `depth` waiting, the one with the shortest positioning time first.
    pub fn shortest_first(&self, requests: u64, depth: usize) -> Outcome {
        let mut random = SplitMix(1);
        let mut outcome = Outcome::new();
        let mut waiting: Vec<Candidate> = (0..depth).map(|_| self.random_candidate(&mut random, 0)).collect();
        let (mut cylinder, transfer_ns) = (0, self.transfer_ns());
        for _ in 0..requests {
            let (mut best, mut best_ns) = (0, u64::MAX);
            for (at, candidate) in waiting.iter().enumerate() {
                let ns = self.positioning_ns(outcome.now_ns, cylinder, candidate);
                (best, best_ns) = if ns < best_ns { (at, ns) } else { (best, best_ns) };
            }
            outcome.now_ns += best_ns + transfer_ns;
            outcome.record(outcome.now_ns - waiting[best].arrived_ns);
            cylinder = waiting[best].cylinder;
            waiting[best] = self.random_candidate(&mut random, outcome.now_ns);
        }
        outcome
    }
}

/// The machine's own speed: a fixed piece of the bare loop, which no change of the simulator makes faster or slower.
pub struct Probe {
    drive: BareDrive,
    requests: u64,
}

impl Probe {
    const DEPTH: usize = 16;
    /// About 60 ms on a core of a present-day server.
    const REQUESTS: u64 = 1_500_000;
    const ROUNDS: usize = 5;

    pub fn new(size: Size) -> Probe {
        let drive = BareDrive::new(&deep_drive("cheetah-x15-36lp"), 4096);
        Probe { drive, requests: size.count(Probe::REQUESTS) }
    }

    /// Requests a second in the median round, by the wall clock.
    pub fn per_s(&self) -> f64 {
        let mut rounds = [0.0; Probe::ROUNDS];
        for per_s in &mut rounds {
            let start = Instant::now();
            black_box(self.drive.shortest_first(self.requests, Probe::DEPTH));
            *per_s = self.requests as f64 / start.elapsed().as_secs_f64();
        }
        rounds.sort_by(f64::total_cmp);
        rounds[Probe::ROUNDS / 2]
    }
}

/// Virtual time at the end, and response times in bins of an eighth of a power of two.
pub struct Outcome {
    now_ns: u64,
    bins: Vec<u64>,
}

impl Outcome {
    fn new() -> Outcome {
        Outcome { now_ns: 0, bins: vec![0; 64 * 8] }
    }

    #[inline]
    fn record(&mut self, ns: u64) {
        let exponent = (ns | 8).ilog2();
        self.bins[(exponent * 8) as usize + ((ns >> (exponent - 3)) & 7) as usize] += 1;
    }

    /// Identifies the outcome.
    pub fn answer(&self) -> String {
        let bytes: Vec<u8> = self.bins.iter().chain([&self.now_ns]).flat_map(|count| count.to_le_bytes()).collect();
        content_hash(&bytes)
    }
}

/// Steele, Lea and Flood's generator (OOPSLA 2014): the least that is random enough.
struct SplitMix(u64);

impl SplitMix {
    #[inline]
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(n)) >> 64) as u64
    }
}
