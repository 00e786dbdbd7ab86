//! The model in virtual time as a live export uses it: requests come when they come, completions are said in advance of the
//! clock that waits for them. No clock, no I/O: the same arrivals give the same completions, live or replayed.

use std::collections::VecDeque;

use headstack_sim::drive::Completion;
use headstack_sim::system::System;
use headstack_sim::{Flight as Issued, Observed, Recorder, SystemDescription};
use headstack_workload::{Kind, Purpose, Random, Request, Span};

use crate::LiveError;
use crate::pacer::Outcome;
use crate::power::exposure::Medium;
use crate::power::{Changed, Exposure, PowerCut, PowerLoss, Verdict, atom_bytes};

/// A request longer than this goes to the system in parts, as the block layer would send it (1,280 KiB is Linux' default).
pub const PART_BYTES: u32 = 1280 << 10;

/// A device on which every request takes the same time, however many there are: what a path itself costs shows on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// What a request takes.
    pub latency_ns: u64,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
}

/// What is exported.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
pub enum Model {
    /// A simulated system.
    System(SystemDescription),
    /// A device without mechanics.
    Constant(Constant),
}

/// Hears of every request that reached the system, in order of arrival, on the thread that tells the time: it must be quick.
pub type Listener = Box<dyn FnMut(&Observed) + Send>;

/// The state of what is exported.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
enum Machine {
    System(System),
    /// Completions, in order.
    Constant(u64, VecDeque<Completion>),
}

/// A request that has come to its end.
#[derive(Debug)]
pub struct Finished<T> {
    /// When it came.
    pub arrival_ns: u64,
    /// When that was.
    pub at_ns: u64,
    /// When the system began to work on it.
    pub started_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it was.
    pub request: Request,
    /// What its sender knows it by.
    pub ticket: T,
}

/// A part of a request on its way through the system.
#[derive(Clone, Copy, Debug)]
struct Part {
    flight: u32,
}

#[derive(Debug)]
struct Flight<T> {
    arrival_ns: u64,
    started_ns: u64,
    request: Request,
    /// What it did to the contents.
    changed: Option<Changed>,
    parts: u32,
    ticket: T,
}

/// Whether there is power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    /// Since then.
    On(u64),
    /// Until then; for good where that is `u64::MAX`.
    Off(u64),
}

/// A system's own time, and what is under way in it.
pub struct Timeline<T> {
    machine: Machine,
    parts: Slots<Part>,
    flights: Slots<Flight<T>>,
    /// The last moment at which anything came or happened: nothing comes before or at it.
    last_ns: u64,
    recorder: Option<Recorder<Listener>>,
    /// Complete, not yet handed out.
    finished: Vec<Finished<T>>,
    done: Vec<Completion>,
    power: Power,
    exposure: Exposure,
    atom_bytes: u64,
    /// Where writes are torn.
    tears: Random,
    /// What each power cut took.
    losses: Vec<PowerLoss>,
}

impl<T> Timeline<T> {
    /// A system at rest at time 0; `seed` is that of its own random processes. `listener` hears of what it is asked.
    ///
    /// # Errors
    /// What is impossible in the description.
    pub fn new(model: &Model, seed: u64, listener: Option<Listener>) -> Result<Timeline<T>, LiveError> {
        let atom_bytes = match model {
            Model::System(description) => atom_bytes(description),
            Model::Constant(_) => 512,
        };
        let machine = match model {
            Model::System(description) => Machine::System(System::new(description, seed)?),
            Model::Constant(constant) => Machine::Constant(constant.latency_ns, VecDeque::new()),
        };
        Ok(Timeline {
            machine,
            parts: Slots::default(),
            flights: Slots::default(),
            last_ns: 0,
            recorder: listener.map(Recorder::new),
            finished: Vec::new(),
            done: Vec::new(),
            power: Power::On(0),
            exposure: Exposure::default(),
            atom_bytes,
            tears: Random::new(seed, Purpose::Tears),
            losses: Vec::new(),
        })
    }

    /// Requests under way.
    pub fn outstanding(&self) -> usize {
        self.flights.used
    }

    /// A request comes at `at_ns`, or as soon after it as nothing else happens: no two requests come at once, and none in
    /// the instant of an event, so that a replay of what the listener heard has no order to guess. Parts of a long request
    /// come one after the other. `changed` is what it has done to contents that a power cut can take back.
    ///
    /// One that comes while there is no power vanishes.
    pub fn arrive(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) {
        self.work_before(at_ns);
        if !self.has_power_since(at_ns) {
            if let Some(changed) = changed {
                self.exposure.refused(changed, request.span());
            }
            let (arrival_ns, outcome) = (at_ns.max(self.last_ns), Outcome::Vanished);
            self.finished.push(Finished {
                arrival_ns,
                at_ns: arrival_ns,
                started_ns: arrival_ns,
                outcome,
                request,
                ticket,
            });
            return;
        }
        if let Some(changed) = changed {
            self.exposure.began(changed, request.span());
        }
        let parts = part_count(&request);
        let (arrival_ns, started_ns) = (u64::MAX, u64::MAX);
        let flight = self.flights.put(Flight { arrival_ns, started_ns, request, changed, parts, ticket });
        for number in 0..parts {
            self.part_comes(at_ns, flight, &part_of(&request, number));
        }
    }

    /// Whether there is power, and was at `at_ns`: what came before it was there is no request.
    fn has_power_since(&self, at_ns: u64) -> bool {
        matches!(self.power, Power::On(since_ns) if since_ns <= at_ns)
    }

    /// Works up to and including `now_ns`.
    fn work_before(&mut self, now_ns: u64) {
        while self.machine_next_ns() <= now_ns {
            self.work_until(self.machine_next_ns());
        }
    }

    fn part_comes(&mut self, at_ns: u64, flight: u32, part: &Request) {
        let mut at_ns = at_ns.max(self.last_ns + 1);
        while self.machine_next_ns() <= at_ns {
            let event_ns = self.machine_next_ns();
            self.work_until(event_ns);
            at_ns = at_ns.max(event_ns + 1);
        }
        self.last_ns = at_ns;
        let waiting = self.flights.get_mut(flight);
        waiting.arrival_ns = waiting.arrival_ns.min(at_ns);
        let id = self.parts.put(Part { flight });
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(id, &Issued { intended_ns: at_ns, request: *part, client: 0, stream: 0 });
        }
        match &mut self.machine {
            Machine::System(system) => {
                system.submit(at_ns, id, part);
            }
            Machine::Constant(latency_ns, queue) => {
                queue.push_back(Completion { at_ns: at_ns + *latency_ns, id, started_ns: at_ns });
            }
        }
    }

    /// The session is over: the listener hears of what is under way too.
    pub fn finish(self) {
        if let Some(recorder) = self.recorder {
            recorder.finish();
        }
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.finished.first().map_or_else(|| self.machine_next_ns(), |finished| finished.at_ns)
    }

    /// Lets the system work up to `now_ns`, and appends what completes, in order of time.
    pub fn advance(&mut self, now_ns: u64, into: &mut Vec<Finished<T>>) {
        self.work_before(now_ns);
        into.append(&mut self.finished);
    }

    /// Power fails at `now_ns`: nothing that is under way is ever answered. What is lost of the contents is among the
    /// verdicts.
    ///
    /// # Errors
    /// There is none; a cut that is impossible.
    pub fn cut_power(&mut self, now_ns: u64, cut: &PowerCut) -> Result<&PowerLoss, LiveError> {
        cut.check()?;
        self.work_before(now_ns);
        if matches!(self.power, Power::Off(_)) {
            return Err(LiveError::Asked("power is off already".to_owned()));
        }
        self.last_ns = self.last_ns.max(now_ns);
        self.power = Power::Off(cut.off_ns.map_or(u64::MAX, |off_ns| now_ns.saturating_add(off_ns)));
        let loss = match &mut self.machine {
            Machine::System(system) => {
                let volatile = |span: Span, into: &mut Vec<Span>| system.volatile(now_ns, span, into);
                let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
                let atom_bytes = cut.atom_bytes.map_or(self.atom_bytes, u64::from);
                let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes };
                self.exposure.cut(now_ns, cut, &medium, &mut self.tears)
            }
            Machine::Constant(_, queue) => {
                queue.clear();
                PowerLoss { at_ns: now_ns, ..PowerLoss::default() }
            }
        };
        self.losses.push(loss);
        for (id, _) in self.parts.drain() {
            if let Some(recorder) = &mut self.recorder {
                recorder.vanished(id);
            }
        }
        self.finished.extend(self.flights.drain().map(|(_, flight)| Finished {
            arrival_ns: flight.arrival_ns,
            at_ns: now_ns,
            started_ns: flight.started_ns.min(now_ns),
            outcome: Outcome::Vanished,
            request: flight.request,
            ticket: flight.ticket,
        }));
        Ok(self.losses.last().expect("it was just put there"))
    }

    /// Power is back at `now_ns`.
    ///
    /// # Errors
    /// It never went.
    pub fn restore_power(&mut self, now_ns: u64) -> Result<(), LiveError> {
        self.work_before(now_ns);
        if self.has_power() {
            return Err(LiveError::Asked("power is on".to_owned()));
        }
        self.last_ns = self.last_ns.max(now_ns);
        if let Machine::System(system) = &mut self.machine {
            system.power_cycle(now_ns);
        }
        self.power = Power::On(now_ns);
        Ok(())
    }

    /// There is power.
    pub fn has_power(&self) -> bool {
        matches!(self.power, Power::On(_))
    }

    /// What each power cut took so far.
    pub fn losses(&self) -> &[PowerLoss] {
        &self.losses
    }

    /// What has become of changes to contents since the last call.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        self.exposure.take_verdicts(into);
    }

    fn machine_next_ns(&self) -> u64 {
        if let Power::Off(until_ns) = self.power {
            return until_ns;
        }
        match &self.machine {
            Machine::System(system) => system.next_event_ns(),
            Machine::Constant(_, queue) => queue.front().map_or(u64::MAX, |completion| completion.at_ns),
        }
    }

    /// Works up to the machine's next event.
    fn work_until(&mut self, event_ns: u64) {
        if let Power::Off(_) = self.power {
            // Nothing is to be done before that.
            self.power = Power::Off(u64::MAX);
            return self.restore_power(event_ns).expect("power that was off");
        }
        self.last_ns = self.last_ns.max(event_ns);
        match &mut self.machine {
            Machine::System(system) => system.advance(event_ns, &mut self.done),
            Machine::Constant(_, queue) => self.done.extend(queue.pop_front()),
        }
        let mut done = std::mem::take(&mut self.done);
        done.drain(..).for_each(|completion| self.part_done(&completion));
        self.done = done;
    }

    fn part_done(&mut self, completion: &Completion) {
        if let Some(recorder) = &mut self.recorder {
            recorder.completed(completion);
        }
        let part = self.parts.take(completion.id);
        let flight = self.flights.get_mut(part.flight);
        flight.parts -= 1;
        flight.started_ns = flight.started_ns.min(completion.started_ns.max(flight.arrival_ns));
        if flight.parts == 0 {
            let flight = self.flights.take(part.flight);
            self.expose(&flight, completion.at_ns);
            self.finished.push(Finished {
                arrival_ns: flight.arrival_ns,
                at_ns: completion.at_ns,
                started_ns: flight.started_ns,
                outcome: Outcome::Done,
                request: flight.request,
                ticket: flight.ticket,
            });
        }
    }
}

impl<T> Timeline<T> {
    /// What the end of a request means to changes that a power cut could take back.
    fn expose(&mut self, flight: &Flight<T>, at_ns: u64) {
        let Machine::System(system) = &self.machine else { return };
        if flight.request.kind == Kind::Flush {
            self.exposure.flushed(flight.arrival_ns);
        } else if let Some(changed) = flight.changed {
            let volatile = |span: Span, into: &mut Vec<Span>| system.volatile(at_ns, span, into);
            let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
            let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes: self.atom_bytes };
            self.exposure.acknowledged(changed.number, at_ns, system.may_lose_data(), &medium);
        }
    }
}

/// Parts in which a request goes to the system. A trim is a range, whatever its length.
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

/// Things with numbers that are given again.
#[derive(Debug)]
struct Slots<V> {
    slots: Vec<Option<V>>,
    free: Vec<u32>,
    used: usize,
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<V> Slots<V> {
    fn put(&mut self, value: V) -> u32 {
        self.used += 1;
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(value);
                number
            }
            None => {
                self.slots.push(Some(value));
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn get_mut(&mut self, number: u32) -> &mut V {
        self.slots[number as usize].as_mut().expect("a number in use")
    }

    /// Takes all of them, with their numbers.
    fn drain(&mut self) -> impl Iterator<Item = (u32, V)> {
        self.free.clear();
        self.used = 0;
        std::mem::take(&mut self.slots).into_iter().zip(0..).filter_map(|(slot, number)| Some((number, slot?)))
    }

    fn take(&mut self, number: u32) -> V {
        self.used -= 1;
        self.free.push(number);
        self.slots[number as usize].take().expect("a number in use")
    }
}
