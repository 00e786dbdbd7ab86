//! Applies active faults to requests: on arrival, on the link, and when they are answered.

use headstack_workload::{Kind, Request};

use super::{Active, Injector, LastingDefect, RequestEffects};
use crate::faults::damaging::{ArrivingRequest, FaultOutcome};
use crate::faults::effect::Effect;
use crate::faults::filter::Filter;
use crate::faults::trigger::RequestView;
use crate::faults::{Distribution, FaultEffect, FaultHit};
use crate::pending_requests::Outcome;
use crate::system::System;

/// Most times that a command is sent: once, and five times again (`SD_MAX_RETRIES` of Linux's drivers/scsi/sd.h).
const SENDINGS_MAX: u64 = 6;

impl Injector {
    /// Applies faults to an arriving request, which is the change of this number if contents are kept.
    pub fn arrives(
        &mut self,
        at_ns: u64,
        id: u32,
        request: &Request,
        (change, sight): (Option<u64>, &RequestView),
        system: Option<&System>,
    ) -> RequestEffects {
        let mut way = RequestEffects::default();
        let mut notes = self.met_of_array(request, system);
        let (mut harms, mut spent) = (Vec::new(), Vec::new());
        self.changes += u64::from(change.is_none() && Injector::is_change(request));
        let change = change.unwrap_or(self.changes);
        let mut is_wronged = false;
        for Active { number, until_ns, effect, random, choice, chosen, .. } in &mut self.active {
            let deed = match effect {
                Effect::DropOut | Effect::PowerCut(_) => {
                    way.end = Some(Outcome::Vanished);
                    FaultEffect::Lost
                }
                Effect::LyingCache if request.kind == Kind::Flush && choice.takes(sight) => {
                    way.end = way.end.or(Some(Outcome::Done));
                    FaultEffect::Answered
                }
                Effect::LinkErrors { share, time_out_ns } => {
                    if !choice.takes(sight) {
                        continue;
                    }
                    // The fault may be over when the command is sent again: that attempt succeeds.
                    let fails = |sending: u64| at_ns.saturating_add(sending * *time_out_ns) < *until_ns;
                    let sent = (0..SENDINGS_MAX).take_while(|&n| fails(n) && random.fraction() < *share).count() as u64;
                    if sent == 0 {
                        continue;
                    }
                    self.resent += sent;
                    way.wait_ns += sent * *time_out_ns;
                    if sent == SENDINGS_MAX {
                        way.end = way.end.or(Some(Outcome::Failed(None)));
                    }
                    FaultEffect::SentAgain
                }
                Effect::Spike { filter, share, time_ns, distribution } if filter.matches(request) => {
                    if !choice.takes(sight) || random.fraction() >= *share {
                        continue;
                    }
                    way.later_ns += match distribution {
                        Distribution::Fixed => *time_ns,
                        Distribution::Exponential => random.exponential(*time_ns as f64).round() as u64,
                    };
                    FaultEffect::Delayed
                }
                Effect::Media { filter: Some(filter), .. } if filter.matches(request) => FaultEffect::Accessed,
                Effect::Hang(filter) if !choice.is_all() && filter.matches(request) => {
                    if choice.takes(sight) {
                        chosen.push(id);
                        choice.spend();
                        self.watched.entry(id).or_default();
                    }
                    // It is held when its answer is ready.
                    continue;
                }
                Effect::Damaging(damaging) => {
                    // A request that something else answers has done nothing that could go wrong.
                    is_wronged |= way.end.is_some();
                    let coming = ArrivingRequest { at_ns, request, sight, change, is_wronged };
                    let FaultOutcome { deed, refused, drops_unflushed, damages, spoils, harms: done } =
                        damaging.meets(&coming, choice, random);
                    self.damages.extend(damages);
                    self.spoils.extend(spoils);
                    harms.extend(done.into_iter().map(|harm| (*number, harm)));
                    if let Some((errno, time_ns)) = refused {
                        way.end = Some(Outcome::Refused(errno));
                        way.later_ns += time_ns;
                    }
                    way.drops_unflushed = drops_unflushed.then_some(*number).or(way.drops_unflushed);
                    if choice.is_spent() && !damaging.outlives_once() {
                        spent.push(*number);
                    }
                    let Some(deed) = deed else { continue };
                    is_wronged = true;
                    notes.push((*number, deed));
                    continue;
                }
                // This request does not meet it, or it does not concern single requests.
                Effect::Spike { .. } | Effect::Media { .. } | Effect::Hang(_) | Effect::LyingCache => continue,
                Effect::Incident(_) | Effect::LinkResets { .. } | Effect::PowerOn => continue,
                Effect::Rot { .. } | Effect::SetState(_) => continue,
            };
            choice.spend();
            if choice.is_spent() {
                spent.push(*number);
            }
            notes.push((*number, deed));
        }
        for (number, deed) in notes {
            self.note(number, id, at_ns, request, deed);
        }
        harms.into_iter().for_each(|(number, harm)| self.harm(number, harm));
        if way.end == Some(Outcome::Vanished) {
            return RequestEffects { wait_ns: 0, later_ns: 0, ..way };
        }
        let reaches_ns = self.passes_ns(at_ns + way.wait_ns, id, at_ns, request);
        // A fault that has met its one request is over; its effect on that request remains.
        spent.into_iter().for_each(|number| self.end_spent(at_ns, number));
        RequestEffects { wait_ns: reaches_ns - at_ns, ..way }
    }

    /// Ends a fault that only one request could meet: it holds nothing and does not affect the system.
    fn end_spent(&mut self, now_ns: u64, number: u32) {
        self.active.retain(|active| active.number != number);
        self.log[number as usize].until_ns = Some(now_ns);
        self.look_ahead();
    }

    /// Returns the defects of an array that a request meets.
    fn met_of_array(&mut self, request: &Request, system: Option<&System>) -> Vec<(u32, FaultEffect)> {
        let Some(system) = system.filter(|_| !self.standing.is_empty()) else { return Vec::new() };
        // A place that holds all its data again is no defect any more.
        self.put_right(|standing| matches!(standing, LastingDefect::Member(place) if system.is_whole(place)));
        let meets = |&(number, standing): &(u32, LastingDefect)| match standing {
            LastingDefect::Member(place) => system.misses(place, request).then_some((number, FaultEffect::Degraded)),
            LastingDefect::Battery => (request.kind == Kind::Write).then_some((number, FaultEffect::WrittenThrough)),
        };
        self.standing.iter().filter_map(meets).collect()
    }

    /// Whether a hang holds an answer that is ready.
    pub fn holds(&mut self, id: u32, came_ns: u64, request: &Request) -> bool {
        let hangs = |active: &&Active| {
            let is_meant = active.choice.is_all() || active.chosen.contains(&id);
            is_meant && matches!(&active.effect, Effect::Hang(filter) if filter.matches(request))
        };
        let Some(number) = self.active.iter().find(hangs).map(|active| active.number) else { return false };
        self.note(number, id, came_ns, request, FaultEffect::Held);
        true
    }

    /// Returns when something that is at the link at `at_ns` passes it.
    pub fn passes_ns(&mut self, at_ns: u64, id: u32, came_ns: u64, request: &Request) -> u64 {
        let mut passes_ns = at_ns;
        let mut waits = None;
        for active in &self.active {
            let Effect::LinkResets { time_ns, every_ns } = active.effect else { continue };
            let phase_ns = passes_ns.saturating_sub(active.at_ns) % every_ns;
            if phase_ns < time_ns && passes_ns < active.until_ns {
                passes_ns = (passes_ns - phase_ns + time_ns).min(active.until_ns);
                waits = Some(active.number);
            }
        }
        if let Some(number) = waits {
            self.note(number, id, came_ns, request, FaultEffect::Waited);
        }
        passes_ns
    }

    /// Records a request that is lost with the device.
    pub fn lost(&mut self, id: u32, came_ns: u64, request: &Request) {
        let gone = self.active.iter().find(|active| matches!(active.effect, Effect::DropOut | Effect::PowerCut(_)));
        if let Some(number) = gone.map(|active| active.number) {
            self.note(number, id, came_ns, request, FaultEffect::Lost);
        }
    }

    fn note(&mut self, number: u32, id: u32, arrival_ns: u64, request: &Request, deed: FaultEffect) {
        let met = self.watched.entry(id).or_default();
        if met.contains(&number) {
            return;
        }
        met.push(number);
        let injection = &mut self.log[number as usize];
        injection.met += 1;
        let Request { kind, offset_bytes, length_bytes, .. } = *request;
        let meeting = FaultHit { kind: kind.into(), offset_bytes, length_bytes, arrival_ns, completion_ns: None, deed };
        injection.first.get_or_insert(meeting);
        injection.last = Some(meeting);
    }

    /// Records that a request that arrived at `came_ns` is answered at `at_ns`.
    #[inline]
    pub fn answered(&mut self, id: u32, request: &Request, came_ns: u64, at_ns: u64, outcome: Outcome) {
        if !self.watched.is_empty() {
            self.record_answer(id, request, came_ns, at_ns, outcome);
        }
    }

    /// Counts an answered request that carried these patterns: a fault may have waited for it.
    #[inline]
    pub fn counts(&mut self, request: &Request, holds: u64, at_ns: u64, outcome: Outcome, system: Option<&System>) {
        if !self.waiting.is_empty() && outcome != Outcome::Vanished {
            let sight = self.sight(request, holds, system);
            self.counts_answer(at_ns, &sight);
        }
    }

    #[cold]
    fn record_answer(&mut self, id: u32, request: &Request, came_ns: u64, at_ns: u64, outcome: Outcome) {
        self.active.iter_mut().for_each(|active| active.chosen.retain(|chosen| *chosen != id));
        for number in self.watched.remove(&id).into_iter().flatten() {
            let active = self.active.iter().find(|active| active.number == number);
            let failed = match (outcome, active.map(|active| &active.effect)) {
                (Outcome::Failed(Some(at)), Some(Effect::Media { filter: Some(filter), .. })) => {
                    Filter::holds(filter, at)
                }
                _ => false,
            };
            let injection = &mut self.log[number as usize];
            // The fault may be over by now.
            let failed = failed || injection.fault.fails_requests_by(outcome);
            let was_refused = matches!(outcome, Outcome::Refused(_));
            injection.failed += u64::from(failed);
            // Requests of one kind to one place that arrive together have the same outcome.
            let is_this = |meeting: &FaultHit| {
                (meeting.arrival_ns, meeting.offset_bytes, meeting.kind)
                    == (came_ns, request.offset_bytes, request.kind.into())
            };
            for meeting in [&mut injection.first, &mut injection.last].into_iter().flatten() {
                if is_this(meeting) {
                    meeting.completion_ns = Some(at_ns);
                    meeting.deed = if failed && !was_refused { FaultEffect::Failed } else { meeting.deed };
                }
            }
        }
    }
}
