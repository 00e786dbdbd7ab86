//! What is measured.

use std::sync::Arc;

use headstack_driver::End;
use headstack_jobfiles::{Bounds, Content, Errors, Limits, Verify, Zoning};
use headstack_workload::{AccessLine, Addresses, ArrivalClock, Arrivals, Generator, Span, Workload};

use crate::LoadError;
use crate::engine::EngineKind;
use crate::flow::Member;
use crate::target::{Target, TargetKind};
use crate::target_map::TargetMap;

/// One thread's work.
#[derive(Clone)]
pub struct Job {
    /// Its name; jobs of one name are reported as one.
    pub name: String,
    /// The files and devices that it works on, whose address spaces lie one after another.
    pub targets: Vec<Arc<Target>>,
    /// The part that is used; all of it where absent.
    pub span: Option<Span>,
    /// Sizes, places, arrivals, warm-up.
    pub workload: Workload,
    /// Its limits; without any, the workload's run length.
    pub limits: Limits,
    /// How requests are handed over.
    pub engine: EngineKind,
    /// Queue depth of an open loop.
    pub slots: u32,
    /// Nothing is issued before this time.
    pub start_delay_ns: u64,
    /// Seed of its random choices.
    pub seed: u64,
    /// What is done to find out whether what is read is what was written. Requests then have memory of their own each.
    pub verify: Verify,
    /// Whether the page cache is emptied of the targets before it begins, and again after so many bytes of requests.
    pub invalidates_every_bytes: Option<u64>,
    /// Most bytes used of each target: several files may be longer than the job's part of each.
    pub target_bytes_max: u64,
    /// Requests a second of reads, writes and trims, where each kind has arrivals of its own.
    pub rates_per_s: Option<[f64; 3]>,
    /// Its place in the flow that keeps jobs in step.
    pub flow: Option<Member>,
    /// How failed requests affect it.
    pub errors: Errors,
    /// Limits of the job: exceeding one ends the job with an error.
    pub bounds: Bounds,
    /// Contents of writes without verification.
    pub content: Content,
    /// Whether data and metadata of its targets are flushed when it ends.
    pub flushes_at_end: bool,
    /// Whether it is timed how long handing requests over takes.
    pub times_handing_over: bool,
    /// How the zones of its targets are tended; absent, they are not.
    pub zones: Option<Zoning>,
}

/// When a job is over: with its run, or sooner.
#[derive(Clone, Copy, Debug)]
pub struct JobEnd {
    /// Requests and length of the measured part.
    pub run: End,
    /// Requests of the measured part that are no flushes.
    pub transfers: u64,
    /// Bytes of the measured part.
    pub bytes: u64,
}

/// Units that are stamped are no longer.
const UNIT_BYTES_MAX: u32 = 1 << 20;
/// Memory for requests under way whose contents matter.
const VERIFIED_BYTES_MAX: u64 = 1 << 31;
/// Requests with the system at a time, of open loops as of closed ones.
const SLOTS_MAX: u32 = 65_536;

impl Job {
    /// The targets as one address space.
    pub fn target_map(&self) -> TargetMap {
        TargetMap::of_each(&self.targets, |target| self.bytes_of(target))
    }

    fn capacity_bytes(&self) -> u64 {
        self.targets.iter().fold(0, |sum, target| sum.saturating_add(self.bytes_of(target)))
    }

    /// Bytes used of a target, in whole blocks.
    fn bytes_of(&self, target: &Target) -> u64 {
        let block_bytes = u64::from(self.block_bytes());
        target.whole_bytes(self.block_bytes()).min(self.target_bytes_max / block_bytes * block_bytes)
    }

    /// What is known to be impossible before anything is started.
    ///
    /// # Errors
    /// When the workload has a value that is not allowed, a request has no room in the smallest target, no request may
    /// be with the system, or the engine has nothing to work on.
    pub fn check(&self) -> Result<(), LoadError> {
        let refused = |message| Err(LoadError::Job { job: self.name.clone(), message });
        self.workload.validate()?;
        if self.targets.is_empty() {
            return refused("has no target".to_owned());
        }
        if !(1..=SLOTS_MAX).contains(&self.depth()) {
            return refused(format!("{} requests at a time; 1 to {SLOTS_MAX} are allowed", self.depth()));
        }
        match &self.zones {
            Some(zoning) => self.targets.iter().try_for_each(|target| target.zones(zoning).map(drop))?,
            None if self.writes() => self.targets.iter().try_for_each(|target| target.check_untended())?,
            None => {}
        }
        let is_null = |target: &Arc<Target>| target.kind() == TargetKind::Null;
        if self.targets.iter().any(is_null) && matches!(self.engine, EngineKind::Ring | EngineKind::Psync) {
            return refused("the null target stores nothing: the engine null or auto is allowed".to_owned());
        }
        let (span, block_bytes) = (self.span()?, self.block_bytes());
        let longest = self.longest_bytes();
        if let Some(small) = self.targets.iter().find(|target| self.bytes_of(target) < u64::from(longest)) {
            let message = format!("requests of {longest} bytes have no room in its {} bytes", small.capacity_bytes());
            return Err(LoadError::Target { target: small.name().to_owned(), message });
        }
        if let Some((target, most)) = self.targets.iter().find_map(|target| {
            let most = target.longest_bytes()?;
            (longest > most).then_some((target, most))
        }) {
            let message = format!("it takes requests of up to {most} bytes; {longest} are asked for");
            return Err(LoadError::Target { target: target.name().to_owned(), message });
        }
        let verified_bytes = u64::from(self.depth()) * u64::from(longest);
        if self.verify != Verify::No && verified_bytes > VERIFIED_BYTES_MAX {
            return refused(format!(
                "{} requests of {longest} bytes at a time; {VERIFIED_BYTES_MAX} bytes of them can be verified",
                self.depth()
            ));
        }
        Generator::new(&self.workload, span, block_bytes, self.seed)?;
        if let Arrivals::Open { rate_per_s, process } = self.workload.arrivals {
            ArrivalClock::new(rate_per_s, process, self.seed)?;
        }
        Ok(())
    }

    /// The longest request, in bytes.
    pub fn longest_bytes(&self) -> u32 {
        self.workload.specification.lines.iter().map(|line| line.size_bytes).max().unwrap_or(0)
    }

    /// Whether any of its requests is a write or a trim.
    pub fn writes(&self) -> bool {
        self.workload.specification.lines.iter().any(|line| line.read_percent < 100.0)
    }

    /// What all its requests begin and end on multiples of, in bytes: the largest such number that divides 1 MiB, so
    /// that a pass may read unit by unit.
    ///
    /// # Errors
    /// As [`span`](Self::span).
    pub fn unit_bytes(&self) -> Result<u32, LoadError> {
        let Workload { specification, addresses, streams, .. } = &self.workload;
        let lines = &specification.lines;
        let lengths = lines.iter().fold(UNIT_BYTES_MAX, |unit, line| common_divisor(unit, line.size_bytes));
        let one_after_another = lines.iter().all(|line| line.random_percent == 0.0 && line.align_bytes.is_none());
        if one_after_another && *streams == 1 && *addresses == Addresses::Uniform {
            // A remainder, so below 2^32.
            let start = (self.span()?.start_bytes % u64::from(lengths.max(1))) as u32;
            return Ok(common_divisor(lengths, start));
        }
        let places = |unit, line: &AccessLine| common_divisor(unit, line.align_bytes.unwrap_or(self.block_bytes()));
        Ok(lines.iter().fold(lengths, places))
    }

    /// Name of the targets in errors.
    pub fn target(&self) -> String {
        self.targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
    }

    /// The unit that requests begin and end on.
    pub fn block_bytes(&self) -> u32 {
        unit_bytes(&self.workload, &self.targets, self.verify == Verify::No && self.zones.is_none())
    }

    /// The part that is used.
    ///
    /// # Errors
    /// When it lies outside of the target or is empty.
    pub fn span(&self) -> Result<Span, LoadError> {
        let capacity = self.capacity_bytes();
        let span = self.span.unwrap_or(Span { start_bytes: 0, length_bytes: capacity });
        match span.start_bytes.checked_add(span.length_bytes) {
            Some(end) if end <= capacity && span.length_bytes > 0 => Ok(span),
            _ => Err(LoadError::Target {
                target: self.target(),
                message: format!("{} bytes from {}: it has {capacity} bytes", span.length_bytes, span.start_bytes),
            }),
        }
    }

    /// When it is over.
    ///
    /// # Errors
    /// As [`span`](Self::span).
    pub fn end(&self) -> Result<JobEnd, LoadError> {
        Ok(self.end_by(self.span()?.length_bytes))
    }

    /// When it is over, where one pass comes to so many bytes: to whole requests where all are of one length.
    pub fn end_by(&self, pass_bytes: u64) -> JobEnd {
        let pass_bytes = whole_pass_bytes(&self.workload, pass_bytes);
        let Limits { requests, transfers, bytes, passes, time_ns } = self.limits;
        let by_passes = passes.map(|passes| (pass_bytes as f64 * passes).round() as u64);
        let or_never = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        let run = match self.limits == Limits::default() {
            true => self.workload.run_length.into(),
            false => End { requests: or_never(requests), time_ns: or_never(time_ns), ..End::NEVER },
        };
        JobEnd { run, transfers: or_never(transfers), bytes: or_never(bytes).min(or_never(by_passes)) }
    }

    /// Requests with the system at a time, at most.
    pub fn depth(&self) -> u32 {
        match self.workload.arrivals {
            Arrivals::Closed { outstanding, .. } => outstanding,
            Arrivals::Open { .. } => self.slots,
        }
    }
}

/// The unit that requests of a workload to `targets` begin and end on: blocks, but bytes for plain requests to files
/// through the page cache whose lengths or places are no multiples of blocks (etcd's test: `bs=2300`).
pub(crate) fn unit_bytes(workload: &Workload, targets: &[Arc<Target>], is_plain: bool) -> u32 {
    let block_bytes = Target::common_block_bytes(targets);
    let is_whole = |bytes: u32| bytes.is_multiple_of(block_bytes);
    let lines = &workload.specification.lines;
    let whole = lines.iter().all(|line| is_whole(line.size_bytes) && line.align_bytes.is_none_or(is_whole));
    if is_plain && !whole && targets.iter().all(|target| target.takes_any_bytes()) { 1 } else { block_bytes }
}

/// The bytes of one pass over so many in whole requests, where all of them have one length and go to each place once:
/// what is left is less than one more request.
pub(crate) fn whole_pass_bytes(workload: &Workload, pass_bytes: u64) -> u64 {
    let lines = &workload.specification.lines;
    let [first, ..] = &lines[..] else { return pass_bytes };
    let size_bytes = u64::from(first.size_bytes).max(1);
    let is_sequential = lines.iter().all(|line| line.random_percent == 0.0) && workload.addresses == Addresses::Uniform;
    let is_once = matches!(workload.addresses, Addresses::Once | Addresses::RandomMap);
    let is_even = lines.iter().all(|line| line.size_bytes == first.size_bytes) && pass_bytes >= size_bytes;
    if is_even && (is_sequential || is_once) { pass_bytes / size_bytes * size_bytes } else { pass_bytes }
}

/// The greatest number that divides both.
pub(crate) fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
