//! Verifies a target in a later pass ([`VerifySpec`]): reads and judges everything that was written.
//!
//! The target is read in order, with several long requests in flight. If it is not an HDD, several threads read, each
//! with its own part of the target and its own [`Scanner`]. A torn request that extends over two parts is then not
//! detected as such, but its blocks are judged. With a ledger, only blocks that were ever written are read. A block
//! that ended up where nothing was ever written shows as lost in its own place.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use headstack_jobfiles::Verify;
use headstack_nbd::transmission;
use headstack_result::{RunResult, StreamResult, SystemRecord};
use headstack_workload::Request;
use serde_json::{Value, json};

use crate::clock::{LOOK_NS, Time};
use crate::engine::{EngineKind, Wait};
use crate::integrity::{Layout, Ledger, Scanner};
use crate::job::Job;
use crate::load_loop::{LoadLoop, VERIFIED_SLOTS_MAX, WorkerSpec};
use crate::measured::{Measured, Ran, checked, join, streams};
use crate::recognise::{READ_BYTES, read, read_now, recognise};
use crate::spec::Spec;
use crate::stamping::Checked;
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::threads::{WorkerContext, measure, run_workers};
use crate::verification::{Verification, end, open_ledger};
use crate::worker::LoopStats;
use crate::{LoadError, Progress};

/// Queue depth per thread.
const DEPTH: u32 = 8;
/// Maximum length of a gap that is read too, in bytes: a separate request for the data after it would take longer.
const GAP_BYTES: u64 = 64 << 10;
/// Maximum number of threads.
const THREADS_MAX: usize = 4;

/// Definition of a verification.
#[derive(Clone)]
pub struct VerifySpec {
    /// Description of the target for results.
    pub system: SystemRecord,
    /// The file or device, which is only read.
    pub target: Arc<Target>,
    /// Ledger of the run that wrote the data. Without it, only the stamps are judged.
    pub ledger: Option<PathBuf>,
    /// Engine that submits the requests.
    pub engine: EngineKind,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
}

/// Reads and judges the data of an earlier run. `progress` receives the state and returns whether to continue;
/// [`RunResult::integrity`] has the findings. A range that cannot be read is read again block by block, and blocks that
/// fail again are reported as unreadable.
///
/// # Errors
/// Returns an error if the ledger is invalid or belongs to another target, if the target has no stamps, if the kernel
/// refuses the engine, or if blocks are shorter than direct requests can be.
pub fn verify(spec: &VerifySpec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    let ledger = spec.ledger.as_deref().map(|path| open_ledger(path, &spec.target)).transpose()?;
    let against = match &ledger {
        Some(ledger) => VerifyBasis::Ledger(ledger),
        None => match recognise(&spec.target)? {
            Some((layout, run)) => VerifyBasis::Stamps { layout, run },
            None => {
                let message = "has no stamps at its start or at 1024 offsets spread over it".to_owned();
                return Err(LoadError::Target { target: spec.target.name().to_owned(), message });
            }
        },
    };
    let (measured, ran) = pass(&spec.target, &against, Reads::long(spec.engine), spec.interval_ns, progress)?;
    let record = json!({ "verify": { "ledger": spec.ledger, "unit_bytes": against.layout().unit_bytes() } });
    Ok(join(&spec.system, &record, 0, &measured, &ran))
}

/// Ends the ledgers of a run, and verifies its data if its jobs request that. The measurements are kept in any case.
pub(crate) fn finish(
    spec: &Spec,
    known: &Verification,
    measured: &[Measured],
    result: &mut RunResult,
    progress: &mut dyn FnMut(&Progress) -> bool,
) {
    let is_read = |target: &Arc<Target>| {
        let jobs = spec.jobs.iter().filter(|job| job.verify == Verify::StampAndRead);
        jobs.flat_map(|job| &job.targets).any(|other| Arc::ptr_eq(other, target))
    };
    let mut passes = known.ledgers().filter(|(target, _)| is_read(target)).peekable();
    let has_lost = measured.iter().any(|one| !one.lost.is_empty());
    if has_lost || result.ended_early.is_some() {
        if passes.peek().is_some() {
            result.notes.push("written data were not verified: the run ended early".to_owned());
        }
    } else {
        let mut checked = checked(measured);
        for (target, ledger) in passes {
            match read_again(target, ledger, reads_of(spec, target), result, progress) {
                Ok((basis_found, read)) => {
                    checked = checked.into_iter().chain(basis_found).reduce(Checked::and);
                    if spec.tells_streams {
                        add_read_stream(spec, target, &read, result);
                    }
                }
                Err(error) => {
                    result.ended_early.get_or_insert(error.to_string());
                }
            }
        }
        result.integrity = checked.map(Checked::integrity);
    }
    end(Some(known), result);
}

/// Reads and judges the data written to a target.
fn read_again(
    target: &Arc<Target>,
    ledger: &Ledger,
    reads: Reads,
    result: &mut RunResult,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Option<Checked>, Vec<Measured>), LoadError> {
    let against = VerifyBasis::Ledger(ledger);
    let (read, ran) = pass(target, &against, reads, None, progress)?;
    if ran.by_somebody {
        result.ended_early.get_or_insert("stopped by hand".to_owned());
    }
    let whole = join(&result.system, &Value::Null, 0, &read, &ran);
    let (mb, seconds) = (whole.bytes() as f64 / 1e6, whole.duration_ns as f64 / 1e9);
    result.method_notes.push(format!("{}: verified {mb:.1} MB of written data in {seconds:.2} s", target.name()));
    for note in whole.notes {
        if !result.notes.contains(&note) {
            result.notes.push(note);
        }
    }
    Ok((checked(&read), read))
}

/// Returns how to read the data of a run. Jobs with separate results read their data with their own request sizes, as
/// fio does; otherwise long reads by several threads are faster.
fn reads_of(spec: &Spec, target: &Arc<Target>) -> Reads {
    let on_target = |job: &&Job| job.targets.iter().any(|other| Arc::ptr_eq(other, target));
    match spec.jobs.iter().filter(on_target).max_by_key(|job| job.longest_bytes()) {
        Some(job) if spec.tells_streams => {
            let depth = job.depth().min(VERIFIED_SLOTS_MAX);
            Reads { bytes: job.longest_bytes(), depth, threads_max: 1, engine: job.engine }
        }
        _ => Reads::long(EngineKind::Auto),
    }
}

/// Suffix that is added to a job's name to name the stream of its verifying reads.
pub const VERIFYING: &str = " (verify)";

/// Adds the reads as a stream after the first job that requested them.
fn add_read_stream(spec: &Spec, target: &Arc<Target>, read: &[Measured], result: &mut RunResult) {
    let has_reads =
        |job: &&Job| job.verify == Verify::StampAndRead && job.targets.iter().any(|other| Arc::ptr_eq(other, target));
    let Some(job) = spec.jobs.iter().find(has_reads) else { return };
    let name = format!("{}{VERIFYING}", job.name);
    for stream in streams(read) {
        match result.streams.iter_mut().find(|known| known.name == name) {
            // Several targets are read one after another, so their durations add up.
            Some(known) => {
                known.kinds.merge(&stream.kinds);
                for fact in &mut known.facts {
                    let own = stream.facts.iter().find(|other| other.name == fact.name);
                    fact.value += own.map_or(0.0, |own| own.value);
                }
            }
            None => result.streams.push(StreamResult { name: name.clone(), ..stream }),
        }
    }
}

/// How a pass reads.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// Maximum length of a read, in bytes.
    pub bytes: u32,
    /// Queue depth per thread.
    pub depth: u32,
    /// Maximum number of threads.
    pub threads_max: usize,
    /// Engine that submits the reads.
    pub engine: EngineKind,
}

impl Reads {
    /// Returns the settings for long reads, which are fastest.
    pub(crate) fn long(engine: EngineKind) -> Reads {
        Reads { bytes: READ_BYTES, depth: DEPTH, threads_max: THREADS_MAX, engine }
    }
}

/// Basis for judging the reads of a pass.
pub(crate) enum VerifyBasis<'a> {
    /// A ledger with no request in flight.
    Ledger(&'a Ledger),
    /// Only the stamps.
    Stamps {
        /// Layout of the run.
        layout: Layout,
        /// Number of the run.
        run: u64,
    },
}

impl VerifyBasis<'_> {
    fn layout(&self) -> Layout {
        match self {
            VerifyBasis::Ledger(ledger) => ledger.layout(),
            VerifyBasis::Stamps { layout, .. } => *layout,
        }
    }

    fn scanner(&self) -> Scanner<'_> {
        match self {
            VerifyBasis::Ledger(ledger) => Scanner::new(ledger),
            VerifyBasis::Stamps { layout, run } => Scanner::without_ledger(*layout, Some(*run)),
        }
    }

    /// Returns the next range of `units` to read.
    fn next(&self, units: Range<u64>, most: u64) -> Option<Range<u64>> {
        match self {
            VerifyBasis::Ledger(ledger) => {
                ledger.written(units, most, GAP_BYTES / u64::from(ledger.layout().unit_bytes()))
            }
            VerifyBasis::Stamps { .. } => {
                Some(units.start..units.end.min(units.start + most)).filter(|units| !units.is_empty())
            }
        }
    }
}

/// Reads and judges a target with no request in flight.
///
/// # Errors
/// Returns an error if the kernel refuses the engine, or if units are not multiples of the target's blocks.
pub(crate) fn pass(
    target: &Arc<Target>,
    against: &VerifyBasis,
    reads: Reads,
    interval_ns: Option<u64>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Vec<Measured>, Ran), LoadError> {
    let targets = std::slice::from_ref(target);
    let (layout, block_bytes) = (against.layout(), target.block_bytes());
    let unit_bytes = layout.unit_bytes();
    if !unit_bytes.is_multiple_of(block_bytes) {
        let message = format!(
            "has stamps in units of {unit_bytes} bytes, but direct requests need {block_bytes}; use buffered \
             I/O to read them"
        );
        return Err(LoadError::Target { target: target.name().to_owned(), message });
    }
    if let Some(file) = target.fd() {
        // SAFETY: a hint that does not touch memory. It makes reads through the page cache come from the medium.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    let longest_bytes = reads.bytes.min(target.longest_bytes().unwrap_or(u32::MAX));
    let read_bytes = (longest_bytes / unit_bytes).max(1) * unit_bytes;
    let worker = WorkerSpec {
        name: "verify",
        targets,
        map: TargetMap::of(targets, block_bytes),
        engine: reads.engine,
        slots: reads.depth,
        buffer_bytes: read_bytes,
        start_delay_ns: 0,
        seed: 0,
        interval_ns,
        own_buffers: true,
        verification: None,
    };
    let is_of_one = target.export().is_some_and(|export| !export.can(transmission::CAN_MULTI_CONN));
    let threads = if target.is_rotational() == Some(true) || is_of_one {
        1
    } else {
        std::thread::available_parallelism().map_or(1, |count| count.get().min(reads.threads_max)) as u64
    };
    let units = layout.units();
    let works = (0..threads).map(|thread| {
        let part = |edge: u64| (u128::from(units) * u128::from(edge) / u128::from(threads)) as u64;
        let (worker, part) = (&worker, part(thread)..part(thread + 1));
        move |context: &WorkerContext| {
            let mut basis_found = None;
            let mut measured = measure(worker, context, |load_loop| {
                let mut reading = Reading::new(against, part, read_bytes, reads.depth);
                let outcome = reading.read_all(load_loop, &worker.map);
                load_loop.close(load_loop.now_ns);
                basis_found = Some(Checked { report: reading.scanner.finish(), unit_bytes });
                outcome.map(|()| LoopStats::default())
            })?;
            measured.integrity = basis_found;
            Ok::<_, LoadError>(measured)
        }
    });
    run_workers(works.collect(), targets, Time::Wall, Start::AtOnce, progress)
}

/// The part of a pass that one thread reads.
struct Reading<'a> {
    against: &'a VerifyBasis<'a>,
    scanner: Scanner<'a>,
    part: Range<u64>,
    /// Units that are still to be read.
    rest: Range<u64>,
    unit_bytes: u32,
    /// Maximum length of a read, in bytes.
    read_bytes: u32,
    /// Queue depth.
    depth: u32,
    /// Reads in flight, by offset; their slots rotate.
    under_way: VecDeque<PendingRead>,
    issued: u64,
}

/// A read in flight.
struct PendingRead {
    slot: u32,
    request: Request,
    /// Whether the read failed; `None` until it has completed.
    failed: Option<bool>,
}

impl<'a> Reading<'a> {
    fn new(against: &'a VerifyBasis<'a>, part: Range<u64>, read_bytes: u32, depth: u32) -> Reading<'a> {
        let unit_bytes = against.layout().unit_bytes();
        Reading {
            against,
            scanner: against.scanner(),
            rest: part.clone(),
            part,
            unit_bytes,
            read_bytes,
            depth,
            under_way: VecDeque::new(),
            issued: 0,
        }
    }

    fn read_all(&mut self, load_loop: &mut LoadLoop, map: &TargetMap) -> Result<(), LoadError> {
        load_loop.look();
        load_loop.start_measuring(u64::MAX);
        while !load_loop.is_stopped() {
            while self.under_way.len() < self.depth as usize && self.issue_next(load_loop) {}
            if self.under_way.is_empty() {
                break;
            }
            load_loop.wait(Wait::Until(load_loop.now_ns + LOOK_NS))?;
            let under_way = &mut self.under_way;
            load_loop.settle(|ended| {
                if let Some(read) = under_way.iter_mut().find(|read| read.slot == ended.slot) {
                    read.failed = Some(ended.failed);
                }
            });
            while let Some(PendingRead { failed: Some(_), .. }) = self.under_way.front() {
                self.judge_next(load_loop, map)?;
            }
            let (part, rest) = (&self.part, &self.rest);
            load_loop.update_progress(|_| (rest.start - part.start) as f64 / (part.end - part.start).max(1) as f64);
        }
        if self.rest.start < self.rest.end {
            self.scanner.note("the pass ended before it had read everything");
        }
        Ok(())
    }

    /// Issues the next read, if any is left. Returns whether one was issued.
    fn issue_next(&mut self, load_loop: &mut LoadLoop) -> bool {
        let unit_bytes = u64::from(self.unit_bytes);
        let most = u64::from(self.read_bytes) / unit_bytes;
        let Some(units) = self.against.next(self.rest.clone(), most) else {
            self.rest.start = self.rest.end;
            return false;
        };
        self.rest.start = units.end;
        // The length is at most that of a buffer, so it is below 2^32.
        let request = read((units.start * unit_bytes, ((units.end - units.start) * unit_bytes) as u32));
        let slot = (self.issued % u64::from(self.depth)) as u32;
        self.issued += 1;
        load_loop.issue_in(slot, &request);
        self.under_way.push_back(PendingRead { slot, request, failed: None });
        true
    }

    /// Judges the oldest read, which has completed.
    fn judge_next(&mut self, load_loop: &mut LoadLoop, map: &TargetMap) -> Result<(), LoadError> {
        let Some(PendingRead { slot, request, failed }) = self.under_way.pop_front() else { return Ok(()) };
        let Request { offset_bytes, length_bytes, .. } = request;
        if failed != Some(true) {
            return self.scanner.read(offset_bytes, load_loop.buffer(slot, length_bytes));
        }
        for offset_bytes in (offset_bytes..offset_bytes + u64::from(length_bytes)).step_by(self.unit_bytes as usize) {
            if load_loop.is_stopped() {
                break;
            }
            let unit = load_loop.buffer(slot, self.unit_bytes);
            if read_now(map, offset_bytes, unit) == Some(self.unit_bytes) {
                self.scanner.read(offset_bytes, unit)?;
            } else {
                self.scanner.unreadable(offset_bytes, u64::from(self.unit_bytes))?;
            }
        }
        Ok(())
    }
}
