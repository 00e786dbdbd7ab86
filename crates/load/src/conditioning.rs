//! Conditioning of a module ([`Pass`]): all of its devices are written or read as one stream, which is as fast as the
//! slowest of them allows.
//!
//! Block `k` of the stream is on device `k mod n`. A block may be under way if fewer than `n` times [`Pass::ahead`]
//! blocks are between it and the oldest incomplete one, as in a recorder with that much memory: the device with the
//! oldest block delays all others. Results are counted when the stream has passed a block, so that each position is in
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

/// Upper limits in ns, exclusive, of the classes in which Mark5 recorders count block times; an eighth class takes the
/// rest. The program counts in units of 15 ns, from 75,000 on and doubling (`mk5erase` of DiFX).
pub const CLASS_LIMITS_NS: [u64; 7] = [1_125_000, 2_250_000, 4_500_000, 9_000_000, 18_000_000, 36_000_000, 72_000_000];
/// Bins per octave of the stored response times: quantiles are accurate to 3 %.
const BINS_AN_OCTAVE: u64 = 16;

/// One pass over a module.
pub struct Pass {
    /// The devices, in stripe order.
    pub targets: Vec<Arc<Target>>,
    /// Engine of each device: all are the same real engine, or all are null engines.
    pub engines: Vec<EngineKind>,
    /// Whether the pass reads or writes.
    pub kind: Kind,
    /// Bytes written to a device before the next one's turn (the chunk size).
    pub block_bytes: u32,
    /// Blocks by which a device may be ahead of the slowest.
    pub ahead: u32,
    /// Upper limit of the bytes used of each device.
    pub device_bytes: u64,
    /// Position at which the stream begins, a multiple of the block; an earlier pass covered what is before it.
    pub start_bytes: u64,
    /// Length of the stretches that are reported individually.
    pub interval_ns: u64,
}

/// Work of a module during one interval.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// Position in the module at which it begins.
    pub position_bytes: u64,
    /// Bytes by which the stream advanced.
    pub bytes: u64,
    /// Length of the interval.
    pub duration_ns: u64,
    /// Share of each device, in stripe order.
    pub devices: Vec<DeviceShare>,
}

/// Work of one device during an interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceShare {
    /// Blocks that the stream passed, including failed ones.
    pub blocks: u64,
    /// Failed blocks.
    pub errors: u64,
    /// Time during which at least one block was under way.
    pub busy_ns: u64,
    /// Time during which the oldest block of the stream was on this device. The sum over devices is the length of the
    /// interval.
    pub held_ns: u64,
    /// Sum of the response times, each from issue to completion.
    pub sum_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
    /// Number of response times in each class of [`CLASS_LIMITS_NS`].
    pub classes: [u64; 8],
    /// All response times: middle of the bin in ns, and count.
    pub responses: Vec<(u64, u64)>,
}

/// The end of a pass.
#[derive(Clone, Debug, Serialize)]
pub struct Passed {
    /// Position of the stream at the end.
    pub end_bytes: u64,
    /// Whether this is the end of the module.
    pub is_whole: bool,
    /// Time that the devices took to flush their caches, after a write pass to the end.
    pub flush_ns: Option<u64>,
    /// Why it ended early.
    pub ended_early: Option<String>,
    /// The first failures, each with its device.
    pub failures: Vec<String>,
    /// Description of the engine.
    pub engine: String,
}

impl Pass {
    /// Capacity of all devices together, in whole stripes.
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
            return refused("mixes real and null targets; one kind per stream is allowed".to_owned());
        }
        let unit = Target::common_block_bytes(&self.targets);
        if block_bytes == 0 || !block_bytes.is_multiple_of(unit) {
            return refused(format!("blocks of {block_bytes} bytes; multiples of {unit} are allowed"));
        }
        let most = SLOTS_MAX / self.targets.len() as u32;
        if !(1..=most).contains(&ahead) {
            return refused(format!("{ahead} blocks ahead; 1 to {most} are allowed"));
        }
        if self.interval_ns == 0 {
            return refused("an interval of 0 s; above 0 is allowed".to_owned());
        }
        let module_bytes = self.module_bytes();
        if module_bytes == 0 {
            return refused(format!("a block of {block_bytes} bytes does not fit on the smallest device"));
        }
        if start_bytes > module_bytes || !start_bytes.is_multiple_of(block_bytes.into()) {
            return refused(format!(
                "begins at byte {start_bytes}; a multiple of {block_bytes} up to {module_bytes} is allowed"
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

/// Streams over the module from `start_bytes` to its end, in the calling thread. `keep` receives each stretch when it
/// is over; `progress` receives the position at least ten times a second and returns whether to continue. The stretches
/// of a pass that ended early are valid; [`Passed::ended_early`] has the reason.
///
/// # Errors
/// A pass that cannot begin: impossible sizes, an engine that the kernel refuses.
pub fn stream(
    pass: &Pass,
    keep: &mut dyn FnMut(Stretch),
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Passed, LoadError> {
    pass.check()?;
    calibrate_tsc();
    set_timer_slack();
    let [clock] =
        <[Clock; 1]>::try_from(Clock::for_threads(Target::common_time(&pass.targets)?, 1)).expect("one thread");
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

/// A block from its issue until the stream has passed it.
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
    /// Blocks from the oldest not yet passed to the newest issued.
    window: VecDeque<Block>,
    window_blocks: usize,
    ended: Vec<Ended>,
    /// Number of the oldest block, and of the first beyond the module.
    oldest: u64,
    end: u64,
    /// Time up to which the interval is accounted for.
    booked_ns: u64,
    stretch_start: u64,
    stretch_start_ns: u64,
    failures: Vec<String>,
    /// The kernel accepts no more requests and reports no completions.
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
            // Only so that a stop request is noticed: the pass ends in any case.
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

    /// Waits for completions and passes the blocks that they allow.
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

    /// Copies the message of a failure, which the load loop has for the first few.
    fn report_failure(&mut self, lane: usize) {
        if let Some(words) = self.load_loop.error_log.first.get(self.failures.len()) {
            let name = self.pass.targets[lane].name();
            let named = words.starts_with(name);
            self.failures.push(if named { words.clone() } else { format!("{name}: {words}") });
        }
    }

    fn pass_blocks(&mut self) {
        // A failed block of a vanished device was not passed: a resumed pass begins there.
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

    /// Ends the interval when it is over, or now; an interval without a block and of no length is dropped.
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

    /// Flushes the caches of the devices; returns how long that took, unless the user stopped it.
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

/// Returns the histogram in bins that are wide enough to keep those of days: a few hundred bytes per interval and
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
    fn a_response_of_a_limit_is_of_the_class_above() {
        let mut lane = Lane::default();
        [0, 1_124_999, 1_125_000, 71_999_999, 72_000_000, u64::MAX / 2].into_iter().for_each(|ns| lane.record(ns));
        assert_eq!(lane.close().classes, [2, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!(lane.close().blocks, 0);
    }
}
