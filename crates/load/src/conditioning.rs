//! Conditioning of a module ([`Pass`]): all of its devices are written or read as one stream, at the speed of the
//! slowest device.
//!
//! Block `k` of the stream is on device `k mod n`. A block may be in flight if fewer than `n` times [`Pass::ahead`]
//! blocks are between it and the oldest incomplete block, as in a recorder with that much memory, so the device with
//! the oldest block delays all others. A block counts as soon as the stream has passed it, so each position is in
//! exactly one stretch, however the pass ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Request};
use serde::Serialize;

use crate::LoadError;
use crate::clock::{Clock, LOOK_NS, calibrate_tsc, set_timer_slack};
use crate::engine::{Engine, EngineKind, Null, Wait};
use crate::load_loop::{Ended, LoadLoop, SLOTS_MAX, WorkerSpec};
use crate::measured::describe_lost;
use crate::progress::WorkerProgress;
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::waker::Waker;
use crate::watch::watched;

/// Upper limits, exclusive, of the classes in which Mark5 recorders count block times, in ns; an eighth class counts
/// longer times. The recorder program counts in units of 15 ns, from 75,000 units on and doubling (`mk5erase` of DiFX).
pub const CLASS_LIMITS_NS: [u64; 7] = [1_125_000, 2_250_000, 4_500_000, 9_000_000, 18_000_000, 36_000_000, 72_000_000];
/// Bins per octave of the stored response times, which makes quantiles accurate to 3 %.
const BINS_AN_OCTAVE: u64 = 16;

/// One pass over a module.
pub struct Pass {
    /// The devices, in stripe order.
    pub targets: Vec<Arc<Target>>,
    /// Engine of each device: the same real engine for all, or null engines for all.
    pub engines: Vec<EngineKind>,
    /// Whether the pass reads or writes.
    pub kind: Kind,
    /// Bytes written to one device before the next (the chunk size).
    pub block_bytes: u32,
    /// Number of blocks by which a device may be ahead of the slowest device.
    pub ahead: u32,
    /// Maximum number of bytes used on each device.
    pub device_bytes: u64,
    /// Start position of the stream, a multiple of the block size; an earlier pass covered everything before it.
    pub start_bytes: u64,
    /// Length of the reported stretches, in ns.
    pub interval_ns: u64,
}

/// Work of a module during one interval.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// Position in the module at the start of the interval.
    pub position_bytes: u64,
    /// Bytes by which the stream advanced.
    pub bytes: u64,
    /// Length of the interval, in ns.
    pub duration_ns: u64,
    /// Results of each device, in stripe order.
    pub devices: Vec<DeviceShare>,
}

/// Results of one device during an interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceShare {
    /// Blocks that the stream passed, including failed ones.
    pub blocks: u64,
    /// Failed blocks.
    pub errors: u64,
    /// Time during which at least one block was in flight, in ns.
    pub busy_ns: u64,
    /// Time during which the oldest block of the stream was on this device, in ns. The sum over all devices is the
    /// length of the interval.
    pub held_ns: u64,
    /// Sum of the response times (issue to completion), in ns.
    pub sum_ns: u64,
    /// Longest response time, in ns.
    pub max_ns: u64,
    /// Number of response times in each class of [`CLASS_LIMITS_NS`].
    pub classes: [u64; 8],
    /// Histogram of all response times: middle of the bin, in ns, and count.
    pub responses: Vec<(u64, u64)>,
}

/// The result of a pass.
#[derive(Clone, Debug, Serialize)]
pub struct Passed {
    /// Position of the stream at the end of the pass.
    pub end_bytes: u64,
    /// Whether the pass reached the end of the module.
    pub is_whole: bool,
    /// Time that the devices took to flush their caches after a write pass to the end of the module, in ns.
    pub flush_ns: Option<u64>,
    /// Reason why the pass ended early.
    pub ended_early: Option<String>,
    /// Messages of the first failures, each with its device.
    pub failures: Vec<String>,
    /// Description of the engine.
    pub engine: String,
}

impl Pass {
    /// Returns the capacity of all devices together, in whole stripes.
    pub fn module_bytes(&self) -> u64 {
        self.target_map().capacity_bytes()
    }

    fn target_map(&self) -> TargetMap {
        TargetMap::striped(&self.targets, self.block_bytes, self.device_bytes)
    }

    fn check(&self) -> Result<(), LoadError> {
        let refused = |message: String| Err(LoadError::Job { job: "conditioning".to_owned(), message });
        let Pass { block_bytes, ahead, start_bytes, .. } = *self;
        if self.targets.is_empty() || self.targets.len() != self.engines.len() {
            return refused("names no target".to_owned());
        }
        let nulls = self.engines.iter().filter(|engine| matches!(engine, EngineKind::Null { .. })).count();
        if nulls != 0 && nulls != self.engines.len() {
            return refused("mixes real and null targets; use only one kind".to_owned());
        }
        let unit = Target::common_block_bytes(&self.targets);
        if block_bytes == 0 || !block_bytes.is_multiple_of(unit) {
            return refused(format!("blocks of {block_bytes} bytes; must be a multiple of {unit}"));
        }
        let most = SLOTS_MAX / self.targets.len() as u32;
        if !(1..=most).contains(&ahead) {
            return refused(format!("{ahead} blocks ahead; must be 1 to {most}"));
        }
        if self.interval_ns == 0 {
            return refused("interval of 0 s; must be above 0".to_owned());
        }
        let module_bytes = self.module_bytes();
        if module_bytes == 0 {
            return refused(format!("blocks of {block_bytes} bytes; the smallest device has no room for one"));
        }
        if start_bytes > module_bytes || !start_bytes.is_multiple_of(block_bytes.into()) {
            return refused(format!(
                "begins at byte {start_bytes}; must be a multiple of {block_bytes}, at most {module_bytes}"
            ));
        }
        if self.kind == Kind::Write {
            self.targets.iter().try_for_each(|target| target.check_untended())?;
        }
        if self.kind == Kind::Write
            && let Some(target) = self.targets.iter().find(|target| !target.is_writable())
        {
            return Err(LoadError::Target { target: target.name().to_owned(), message: "is opened read-only".into() });
        }
        Ok(())
    }
}

/// Runs the pass from `start_bytes` to the end of the module, in the calling thread. `keep` receives each stretch when
/// it ends; `progress` receives the position at least ten times a second and returns whether to continue. If the pass
/// ends early, its stretches are valid, and [`Passed::ended_early`] has the reason.
///
/// # Errors
/// Returns an error if the pass cannot start: impossible sizes, or an engine that the kernel refuses.
pub fn stream(
    pass: &Pass,
    keep: &mut dyn FnMut(Stretch),
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Passed, LoadError> {
    pass.check()?;
    calibrate_tsc();
    set_timer_slack();
    let [clock] = <[Clock; 1]>::try_from(Clock::for_threads(Target::common_time(&pass.targets)?, 1))
        .expect("one clock for one thread");
    clock.begin();
    let (live, stop, waker) = (WorkerProgress::default(), AtomicBool::new(false), Waker::new()?);
    let worker = WorkerSpec {
        name: "conditioning",
        targets: &pass.targets,
        map: pass.target_map(),
        engine: pass.engines[0],
        slots: pass.ahead * pass.targets.len() as u32,
        buffer_bytes: pass.block_bytes,
        start_delay_ns: 0,
        seed: 0,
        interval_ns: None,
        own_buffers: false,
        verification: None,
    };
    let setup = worker.setup();
    let service_ns = |engine: &EngineKind| match *engine {
        EngineKind::Null { service_ns } => Some(service_ns),
        EngineKind::Auto | EngineKind::Ring | EngineKind::Psync => None,
    };
    let engine = match pass.engines.iter().map(service_ns).collect() {
        Some(services_ns) => Engine::Null(Null::new(setup, services_ns)?),
        None => Engine::new(worker.engine, setup, &waker)?,
    };
    let stream = Stream::new(pass, LoadLoop::new(engine, &worker, &live, &stop, &clock)?);
    let (mut passed, in_use) = watched(&pass.targets, &stop, || stream.run(keep, progress));
    passed.ended_early = passed.ended_early.or(in_use);
    Ok(passed)
}

/// State of a block from its issue until the stream has passed it.
#[derive(Clone, Copy)]
enum Block {
    UnderWay,
    Complete { response_ns: u64 },
    Failed,
}

/// State of a device in the current interval.
#[derive(Clone, Default)]
struct Lane {
    share: DeviceShare,
    responses: LatencyHistogram,
    under_way: u32,
}

struct Stream<'a> {
    pass: &'a Pass,
    load_loop: LoadLoop<'a>,
    lanes: Vec<Lane>,
    /// Blocks from the oldest that the stream has not passed to the newest that was issued.
    window: VecDeque<Block>,
    window_blocks: usize,
    ended: Vec<Ended>,
    /// Number of the oldest block, and of the first block after the end of the module.
    oldest: u64,
    end: u64,
    /// Time up to which the results of the interval are updated.
    booked_ns: u64,
    stretch_start: u64,
    stretch_start_ns: u64,
    failures: Vec<String>,
    /// Whether the kernel no longer accepts requests or reports completions.
    is_deaf: bool,
}

impl<'a> Stream<'a> {
    fn new(pass: &'a Pass, load_loop: LoadLoop<'a>) -> Stream<'a> {
        let block_bytes = u64::from(pass.block_bytes);
        let (oldest, end) = (pass.start_bytes / block_bytes, pass.module_bytes() / block_bytes);
        let now_ns = load_loop.now_ns;
        Stream {
            lanes: vec![Lane::default(); pass.targets.len()],
            window: VecDeque::with_capacity(load_loop.room() as usize),
            window_blocks: load_loop.room() as usize,
            ended: Vec::with_capacity(load_loop.room() as usize),
            oldest,
            end,
            booked_ns: now_ns,
            stretch_start: oldest,
            stretch_start_ns: now_ns,
            failures: Vec::new(),
            is_deaf: false,
            pass,
            load_loop,
        }
    }

    fn run(mut self, keep: &mut dyn FnMut(Stretch), progress: &mut dyn FnMut(u64) -> bool) -> Passed {
        let mut by_somebody = false;
        let mut look_ns = 0;
        while self.oldest < self.end && !self.load_loop.is_stopped() {
            if self.load_loop.now_ns >= look_ns {
                look_ns = self.load_loop.now_ns + LOOK_NS;
                by_somebody = !progress(self.position_bytes());
                if by_somebody {
                    break;
                }
            }
            self.issue();
            self.pass_time(look_ns);
            self.close_stretch(false, keep);
        }
        let end_ns = self.load_loop.now_ns;
        while self.load_loop.under_way() > 0 && !self.load_loop.is_given_up(end_ns) && !self.is_deaf {
            self.pass_time(self.load_loop.now_ns + LOOK_NS);
            // Called only to notice a stop request: the pass ends in any case.
            progress(self.position_bytes());
        }
        self.close_stretch(true, keep);
        let is_whole = self.oldest == self.end;
        let flush_ns = if is_whole && self.pass.kind == Kind::Write { self.flush(progress) } else { None };
        let fatal = self.load_loop.error_log.fatal.clone();
        self.failures.extend(describe_lost(&self.load_loop.lost()));
        let passed = Passed {
            end_bytes: self.position_bytes(),
            is_whole,
            flush_ns,
            ended_early: fatal.or_else(|| by_somebody.then(|| "stopped by hand".to_owned())),
            failures: self.failures,
            engine: self.load_loop.engine(),
        };
        if self.load_loop.under_way() > 0 {
            self.load_loop.into_engine().abandon();
        }
        passed
    }

    fn position_bytes(&self) -> u64 {
        self.oldest * u64::from(self.pass.block_bytes)
    }

    fn lane_of(&self, block: u64) -> usize {
        (block % self.lanes.len() as u64) as usize
    }

    fn issue(&mut self) {
        let length_bytes = self.pass.block_bytes;
        while self.window.len() < self.window_blocks {
            let block = self.oldest + self.window.len() as u64;
            if block >= self.end {
                return;
            }
            let offset_bytes = block * u64::from(length_bytes);
            let request = request(self.pass.kind, offset_bytes, length_bytes);
            self.load_loop.issue(self.load_loop.now_ns, &request);
            let lane = self.lane_of(block);
            self.lanes[lane].under_way += 1;
            self.window.push_back(Block::UnderWay);
        }
    }

    /// Waits for completions, and passes all blocks that are complete in order.
    fn pass_time(&mut self, until_ns: u64) {
        if let Err(error) = self.load_loop.wait(Wait::Until(until_ns)) {
            self.load_loop.give_up(error.to_string());
            self.is_deaf = true;
        }
        self.book_time();
        let mut ended = std::mem::take(&mut self.ended);
        self.load_loop.settle(|one| ended.push(*one));
        ended.drain(..).for_each(|one| self.complete(&one));
        self.ended = ended;
        self.pass_blocks();
    }

    fn book_time(&mut self) {
        let passed_ns = self.load_loop.now_ns - self.booked_ns;
        self.booked_ns = self.load_loop.now_ns;
        let holder = self.lane_of(self.oldest);
        self.lanes[holder].share.held_ns += passed_ns;
        for lane in self.lanes.iter_mut().filter(|lane| lane.under_way > 0) {
            lane.share.busy_ns += passed_ns;
        }
    }

    fn complete(&mut self, ended: &Ended) {
        let block = ended.flight.request.offset_bytes / u64::from(self.pass.block_bytes);
        let lane = self.lane_of(block);
        self.lanes[lane].under_way -= 1;
        let index = (block - self.oldest) as usize;
        self.window[index] = if ended.failed {
            self.report_failure(lane);
            Block::Failed
        } else {
            Block::Complete { response_ns: ended.at_ns - ended.flight.started_ns }
        };
    }

    /// Adds the message of a failure. The load loop keeps only the first few.
    fn report_failure(&mut self, lane: usize) {
        if let Some(words) = self.load_loop.error_log.first.get(self.failures.len()) {
            let name = self.pass.targets[lane].name();
            let named = words.starts_with(name);
            self.failures.push(if named { words.clone() } else { format!("{name}: {words}") });
        }
    }

    fn pass_blocks(&mut self) {
        // A failed block of a vanished device does not count as passed, so a resumed pass starts with it.
        let is_gone = self.load_loop.error_log.fatal.is_some();
        while let Some(&block) = self.window.front() {
            let lane = self.lane_of(self.oldest);
            match block {
                Block::UnderWay => return,
                Block::Failed if is_gone => return,
                Block::Failed => self.lanes[lane].share.errors += 1,
                Block::Complete { response_ns } => self.lanes[lane].record(response_ns),
            }
            self.lanes[lane].share.blocks += 1;
            self.window.pop_front();
            self.oldest += 1;
        }
    }

    /// Ends the interval if its time is over, or if `now` is set. Drops an interval of zero length without blocks.
    fn close_stretch(&mut self, now: bool, keep: &mut dyn FnMut(Stretch)) {
        let duration_ns = self.booked_ns - self.stretch_start_ns;
        let is_over = duration_ns >= self.pass.interval_ns;
        if !(is_over || now && self.oldest > self.stretch_start) {
            return;
        }
        let block_bytes = u64::from(self.pass.block_bytes);
        keep(Stretch {
            position_bytes: self.stretch_start * block_bytes,
            bytes: (self.oldest - self.stretch_start) * block_bytes,
            duration_ns,
            devices: self.lanes.iter_mut().map(Lane::close).collect(),
        });
        (self.stretch_start, self.stretch_start_ns) = (self.oldest, self.booked_ns);
    }

    /// Flushes the caches of the devices. Returns the time that this took, in ns, or `None` if the user stopped it.
    fn flush(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        self.load_loop.look();
        let start_ns = self.load_loop.now_ns;
        self.load_loop.issue(start_ns, &request(Kind::Flush, 0, 0));
        let mut failed = false;
        while self.load_loop.under_way() > 0 {
            if !progress(self.position_bytes()) {
                return None;
            }
            if let Err(error) = self.load_loop.wait(Wait::Until(self.load_loop.now_ns + LOOK_NS)) {
                self.load_loop.give_up(error.to_string());
                return None;
            }
            self.load_loop.settle(|one| failed |= one.failed);
        }
        if failed {
            self.failures.extend(self.load_loop.error_log.first.get(self.failures.len()).cloned());
            return None;
        }
        Some(self.load_loop.now_ns - start_ns)
    }
}

impl Lane {
    fn record(&mut self, response_ns: u64) {
        self.share.sum_ns = self.share.sum_ns.saturating_add(response_ns);
        self.share.max_ns = self.share.max_ns.max(response_ns);
        self.share.classes[CLASS_LIMITS_NS.partition_point(|&limit_ns| limit_ns <= response_ns)] += 1;
        self.responses.record(response_ns);
    }

    fn close(&mut self) -> DeviceShare {
        let responses = coarse(&std::mem::take(&mut self.responses));
        DeviceShare { responses, ..std::mem::take(&mut self.share) }
    }
}

fn request(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// Returns the histogram in bins so wide that results of many days can be kept: a few hundred bytes per interval and
/// device.
fn coarse(histogram: &LatencyHistogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (value_ns, count) in histogram.bins() {
        let step = (value_ns.checked_ilog2().map_or(1, |octave| (1 << octave) / BINS_AN_OCTAVE)).max(1);
        let middle_ns = value_ns / step * step + step / 2;
        match bins.last_mut() {
            Some((last_ns, sum)) if *last_ns == middle_ns => *sum += count,
            _ => bins.push((middle_ns, count)),
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_bins_keep_counts_and_values_to_three_percent() {
        let mut histogram = LatencyHistogram::new();
        let values: Vec<u64> = (0..3000).map(|step| 10 + step * step * 37).collect();
        values.iter().for_each(|&ns| histogram.record(ns));
        let bins = coarse(&histogram);
        assert_eq!(bins.iter().map(|&(_, count)| count).sum::<u64>(), 3000);
        assert!(bins.len() < 400 && bins.is_sorted_by(|a, b| a.0 < b.0), "{}", bins.len());
        let mut below = 0;
        for (middle_ns, count) in bins {
            let median = values[below + count as usize / 2] as f64;
            assert!((middle_ns as f64 - median).abs() <= 0.033 * median + 1.0, "{middle_ns} for {median}");
            below += count as usize;
        }
    }

    #[test]
    fn coarse_bins_of_short_times_are_exact_and_later_ones_16_to_an_octave() {
        let bins = |values_ns: &[u64]| {
            let mut histogram = LatencyHistogram::new();
            values_ns.iter().for_each(|&ns| histogram.record(ns));
            coarse(&histogram)
        };
        assert_eq!(bins(&[0, 1, 2, 3, 30, 31]), [(0, 1), (1, 1), (2, 1), (3, 1), (30, 1), (31, 1)]);
        assert_eq!(bins(&[32, 33, 34, 63]), [(33, 2), (35, 1), (63, 1)]);
        assert_eq!(bins(&[64, 67, 68, 1_024, 1_087, 1_088]), [(66, 2), (70, 1), (1_056, 2), (1_120, 1)]);
    }

    #[test]
    fn a_response_of_a_limit_is_of_the_class_above() {
        let mut lane = Lane::default();
        [0, 1_124_999, 1_125_000, 71_999_999, 72_000_000, u64::MAX / 2].into_iter().for_each(|ns| lane.record(ns));
        assert_eq!(lane.close().classes, [2, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!(lane.close().blocks, 0);
    }
}
