//! Power cuts on a [`Timeline`], and the effect of each request on changes that a cut would undo.

use headstack_workload::{Kind, Random, Request, Span};

use super::slots::Slots;
use super::{Delivery, Finished, Machine, PendingRequest, Timeline};
use crate::array::GroupStatus;
use crate::pending_requests::Outcome;
use crate::power_cut::{Changed, InterruptedChange, LostWrites, Medium, PowerCut, PowerLoss, Verdict};
use crate::system::System;

impl<T> Timeline<T> {
    /// Whether there is power.
    pub fn has_power(&self) -> bool {
        self.power.is_on()
    }

    /// Returns the number of power cuts.
    pub fn power_cuts(&self) -> u32 {
        self.power.cuts
    }

    /// Returns the number of losses.
    pub fn losses(&self) -> u32 {
        self.power.losses
    }

    /// Whether some cache can hold acknowledged data that a power cut loses, now or once a battery is empty.
    pub fn may_lose_data(&self) -> bool {
        self.system().is_some_and(System::may_lose_data)
    }

    /// Whether a power cut would or could undo changes to contents.
    pub(super) fn may_lose_contents(&self) -> bool {
        matches!(self.machine, Machine::System(_))
    }

    /// Records the loss of contents that the last power cut was found to have caused.
    pub fn note_lost(&mut self, lost: &LostWrites) {
        if let Some(loss) = self.power.last_loss.and_then(|number| self.injector.loss_mut(number)) {
            loss.record_loss(lost);
        }
    }

    /// Returns the loss by the power cut of this number in the log.
    pub fn loss_of(&self, number: u32) -> Option<&PowerLoss> {
        self.injector.loss_of(number)
    }

    /// Moves the verdicts on changes to contents since the last call.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        self.exposure.take_verdicts(into);
    }

    /// Returns the changes that power cuts have interrupted since the last call, in an array whose members may hold
    /// different parts of them.
    pub fn take_halfway(&mut self) -> Vec<InterruptedChange> {
        let halfway = self.exposure.take_halfway();
        if self.system().is_some_and(System::leaves_halves) { halfway } else { Vec::new() }
    }

    /// Returns the standing of an array's groups; `None` if nothing has changed since `seen`, which is updated.
    pub fn standings(&self, seen: &mut u64) -> Option<Vec<GroupStatus>> {
        self.system()?.standings(seen)
    }

    /// Handles a request that arrives without power, or before it was back.
    #[cold]
    pub(super) fn arrives_without_power(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) {
        if let Some(changed) = changed {
            self.exposure.refused(changed, request.span());
        }
        let at_ns = at_ns.max(self.last_ns);
        let (arrival_ns, started_ns, outcome, spoils) = (at_ns, at_ns, Outcome::Vanished, Vec::new());
        self.finished.push(Finished { arrival_ns, at_ns, started_ns, outcome, request, spoils, ticket });
    }

    /// Cuts power: requests in flight are never answered. Losses of contents are among the verdicts.
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
            "each request in flight vanishes once"
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

    /// Fails a flush and loses the data that are only in volatile caches.
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

    /// Restores power.
    pub(super) fn regain_power(&mut self, now_ns: u64) {
        if let Machine::System(system) = &mut self.machine {
            system.power_cycle(now_ns);
        }
        self.power.on_since_ns = Some(now_ns);
    }

    /// Records the end of a request for the changes that a power cut could undo.
    pub(super) fn expose(&mut self, flight: &PendingRequest<T>, at_ns: u64) {
        let Machine::System(system) = &self.machine else {
            // Its stored data are never undone.
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
