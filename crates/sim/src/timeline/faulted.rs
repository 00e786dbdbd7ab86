//! Faults on a [`Timeline`]: requests that faults delay, hold, answer or lose, and commands that start and end faults.

use headstack_workload::{DurationNs, Request};

use super::agenda::Item;
use super::{Delivery, Machine, Part, Timeline};
use crate::drive::Completion;
use crate::error::SimError;
use crate::faults::contents::Damage;
use crate::faults::injector::{Change, devices_of};
use crate::faults::{Fault, FaultsToEnd, Log, Schedule, Timed, Trigger};
use crate::gauges::{DeviceHealth, Gauges};
use crate::pending_requests::Outcome;
use crate::system::System;

fn system_of(machine: &mut Machine) -> Option<&mut System> {
    match machine {
        Machine::System(system) => Some(system),
        Machine::Constant(..) => None,
    }
}

impl<T> Timeline<T> {
    /// Schedules the faults of `schedule` from time 0 on, with random numbers from its seed.
    ///
    /// # Errors
    /// Returns an error if a fault cannot be injected into the system.
    pub fn follow(&mut self, schedule: &Schedule) -> Result<(), SimError> {
        self.injector.follow(schedule, &self.model)?;
        self.look_ahead();
        Ok(())
    }

    /// Injects a fault for `lasts_ns` at `at_ns`, or at the next moment without another event. Returns the fault's
    /// number in the log and its start time.
    ///
    /// # Errors
    /// Returns an error if the fault cannot be injected into the system.
    pub fn inject(&mut self, at_ns: u64, fault: Fault, lasts_ns: Option<u64>) -> Result<(u32, u64), SimError> {
        let lasts = lasts_ns.map(|lasts_ns| DurationNs(lasts_ns.min(i64::MAX as u64) as i64));
        self.inject_at(at_ns, Timed { from: None, until: None, lasts, trigger: Trigger::default(), fault })
    }

    /// Like [`Self::inject`], for a fault with a trigger, which waits for matching requests from then on.
    ///
    /// # Errors
    /// Returns an error if the fault cannot be injected into the system.
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

    /// Ends faults at `at_ns`, or at the next moment without another event. Returns the number of faults ended.
    pub fn end_faults(&mut self, at_ns: u64, which: FaultsToEnd) -> usize {
        let at_ns = self.free_moment(at_ns);
        let (ended, change) = self.injector.end_some(at_ns, which, system_of(&mut self.machine));
        self.carry_out(at_ns, change);
        self.look_ahead();
        ended
    }

    /// Returns the log of all faults injected so far.
    pub fn injections(&self) -> Log {
        self.injector.log(self.system())
    }

    /// Returns gauges of the activity inside the system; `None` for a constant model.
    pub fn gauges(&self, now_ns: u64) -> Option<Gauges> {
        self.system().map(|system| system.gauges(now_ns))
    }

    /// Returns the health of each device; empty for a constant model.
    pub fn device_health(&self) -> Vec<DeviceHealth> {
        devices_of(self.system())
    }

    /// Returns the number of commands resent because of link errors.
    pub fn resent(&self) -> u64 {
        self.injector.resent
    }

    /// Whether the system responds: power is on, and no device has dropped out.
    pub fn is_there(&self) -> bool {
        self.power.is_on() && !self.injector.is_away()
    }

    /// Returns the system; `None` for a constant model.
    pub fn system(&self) -> Option<&System> {
        match &self.machine {
            Machine::System(system) => Some(system),
            Machine::Constant(..) => None,
        }
    }

    /// Appends the damages that must be applied to contents, in order.
    pub fn take_damages(&mut self, into: &mut Vec<Damage>) {
        self.injector.take_damages(into);
    }

    /// Drops all damages, for callers that keep no contents.
    pub(crate) fn forget_damages(&mut self) {
        self.injector.take_damages(&mut Vec::new());
    }

    /// Returns the patterns that faults search for in contents.
    pub fn patterns(&self) -> &[Box<[u8]>] {
        self.injector.patterns()
    }

    /// Starts the faults that are triggered by an arriving part.
    #[cold]
    pub(super) fn cue(&mut self, at_ns: u64, part: &Request, holds: u64) {
        let sight = self.injector.sight(part, holds, self.system());
        for number in self.injector.cued(&sight) {
            let change = self.injector.begin(at_ns, number, system_of(&mut self.machine));
            self.carry_out(at_ns, change);
        }
        self.look_ahead();
    }

    /// Counts an answered part for fault triggers.
    #[cold]
    pub(super) fn counts(&mut self, part: &Part, at_ns: u64, outcome: Outcome) {
        let system = match &self.machine {
            Machine::System(system) => Some(system),
            Machine::Constant(..) => None,
        };
        self.injector.counts(&part.request, part.holds, at_ns, outcome, system);
        self.look_ahead();
    }

    /// Applies the active faults to an arriving part.
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
                self.parts.remove(id);
            }
            Some(outcome) => {
                let flight = self.parts.get_mut(id).flight;
                self.flights.get_mut(flight).unheard = true;
                let ready_ns = reaches_ns + way.later_ns;
                self.departs(&Completion { at_ns: ready_ns, id, started_ns: at_ns }, outcome, at_ns);
            }
        }
    }

    /// Handles a completed part that a fault affects.
    #[cold]
    pub(super) fn leaves_system(&mut self, completion: &Completion, outcome: Outcome) {
        let now_ns = completion.at_ns;
        match self.parts.get_mut(completion.id).delivery {
            Delivery::Over => {
                self.parts.remove(completion.id);
            }
            Delivery::Straight => self.departs(completion, outcome, now_ns),
            Delivery::Later(later_ns) => {
                self.departs(&Completion { at_ns: now_ns + later_ns, ..*completion }, outcome, now_ns);
            }
        }
    }

    /// Sends an answer that is ready at the completion's time, or postpones it.
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
        self.parts.remove(id);
    }

    /// Processes due events of the agenda, and starts and ends due faults.
    #[cold]
    pub(super) fn keep_agenda(&mut self, now_ns: u64) {
        while let Some(item) = self.agenda.take_due(now_ns) {
            let (Item::Submit(id) | Item::Answer(id, ..)) = item;
            let part = *self.parts.get_mut(id);
            match item {
                _ if part.delivery == Delivery::Over => {
                    self.parts.remove(id);
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
            self.parts.remove(id);
        }
    }

    /// Returns the outcome of a completed part, which may be a failure.
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
