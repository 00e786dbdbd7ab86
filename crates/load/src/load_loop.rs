//! [`LoadLoop`]: the targets of one thread under load. It submits requests, collects completions and stores the
//! measurements; a worker loop or a trace decides when the next request is issued.

mod bounds;
mod zones;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headstack_jobfiles::{Bounds, Content, Errors};
use headstack_result::{Finished, Kinds, LatencyHistogram, Measuring};
use headstack_workload::{Kind, Request};

use crate::LoadError;
use crate::clock::{Clock, LOOK_NS};
use crate::engine::{Completion, Engine, EngineKind, Setup, WHOLE, Wait};
use crate::error_log::ErrorLog;
use crate::log::{Log, Logged};
use crate::progress::WorkerProgress;
use crate::samples::Samples;
use crate::stamping::{Checked, Stamping};
use crate::target::Target;
use crate::target_map::{TargetMap, TargetPlace};
use crate::verification::Verification;
use crate::zones::Tending;
pub use bounds::BoundViolation;
use bounds::Watch;

/// Interval between progress updates, in ns.
const TELL_EVERY_NS: u64 = 10_000_000;

/// Maximum queue depth of a load that does not state its depth.
pub const SLOTS_MAX: u32 = 1 << 15;
/// Memory for all requests in flight, in bytes, if requests may have any length and contents do not matter.
const BUFFERS_BYTES: u32 = 1 << 27;
/// Buffer lengths, in bytes. Most requests fit into the shorter one, and longer requests use all buffers. With few
/// slots, the longer length allows requests of a gigabyte.
const BUFFER_BYTES: [u32; 2] = [1 << 16, 1 << 20];

/// Maximum length of verified requests, in bytes, if requests may have any length.
pub const VERIFIED_BYTES: u32 = 1 << 20;
/// Maximum queue depth of such a load: with [`VERIFIED_BYTES`] per request, the buffers take 2 GiB.
pub const VERIFIED_SLOTS_MAX: u32 = 1 << 11;

/// Returns the buffer length, in bytes, if requests may have any length.
pub fn buffer_bytes(slots: u32) -> u32 {
    (BUFFERS_BYTES / slots.max(1)).clamp(BUFFER_BYTES[0], BUFFER_BYTES[1])
}

/// Time after the end after which outstanding requests are abandoned, in ns.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// Time after which they are abandoned once the user has given up ([`Target::give_up`](crate::Target::give_up)), in ns.
const GIVEN_UP_NS: u64 = 500_000_000;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    /// Intended arrival time, in ns.
    pub intended_ns: u64,
    /// Time of submission, in ns.
    pub started_ns: u64,
    /// Time at which the system had accepted the request, in ns, if this is measured; otherwise equal to `started_ns`.
    pub taken_ns: u64,
    /// Number of requests submitted earlier.
    pub sequence: u64,
    /// The request itself.
    pub request: Request,
}

/// A request that never completed.
#[derive(Clone, Debug)]
pub struct LostRequest {
    /// Name of the request's target.
    pub target: String,
    /// The request, with its offset within the target.
    pub request: Request,
    /// Time in flight until the request was abandoned, in ns.
    pub age_ns: u64,
    /// Whether the user gave up the request before the time-out.
    pub as_asked: bool,
}

/// Extent of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmedUp {
    /// Requests that completed during the warm-up.
    pub requests: u64,
    /// Number of requests that the warm-up was to have.
    pub requests_asked: u64,
    /// Duration of the warm-up, in ns.
    pub time_ns: u64,
}

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Slot that [`LoadLoop::issue`] assigned to the request.
    pub slot: u32,
    /// The request and its times.
    pub flight: PendingRequest,
    /// Time of completion, in ns.
    pub at_ns: u64,
    /// Whether the request failed.
    pub failed: bool,
    /// Whether the request belongs to the measured part.
    pub counted: bool,
}

/// Targets and settings of a worker thread.
pub struct WorkerSpec<'a> {
    /// Name of the worker in results.
    pub name: &'a str,
    /// The targets.
    pub targets: &'a [Arc<Target>],
    /// The targets as one address space.
    pub map: TargetMap,
    /// Engine that submits the requests.
    pub engine: EngineKind,
    /// Queue depth.
    pub slots: u32,
    /// Buffer length in bytes.
    pub buffer_bytes: u32,
    /// Delay before the first request, in ns.
    pub start_delay_ns: u64,
    /// Seed of the random choices.
    pub seed: u64,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Whether contents matter, so that every request needs its own buffer.
    pub own_buffers: bool,
    /// Expected contents of reads; `None` without verification.
    pub verification: Option<&'a Verification>,
}

impl WorkerSpec<'_> {
    /// Returns the name of the targets in error messages.
    pub fn target(&self) -> String {
        self.targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the settings of the worker's engine.
    pub fn setup(&self) -> Setup {
        Setup {
            map: self.map.clone(),
            slots: self.slots,
            longest_bytes: self.buffer_bytes,
            own_buffers: self.own_buffers,
            name: self.target(),
        }
    }
}

/// How write buffers are filled and reads are checked.
enum Contents<'a> {
    /// No data are transferred.
    Any,
    /// Every write has different data.
    Fresh,
    /// All writes have the same data.
    Pattern(Vec<u8>),
    /// Writes carry stamps, and reads are checked.
    Stamped(Box<Stamping<'a>>),
}

/// An engine, its requests in flight, and the measurements.
pub struct LoadLoop<'a> {
    engine: Engine,
    flights: Vec<PendingRequest>,
    free: Vec<u32>,
    done: Vec<Completion>,
    /// Measurements since the end of the warm-up; `None` during it.
    pub measuring: Option<Measuring>,
    /// Extent of the warm-up, which is excluded from results.
    pub warmed_up: WarmedUp,
    /// Failed requests of the measured part, by kind.
    pub errors: [u64; 4],
    /// Errors so far.
    pub error_log: ErrorLog,
    /// Samples of the throughput over time.
    pub samples: Samples,
    /// Current time, as of the last update from the clock, in ns.
    pub now_ns: u64,
    /// Number of arrivals that wait for a slot; they count as outstanding.
    pub waiting: u64,
    /// Number of submitted requests.
    pub issued: u64,
    /// Number of completed requests.
    pub completed: u64,
    /// Bytes of requests in flight.
    pub bytes_under_way: u64,
    /// Bytes of requests completed since the end of the warm-up, including failed ones.
    pub bytes: u64,
    /// Flushes completed since the end of the warm-up.
    pub flushes: u64,
    /// Number of flushes in flight.
    pub flushes_under_way: u64,
    /// Log of individual requests of the measured part, and the job number to store in it.
    pub log: Option<(Arc<Log>, u32)>,
    /// How failed requests affect the run.
    pub errors_rule: Errors,
    /// Whether a failed request or a violated limit has ended the run.
    pub is_ended_by_error: bool,
    /// The violated limit that ended the run.
    pub broken: Option<BoundViolation>,
    watch: Option<Box<Watch>>,
    /// Whether the run ended because its zones had nothing to read or reset.
    pub has_run_dry: bool,
    /// Submission times of requests, by kind, if these are measured.
    pub handing_over: Option<Box<[LatencyHistogram; 4]>>,
    /// Slots of issued requests that the system may not have accepted yet.
    not_taken: Vec<u32>,
    response_ns: u64,
    bytes_ever: u64,
    /// Number of successful requests after which the measured part ends, even if more complete at the same time.
    pub requests_max: u64,
    /// Time at which this thread noticed that the user had given up, in ns.
    given_up_ns: Option<u64>,
    interval_ns: u64,
    deadline_ns: u64,
    next_tell_ns: u64,
    contents: Contents<'a>,
    tending: Option<Box<Tending>>,
    targets: &'a [Arc<Target>],
    map: TargetMap,
    live: &'a WorkerProgress,
    stop: &'a AtomicBool,
    clock: &'a Clock,
}

impl<'a> LoadLoop<'a> {
    /// Creates an idle load loop.
    ///
    /// # Errors
    /// Returns an error if targets are to be verified but cannot be.
    pub fn new(
        engine: Engine,
        worker: &WorkerSpec<'a>,
        live: &'a WorkerProgress,
        stop: &'a AtomicBool,
        clock: &'a Clock,
    ) -> Result<Self, LoadError> {
        let slots = worker.slots;
        let contents = match worker.verification {
            Some(known) => Contents::Stamped(Box::new(Stamping::new(
                known,
                worker.targets,
                &worker.map,
                slots,
                worker.buffer_bytes,
            )?)),
            None if matches!(engine, Engine::Null(_)) => Contents::Any,
            None => Contents::Fresh,
        };
        let nothing =
            Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
        let idle = PendingRequest { intended_ns: 0, started_ns: 0, taken_ns: 0, sequence: 0, request: nothing };
        Ok(LoadLoop {
            contents,
            engine,
            flights: vec![idle; slots as usize],
            free: (0..slots).rev().collect(),
            done: Vec::with_capacity(slots as usize),
            measuring: None,
            warmed_up: WarmedUp::default(),
            errors: [0; 4],
            error_log: ErrorLog::default(),
            samples: Samples::default(),
            now_ns: clock.now_ns(),
            waiting: 0,
            issued: 0,
            completed: 0,
            bytes_under_way: 0,
            bytes: 0,
            flushes: 0,
            flushes_under_way: 0,
            log: None,
            errors_rule: Errors::default(),
            is_ended_by_error: false,
            broken: None,
            watch: None,
            has_run_dry: false,
            tending: None,
            handing_over: None,
            not_taken: Vec::new(),
            response_ns: 0,
            bytes_ever: 0,
            requests_max: u64::MAX,
            given_up_ns: None,
            interval_ns: worker.interval_ns.unwrap_or(u64::MAX).max(1),
            deadline_ns: u64::MAX,
            next_tell_ns: 0,
            targets: worker.targets,
            map: worker.map.clone(),
            live,
            stop,
            clock,
        })
    }

    /// Sets the contents of unverified writes; each slot then needs its own buffer.
    pub fn write_content(&mut self, content: &Content) {
        if let (Contents::Fresh, Content::Pattern(pattern)) = (&self.contents, content) {
            self.contents = Contents::Pattern(pattern.clone());
        }
    }

    /// Sets the limits for requests from now on.
    pub fn watch(&mut self, bounds: Bounds) {
        self.watch = Watch::new(bounds, self.now_ns).map(Box::new);
    }

    /// Enables measurement of submission times, if the engine submits before it waits.
    pub fn time_handing_over(&mut self) {
        if matches!(self.engine, Engine::Ring(_) | Engine::Nbd(_)) {
            self.handing_over = Some(Box::new(std::array::from_fn(|_| LatencyHistogram::new())));
        }
    }

    /// Returns the description of the engine for results.
    pub fn engine(&self) -> String {
        self.engine.describe()
    }

    /// Returns the reason why the engine is not the usual one.
    pub fn instead_of(&self) -> Option<String> {
        self.engine.instead_of().map(str::to_owned)
    }

    /// Returns whether a request may be issued now.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Returns the number of requests that may be issued before any completes.
    #[inline]
    pub fn room(&self) -> u64 {
        self.free.len() as u64
    }

    /// Returns the number of requests in flight.
    #[inline]
    pub fn under_way(&self) -> u64 {
        self.issued - self.completed
    }

    /// Returns the latest end of the measured part, in ns.
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Updates the current time from the clock.
    #[inline]
    pub fn look(&mut self) {
        // The processors' counters differ by a few nanoseconds; time must not go back when a thread moves.
        self.now_ns = self.now_ns.max(self.clock.now_ns());
    }

    /// Returns whether a stop was requested.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Accounts for the time since the last change of the queue depth. Every change calls this first, so that the
    /// measured part ends on time and not with the next event.
    #[inline]
    pub fn count_depth(&mut self, at_ns: u64) {
        if self.is_over() {
            return;
        }
        if at_ns >= self.deadline_ns {
            self.close(self.deadline_ns);
            return;
        }
        let depth = self.under_way() + self.waiting;
        if let Some(measuring) = &mut self.measuring {
            measuring.count_depth(at_ns, depth as usize);
        }
    }

    /// Returns whether the measured part is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.measuring.as_ref().is_some_and(|measuring| measuring.end_ns.is_some())
    }

    /// Issues a request now, which requires a free slot ([`has_room`](Self::has_room)); the next [`drive`](Self::drive)
    /// submits it. Returns its slot, which is reserved until the request has completed.
    #[inline]
    pub fn issue(&mut self, intended_ns: u64, request: &Request) -> u32 {
        let slot = self.free.pop().expect("the caller checked that a slot is free");
        let (started_ns, sequence) = (self.now_ns, self.issued);
        self.flights[slot as usize] =
            PendingRequest { intended_ns, started_ns, taken_ns: started_ns, sequence, request: *request };
        self.issued += 1;
        self.bytes_under_way += u64::from(request.length_bytes);
        self.flushes_under_way += u64::from(request.kind == Kind::Flush);
        match &mut self.tending {
            Some(tending) if request.kind != Kind::Flush => {
                tending.draw(slot, request);
                self.advance(slot);
            }
            _ => self.submit(slot, request),
        }
        slot
    }

    /// Fills the buffer of a request and passes the request to the engine.
    #[inline(always)]
    fn submit(&mut self, slot: u32, request: &Request) {
        match &self.contents {
            Contents::Fresh if request.kind == Kind::Write => {
                self.engine.buffers().freshen(slot, request.length_bytes);
            }
            Contents::Pattern(pattern) if request.kind == Kind::Write => {
                self.engine.buffers().fill(slot, request.length_bytes, pattern);
            }
            Contents::Any | Contents::Fresh | Contents::Pattern(_) => {}
            Contents::Stamped(_) => {
                if !self.stamp(slot, request) {
                    return;
                }
            }
        }
        self.engine.prepare(slot, request);
        if self.handing_over.is_some() {
            self.not_taken.push(slot);
            if self.engine.has_handed_over() {
                self.note_taken();
            }
        }
    }

    /// Records that the system has accepted all requests issued so far.
    fn note_taken(&mut self) {
        let taken_ns = self.clock.now_ns().max(self.now_ns);
        for slot in self.not_taken.drain(..) {
            self.flights[slot as usize].taken_ns = taken_ns;
        }
    }

    /// Updates the clock if submission times are measured, so that a request has its own issue time and not that of the
    /// last update.
    #[inline]
    pub fn look_before_issuing(&mut self) {
        if self.handing_over.is_some() {
            self.look();
            self.count_depth(self.now_ns);
        }
    }

    /// Stamps a write, or takes the expectation of a read. Not inlined, so that loads without verification are not
    /// slowed. Returns false if the request cannot be verified; it must then not be submitted, and the run ends.
    #[inline(never)]
    fn stamp(&mut self, slot: u32, request: &Request) -> bool {
        let Contents::Stamped(stamping) = &mut self.contents else { return true };
        match stamping.begin(slot, request, &self.map, self.engine.buffers()) {
            Ok(()) => true,
            Err(error) => {
                self.give_up(error.to_string());
                self.done.push(Completion { slot, result: -libc::EIO });
                false
            }
        }
    }

    /// Issues a request now in a given free slot, for callers that process the buffers of completed requests and
    /// therefore decide when to reuse a slot.
    pub fn issue_in(&mut self, slot: u32, request: &Request) {
        if let Some(at) = self.free.iter().position(|&free| free == slot) {
            let last = self.free.len() - 1;
            self.free.swap(at, last);
        }
        let issued = self.issue(self.now_ns, request);
        debug_assert_eq!(issued, slot, "the given slot is the last one freed");
    }

    /// Returns the first `length` bytes of the buffer of a free slot.
    pub fn buffer(&mut self, slot: u32, length: u32) -> &mut [u8] {
        self.engine.buffers().slice(slot, length)
    }

    /// Submits issued requests, waits, and records completions.
    ///
    /// # Errors
    /// Returns an error if the kernel accepts no more requests.
    #[inline]
    pub fn drive(&mut self, wait: Wait) -> Result<(), LoadError> {
        self.wait(wait)?;
        self.settle(|_| {});
        Ok(())
    }

    /// Submits requests and waits: the first half of [`drive`](Self::drive). Record events outside the target before
    /// calling [`settle`](Self::settle).
    ///
    /// # Errors
    /// Returns an error if the kernel accepts no more requests.
    #[inline]
    pub fn wait(&mut self, wait: Wait) -> Result<(), LoadError> {
        if !self.not_taken.is_empty() {
            self.engine.hand_over();
            self.note_taken();
        }
        let wait = self.look_for_zones(wait);
        let driven = self.engine.drive(wait, self.clock, &mut self.done);
        self.look();
        driven
    }

    /// Records completions and calls `each` for each of them: the second half of [`drive`](Self::drive).
    #[inline]
    pub fn settle(&mut self, mut each: impl FnMut(&Ended)) {
        let mut done = std::mem::take(&mut self.done);
        for done in done.drain(..) {
            let ended = self.complete(done);
            each(&ended);
        }
        self.done = done;
        if self.tending.is_some() {
            self.advance_held();
        }
    }

    #[inline(always)]
    fn complete(&mut self, done: Completion) -> Ended {
        let flight = self.flights[done.slot as usize];
        let PendingRequest { request, intended_ns, started_ns, taken_ns, .. } = flight;
        let at_ns = self.now_ns;
        self.count_depth(at_ns);
        self.free.push(done.slot);
        self.completed += 1;
        let length = u64::from(request.length_bytes);
        self.bytes_under_way -= length;
        self.bytes += length;
        if request.kind == Kind::Flush {
            self.flushes += 1;
            self.flushes_under_way -= 1;
        }
        let failed = match request.kind {
            Kind::Read | Kind::Write => done.result != WHOLE && i64::from(done.result) != length as i64,
            Kind::Trim | Kind::Flush => done.result < 0,
        };
        if let Contents::Stamped(stamping) = &mut self.contents {
            stamping.end(done.slot, &request, failed, &self.map, self.engine.buffers());
        }
        if let Some(tending) = &mut self.tending {
            tending.came_back(done.slot, &request, failed);
        }
        let counted = self.measuring.as_ref().is_some_and(|measuring| measuring.end_ns.is_none());
        if counted && let Some((log, job)) = &self.log {
            let Request { kind, offset_bytes, length_bytes, .. } = request;
            let response_ns = at_ns - intended_ns;
            let handing_over_ns = taken_ns - started_ns;
            log.add(Logged {
                job: *job,
                kind,
                offset_bytes,
                length_bytes,
                intended_ns,
                response_ns,
                handing_over_ns,
                failed,
            });
        }
        if failed {
            self.fail(&flight, done.result);
            return Ended { slot: done.slot, flight, at_ns, failed, counted };
        }
        self.response_ns += at_ns - intended_ns;
        self.bytes_ever += length;
        if counted && let Some(measuring) = &mut self.measuring {
            let (kind, length_bytes) = (request.kind as usize, request.length_bytes);
            measuring.record(&Finished { kind, length_bytes, intended_ns, started_ns: taken_ns, at_ns });
            if let Some(handing_over) = &mut self.handing_over {
                handing_over[kind].record(taken_ns - started_ns);
            }
            if measuring.completed >= self.requests_max {
                self.close(at_ns);
            }
            if self.watch.is_some() {
                self.keep_to_bounds(&request, at_ns - started_ns);
            }
        }
        Ended { slot: done.slot, flight, at_ns, failed, counted }
    }

    /// Ends the job if a completed request violates a limit.
    #[inline(never)]
    fn keep_to_bounds(&mut self, request: &Request, latency_ns: u64) {
        let Some(broken) = self.watch.as_mut().and_then(|watch| watch.take(request, latency_ns, self.now_ns)) else {
            return;
        };
        self.watch = None;
        self.broken = Some(broken);
        self.is_ended_by_error = true;
        if self.errors_rule.end_all {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    #[cold]
    fn fail(&mut self, flight: &PendingRequest, result: i32) {
        if let Some(measuring) = &mut self.measuring
            && measuring.end_ns.is_none()
        {
            self.errors[flight.request.kind as usize] += 1;
            measuring.forget(flight.intended_ns, self.now_ns);
        }
        self.error_log.add(self.targets, &self.map, &flight.request, result);
        let goes_on = match flight.request.kind {
            Kind::Read => self.errors_rule.reads_go_on,
            Kind::Write | Kind::Trim | Kind::Flush => self.errors_rule.writes_go_on,
        };
        self.is_ended_by_error |= !goes_on;
        if self.error_log.fatal.is_some() || (!goes_on && self.errors_rule.end_all) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the warm-up and starts the measured part, which lasts at most `time_ns`.
    pub fn start_measuring(&mut self, time_ns: u64) {
        if self.measuring.is_none() {
            self.deadline_ns = self.now_ns.saturating_add(time_ns);
            self.measuring = Some(Measuring::of_device(self.now_ns, self.under_way() + self.waiting, self.interval_ns));
            self.samples.start(self.now_ns);
            (self.bytes, self.flushes) = (0, 0);
        }
    }

    /// Ends the measured part at `end_ns`.
    pub fn close(&mut self, end_ns: u64) {
        let depth = self.under_way() + self.waiting;
        if let Some(measuring) = &mut self.measuring
            && measuring.end_ns.is_none()
        {
            measuring.close(end_ns, depth);
            let under_way = under_way(&self.flights, &self.free);
            under_way.for_each(|flight| measuring.still_outstanding(flight.intended_ns));
        }
    }

    /// Returns the abandoned requests, oldest first.
    pub fn lost(&self) -> Vec<LostRequest> {
        let as_asked = self.given_up_ns.is_some();
        let lost = |flight: &PendingRequest| {
            // The null target has no file to locate a request in.
            let TargetPlace { piece, offset_bytes } = match self.map.pieces() {
                [] => TargetPlace { piece: 0, offset_bytes: flight.request.offset_bytes },
                _ => self.map.place(&flight.request),
            };
            let target = self.targets.get(piece).map_or_else(String::new, |target| target.name().to_owned());
            let request = Request { offset_bytes, ..flight.request };
            LostRequest { target, request, age_ns: self.now_ns.saturating_sub(flight.started_ns), as_asked }
        };
        let mut lost: Vec<LostRequest> = under_way(&self.flights, &self.free).map(lost).collect();
        lost.sort_by_key(|one| std::cmp::Reverse(one.age_ns));
        lost
    }

    /// Waits for outstanding requests until they are abandoned. Returns whether all completed.
    ///
    /// # Errors
    /// Returns the errors of [`drive`](Self::drive).
    pub fn drain(&mut self) -> Result<bool, LoadError> {
        let end_ns = self.now_ns;
        while self.under_way() > 0 {
            if self.is_given_up(end_ns) {
                return Ok(false);
            }
            self.store_counts();
            self.drive(Wait::Until(self.now_ns + LOOK_NS))?;
        }
        Ok(true)
    }

    /// Returns whether requests outstanding since `end_ns` are abandoned now.
    pub fn is_given_up(&mut self, end_ns: u64) -> bool {
        if self.given_up_ns.is_none() && self.targets.iter().any(|target| target.is_given_up()) {
            self.given_up_ns = Some(self.now_ns);
        }
        let hurried_ns = self.given_up_ns.map_or(u64::MAX, |at_ns| at_ns.saturating_add(GIVEN_UP_NS));
        self.now_ns >= end_ns.saturating_add(PATIENCE_NS).min(hurried_ns)
    }

    /// Updates the progress at intervals; calls `share` only then.
    #[inline]
    pub fn update_progress(&mut self, share: impl Fn(&Self) -> f64) {
        if self.now_ns >= self.next_tell_ns {
            self.next_tell_ns = self.now_ns + TELL_EVERY_NS;
            self.store_counts();
            if let Some(measuring) = self.measuring.as_ref().filter(|measuring| measuring.end_ns.is_none()) {
                self.samples.look(self.now_ns, measuring.kinds());
            }
            self.live.store_share(share(self));
        }
    }

    /// Updates the progress with the current counts.
    pub fn store_counts(&self) {
        let errors = self.errors.iter().sum();
        self.live.store_counts(self.completed, self.bytes_ever, self.response_ns, errors, self.under_way());
    }

    /// Ends the run with an error, keeping the measurements so far.
    pub fn give_up(&mut self, why: String) {
        self.error_log.fatal.get_or_insert(why);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Removes and returns the verdicts on reads; `None` without verification. Requests that complete later are not
    /// checked.
    pub fn take_integrity(&mut self) -> Option<Checked> {
        match std::mem::replace(&mut self.contents, Contents::Any) {
            Contents::Stamped(stamping) => Some(stamping.finish()),
            Contents::Any | Contents::Fresh | Contents::Pattern(_) => None,
        }
    }

    /// Flushes data and metadata of the targets while no request is in flight. Returns 0 or the first negative error
    /// number.
    pub fn flush(&mut self) -> i32 {
        self.engine.flush(&self.map)
    }

    /// Returns the engine, so that it can be shut down.
    pub fn into_engine(self) -> Engine {
        self.engine
    }
}

/// Returns the requests in flight: those whose slots are not free.
fn under_way<'f>(flights: &'f [PendingRequest], free: &[u32]) -> impl Iterator<Item = &'f PendingRequest> + use<'f> {
    let mut is_free = vec![false; flights.len()];
    free.iter().for_each(|&slot| is_free[slot as usize] = true);
    flights.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(flight, _)| flight)
}

/// Returns the kinds of a result, with failed requests included.
pub fn with_errors(mut kinds: Kinds, errors: &[u64; 4]) -> Kinds {
    errors.iter().enumerate().for_each(|(kind, &count)| kinds.of(kind).errors += count);
    kinds
}
