//! The timeline under faults: requests that they delay, hold, answer and lose, and the commands to inject and end them.

use headstack_workload::{DurationNs, Request};

use super::agenda::Item;
use super::{Delivery, Machine, Part, Timeline};
use crate::drive::Completion;
use crate::error::SimError;
use crate::faults::contents::Damage;
use crate::faults::injector::{Change, devices_of};
use crate::faults::{Fault, FaultsToEnd, Log, Schedule, Timed, Trigger};
use crate::flights::Outcome;
use crate::gauges::{DeviceHealth, Gauges};
use crate::system::System;

fn system_of(machine: &mut Machine) -> Option<&mut System> {
    match machine {
        Machine::System(system) => Some(system),
        Machine::Constant(..) => None,
    }
}

impl<T> Timeline<T> {
    /// Plans the faults of a schedule, from time 0 on, and uses its seed.
    ///
    /// # Errors
    /// If a fault cannot occur in the system.
    pub fn follow(&mut self, schedule: &Schedule) -> Result<(), SimError> {
        self.injector.follow(schedule, &self.model)?;
        self.look_ahead();
        Ok(())
    }

    /// Injects a fault at `at_ns`, or at the next moment without another event, for `lasts_ns`. Returns its number in
    /// the log and its time.
    ///
    /// # Errors
    /// If the fault cannot occur in the system.
    pub fn inject(&mut self, at_ns: u64, fault: Fault, lasts_ns: Option<u64>) -> Result<(u32, u64), SimError> {
        let lasts = lasts_ns.map(|lasts_ns| DurationNs(lasts_ns.min(i64::MAX as u64) as i64));
        self.inject_at(at_ns, Timed { from: None, until: None, lasts, trigger: Trigger::default(), fault })
    }

    /// As [`Self::inject`]; a fault with a trigger waits for its requests from then on.
    ///
    /// # Errors
    /// As for [`Self::inject`].
    pub fn inject_at(&mut self, at_ns: u64, timed: Timed) -> Result<(u32, u64), SimError> {
        let at_ns = self.free_moment(at_ns);
        let injected = self.injector.inject(at_ns, timed, system_of(&mut self.machine));
        let number = injected.map(|(number, change)| {
            self.carry_out(at_ns, change);
            number
        });
        self.look_ahead();
        Ok((number?, at_ns))
    }

    /// Ends faults at `at_ns`, or at the next moment without another event. Returns how many there were.
    pub fn end_faults(&mut self, at_ns: u64, which: FaultsToEnd) -> usize {
        let at_ns = self.free_moment(at_ns);
        let (ended, change) = self.injector.end_some(at_ns, which, system_of(&mut self.machine));
        self.carry_out(at_ns, change);
        self.look_ahead();
        ended
    }

    /// The faults injected so far.
    pub fn injections(&self) -> Log {
        self.injector.log(self.system())
    }

    /// Internal state of the system; none for a constant device.
    pub fn gauges(&self, now_ns: u64) -> Option<Gauges> {
        self.system().map(|system| system.gauges(now_ns))
    }

    /// The health of each device; none in a constant one.
    pub fn device_health(&self) -> Vec<DeviceHealth> {
        devices_of(self.system())
    }

    /// Commands that were sent again because of the link.
    pub fn resent(&self) -> u64 {
        self.injector.resent
    }

    /// Whether requests are answered: there is power, and no device has dropped out.
    pub fn is_there(&self) -> bool {
        self.power.is_on() && !self.injector.is_away()
    }

    /// The system; none for a constant device.
    pub fn system(&self) -> Option<&System> {
        match &self.machine {
            Machine::System(system) => Some(system),
            Machine::Constant(..) => None,
        }
    }

    /// Takes the damages to apply to contents, in order.
    pub fn take_damages(&mut self, into: &mut Vec<Damage>) {
        self.injector.take_damages(into);
    }

    /// Drops the damages, if no contents are kept.
    pub(crate) fn forget_damages(&mut self) {
        self.injector.take_damages(&mut Vec::new());
    }

    /// Patterns in contents that trigger faults.
    pub fn patterns(&self) -> &[Box<[u8]>] {
        self.injector.patterns()
    }

    /// A part comes: faults strike that have waited for it.
    #[cold]
    pub(super) fn cue(&mut self, at_ns: u64, part: &Request, holds: u64) {
        let sight = self.injector.sight(part, holds, self.system());
        for number in self.injector.cued(&sight) {
            let change = self.injector.begin(at_ns, number, system_of(&mut self.machine));
            self.carry_out(at_ns, change);
        }
        self.look_ahead();
    }

    /// A part is answered: faults may have waited for that.
    #[cold]
    pub(super) fn counts(&mut self, part: &Part, at_ns: u64, outcome: Outcome) {
        let system = match &self.machine {
            Machine::System(system) => Some(system),
            Machine::Constant(..) => None,
        };
        self.injector.counts(&part.request, part.holds, at_ns, outcome, system);
        self.look_ahead();
    }

    /// A part comes while something is wrong.
    #[cold]
    pub(super) fn meets_faults(&mut self, at_ns: u64, id: u32, part: &Request) {
        let system = match &self.machine {
            Machine::System(system) => Some(system),
            Machine::Constant(..) => None,
        };
        let Part { flight, holds, .. } = *self.parts.get_mut(id);
        let change = self.flights.get_mut(flight).changed.map(|changed| changed.number);
        let sight = self.injector.sight(part, holds, system);
        let way = self.injector.arrives(at_ns, id, part, (change, &sight), system);
        self.flights.get_mut(flight).spoils.extend(self.injector.take_spoils());
        if let Some(number) = way.drops_unflushed {
            self.drop_unflushed(at_ns, number);
        }
        self.look_ahead();
        if way.later_ns > 0 {
            self.parts.get_mut(id).delivery = Delivery::Later(way.later_ns);
        }
        let reaches_ns = at_ns + way.wait_ns;
        match way.end {
            None if way.wait_ns == 0 => {
                self.submit(at_ns, id, part);
            }
            None => self.agenda.put_off(reaches_ns, Item::Submit(id)),
            Some(Outcome::Vanished) => {
                self.answer(&Completion { at_ns, id, started_ns: at_ns }, Outcome::Vanished);
                self.parts.take(id);
            }
            Some(outcome) => {
                let flight = self.parts.get_mut(id).flight;
                self.flights.get_mut(flight).unheard = true;
                let ready_ns = reaches_ns + way.later_ns;
                self.departs(&Completion { at_ns: ready_ns, id, started_ns: at_ns }, outcome, at_ns);
            }
        }
    }

    /// The system is done with a part that was, or is, wronged.
    #[cold]
    pub(super) fn leaves_system(&mut self, completion: &Completion, outcome: Outcome) {
        let now_ns = completion.at_ns;
        match self.parts.get_mut(completion.id).delivery {
            Delivery::Over => {
                self.parts.take(completion.id);
            }
            Delivery::Straight => self.departs(completion, outcome, now_ns),
            Delivery::Later(later_ns) => {
                self.departs(&Completion { at_ns: now_ns + later_ns, ..*completion }, outcome, now_ns);
            }
        }
    }

    /// Handles an answer that is ready at the completion's time: it is sent now or later.
    fn departs(&mut self, completion: &Completion, outcome: Outcome, now_ns: u64) {
        let Completion { at_ns, id, started_ns } = *completion;
        if at_ns > now_ns {
            return self.agenda.put_off(at_ns, Item::Answer(id, started_ns, outcome));
        }
        let part = *self.parts.get_mut(id);
        if self.injector.holds(id, part.arrival_ns, &part.request) {
            return self.agenda.held.push((*completion, outcome));
        }
        let passes_ns = self.injector.passes_ns(at_ns, id, part.arrival_ns, &part.request);
        if passes_ns > at_ns {
            return self.agenda.put_off(passes_ns, Item::Answer(id, started_ns, outcome));
        }
        self.answer(completion, outcome);
        self.parts.take(id);
    }

    /// Processes due items of the agenda, and starts and ends faults.
    #[cold]
    pub(super) fn keep_agenda(&mut self, now_ns: u64) {
        while let Some(item) = self.agenda.take_due(now_ns) {
            let (Item::Submit(id) | Item::Answer(id, ..)) = item;
            let part = *self.parts.get_mut(id);
            match item {
                _ if part.delivery == Delivery::Over => {
                    self.parts.take(id);
                }
                Item::Submit(id) => {
                    self.submit(now_ns, id, &part.request);
                }
                Item::Answer(id, started_ns, outcome) => {
                    self.departs(&Completion { at_ns: now_ns, id, started_ns }, outcome, now_ns);
                }
            }
        }
        while self.injector.next_ns <= now_ns {
            let change = self.injector.turn(now_ns, system_of(&mut self.machine));
            self.carry_out(now_ns, change);
        }
        self.look_ahead();
    }

    fn carry_out(&mut self, now_ns: u64, change: Change) {
        if change.drops {
            self.lose_all(now_ns);
        }
        if change.restores_power {
            self.regain_power(now_ns);
        }
        if let Some((number, cut, random)) = change.cuts_power {
            self.lose_power(now_ns, number, &cut, random);
        }
        if change.releases {
            for (completion, outcome) in std::mem::take(&mut self.agenda.held) {
                self.departs(&Completion { at_ns: now_ns, ..completion }, outcome, now_ns);
            }
        }
    }

    /// Loses all requests in flight.
    pub(super) fn lose_all(&mut self, now_ns: u64) {
        let held: Vec<u32> = self.agenda.held.drain(..).map(|(completion, _)| completion.id).collect();
        let under_way = self.parts.iter().filter(|(_, part)| part.delivery != Delivery::Over);
        let mut lost: Vec<(u64, u32)> = under_way.map(|(id, part)| (part.arrival_ns, id)).collect();
        lost.sort_unstable();
        for (arrival_ns, id) in lost {
            let part = self.parts.get_mut(id);
            part.delivery = Delivery::Over;
            let request = part.request;
            self.injector.lost(id, arrival_ns, &request);
            self.answer(&Completion { at_ns: now_ns, id, started_ns: now_ns }, Outcome::Vanished);
        }
        for id in held {
            self.parts.take(id);
        }
    }

    /// The outcome of a completed part, if some have failed.
    #[cold]
    pub(super) fn outcome_of(&mut self, id: u32) -> Outcome {
        match self.failed.iter().position(|failed| failed.id == id) {
            Some(at) => Outcome::Failed(Some(self.failed.remove(at).at_bytes)),
            None => Outcome::Done,
        }
    }

    fn look_ahead(&mut self) {
        self.agenda.next_ns = self.agenda.first_ns().min(self.injector.next_ns);
    }
}
