//! Effects of current faults on a request: on arrival, at the link, on completion.

use headstack_workload::{Kind, Request};

use super::{Active, Injector, Standing, Way};
use crate::faults::damaging::{Coming, Met};
use crate::faults::effect::Effect;
use crate::faults::filter::Filter;
use crate::faults::trigger::Sight;
use crate::faults::{Deed, Distribution, Meeting};
use crate::flights::Outcome;
use crate::system::System;

/// Largest number of times a command is sent: once, and five retries (`SD_MAX_RETRIES` of Linux' drivers/scsi/sd.h).
const SENDINGS_MAX: u64 = 6;

impl Injector {
    /// Processes an arriving request, which is a change with this number if there are contents.
    pub fn arrives(
        &mut self,
        at_ns: u64,
        id: u32,
        request: &Request,
        (change, sight): (Option<u64>, &Sight),
        system: Option<&System>,
    ) -> Way {
        let mut way = Way::default();
        let mut notes = self.met_of_array(request, system);
        let (mut harms, mut spent) = (Vec::new(), Vec::new());
        self.changes += u64::from(change.is_none() && Injector::is_change(request));
        let change = change.unwrap_or(self.changes);
        let mut is_wronged = false;
        for Active { number, until_ns, effect, random, choice, chosen, .. } in &mut self.active {
            let deed = match effect {
                Effect::DropOut | Effect::PowerCut(_) => {
                    way.end = Some(Outcome::Vanished);
                    Deed::Lost
                }
                Effect::LyingCache if request.kind == Kind::Flush && choice.takes(sight) => {
                    way.end = way.end.or(Some(Outcome::Done));
                    Deed::Answered
                }
                Effect::LinkErrors { share, time_out_ns } => {
                    if !choice.takes(sight) {
                        continue;
                    }
                    // The fault may be over when the command is sent again: that sending meets nothing.
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
                    Deed::SentAgain
                }
                Effect::Spike { filter, share, time_ns, distribution } if filter.matches(request) => {
                    if !choice.takes(sight) || random.fraction() >= *share {
                        continue;
                    }
                    way.later_ns += match distribution {
                        Distribution::Fixed => *time_ns,
                        Distribution::Exponential => random.exponential(*time_ns as f64).round() as u64,
                    };
                    Deed::Delayed
                }
                Effect::Media { filter: Some(filter), .. } if filter.matches(request) => Deed::Accessed,
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
                    // A request answered elsewhere has not been damaged.
                    is_wronged |= way.end.is_some();
                    let coming = Coming { at_ns, request, sight, change, is_wronged };
                    let Met { deed, refused, drops_unflushed, damages, spoils, harms: done } =
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
                // Nothing that this request meets, or nothing that single requests meet.
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
            return Way { wait_ns: 0, later_ns: 0, ..way };
        }
        let reaches_ns = self.passes_ns(at_ns + way.wait_ns, id, at_ns, request);
        // A fault that has affected its single request is over; its effect on that request continues.
        spent.into_iter().for_each(|number| self.end_spent(at_ns, number));
        Way { wait_ns: reaches_ns - at_ns, ..way }
    }

    /// Ends a fault for a single request: it holds nothing, and has no part in the system's settings.
    fn end_spent(&mut self, now_ns: u64, number: u32) {
        self.active.retain(|active| active.number != number);
        self.log[number as usize].until_ns = Some(now_ns);
        self.look_ahead();
    }

    /// Problems of the array that affect a request.
    fn met_of_array(&mut self, request: &Request, system: Option<&System>) -> Vec<(u32, Deed)> {
        let Some(system) = system.filter(|_| !self.standing.is_empty()) else { return Vec::new() };
        // A place that is valid again is no problem any more.
        self.put_right(|standing| matches!(standing, Standing::Member(place) if system.is_whole(place)));
        let meets = |&(number, standing): &(u32, Standing)| match standing {
            Standing::Member(place) => system.misses(place, request).then_some((number, Deed::Degraded)),
            Standing::Battery => (request.kind == Kind::Write).then_some((number, Deed::WrittenThrough)),
        };
        self.standing.iter().filter_map(meets).collect()
    }

    /// An answer is ready: whether a hang holds it.
    pub fn holds(&mut self, id: u32, came_ns: u64, request: &Request) -> bool {
        let hangs = |active: &&Active| {
            let is_meant = active.choice.is_all() || active.chosen.contains(&id);
            is_meant && matches!(&active.effect, Effect::Hang(filter) if filter.matches(request))
        };
        let Some(number) = self.active.iter().find(hangs).map(|active| active.number) else { return false };
        self.note(number, id, came_ns, request, Deed::Held);
        true
    }

    /// When a request at the link at `at_ns` passes it.
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
            self.note(number, id, came_ns, request, Deed::Waited);
        }
        passes_ns
    }

    /// A request is lost with the device.
    pub fn lost(&mut self, id: u32, came_ns: u64, request: &Request) {
        let gone = self.active.iter().find(|active| matches!(active.effect, Effect::DropOut | Effect::PowerCut(_)));
        if let Some(number) = gone.map(|active| active.number) {
            self.note(number, id, came_ns, request, Deed::Lost);
        }
    }

    fn note(&mut self, number: u32, id: u32, arrival_ns: u64, request: &Request, deed: Deed) {
        let met = self.watched.entry(id).or_default();
        if met.contains(&number) {
            return;
        }
        met.push(number);
        let injection = &mut self.log[number as usize];
        injection.met += 1;
        let Request { kind, offset_bytes, length_bytes, .. } = *request;
        let meeting = Meeting { kind: kind.into(), offset_bytes, length_bytes, arrival_ns, completion_ns: None, deed };
        injection.first.get_or_insert(meeting);
        injection.last = Some(meeting);
    }

    /// A request that came at `came_ns` is answered at `at_ns`.
    #[inline]
    pub fn answered(&mut self, id: u32, request: &Request, came_ns: u64, at_ns: u64, outcome: Outcome) {
        if !self.watched.is_empty() {
            self.tell(id, request, came_ns, at_ns, outcome);
        }
    }

    /// A request that brought these patterns is answered: some fault may have waited for that.
    #[inline]
    pub fn counts(&mut self, request: &Request, holds: u64, at_ns: u64, outcome: Outcome, system: Option<&System>) {
        if !self.waiting.is_empty() && outcome != Outcome::Vanished {
            let sight = self.sight(request, holds, system);
            self.counts_answer(at_ns, &sight);
        }
    }

    #[cold]
    fn tell(&mut self, id: u32, request: &Request, came_ns: u64, at_ns: u64, outcome: Outcome) {
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
            // Of simultaneous requests, those of one kind to one place are treated alike.
            let is_this = |meeting: &Meeting| {
                (meeting.arrival_ns, meeting.offset_bytes, meeting.kind)
                    == (came_ns, request.offset_bytes, request.kind.into())
            };
            for meeting in [&mut injection.first, &mut injection.last].into_iter().flatten() {
                if is_this(meeting) {
                    meeting.completion_ns = Some(at_ns);
                    meeting.deed = if failed && !was_refused { Deed::Failed } else { meeting.deed };
                }
            }
        }
    }
}
