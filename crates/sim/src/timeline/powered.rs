//! The timeline at power cuts, and the effect of each request on changes that a power cut would revert.

use headstack_workload::{Kind, Random, Request, Span};

use super::slots::Slots;
use super::{Delivery, Finished, Flight, Machine, Timeline};
use crate::array::Standing;
use crate::flights::Outcome;
use crate::power_cut::{Changed, Halfway, Lost, Medium, PowerCut, PowerLoss, Verdict};
use crate::system::System;

impl<T> Timeline<T> {
    /// Whether power is on.
    pub fn has_power(&self) -> bool {
        self.power.is_on()
    }

    /// How often power failed.
    pub fn power_cuts(&self) -> u32 {
        self.power.cuts
    }

    /// How often something was taken back.
    pub fn losses(&self) -> u32 {
        self.power.losses
    }

    /// Whether a cache can hold acknowledged data that a power cut loses, now or once a battery is down.
    pub fn may_lose_data(&self) -> bool {
        self.system().is_some_and(System::may_lose_data)
    }

    /// A power cut would take contents back, or could.
    pub(super) fn may_lose_contents(&self) -> bool {
        matches!(self.machine, Machine::System(_))
    }

    /// Enters the losses that the last power cut caused in the contents.
    pub fn note_lost(&mut self, lost: &Lost) {
        if let Some(loss) = self.power.last_loss.and_then(|number| self.injector.loss_mut(number)) {
            loss.found(lost);
        }
    }

    /// The losses of the power cut with this number in the log.
    pub fn loss_of(&self, number: u32) -> Option<&PowerLoss> {
        self.injector.loss_of(number)
    }

    /// Takes the verdicts on changes to contents since the last call.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        self.exposure.take_verdicts(into);
    }

    /// Takes the changes that were incomplete at power cuts since the last call, in an array whose members may differ
    /// in their fate.
    pub fn take_halfway(&mut self) -> Vec<Halfway> {
        let halfway = self.exposure.take_halfway();
        if self.system().is_some_and(System::leaves_halves) { halfway } else { Vec::new() }
    }

    /// The state of the groups of an array; `None` if nothing has changed since `seen`, which is updated.
    pub fn standings(&self, seen: &mut u64) -> Option<Vec<Standing>> {
        self.system()?.standings(seen)
    }

    /// Registers a request that is not answered, or that came before power was on.
    #[cold]
    pub(super) fn comes_in_vain(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) {
        if let Some(changed) = changed {
            self.exposure.refused(changed, request.span());
        }
        let at_ns = at_ns.max(self.last_ns);
        let (arrival_ns, started_ns, outcome, spoils) = (at_ns, at_ns, Outcome::Vanished, Vec::new());
        self.finished.push(Finished { arrival_ns, at_ns, started_ns, outcome, request, spoils, ticket });
    }

    /// Cuts power: requests in flight are never answered. Losses of the contents are among the verdicts.
    pub(super) fn lose_power(&mut self, now_ns: u64, number: u32, cut: &PowerCut, mut random: Random) {
        let loss = match &mut self.machine {
            Machine::System(system) => {
                let volatile = |spans: &[Span], into: &mut Vec<Span>| system.volatile(now_ns, spans, into);
                let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
                let atom_bytes = cut.atom_bytes.unwrap_or(self.power.atom_bytes);
                let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes };
                self.exposure.cut(now_ns, cut.tear, &medium, &mut random)
            }
            Machine::Constant(_, queue) => {
                queue.clear();
                PowerLoss { at_ns: now_ns, ..PowerLoss::default() }
            }
        };
        if let Machine::System(system) = &mut self.machine {
            system.power_fails(now_ns);
        }
        self.injector.note_loss(number, loss);
        self.lose_all(now_ns);
        debug_assert!(
            self.parts.iter().all(|(_, part)| part.delivery == Delivery::Over),
            "whatever was under way has vanished, once"
        );
        // The system has forgotten them too: their numbers are free.
        self.agenda.clear();
        self.parts = Slots::default();
        self.power.on_since_ns = None;
        self.power.cuts += 1;
        self.note_loss_by(number);
    }

    fn note_loss_by(&mut self, number: u32) {
        self.power.losses += 1;
        self.power.last_loss = Some(number);
    }

    /// Fails a flush: data that only volatile caches hold are lost.
    pub(super) fn drop_unflushed(&mut self, now_ns: u64, number: u32) {
        let mut loss = PowerLoss { at_ns: now_ns, ..PowerLoss::default() };
        if let Machine::System(system) = &self.machine {
            let volatile = |spans: &[Span], into: &mut Vec<Span>| system.volatile(now_ns, spans, into);
            let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
            let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes: self.power.atom_bytes };
            loss = self.exposure.drop_acknowledged(now_ns, &medium);
        }
        self.injector.note_loss(number, loss);
        self.note_loss_by(number);
    }

    /// Power is back.
    pub(super) fn regain_power(&mut self, now_ns: u64) {
        if let Machine::System(system) = &mut self.machine {
            system.power_cycle(now_ns);
        }
        self.power.on_since_ns = Some(now_ns);
    }

    /// Updates the changes that a power cut could revert at the end of a request.
    pub(super) fn expose(&mut self, flight: &Flight<T>, at_ns: u64) {
        let Machine::System(system) = &self.machine else {
            // Its stored data are never reverted.
            if let Some(changed) = flight.changed {
                self.exposure.stays(changed.number, flight.request.span());
            }
            return;
        };
        match (flight.changed, flight.outcome) {
            (None, Outcome::Done) if flight.request.kind == Kind::Flush && !flight.unheard => {
                self.exposure.flushed(flight.arrival_ns);
            }
            (None, _) => {}
            (Some(changed), Outcome::Done) => {
                let volatile = |spans: &[Span], into: &mut Vec<Span>| system.volatile(at_ns, spans, into);
                let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
                let atom_bytes = self.power.atom_bytes;
                let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes };
                self.exposure.acknowledged(changed.number, at_ns, system.may_lose_data(), &medium);
            }
            (Some(changed), Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Vanished) => {
                self.exposure.failed(changed.number, at_ns);
            }
        }
    }
}
