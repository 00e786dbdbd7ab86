//! The timeline where power fails and comes back, and what each request means to changes that a power cut would take back.

use headstack_workload::{Kind, Random, Request, Span};

use super::slots::Slots;
use super::{Delivery, Finished, Flight, Machine, Timeline};
use crate::flights::Outcome;
use crate::model::Model;
use crate::power_cut::{Changed, Lost, Medium, PowerCut, PowerLoss, Verdict, atom_bytes};
use crate::system::System;

/// Whether there is power.
#[derive(Debug)]
pub(super) struct Power {
    /// Since when; `None` while there is none.
    on_since_ns: Option<u64>,
    cuts: u32,
    /// Times that something was taken back: at cuts, and by flushes that drop what they should keep.
    losses: u32,
    /// The last of them, by its number in the log.
    last_loss: Option<u32>,
    /// Bytes that are written as a whole or not at all.
    atom_bytes: u64,
}

impl Power {
    /// There is, from the start.
    pub fn of(model: &Model) -> Power {
        let atom_bytes = match model {
            Model::System(description) => atom_bytes(description),
            Model::Constant(_) => 512,
        };
        Power { on_since_ns: Some(0), cuts: 0, losses: 0, last_loss: None, atom_bytes }
    }

    /// There is.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on_since_ns.is_some()
    }

    /// There is, and there was at `at_ns`: what came before is not a request.
    #[inline]
    pub fn is_on_since(&self, at_ns: u64) -> bool {
        self.on_since_ns.is_some_and(|since_ns| since_ns <= at_ns)
    }
}

impl<T> Timeline<T> {
    /// There is power.
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

    /// Some cache can hold acknowledged data that a power cut loses, now or once a battery is down.
    pub fn may_lose_data(&self) -> bool {
        self.system().is_some_and(System::may_lose_data)
    }

    /// A power cut would take contents back, or could.
    pub(super) fn may_lose_contents(&self) -> bool {
        matches!(self.machine, Machine::System(_))
    }

    /// What the last loss was found to have taken of the contents.
    pub fn note_lost(&mut self, lost: &Lost) {
        if let Some(loss) = self.power.last_loss.and_then(|number| self.injector.loss_mut(number)) {
            loss.found(lost);
        }
    }

    /// What the power cut of this number in the log took.
    pub fn loss_of(&self, number: u32) -> Option<&PowerLoss> {
        self.injector.loss_of(number)
    }

    /// What has become of changes to contents since the last call.
    pub fn take_verdicts(&mut self, into: &mut Vec<Verdict>) {
        self.exposure.take_verdicts(into);
    }

    /// A request comes that nobody hears, or that came before power did.
    #[cold]
    pub(super) fn comes_in_vain(&mut self, at_ns: u64, request: Request, changed: Option<Changed>, ticket: T) {
        if let Some(changed) = changed {
            self.exposure.refused(changed, request.span());
        }
        let at_ns = at_ns.max(self.last_ns);
        let (arrival_ns, started_ns, outcome, spoils) = (at_ns, at_ns, Outcome::Vanished, Vec::new());
        self.finished.push(Finished { arrival_ns, at_ns, started_ns, outcome, request, spoils, ticket });
    }

    /// Power fails: nothing that is under way is ever answered. What is lost of the contents is among the verdicts.
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

    /// A flush fails, and what volatile caches alone have is lost.
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

    /// What the end of a request means to changes that a power cut could take back.
    pub(super) fn expose(&mut self, flight: &Flight<T>, at_ns: u64) {
        let Machine::System(system) = &self.machine else {
            // Nothing takes back what it has stored.
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
