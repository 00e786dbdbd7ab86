//! [`Job`]: the work of one thread of a measurement.

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
    /// Name of the job; jobs with the same name are reported as one.
    pub name: String,
    /// The targets, whose address spaces are concatenated.
    pub targets: Vec<Arc<Target>>,
    /// Part of the address space that is used; `None` for all of it.
    pub span: Option<Span>,
    /// Sizes, offsets, arrivals, warm-up.
    pub workload: Workload,
    /// Limits of the run; without any limit, the workload's run length applies.
    pub limits: Limits,
    /// Engine that submits the requests.
    pub engine: EngineKind,
    /// Queue depth of an open loop.
    pub slots: u32,
    /// Delay before the first request, in ns.
    pub start_delay_ns: u64,
    /// Seed of the job's random choices.
    pub seed: u64,
    /// How reads are verified against writes. With verification, each request has its own buffer.
    pub verify: Verify,
    /// Whether the targets are dropped from the page cache before the start, and the number of bytes after which this
    /// is repeated.
    pub invalidates_every_bytes: Option<u64>,
    /// Maximum number of bytes used on each target, which may be less than its size.
    pub target_bytes_max: u64,
    /// Rates of reads, writes and trims per second, if each kind has separate arrivals.
    pub rates_per_s: Option<[f64; 3]>,
    /// Membership of a flow that keeps jobs in proportion.
    pub flow: Option<Member>,
    /// How failed requests affect the job.
    pub errors: Errors,
    /// Limits whose violation ends the job with an error.
    pub bounds: Bounds,
    /// Contents of writes that are not verified.
    pub content: Content,
    /// Whether data and metadata of the targets are flushed at the end.
    pub flushes_at_end: bool,
    /// Whether the submission time of requests is measured.
    pub times_handing_over: bool,
    /// How the zones of the targets are managed; `None` if they are not.
    pub zones: Option<Zoning>,
}

/// Limits at which a job ends.
#[derive(Clone, Copy, Debug)]
pub struct JobEnd {
    /// Number of requests and duration of the measured part.
    pub run: End,
    /// Number of requests of the measured part, without flushes.
    pub transfers: u64,
    /// Number of bytes of the measured part.
    pub bytes: u64,
}

/// Maximum size of a verification unit, in bytes.
const UNIT_BYTES_MAX: u32 = 1 << 20;
/// Maximum total size of verified requests in flight, in bytes.
const VERIFIED_BYTES_MAX: u64 = 1 << 31;
/// Maximum queue depth, for open and closed loops.
const SLOTS_MAX: u32 = 65_536;

impl Job {
    /// Returns the targets as one address space.
    pub fn target_map(&self) -> TargetMap {
        TargetMap::of_each(&self.targets, |target| self.bytes_of(target))
    }

    fn capacity_bytes(&self) -> u64 {
        self.targets.iter().fold(0, |sum, target| sum.saturating_add(self.bytes_of(target)))
    }

    /// Returns the bytes used on a target, in whole blocks.
    fn bytes_of(&self, target: &Target) -> u64 {
        let block_bytes = u64::from(self.block_bytes());
        target.whole_bytes(self.block_bytes()).min(self.target_bytes_max / block_bytes * block_bytes)
    }

    /// Checks for impossible settings before anything is started.
    ///
    /// # Errors
    /// Returns an error if the workload has an invalid value, a request does not fit into the smallest target, the
    /// queue depth is 0, or the engine has no target.
    pub fn check(&self) -> Result<(), LoadError> {
        let refused = |message| Err(LoadError::Job { job: self.name.clone(), message });
        self.workload.validate()?;
        if self.targets.is_empty() {
            return refused("has no target".to_owned());
        }
        if !(1..=SLOTS_MAX).contains(&self.depth()) {
            return refused(format!("queue depth {}; must be 1 to {SLOTS_MAX}", self.depth()));
        }
        match &self.zones {
            Some(zoning) => self.targets.iter().try_for_each(|target| target.zones(zoning).map(drop))?,
            None if self.writes() => self.targets.iter().try_for_each(|target| target.check_untended())?,
            None => {}
        }
        let is_null = |target: &Arc<Target>| target.kind() == TargetKind::Null;
        if self.targets.iter().any(is_null) && matches!(self.engine, EngineKind::Ring | EngineKind::Psync) {
            return refused("the null target stores nothing; use the engine null or auto".to_owned());
        }
        let (span, block_bytes) = (self.span()?, self.block_bytes());
        let longest = self.longest_bytes();
        if let Some(small) = self.targets.iter().find(|target| self.bytes_of(target) < u64::from(longest)) {
            let message =
                format!("too small for requests of {longest} bytes; its size is {} bytes", small.capacity_bytes());
            return Err(LoadError::Target { target: small.name().to_owned(), message });
        }
        if let Some((target, most)) = self.targets.iter().find_map(|target| {
            let most = target.longest_bytes()?;
            (longest > most).then_some((target, most))
        }) {
            let message = format!("requests of {longest} bytes; the maximum is {most}");
            return Err(LoadError::Target { target: target.name().to_owned(), message });
        }
        let verified_bytes = u64::from(self.depth()) * u64::from(longest);
        if self.verify != Verify::No && verified_bytes > VERIFIED_BYTES_MAX {
            return refused(format!(
                "{} requests of {longest} bytes in flight; the maximum with verification is {VERIFIED_BYTES_MAX} bytes in total",
                self.depth()
            ));
        }
        Generator::new(&self.workload, span, block_bytes, self.seed)?;
        if let Arrivals::Open { rate_per_s, process } = self.workload.arrivals {
            ArrivalClock::new(rate_per_s, process, self.seed)?;
        }
        Ok(())
    }

    /// Returns the length of the longest request, in bytes.
    pub fn longest_bytes(&self) -> u32 {
        self.workload.specification.lines.iter().map(|line| line.size_bytes).max().unwrap_or(0)
    }

    /// Returns whether any request is a write or a trim.
    pub fn writes(&self) -> bool {
        self.workload.specification.lines.iter().any(|line| line.read_percent < 100.0)
    }

    /// Returns the alignment of all offsets and lengths, in bytes: the largest common divisor that also divides 1 MiB,
    /// so that a pass may read unit by unit.
    ///
    /// # Errors
    /// Returns the errors of [`span`](Self::span).
    pub fn unit_bytes(&self) -> Result<u32, LoadError> {
        let Workload { specification, addresses, streams, .. } = &self.workload;
        let lines = &specification.lines;
        let lengths = lines.iter().fold(UNIT_BYTES_MAX, |unit, line| common_divisor(unit, line.size_bytes));
        let one_after_another = lines.iter().all(|line| line.random_percent == 0.0 && line.align_bytes.is_none());
        if one_after_another && *streams == 1 && *addresses == Addresses::Uniform {
            // The remainder is below 2^32.
            let start = (self.span()?.start_bytes % u64::from(lengths.max(1))) as u32;
            return Ok(common_divisor(lengths, start));
        }
        let places = |unit, line: &AccessLine| common_divisor(unit, line.align_bytes.unwrap_or(self.block_bytes()));
        Ok(lines.iter().fold(lengths, places))
    }

    /// Returns the name of the targets in error messages.
    pub fn target(&self) -> String {
        self.targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the block size of the requests, in bytes.
    pub fn block_bytes(&self) -> u32 {
        unit_bytes(&self.workload, &self.targets, self.verify == Verify::No && self.zones.is_none())
    }

    /// Returns the part of the targets that is used.
    ///
    /// # Errors
    /// Returns an error if this part is empty or not within the target.
    pub fn span(&self) -> Result<Span, LoadError> {
        let capacity = self.capacity_bytes();
        let span = self.span.unwrap_or(Span { start_bytes: 0, length_bytes: capacity });
        match span.start_bytes.checked_add(span.length_bytes) {
            Some(end) if end <= capacity && span.length_bytes > 0 => Ok(span),
            _ => Err(LoadError::Target {
                target: self.target(),
                message: format!(
                    "{} bytes from byte {} do not fit; its size is {capacity} bytes",
                    span.length_bytes, span.start_bytes
                ),
            }),
        }
    }

    /// Returns the limits at which the job ends.
    ///
    /// # Errors
    /// Returns the errors of [`span`](Self::span).
    pub fn end(&self) -> Result<JobEnd, LoadError> {
        Ok(self.end_by(self.span()?.length_bytes))
    }

    /// Returns the limits at which the job ends if one pass has `pass_bytes`, rounded to whole requests if all have the
    /// same length.
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

    /// Returns the queue depth.
    pub fn depth(&self) -> u32 {
        match self.workload.arrivals {
            Arrivals::Closed { queue_depth, .. } => queue_depth,
            Arrivals::Open { .. } => self.slots,
        }
    }
}

/// Returns the block size for a workload on `targets`: the block size of the targets, or 1 for requests to files
/// through the page cache whose lengths or offsets are not multiples of blocks (etcd's test: `bs=2300`).
pub(crate) fn unit_bytes(workload: &Workload, targets: &[Arc<Target>], is_plain: bool) -> u32 {
    let block_bytes = Target::common_block_bytes(targets);
    let is_whole = |bytes: u32| bytes.is_multiple_of(block_bytes);
    let lines = &workload.specification.lines;
    let whole = lines.iter().all(|line| is_whole(line.size_bytes) && line.align_bytes.is_none_or(is_whole));
    if is_plain && !whole && targets.iter().all(|target| target.takes_any_bytes()) { 1 } else { block_bytes }
}

/// Returns the bytes of a pass in whole requests, if all have the same length and go to each place once. The remainder
/// is less than one request.
pub(crate) fn whole_pass_bytes(workload: &Workload, pass_bytes: u64) -> u64 {
    let lines = &workload.specification.lines;
    let [first, ..] = &lines[..] else { return pass_bytes };
    let size_bytes = u64::from(first.size_bytes).max(1);
    let is_sequential = lines.iter().all(|line| line.random_percent == 0.0) && workload.addresses == Addresses::Uniform;
    let is_once = matches!(workload.addresses, Addresses::Once | Addresses::RandomMap);
    let is_even = lines.iter().all(|line| line.size_bytes == first.size_bytes) && pass_bytes >= size_bytes;
    if is_even && (is_sequential || is_once) { pass_bytes / size_bytes * size_bytes } else { pass_bytes }
}

/// Returns the greatest common divisor.
pub(crate) fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
