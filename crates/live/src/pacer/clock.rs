//! [`Clock`]: the clock thread, which owns the model, receives arrivals, and answers each request at the model's time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use headstack_catalogue::faults::faults_to_toml;
use headstack_sim::Outcome;
use headstack_sim::faults::contents::{Damage, ReadCorruption};
use headstack_sim::faults::{Fault, FaultsToEnd, Timed};
use headstack_sim::power_cut::Verdict;
use headstack_sim::timeline::{Finished, Timeline};
use serde_json::{Value, json};

use super::{Answer, Arrival, Shared};
use crate::LiveError;
use crate::ledger::Ledger;
use crate::orders::Order;
use crate::smart;
use crate::wall::{PunctualSleeper, Scheduling, ThreadRole, Wall, be_punctual};

/// A request under way.
#[derive(Debug)]
pub struct Ticket {
    answer: Box<dyn Answer>,
    /// Earliest possible time of the answer, and when its data were copied.
    received: Instant,
    copied: Instant,
    /// Its number in the journal.
    journal: Option<u64>,
}

/// State of the clock thread.
pub struct Clock {
    timeline: Timeline<Ticket>,
    wall: Wall,
    shared: Arc<Shared>,
    ledger: Ledger,
    /// Arrivals that are being processed.
    arrivals: Vec<Arrival>,
    /// Completions that are being answered.
    finished: Vec<Finished<Ticket>>,
    /// Outcomes of changes that are being applied.
    verdicts: Vec<Verdict>,
    /// Version of the last reported assignment of members in an array.
    standing: u64,
    /// Damages by faults that are being applied.
    damages: Vec<Damage>,
    /// Why the contents are not in the state that a power cut should have left.
    trouble: Option<String>,
    awake: PunctualSleeper,
}

impl Clock {
    pub fn new(timeline: Timeline<Ticket>, wall: Wall, shared: Arc<Shared>) -> Clock {
        Clock {
            timeline,
            wall,
            shared,
            ledger: Ledger::new(),
            arrivals: Vec::new(),
            finished: Vec::new(),
            verdicts: Vec::new(),
            standing: 0,
            damages: Vec::new(),
            trouble: None,
            awake: PunctualSleeper::new(),
        }
    }

    pub fn run(mut self, realtime: bool) -> Ledger {
        self.ledger.scheduling = be_punctual(ThreadRole::Clock, realtime);
        while !self.take_arrivals() {
            let orders = std::mem::take(&mut self.shared.inbox().orders);
            for (order, answer) in orders {
                // Earlier completions are answered first: an order may cut the power.
                self.catch_up(self.wall.model_ns(Instant::now()));
                // A commander that has left needs no answer.
                let counted = (order == Order::Status).then(|| self.ledger.clone());
                let reply = self.obey(order).map(|reply| (reply, counted));
                let _ = answer.send(reply);
            }
            self.catch_up(self.wall.model_ns(Instant::now()));
            self.sleep();
        }
        self.timeline.finish();
        self.ledger
    }

    /// Passes arrivals to the model; returns whether this is the end.
    fn take_arrivals(&mut self) -> bool {
        let closing = {
            self.shared.has_news.store(false, Ordering::Release);
            let mut inbox = self.shared.inbox();
            std::mem::swap(&mut inbox.arrivals, &mut self.arrivals);
            inbox.closing
        };
        for Arrival { issued, received, copied, request, touch, journal, answer } in self.arrivals.drain(..) {
            if closing {
                answer.send(Outcome::Vanished, Duration::ZERO);
                continue;
            }
            let ticket = Ticket { answer, received, copied, journal };
            self.timeline.arrive(self.wall.model_ns(issued), request, touch, ticket);
            self.ledger.outstanding(self.timeline.outstanding());
        }
        closing
    }

    /// Advances the model to `now_ns`, and answers completed requests. At a power failure, clients answered before it
    /// receive their answers while still connected: a cut is judged by what it acknowledged.
    fn catch_up(&mut self, now_ns: u64) {
        let mut finished = std::mem::take(&mut self.finished);
        self.timeline.advance(now_ns, &mut finished);
        self.damage();
        let power_fails = self.timeline.power_cuts() != self.shared.gate.cuts();
        if power_fails {
            let reply = finished.extract_if(.., |finished| finished.outcome != Outcome::Vanished);
            reply.collect::<Vec<_>>().into_iter().for_each(|finished| self.answer(finished));
        }
        self.settle();
        finished.drain(..).for_each(|finished| self.answer(finished));
        self.finished = finished;
        if power_fails {
            self.shared.gate.hang_up();
        }
        self.let_in();
    }

    /// Admits clients when power is back, after all earlier clients were disconnected.
    fn let_in(&mut self) {
        if self.timeline.has_power() && !self.shared.gate.is_on() {
            self.shared.gate.note(|journal| journal.power(self.wall.model_ns(Instant::now()), true));
            self.shared.gate.open();
        }
    }

    /// Applies the damage of faults to contents, before any request is answered that would read them.
    fn damage(&mut self) {
        self.timeline.take_damages(&mut self.damages);
        if let Some(contents) = self.shared.contents.get()
            && !self.damages.is_empty()
            && let Err(error) = self.shared.gate.damage(&mut self.damages, contents)
        {
            self.trouble = Some(format!("could not apply faults to the contents: {error}"));
        }
        self.damages.clear();
    }

    /// Follows power failures and restores of the timeline, and updates the contents accordingly.
    fn settle(&mut self) {
        let shared = Arc::clone(&self.shared);
        let cuts = self.timeline.power_cuts();
        if cuts != shared.gate.cuts() {
            shared.gate.close(cuts);
            shared.gate.note(|journal| journal.power(self.wall.model_ns(Instant::now()), false));
            // Threads that were changing contents have submitted that by now.
            self.take_arrivals();
            self.damage();
        }
        self.timeline.take_verdicts(&mut self.verdicts);
        let halfway = self.timeline.take_halfway();
        if !(self.verdicts.is_empty() && halfway.is_empty())
            && let Some(contents) = shared.contents.get()
        {
            match shared.gate.settle(&mut self.verdicts, &halfway, contents) {
                Ok(lost) => lost.iter().for_each(|lost| self.timeline.note_lost(lost)),
                Err(error) => {
                    self.trouble = Some(format!("could not revert the writes that the power cut lost: {error}"));
                }
            }
            // Waiting requests free the memory of pre-images that are no longer needed.
            shared.budget.wake_next();
        }
        self.verdicts.clear();
        if let Some(standings) = self.timeline.standings(&mut self.standing) {
            shared.gate.stand(standings);
        }
    }

    /// Executes an order at the present moment of the model.
    fn obey(&mut self, order: Order) -> Result<Value, LiveError> {
        let now_ns = self.wall.model_ns(Instant::now());
        match order {
            Order::Status => Ok(json!({
                "model_ns": now_ns,
                "outstanding": self.timeline.outstanding(),
                "power": self.timeline.has_power(),
                "trouble": self.trouble.clone().or_else(|| self.shared.journal_trouble()),
                "memory": self.shared.budget.gauge(),
                "gauges": self.timeline.gauges(now_ns),
                "faults": self.timeline.injections().active(),
            })),
            Order::Scrub { group, repair } => {
                self.obey(Order::Inject { fault: Fault::Scrub { group, repair }, lasts: None, when: Box::default() })
            }
            Order::Inject { fault, lasts, when } => {
                if let Some(lasts) = lasts.filter(|lasts| lasts.0 <= 0) {
                    return Err(LiveError::Invalid(format!("for: {lasts}: more than 0ns is allowed")));
                }
                let timed = Timed { from: None, until: None, lasts, trigger: *when, fault };
                let injected = self.timeline.inject_at(now_ns, timed);
                self.shared.look_for(self.timeline.patterns());
                let (number, at_ns) = injected?;
                self.settled(now_ns)?;
                let mut reply = json!({ "number": number, "at_ns": at_ns });
                if let Some(loss) = self.timeline.loss_of(number) {
                    reply["loss"] = json!(loss);
                }
                Ok(reply)
            }
            Order::Release => Ok(json!({ "ended": self.timeline.end_faults(now_ns, FaultsToEnd::Hangs) })),
            Order::Clear { number } => {
                let which = number.map_or(FaultsToEnd::All, FaultsToEnd::One);
                let ended = self.timeline.end_faults(now_ns, which);
                self.settled(now_ns)?;
                Ok(json!({ "ended": ended }))
            }
            Order::Smart => Ok(json!({ "devices": smart::reports(&self.timeline, now_ns) })),
            Order::Injections => {
                let log = self.timeline.injections();
                Ok(json!({ "seed": log.seed, "injections": log.injections, "schedule": faults_to_toml(&log) }))
            }
        }
    }

    /// Updates the contents to the timeline's state before it is reported.
    fn settled(&mut self, now_ns: u64) -> Result<(), LiveError> {
        self.catch_up(now_ns);
        self.trouble.clone().map_or(Ok(()), |trouble| Err(LiveError::Invalid(trouble)))
    }

    fn answer(&mut self, finished: Finished<Ticket>) {
        let Finished { mut ticket, at_ns, arrival_ns, outcome, request, spoils, .. } = finished;
        if !spoils.is_empty() {
            self.spoil(&mut ticket, &spoils, outcome);
        }
        if outcome == Outcome::Vanished {
            return ticket.answer.send(outcome, Duration::ZERO);
        }
        if let Some(number) = ticket.journal {
            self.shared.gate.note(|journal| journal.ends(at_ns, number, outcome));
        }
        let due = self.wall.at(at_ns).expect("a finished request has a time");
        let below_floor = due < ticket.received;
        let can_leave = due.max(ticket.received);
        let copied = ticket.copied.saturating_duration_since(can_leave);
        let late = Instant::now().saturating_duration_since(can_leave + copied);
        let took = Duration::from_nanos(((at_ns - arrival_ns) as f64 / self.wall.speed()) as u64);
        ticket.answer.send(outcome, took);
        self.shared.scene.answered();
        self.ledger.answered(late.as_nanos() as u64, copied.as_nanos() as u64, below_floor);
        self.ledger.served(&request, at_ns - arrival_ns, outcome != Outcome::Done);
    }

    /// Applies the effect of faults to the data of a read.
    fn spoil(&mut self, ticket: &mut Ticket, spoils: &[ReadCorruption], outcome: Outcome) {
        let read = if outcome == Outcome::Done { ticket.answer.data() } else { None };
        if let Some(contents) = self.shared.contents.get()
            && let Err(error) = self.shared.gate.spoil(read, spoils, contents)
        {
            self.trouble = Some(format!("could not apply faults to a read: {error}"));
        }
    }

    /// Sleeps until the next event, or until an arrival.
    fn sleep(&mut self) {
        let Some(due) = self.wall.at(self.timeline.next_ns()) else {
            return thread::park();
        };
        let is_realtime = self.ledger.scheduling == Scheduling::Realtime;
        let now = Instant::now();
        let margin = if is_realtime { self.awake.margin(now) } else { Duration::ZERO };
        if due > now + margin {
            let wanted = due - now - margin;
            thread::park_timeout(wanted);
            // A thread that was woken by others did not oversleep.
            if is_realtime && !self.shared.has_news.load(Ordering::Relaxed) {
                self.awake.overslept(now.elapsed().saturating_sub(wanted));
            }
        }
        if !margin.is_zero() {
            self.awake.until(due, &self.shared.has_news);
        }
    }
}
