//! Short runs that measure an SSD in the way its sheet was measured.

use std::fmt;

use headstack_catalogue::ssd::file::{SsdFile, WriteState};
use headstack_sim::ssd::Ssd;
use headstack_sim::ssd::description::{FlashState, SsdDescription};
use headstack_workload::{Kind, Purpose, Random, Request};

/// A drive that runs commands in a closed loop.
pub struct Bench {
    pub ssd: Ssd,
    pub now_ns: u64,
}

impl Bench {
    pub fn new(description: &SsdDescription) -> Bench {
        Bench { ssd: Ssd::new(description, 1).unwrap(), now_ns: 0 }
    }

    /// Returns the time that `count` commands take at a queue depth, in seconds.
    pub fn seconds(&mut self, count: u32, depth: u32, mut request: impl FnMut(u32) -> Request) -> f64 {
        let (start_ns, mut issued, mut done) = (self.now_ns, 0, 0);
        while done < count {
            while issued < count && issued - done < depth {
                self.ssd.submit(self.now_ns, issued, &request(issued));
                issued += 1;
            }
            self.now_ns = self.ssd.next_event_ns();
            self.ssd.advance(self.now_ns, |_| done += 1);
        }
        (self.now_ns - start_ns) as f64 / 1e9
    }
}

pub fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// Number of requests in a sequential run, followed by their size and queue depth.
const RUNS: u32 = 16_384;
const RUN_BYTES: u32 = 128 << 10;
const RUN_DEPTH: u32 = 32;
const WRITTEN: u64 = RUNS as u64 * RUN_BYTES as u64;

fn in_order(kind: Kind) -> impl FnMut(u32) -> Request {
    move |index| request(kind, u64::from(index) * u64::from(RUN_BYTES), RUN_BYTES)
}

/// Kind of a promised figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    RandomRead { depth: u32, bytes: u32 },
    SteadyWrite { depth: u32, bytes: u32 },
    BurstWrite { depth: u32, bytes: u32 },
    SequentialRead,
    SequentialWrite,
    ReadLatency,
    WriteLatency,
    SlcCache,
    AfterSlc,
}

/// A promised figure, in IOPS, MB/s, microseconds or GB.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub what: What,
    pub stated: f64,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, unit) = match self.what {
            What::RandomRead { .. } => ("random reads", "/s"),
            What::SteadyWrite { .. } => ("random writes, steady", "/s"),
            What::BurstWrite { .. } => ("random writes, burst", "/s"),
            What::SequentialRead => ("sequential reads", "MB/s"),
            What::SequentialWrite => ("sequential writes", "MB/s"),
            What::ReadLatency => ("lone read", "us"),
            What::WriteLatency => ("lone write", "us"),
            What::SlcCache => ("SLC cache", "GB"),
            What::AfterSlc => ("writes after the cache", "MB/s"),
        };
        write!(f, "{what:24} {:>10.1} {unit:4}", self.stated)
    }
}

impl Figure {
    /// Returns the figures that a file states.
    pub fn of(file: &SsdFile) -> Vec<Figure> {
        let stated = &file.stated;
        let depth = |given: Option<u32>| given.unwrap_or(32);
        let writes = stated.random_write.map(|writes| {
            let (depth, bytes) = (depth(writes.depth), writes.bytes() as u32);
            let burst = writes.state.map_or(stated.slc_cache.is_some(), |state| state == WriteState::Burst);
            let what = if burst { What::BurstWrite { depth, bytes } } else { What::SteadyWrite { depth, bytes } };
            (what, writes.iops)
        });
        let reads = stated
            .random_read
            .map(|reads| (What::RandomRead { depth: depth(reads.depth), bytes: reads.bytes() as u32 }, reads.iops));
        let found = [
            reads,
            writes,
            stated.sequential_read.map(|rate| (What::SequentialRead, rate.0 / 1e6)),
            stated.sequential_write.map(|rate| (What::SequentialWrite, rate.0 / 1e6)),
            stated.read_latency.map(|time| (What::ReadLatency, time.0 as f64 / 1e3)),
            stated.write_latency.map(|time| (What::WriteLatency, time.0 as f64 / 1e3)),
            stated.slc_cache.map(|size| (What::SlcCache, size.0 as f64 / 1e9)),
            stated.after_slc.map(|rate| (What::AfterSlc, rate.0 / 1e6)),
        ];
        found.into_iter().flatten().map(|(what, stated)| Figure { what, stated }).collect()
    }

    /// Measures the figure on the simulated drive.
    pub fn measure(&self, description: &SsdDescription) -> f64 {
        let mb = f64::from(RUNS) * f64::from(RUN_BYTES) / 1e6;
        match self.what {
            What::RandomRead { depth, bytes } => {
                let (mut bench, span) = ready(description);
                let mut random = Random::new(3, Purpose::Addresses);
                let mut next = |_| request(Kind::Read, random.below(span / u64::from(bytes)) * u64::from(bytes), bytes);
                let count = 20_000.max(100 * depth);
                let _ = bench.seconds(count / 4, depth, &mut next);
                f64::from(count) / bench.seconds(count, depth, &mut next)
            }
            What::ReadLatency => {
                let (mut bench, span) = ready(description);
                let mut random = Random::new(3, Purpose::Addresses);
                let next = |_| request(Kind::Read, random.below(span / 4096) * 4096, 4096);
                bench.seconds(1_000, 1, next) * 1e3
            }
            What::WriteLatency => {
                let (mut bench, span) = ready(description);
                let mut random = Random::new(3, Purpose::Addresses);
                let next = |_| request(Kind::Write, random.below(span / 4096) * 4096, 4096);
                bench.seconds(1_000, 1, next) * 1e3
            }
            What::BurstWrite { depth, bytes } => {
                let (mut bench, span) = ready(description);
                let mut random = Random::new(3, Purpose::Addresses);
                let next = |_| request(Kind::Write, random.below(span / u64::from(bytes)) * u64::from(bytes), bytes);
                100_000.0 / bench.seconds(100_000, depth, next)
            }
            What::SteadyWrite { depth, bytes } => steady_writes(description, depth, bytes),
            What::SequentialRead => mb / ready(description).0.seconds(RUNS, RUN_DEPTH, in_order(Kind::Read)),
            What::SequentialWrite => mb / fresh(description).seconds(RUNS, RUN_DEPTH, in_order(Kind::Write)),
            What::SlcCache => slc_cliff(description).0,
            What::AfterSlc => slc_cliff(description).1,
        }
    }
}

/// Returns an empty drive.
fn fresh(description: &SsdDescription) -> Bench {
    Bench::new(&SsdDescription { state: FlashState::Fresh, ..description.clone() })
}

/// Returns a drive for short runs and the number of bytes at its start that they use. Makers of drives with an SLC
/// cache measure on data that was just written.
fn ready(description: &SsdDescription) -> (Bench, u64) {
    let state = if description.slc_cache.is_none() { FlashState::Filled } else { FlashState::Fresh };
    let mut bench = Bench::new(&SsdDescription { state, ..description.clone() });
    if description.slc_cache.is_none() && description.controller.map_cache_bytes.is_none() {
        let span = bench.ssd.capacity_bytes();
        return (bench, span);
    }
    let _ = bench.seconds(RUNS, RUN_DEPTH, in_order(Kind::Write));
    (bench, WRITTEN)
}

/// Returns the drive with fewer blocks and pages, and proportionally shorter erases, which has the same speed and
/// over-provisioning. Also returns the factor by which it is smaller.
pub fn small(description: &SsdDescription, pages: u32, blocks: u32) -> (SsdDescription, f64) {
    let flash = description.flash;
    let (pages, blocks) = (pages.min(flash.pages_per_block), blocks.min(flash.blocks_per_plane));
    let mut small = description.clone();
    (small.flash.pages_per_block, small.flash.blocks_per_plane) = (pages, blocks);
    let ratio = f64::from(pages) / f64::from(flash.pages_per_block);
    small.timing.erase_ns = (description.timing.erase_ns as f64 * ratio) as u64;
    // Same as `Steady` in `crates/catalogue/src/ssd/steady.rs`.
    let kept = f64::from(description.collection.free_blocks_min) - 0.75;
    let used = (f64::from(blocks) - kept) / (f64::from(flash.blocks_per_plane) - kept);
    let unit = u64::from(description.capacity.mapping_unit_bytes);
    let times = 1.0 / (ratio * used);
    small.capacity.logical_bytes = (description.capacity.logical_bytes as f64 / times) as u64 / unit * unit;
    if let Some(slc) = &mut small.slc_cache {
        slc.static_bytes = (slc.static_bytes as f64 / times) as u64;
        slc.dynamic_bytes = (slc.dynamic_bytes as f64 / times) as u64;
    }
    (small, times)
}

/// Returns a part of a drive, with a fraction of its channels and proportionally slower in everything else, and the
/// number of parts.
fn part(description: &SsdDescription) -> (SsdDescription, u32) {
    const DIES_ENOUGH: u32 = 64;
    let mut part = description.clone();
    let mut parts = 1;
    while part.dies() > DIES_ENOUGH && part.flash.channels.is_multiple_of(2) {
        part.flash.channels /= 2;
        parts *= 2;
    }
    let unit = u64::from(part.capacity.mapping_unit_bytes);
    part.capacity.logical_bytes = part.capacity.logical_bytes / u64::from(parts) / unit * unit;
    part.buffer.bytes /= u64::from(parts);
    part.controller.write_interval_ns *= u64::from(parts);
    part.controller.write_ns_per_byte *= f64::from(parts);
    part.interface.write_ns_per_byte *= f64::from(parts);
    (part, parts)
}

/// Returns the IOPS of random writes in the steady state.
fn steady_writes(description: &SsdDescription, depth: u32, bytes: u32) -> f64 {
    let (part, parts) = part(description);
    // Blocks with enough units behave like large blocks in garbage collection.
    let row_units = (description.row_bytes() / description.capacity.mapping_unit_bytes).max(1);
    let (small, _) = small(&part, 192 / row_units.min(12), 160);
    let mut bench = Bench::new(&SsdDescription { state: FlashState::Steady, slc_cache: None, ..small });
    let places = bench.ssd.capacity_bytes() / u64::from(bytes);
    let mut random = Random::new(3, Purpose::Addresses);
    let mut next = |_| request(Kind::Write, random.below(places) * u64::from(bytes), bytes);
    // More than the buffer and the free blocks hold.
    let count = (places / 10).clamp(50_000, 200_000) as u32;
    let depth = (depth / parts).max(8);
    let _ = bench.seconds(count, depth, &mut next);
    f64::from(parts * count) / bench.seconds(count, depth, &mut next)
}

/// Returns the amount in GB that an empty drive accepts before its write rate falls by 33 %, and the rate in MB/s after
/// that.
fn slc_cliff(description: &SsdDescription) -> (f64, f64) {
    let (small, times) = small(description, 96, 400);
    let mut bench = Bench::new(&SsdDescription { state: FlashState::Fresh, ..small });
    let cache_bytes = description.slc_cache.map_or(0, |slc| slc.static_bytes + slc.dynamic_bytes) as f64 / times;
    // The steps are 2 % of the cache.
    let step = (cache_bytes / 50.0 / f64::from(RUN_BYTES)).max(64.0) as u32;
    let gb = f64::from(step) * f64::from(RUN_BYTES) / 1e9;
    let most = (bench.ssd.capacity_bytes() / u64::from(step) / u64::from(RUN_BYTES)) as u32;
    let mut rates = Vec::new();
    let mut cliff = None;
    for round in 0..most {
        let start = u64::from(round) * u64::from(step);
        let next = |index| request(Kind::Write, (start + u64::from(index)) * u64::from(RUN_BYTES), RUN_BYTES);
        rates.push(gb * 1e3 / bench.seconds(step, RUN_DEPTH, next));
        let rate = *rates.last().expect("just pushed");
        if cliff.is_none() && rate < rates[0] / 1.5 {
            cliff = Some(rates.len());
        }
        if cliff.is_some_and(|at| rates.len() >= at + 30) {
            break;
        }
    }
    let cliff = cliff.unwrap_or(rates.len());
    // The remaining free cells may absorb ten steps.
    let after = &rates[(cliff + 10).min(rates.len() - 1)..];
    (gb * times * (cliff as f64 - 1.0), after.iter().sum::<f64>() / after.len() as f64)
}
