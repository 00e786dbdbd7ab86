//! Power cuts on a [`Timeline`], and the tracking of changes that a power cut would undo.

use headstack_workload::{Kind, Random, Request, Span};

use super::{Delivery, Finished, Machine, PendingRequest, Timeline};
use crate::array::GroupStatus;
use crate::pending_requests::Outcome;
use crate::power_cut::{Changed, InterruptedChange, LostWrites, Medium, PowerCut, PowerLoss, Verdict};
use crate::slab::Slab;
use crate::system::System;

impl<T> Timeline<T> {
    /// Whether power is on.
    pub fn has_power(&self) -> bool {
        self.power.is_on()
    }

    /// Returns the number of power cuts.
    pub fn power_cuts(&self) -> u32 {
        self.power.cuts
    }

    /// Returns the number of losses, from power cuts and dropped flushes.
    pub fn losses(&self) -> u32 {
        self.power.losses
    }

    /// Whether a cache can hold acknowledged data that a power cut would lose, at once or after a battery runs empty.
    pub fn may_lose_data(&self) -> bool {
        self.system().is_some_and(System::may_lose_data)
    }

    /// Whether a power cut might undo changes to contents.
    pub(super) fn may_lose_contents(&self) -> bool {
        matches!(self.machine, Machine::System(_))
    }

    /// Records the loss of contents found after the last power cut.
    pub fn note_lost(&mut self, lost: &LostWrites) {
        if let Some(loss) = self.power.last_loss.and_then(|number| self.injector.loss_mut(number)) {
            loss.record_loss(lost);
        }
    }

    /// Returns the loss caused by the power cut with this number in the log.
    pub fn loss_of(&self, number: u32) -> Option<&PowerLoss> {
        self.injector.loss_of(number)
    }

    /// Appends the verdicts on changes since the last call to `into`.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        self.exposure.take_verdicts(into);
    }

    /// Returns and removes the changes that power cuts have interrupted since the last call. Empty unless the system is
    /// an array whose members may hold different parts of a change.
    pub fn take_halfway(&mut self) -> Vec<InterruptedChange> {
        let halfway = self.exposure.take_halfway();
        if self.system().is_some_and(System::leaves_halves) { halfway } else { Vec::new() }
    }

    /// Returns the status of an array's RAID groups, or `None` if it has not changed since `seen`. Updates `seen`.
    pub fn standings(&self, seen: &mut u64) -> Option<Vec<GroupStatus>> {
        self.system()?.standings(seen)
    }

    /// Handles a request that arrives while power is off, or that was sent before power returned.
    #[cold]
    pub(super) fn arrives_without_power(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) {
        if let Some(changed) = changed {
            self.exposure.refused(changed, request.span());
        }
        let at_ns = at_ns.max(self.last_ns);
        let (arrival_ns, started_ns, outcome, spoils) = (at_ns, at_ns, Outcome::Vanished, Vec::new());
        self.finished.push(Finished { arrival_ns, at_ns, started_ns, outcome, request, spoils, ticket });
    }

    /// Cuts power. Requests in flight are never answered, and lost contents are recorded as verdicts.
    pub(super) fn lose_power(&mut self, now_ns: u64, number: u32, cut: &PowerCut, mut random: Random) {
        let loss = match &mut self.machine {
            Machine::System(system) => {
                let volatile = |spans: &[Span], into: &mut Vec<Span>| system.volatile(now_ns, spans, into);
                let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
                let atom_bytes = atom_bytes(system, cut.atom_bytes.unwrap_or(self.power.atom_bytes));
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
            "every request in flight has vanished"
        );
        // The system has forgotten these requests too, so their numbers are free.
        self.agenda.clear();
        self.parts = Slab::default();
        self.power.on_since_ns = None;
        self.power.cuts += 1;
        self.note_loss_by(number);
    }

    fn note_loss_by(&mut self, number: u32) {
        self.power.losses += 1;
        self.power.last_loss = Some(number);
    }

    /// Loses the data that are only in volatile caches, because a flush dropped them.
    pub(super) fn drop_unflushed(&mut self, now_ns: u64, number: u32) {
        let mut loss = PowerLoss { at_ns: now_ns, ..PowerLoss::default() };
        if let Machine::System(system) = &self.machine {
            let volatile = |spans: &[Span], into: &mut Vec<Span>| system.volatile(now_ns, spans, into);
            let tear_bound = |at_bytes: u64| system.tear_bound(at_bytes);
            let atom_bytes = atom_bytes(system, self.power.atom_bytes);
            let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes };
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

    /// Tracks a finished request for the changes that a power cut could undo.
    pub(super) fn expose(&mut self, flight: &PendingRequest<T>, at_ns: u64) {
        let Machine::System(system) = &self.machine else {
            // A constant model never loses stored data.
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
                let atom_bytes = atom_bytes(system, self.power.atom_bytes);
                let medium = Medium { volatile: &volatile, tear_bound: &tear_bound, atom_bytes };
                self.exposure.acknowledged(changed.number, at_ns, system.may_lose_data(), &medium);
            }
            (Some(changed), Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Vanished) => {
                self.exposure.failed(changed.number, at_ns);
            }
        }
    }
}

/// Returns the bytes that a torn write changes as a whole: an atom of the drives, or what a layer above them guarantees.
fn atom_bytes(system: &System, of_drives: u64) -> u64 {
    of_drives.max(system.atomic_bytes().unwrap_or(0))
}
