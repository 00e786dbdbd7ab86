//! [`LoadLoop`]: a system under load: issues and completes requests, advances the clock, and keeps measurements. The load
//! generator (a loop, clients, a trace) decides when the next request arrives.

use std::cell::RefCell;
use std::convert::Infallible;

use headstack_driver::End;
use headstack_result::{Finished, Measuring, Mode, RunResult, SystemRecord};
use headstack_workload::{GENERATOR_NAME, Kind};
use serde_json::Value;

use crate::chronicle::{self, Event, note};
use crate::derived_cache::DerivedCache;
use crate::description::system::SystemDescription;
use crate::drive::Completion;
use crate::error::SimError;
use crate::faulted::FaultedSystem;
use crate::faults::Schedule;
use crate::notes::{note_of_flushes, note_of_host_cache, note_of_layers, note_of_openzfs, note_of_processors};
use crate::pending_requests::{Outcome, PendingRequest, PendingRequests};
use crate::progress::Progress;
use crate::recorder::{Recorder, Sink};
use crate::snapshot::Snapshot;
use crate::system::System;

thread_local! {
    /// System records without names.
    static RECORDS: RefCell<DerivedCache<SystemDescription, SystemRecord>> = RefCell::default();
}

/// Completions between two progress reports.
const PROGRESS_EVERY: u64 = 1 << 13;

/// System to which load is applied.
#[allow(clippy::large_enum_variant)] // One a run.
pub enum Machine {
    /// A system without faults.
    Sound(System),
    /// A system with injected faults.
    Faulted(Box<FaultedSystem>),
}

impl Machine {
    /// Creates a system, with the faults of a schedule if there is one.
    ///
    /// # Errors
    /// A fault that cannot be injected into it.
    pub fn new(
        system: System,
        description: &SystemDescription,
        faults: Option<&Schedule>,
    ) -> Result<Machine, SimError> {
        Ok(match faults {
            None => Machine::Sound(system),
            Some(schedule) => Machine::Faulted(Box::new(FaultedSystem::new(system, description, schedule)?)),
        })
    }
}

/// A system, its requests in flight, and its measurements.
pub struct LoadLoop<'a> {
    machine: Machine,
    pub flights: PendingRequests,
    /// Measurements since the end of the warm-up.
    pub measuring: Option<Measuring>,
    /// The system's counters at the end of the warm-up.
    before: Snapshot,
    /// Dirty pages at the end of the warm-up.
    dirty_before: u32,
    pub now_ns: u64,
    interval_ns: u64,
    /// Past requests that warmed the system's caches.
    pub preloaded: u64,
    recorder: Option<Recorder<&'a mut Sink<'a>>>,
    /// Reason why the run ended early.
    ended_early: Option<String>,
    /// Whether some request required stable storage: a flush, or a forced write.
    asks_durability: bool,
    /// Whether the run ended early because an open loop can only pile up.
    pub is_overloaded: bool,
    next_progress: u64,
}

/// Returns the most requests of an open loop that may wait in a run with this end: once as many wait as are to be
/// measured, more pile up until its end in any case. Fewer than the deepest queue there is (NVMe's) never end a run,
/// and more than a million take too much memory.
pub fn waiting_max(end: &End) -> u64 {
    end.requests.clamp(1 << 16, 1 << 20)
}

impl<'a> LoadLoop<'a> {
    /// Creates an idle system at time 0; results are also kept for intervals if a length is given, and `sink` receives
    /// the requests.
    pub fn new(machine: Machine, interval_ns: Option<u64>, sink: Option<&'a mut Sink<'a>>) -> Self {
        chronicle::begins();
        LoadLoop {
            machine,
            flights: PendingRequests::default(),
            measuring: None,
            before: Snapshot::default(),
            dirty_before: 0,
            now_ns: 0,
            interval_ns: interval_ns.unwrap_or(u64::MAX).max(1),
            preloaded: 0,
            recorder: sink.map(Recorder::new),
            ended_early: None,
            asks_durability: false,
            is_overloaded: false,
            next_progress: PROGRESS_EVERY,
        }
    }

    /// Returns the system.
    #[inline]
    pub fn system(&self) -> &System {
        match &self.machine {
            Machine::Sound(system) => system,
            Machine::Faulted(faulted) => faulted.system(),
        }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        match &self.machine {
            Machine::Sound(system) => system.next_event_ns(),
            Machine::Faulted(faulted) => faulted.next_event_ns(),
        }
    }

    /// Ends the run because no event is scheduled although requests are in flight: a fault that never ends holds
    /// them.
    #[cold]
    pub fn never_answers(&mut self) {
        match &self.machine {
            Machine::Sound(_) => panic!("requests are in flight, but no event is scheduled"),
            Machine::Faulted(_) => {
                self.ended_early = Some("a permanent fault blocks all further requests".to_owned());
                self.start_measuring();
                self.close();
            }
        }
    }

    /// Returns the number of requests in flight.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.flights.outstanding()
    }

    /// Issues a request at its intended time; returns its id, and whether the system accepted it rather than let it
    /// wait in the host.
    #[inline]
    pub fn issue(&mut self, flight: PendingRequest) -> (u32, bool) {
        self.count_depth(flight.intended_ns);
        self.asks_durability |= flight.request.kind == Kind::Flush || flight.request.force_unit_access;
        let id = self.flights.issue(flight);
        self.log_arrival(id, &flight);
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(id, &flight);
        }
        let admitted = match &mut self.machine {
            Machine::Sound(system) => system.submit(flight.intended_ns, id, &flight.request),
            Machine::Faulted(faulted) => faulted.submit(flight.intended_ns, id, &flight.request),
        };
        (id, admitted)
    }

    /// Advances the system up to its next completions, but not past `limit_ns`, at or before which it has an event;
    /// completions are appended to `done`, each to be passed to [`complete`](Self::complete), and after all of them
    /// [`settle`](Self::settle) is called.
    ///
    /// The list belongs to the load generator: if it were moved out of here and back, its words would be read together
    /// right after they were written separately, which stalls a processor.
    #[inline]
    pub fn advance(&mut self, limit_ns: u64, done: &mut Vec<Completion>) {
        let at_ns = match &mut self.machine {
            Machine::Sound(system) => system.advance_to_completions(limit_ns, done),
            Machine::Faulted(faulted) => faulted.advance_by_one(limit_ns, done),
        };
        debug_assert!(at_ns >= self.now_ns, "time does not go back: {at_ns} after {}", self.now_ns);
        self.now_ns = at_ns;
    }

    #[inline(always)]
    fn log_arrival(&self, id: u32, flight: &PendingRequest) {
        note(|names| Event::Arrives {
            at_ns: flight.intended_ns,
            request: names.new_request(id),
            kind: flight.request.kind.name(),
            offset_bytes: flight.request.offset_bytes,
            length_bytes: flight.request.length_bytes,
            dirty_pages: self.system().dirty_pages(),
        });
    }

    #[inline(always)]
    fn log_completion(&self, completion: &Completion) {
        note(|names| Event::Completes {
            at_ns: completion.at_ns,
            request: names.request(completion.id),
            started_ns: completion.started_ns,
            dirty_pages: self.system().dirty_pages(),
        });
    }

    /// Ends the run if data are lost: the measurements until now are the result.
    #[inline]
    pub fn settle(&mut self) {
        if self.system().data_loss().is_some() {
            self.start_measuring();
            self.close();
        }
    }

    /// Records a completion; returns its request and the outcome.
    #[inline]
    pub fn complete(&mut self, completion: &Completion) -> (PendingRequest, Outcome) {
        self.count_depth(completion.at_ns);
        let flight = self.flights.complete(completion.id);
        self.log_completion(completion);
        if let Machine::Faulted(faulted) = &mut self.machine {
            let outcome = faulted.take_outcome(completion.id);
            if outcome != Outcome::Done {
                self.fail(&flight, completion, outcome);
                return (flight, outcome);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.completed(completion);
        }
        if let Some(measuring) = &mut self.measuring
            && measuring.record(&finished(&flight, completion))
        {
            let levels = self.system().levels();
            self.measuring.as_mut().expect("it has just been asked").note_levels(levels);
        }
        (flight, Outcome::Done)
    }

    /// Records a failed request, or one that will never be answered: an error of its kind, without a latency.
    #[cold]
    fn fail(&mut self, flight: &PendingRequest, completion: &Completion, outcome: Outcome) {
        match (&mut self.recorder, outcome) {
            (Some(recorder), Outcome::Vanished) => recorder.vanished(completion.id),
            (Some(recorder), Outcome::Done | Outcome::Refused(_) | Outcome::Failed(_)) => {
                recorder.completed(completion)
            }
            (None, _) => {}
        }
        if let Some(measuring) = &mut self.measuring {
            measuring.fail(flight.request.kind as usize, flight.intended_ns, completion.at_ns);
        }
    }

    /// Adds the time since the last change to the present queue depth.
    #[inline]
    fn count_depth(&mut self, at_ns: u64) {
        if let Some(measuring) = &mut self.measuring {
            measuring.count_depth(at_ns, self.flights.outstanding() as usize);
        }
    }

    /// Ends the warm-up, unless it is over.
    #[inline]
    pub fn start_measuring(&mut self) {
        if self.measuring.is_none() {
            self.begin_measuring();
        }
    }

    // A separate function, since load generators call it at each completion: its frame holds whole histograms.
    #[cold]
    fn begin_measuring(&mut self) {
        self.before = self.system().snapshot();
        self.dirty_before = self.system().dirty_pages();
        let mut measuring = Measuring::new(self.now_ns, self.outstanding(), self.interval_ns);
        measuring.begin_levels(self.preloaded + self.flights.completed, self.system().levels());
        self.measuring = Some(measuring);
    }

    /// Ends the run, unless it is over.
    pub fn close(&mut self) {
        let (now_ns, backlog) = (self.now_ns, self.outstanding());
        if let Some(measuring) = &mut self.measuring
            && measuring.end_ns.is_none()
        {
            measuring.close(now_ns, backlog);
        }
    }

    /// Ends a run of `limit_ns` after its warm-up if that time is over before `next_ns`, the time of the next event.
    #[inline]
    pub fn time_is_up_before(&mut self, limit_ns: u64, next_ns: u64) -> bool {
        if let Some(measuring) = &self.measuring
            && next_ns > measuring.start_ns + limit_ns
        {
            self.now_ns = measuring.start_ns + limit_ns;
            self.close();
            return true;
        }
        false
    }

    /// Whether the run is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.measuring.as_ref().is_some_and(|measuring| measuring.end_ns.is_some())
    }

    /// Ends a run in which more requests of an open loop wait than [`waiting_max`].
    #[cold]
    pub fn end_overloaded(&mut self, waiting_max: u64) {
        let reason = format!("more than {waiting_max} requests wait: the system cannot sustain the offered load");
        (self.ended_early, self.is_overloaded) = (Some(reason), true);
        self.close();
    }

    /// Returns by how many pages more its cache is dirty than at the end of the warm-up.
    pub fn dirtied(&self) -> i64 {
        i64::from(self.system().dirty_pages()) - i64::from(self.dirty_before)
    }

    /// Returns the share of the measured part that is done.
    pub fn share_done(&self, end: &End) -> f64 {
        self.measuring.as_ref().map_or(0.0, |measuring| end.share_done(measuring, self.now_ns))
    }

    /// Reports progress from time to time.
    ///
    /// # Errors
    /// [`SimError::Stopped`] if the run shall not continue.
    #[inline]
    pub fn report_progress(&mut self, progress: &Progress, share_done: impl Fn(&Self) -> f64) -> Result<(), SimError> {
        if self.flights.completed >= self.next_progress {
            self.next_progress = self.flights.completed + PROGRESS_EVERY;
            if !progress(share_done(self).min(1.0)) {
                return Err(SimError::Stopped);
            }
        }
        Ok(())
    }

    /// Returns the result of a run that is over, for a system of this name, under `demand`.
    pub fn finish(self, name: &str, description: &SystemDescription, demand: Value, seed: u64) -> RunResult {
        let record = RECORDS.with_borrow_mut(|records| {
            records.of(description, || {
                let described = serde_json::to_value(description).expect("descriptions are plain data");
                Ok::<_, Infallible>(SystemRecord::new("", description.kind(), described))
            })
        });
        let Ok(record) = record;
        let system = SystemRecord { name: name.to_owned(), ..record };
        let mut result = RunResult::new(Mode::Simulated, system, demand, seed, GENERATOR_NAME);
        result.checks = self.flights.checks();
        result.backlog = self.outstanding();
        result.data_loss = self.system().data_loss().map(str::to_owned);
        if let Machine::Faulted(faulted) = &self.machine {
            result.faults = faulted.records();
        }
        let after = self.system().snapshot();
        result.ended_early = self.ended_early;
        result.notes.extend(note_of_layers(description));
        result.notes.extend(note_of_openzfs(description));
        result.notes.extend(self.asks_durability.then(|| note_of_flushes(description)).flatten());
        let mut measuring = self.measuring.expect("a run ends by its measured part");
        self.flights.under_way().for_each(|flight| measuring.still_outstanding(flight.intended_ns));
        measuring.write_to(&mut result);
        let end_ns = result.start_ns + result.duration_ns;
        result.energy = after.energy_since(&self.before, result.start_ns, end_ns);
        (result.components, result.counters) = after.since(&self.before);
        let notes = [note_of_processors(description, &result), note_of_host_cache(description, &result)];
        result.notes.extend(notes.into_iter().flatten());
        if let Some(recorder) = self.recorder {
            recorder.finish();
        }
        result
    }
}

/// Returns the record of a completion for the measurements.
#[inline]
pub fn finished(flight: &PendingRequest, completion: &Completion) -> Finished {
    Finished {
        kind: flight.request.kind as usize,
        length_bytes: flight.request.length_bytes,
        intended_ns: flight.intended_ns,
        started_ns: completion.started_ns,
        at_ns: completion.at_ns,
    }
}
