//! [`Timeline`]: the model in virtual time as a live export uses it: requests arrive at any time, and completions are
//! known ahead of the clock that waits for them. No clock, no I/O: the same arrivals give the same completions, live or
//! replayed. See docs/design/requests-and-time.md.

mod agenda;
mod faulted;
mod power;
mod powered;

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

use crate::description::model::Model;
use crate::drive::Completion;
use crate::error::SimError;
use crate::faults::contents::ReadCorruption;
use crate::faults::injector::Injector;
use crate::pending_requests::{Failed, Outcome, PendingRequest as Issued};
use crate::power_cut::{Changed, Exposure};
use crate::recorder::{Observed, Recorder};
use crate::slab::Slab;
use crate::system::System;
use agenda::Agenda;
use power::Power;

/// A longer request goes to the system in parts, as the block layer would send it (1,280 KiB is Linux's default).
pub const PART_BYTES: u32 = 1280 << 10;

/// Receives every request that reached the system, in order of arrival, on the timing thread: it must be quick.
pub type Listener = Box<dyn FnMut(&Observed) + Send>;

/// State of the exported model.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
enum Machine {
    System(System),
    /// A device with constant latency, and its completions in order.
    Constant(u64, VecDeque<Completion>),
}

/// A completed request.
#[derive(Debug)]
pub struct Finished<T> {
    /// Time of arrival.
    pub arrival_ns: u64,
    /// Time of completion.
    pub at_ns: u64,
    /// When the system began to work on it.
    pub started_ns: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// The request itself.
    pub request: Request,
    /// Parts of its data that differ from what is stored.
    pub spoils: Vec<ReadCorruption>,
    /// Ticket by which its sender identifies it.
    pub ticket: T,
}

/// Effect of a request on contents.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContentEffect {
    /// Its change to them, if that can be undone.
    pub changed: Option<Changed>,
    /// Patterns of faults that it contains, one bit each by their index in [`Timeline::patterns`].
    pub holds: u64,
}

impl From<Option<Changed>> for ContentEffect {
    fn from(changed: Option<Changed>) -> ContentEffect {
        ContentEffect { changed, holds: 0 }
    }
}

/// A part of a request in the system.
#[derive(Clone, Copy, Debug)]
struct Part {
    flight: u32,
    arrival_ns: u64,
    request: Request,
    holds: u64,
    delivery: Delivery,
}

/// Delivery of a part that the system has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// It is answered at once.
    Straight,
    /// It is answered later, by this time.
    Later(u64),
    /// None: it was answered before.
    Over,
}

#[derive(Debug)]
struct PendingRequest<T> {
    arrival_ns: u64,
    started_ns: u64,
    request: Request,
    /// Its change to contents.
    changed: Option<Changed>,
    parts: u32,
    outcome: Outcome,
    spoils: Vec<ReadCorruption>,
    /// Whether it was answered on behalf of the system, which never received it.
    unheard: bool,
    ticket: T,
}

/// Virtual time of a system, with its requests in flight.
pub struct Timeline<T> {
    model: Model,
    machine: Machine,
    injector: Injector,
    /// Postponed events, and the time of the first of them or of the next change of a fault.
    agenda: Agenda,
    parts: Slab<Part>,
    flights: Slab<PendingRequest<T>>,
    /// The last moment with an arrival or event: nothing can arrive at or before it.
    last_ns: u64,
    recorder: Option<Recorder<Listener>>,
    /// Completed requests that are not yet collected.
    finished: Vec<Finished<T>>,
    done: Vec<Completion>,
    failed: Vec<Failed>,
    power: Power,
    exposure: Exposure,
}

impl<T> Timeline<T> {
    /// Creates an idle system at time 0; `seed` is that of its own random processes. `listener` receives its requests.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(model: &Model, seed: u64, listener: Option<Listener>) -> Result<Timeline<T>, SimError> {
        let machine = match model {
            Model::System(description) => Machine::System(System::new(description, seed)?),
            Model::Constant(constant) => Machine::Constant(constant.latency_ns, VecDeque::new()),
        };
        Ok(Timeline { recorder: listener.map(Recorder::new), ..Timeline::with(model.clone(), machine) })
    }

    /// Creates a timeline of a system that may have a past, without a listener.
    pub fn of(model: Model, system: System) -> Timeline<T> {
        Timeline::with(model, Machine::System(system))
    }

    fn with(model: Model, machine: Machine) -> Timeline<T> {
        Timeline {
            machine,
            injector: Injector::new(&model),
            agenda: Agenda::default(),
            parts: Slab::default(),
            flights: Slab::default(),
            last_ns: 0,
            recorder: None,
            finished: Vec::new(),
            done: Vec::new(),
            failed: Vec::new(),
            power: Power::of(&model),
            exposure: Exposure::default(),
            model,
        }
    }

    /// Returns its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Limits the acknowledged bytes that are kept to be undone.
    pub fn limit_exposure(&mut self, bytes_max: u64) {
        self.exposure.limit(bytes_max);
    }

    /// Returns the number of requests in flight.
    pub fn outstanding(&self) -> usize {
        self.flights.len()
    }

    /// Submits a request at `at_ns`, or at the next moment without another event: no two requests arrive at once, and
    /// none at the moment of an event, so that a replay of what the listener received has no order to guess. Parts of a
    /// long request arrive one after the other. `touch` is its effect on contents.
    ///
    /// A request that arrives while there is no power vanishes.
    pub fn arrive(&mut self, at_ns: u64, request: Request, touch: impl Into<ContentEffect>, ticket: T) {
        let ContentEffect { changed, holds } = touch.into();
        self.work_up_to(at_ns);
        if !self.power.is_on_since(at_ns) {
            return self.arrives_without_power(at_ns, request, changed, ticket);
        }
        if let Some(changed) = changed.filter(|_| self.may_lose_contents()) {
            self.exposure.began(changed, request.span());
        }
        let parts = part_count(&request);
        let (arrival_ns, started_ns, outcome, unheard) = (u64::MAX, u64::MAX, Outcome::Done, false);
        let spoils = Vec::new();
        let flight =
            PendingRequest { arrival_ns, started_ns, request, changed, parts, outcome, spoils, unheard, ticket };
        let flight = self.flights.insert(flight);
        for number in 0..parts {
            self.part_comes(at_ns, flight, &part_of(&request, number), holds);
        }
    }

    /// Submits a request at exactly `at_ns` and as a whole, from a load generator that has seen every event before that
    /// moment. Returns whether the system accepted it rather than let it wait in the host.
    pub fn take(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) -> bool {
        debug_assert!(at_ns >= self.last_ns, "time does not go back");
        self.last_ns = at_ns;
        if !self.injector.is_quiet() {
            self.cue(at_ns, &request, 0);
        }
        if let Some(changed) = changed {
            match self.power.is_on() {
                true => self.exposure.began(changed, request.span()),
                false => self.exposure.refused(changed, request.span()),
            }
        }
        let (arrival_ns, started_ns, outcome, unheard) = (at_ns, u64::MAX, Outcome::Done, false);
        let spoils = Vec::new();
        let flight =
            PendingRequest { arrival_ns, started_ns, request, changed, parts: 1, outcome, spoils, unheard, ticket };
        let flight = self.flights.insert(flight);
        let id = self.parts.insert(Part { flight, arrival_ns, request, holds: 0, delivery: Delivery::Straight });
        if self.injector.is_quiet() {
            return self.submit(at_ns, id, &request);
        }
        self.meets_faults(at_ns, id, &request);
        true
    }

    fn part_comes(&mut self, at_ns: u64, flight: u32, part: &Request, holds: u64) {
        let at_ns = self.free_moment(at_ns);
        if !self.injector.is_quiet() {
            self.cue(at_ns, part, holds);
        }
        let waiting = self.flights.get_mut(flight);
        waiting.arrival_ns = waiting.arrival_ns.min(at_ns);
        let id =
            self.parts.insert(Part { flight, arrival_ns: at_ns, request: *part, holds, delivery: Delivery::Straight });
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(id, &Issued { intended_ns: at_ns, request: *part, client: 0, stream: 0 });
        }
        if self.injector.is_quiet() {
            self.submit(at_ns, id, part);
        } else {
            self.meets_faults(at_ns, id, part);
        }
    }

    /// Returns the first moment at or after `at_ns` without another event; it is the present from now on.
    fn free_moment(&mut self, at_ns: u64) -> u64 {
        let mut at_ns = at_ns.max(self.last_ns + 1);
        while self.next_event_ns() <= at_ns {
            let event_ns = self.next_event_ns();
            self.work_until(event_ns);
            at_ns = at_ns.max(event_ns + 1);
        }
        self.last_ns = at_ns;
        at_ns
    }

    fn submit(&mut self, at_ns: u64, id: u32, part: &Request) -> bool {
        match &mut self.machine {
            Machine::System(system) => system.submit(at_ns, id, part),
            Machine::Constant(latency_ns, queue) => {
                queue.push_back(Completion { at_ns: at_ns + *latency_ns, id, started_ns: at_ns });
                true
            }
        }
    }

    /// Ends the session: the listener also receives the requests in flight.
    pub fn finish(self) {
        if let Some(recorder) = self.recorder {
            recorder.finish();
        }
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.finished.first().map_or_else(|| self.next_event_ns(), |finished| finished.at_ns)
    }

    /// Advances the system up to `now_ns`, and appends completions in order of time.
    pub fn advance(&mut self, now_ns: u64, into: &mut Vec<Finished<T>>) {
        self.work_up_to(now_ns);
        into.append(&mut self.finished);
    }

    fn work_up_to(&mut self, now_ns: u64) {
        while self.next_event_ns() <= now_ns {
            self.work_until(self.next_event_ns());
        }
    }

    #[inline]
    fn next_event_ns(&self) -> u64 {
        self.machine_next_ns().min(self.agenda.next_ns)
    }

    #[inline]
    fn machine_next_ns(&self) -> u64 {
        match &self.machine {
            _ if !self.power.is_on() => u64::MAX,
            Machine::System(system) => system.next_event_ns(),
            Machine::Constant(_, queue) => queue.front().map_or(u64::MAX, |completion| completion.at_ns),
        }
    }

    /// Advances to the next event; of the same moment, the machine's events are first.
    fn work_until(&mut self, event_ns: u64) {
        debug_assert!(event_ns >= self.last_ns, "time does not go back: {event_ns} after {}", self.last_ns);
        self.last_ns = event_ns;
        if self.machine_next_ns() > event_ns {
            return self.keep_agenda(event_ns);
        }
        match &mut self.machine {
            Machine::System(system) => {
                system.advance(event_ns, &mut self.done);
                system.take_failed(&mut self.failed);
            }
            Machine::Constant(_, queue) => self.done.extend(queue.pop_front()),
        }
        let mut done = std::mem::take(&mut self.done);
        done.drain(..).for_each(|completion| self.part_done(&completion));
        self.done = done;
        debug_assert!(self.failed.is_empty(), "only what is complete has failed");
    }

    fn part_done(&mut self, completion: &Completion) {
        let outcome = if self.failed.is_empty() { Outcome::Done } else { self.outcome_of(completion.id) };
        let is_straight = self.parts.get_mut(completion.id).delivery == Delivery::Straight;
        if is_straight && self.injector.is_quiet() {
            self.answer(completion, outcome);
            self.parts.remove(completion.id);
        } else {
            self.leaves_system(completion, outcome);
        }
    }

    /// Answers a part; its number stays in use.
    fn answer(&mut self, completion: &Completion, outcome: Outcome) {
        match &mut self.recorder {
            Some(recorder) if outcome == Outcome::Vanished => recorder.vanished(completion.id),
            Some(recorder) => recorder.completed(completion),
            None => {}
        }
        let part = *self.parts.get_mut(completion.id);
        self.injector.answered(completion.id, &part.request, part.arrival_ns, completion.at_ns, outcome);
        if !self.injector.is_quiet() {
            self.counts(&part, completion.at_ns, outcome);
        }
        let flight = self.flights.get_mut(part.flight);
        debug_assert!(completion.at_ns >= part.arrival_ns, "an answer comes after its request");
        debug_assert!(flight.parts > 0, "every part is answered once");
        flight.parts -= 1;
        flight.outcome = flight.outcome.with(outcome);
        flight.started_ns = flight.started_ns.min(completion.started_ns.max(flight.arrival_ns));
        if flight.parts == 0 {
            let flight = self.flights.remove(part.flight);
            self.expose(&flight, completion.at_ns);
            self.finished.push(Finished {
                arrival_ns: flight.arrival_ns,
                at_ns: completion.at_ns,
                started_ns: flight.started_ns,
                outcome: flight.outcome,
                request: flight.request,
                spoils: flight.spoils,
                ticket: flight.ticket,
            });
        }
    }
}

/// Returns the number of parts in which a request goes to the system. A trim is one range of any length.
fn part_count(request: &Request) -> u32 {
    match request.kind {
        Kind::Read | Kind::Write => request.length_bytes.div_ceil(PART_BYTES).max(1),
        Kind::Trim | Kind::Flush => 1,
    }
}

fn part_of(request: &Request, number: u32) -> Request {
    if part_count(request) == 1 {
        return *request;
    }
    let from_bytes = number * PART_BYTES;
    Request {
        offset_bytes: request.offset_bytes + u64::from(from_bytes),
        length_bytes: PART_BYTES.min(request.length_bytes - from_bytes),
        ..*request
    }
}
