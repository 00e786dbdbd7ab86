//! [`Injector`]: starts and ends faults, and logs them. [`requests`] applies them to requests.

mod requests;

use std::collections::HashMap;
use std::collections::VecDeque;

use headstack_workload::{DurationNs, Purpose, Random, Span};

use crate::description::array::IncidentKind;
use crate::description::model::Model;
use crate::error::SimError;
use crate::faults::contents::{Corruptor, Damage, DamageProof, HARMS_LISTED_MAX, MemberDamage, ReadCorruption};
use crate::faults::effect::{Effect, Subject, effect_of, named_devices};
use crate::faults::trigger::Choice;
use crate::faults::waiting::Waiting;
use crate::faults::{Counters, Injection, Log, Schedule, StrikeTime, Timed};
use crate::gauges::DeviceHealth;
use crate::media_defects::MediaDefect;
use crate::pending_requests::Outcome;
use crate::power_cut::{PowerCut, PowerLoss};
use crate::system::System;

/// A fault that has not started.
#[derive(Debug)]
struct Planned {
    at_ns: u64,
    until_ns: u64,
    timed: Timed,
}

impl Planned {
    /// Returns the latest end, and how long it lasts once a request has triggered it.
    fn ends(&self) -> (u64, Option<u64>) {
        let Timed { trigger, lasts, .. } = &self.timed;
        match lasts {
            Some(lasts) if !trigger.is_timed() => (u64::MAX, u64::try_from(lasts.0).ok()),
            _ => (self.until_ns, None),
        }
    }
}

/// An active fault.
struct Active {
    number: u32,
    at_ns: u64,
    until_ns: u64,
    effect: Effect,
    random: Random,
    choice: Choice,
    /// Requests that it has selected, if it holds only some.
    chosen: Vec<u32>,
    /// The device's counters when the fault started.
    before: Counters,
}

/// A lasting defect of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastingDefect {
    /// A member is gone from its place: group and slot.
    Member((u32, u32)),
    /// The battery of the cache is down.
    Battery,
}

/// Effects of faults on a request on its way to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestEffects {
    /// Delay before it reaches the system, or ends.
    pub wait_ns: u64,
    /// Delay of its answer after the system's.
    pub later_ns: u64,
    /// Its outcome if it never reaches the system.
    pub end: Option<Outcome>,
    /// Number of the fault by which data that were not flushed are lost.
    pub drops_unflushed: Option<u32>,
}

/// Consequences of a change for the timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// Whether a hang is over, so that held requests are released.
    pub releases: bool,
    /// Whether the device is gone, so that requests in flight are lost.
    pub drops: bool,
    /// Whether power is back.
    pub restores_power: bool,
    /// Power is cut: the fault's number, its parameters, and its random numbers.
    pub cuts_power: Option<(u32, PowerCut, Random)>,
}

/// Selection of faults to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultsToEnd {
    /// All hangs.
    Hangs,
    /// All faults.
    All,
    /// The fault of this number.
    One(u32),
}

/// The faults of a session, both planned and active.
pub(crate) struct Injector {
    pub(super) subject: Subject,
    seed: u64,
    /// Source of a seed for each fault.
    pub(super) seeds: Random,
    planned: VecDeque<Planned>,
    active: Vec<Active>,
    pub(super) waiting: Vec<Waiting>,
    /// Requests that each fault selects before it takes effect.
    pub(super) choices: HashMap<u32, Choice>,
    /// Faults whose triggering request was answered: when, and which.
    pub(super) due: VecDeque<(u64, u32)>,
    /// Patterns to find in contents, by the bits of a sight.
    pub(super) patterns: Vec<Box<[u8]>>,
    /// Whether some trigger depends on the health of groups.
    pub(super) looks_at_health: bool,
    /// State of the schedule.
    pub(super) state: u32,
    /// Number of changes, if the caller does not number them.
    changes: u64,
    /// Defects of the array, by the number of the fault.
    standing: Vec<(u32, LastingDefect)>,
    pub(super) log: Vec<Injection>,
    /// Injections that each request in flight has met.
    watched: HashMap<u32, Vec<u32>>,
    /// Damages to apply to the contents.
    damages: Vec<Damage>,
    /// Wrong data that the last request returns.
    spoils: Vec<ReadCorruption>,
    /// Commands that met a bad checksum on the link.
    pub resent: u64,
    /// Time of the next change.
    pub next_ns: u64,
}

impl Injector {
    /// Creates an injector without faults.
    pub fn new(model: &Model) -> Injector {
        Injector {
            subject: Subject::of(model),
            seed: 0,
            seeds: Random::new(0, Purpose::Faults),
            planned: VecDeque::new(),
            active: Vec::new(),
            waiting: Vec::new(),
            choices: HashMap::new(),
            due: VecDeque::new(),
            patterns: Vec::new(),
            looks_at_health: false,
            state: 1,
            changes: 0,
            damages: Vec::new(),
            spoils: Vec::new(),
            standing: Vec::new(),
            log: Vec::new(),
            watched: HashMap::new(),
            resent: 0,
            next_ns: u64::MAX,
        }
    }

    /// Plans the faults of a schedule.
    ///
    /// # Errors
    /// A fault that cannot be injected: its number in the schedule, the key and the allowed values.
    pub fn follow(&mut self, schedule: &Schedule, model: &Model) -> Result<(), SimError> {
        if schedule.seed > i64::MAX as u64 {
            return Err(SimError::Fault(format!("seed: {} is too large; up to 2^63 - 1 are allowed", schedule.seed)));
        }
        schedule
            .check(model)
            .map_err(|(index, (key, message))| SimError::Fault(format!("fault[{index}].{key}: {message}")))?;
        let planned = |timed: &Timed| {
            let (at_ns, until_ns) = timed.span_ns().expect("checked before");
            Planned { at_ns, until_ns, timed: timed.clone() }
        };
        self.planned = schedule.faults.iter().map(planned).collect();
        self.planned.make_contiguous().sort_by_key(|planned| planned.at_ns);
        // The component that keeps contents looks for all of them from the start.
        for timed in &schedule.faults {
            self.bit_of_pattern(timed)?;
        }
        (self.seed, self.seeds) = (schedule.seed, Random::new(schedule.seed, Purpose::Faults));
        self.look_ahead();
        Ok(())
    }

    /// Whether requests meet no fault.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.active.is_empty() && self.standing.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn look_ahead(&mut self) {
        let ends = self.active.iter().map(|active| active.until_ns);
        let waits = self.waiting.iter().map(|waiting| waiting.until_ns);
        let starts = self.planned.front().map(|planned| planned.at_ns);
        let due = self.due.front().map(|(at_ns, _)| *at_ns);
        self.next_ns = ends.chain(waits).chain(starts).chain(due).min().unwrap_or(u64::MAX);
    }

    /// Performs the next change that is due at `now_ns`: first ends, then starts, one by one.
    pub fn turn(&mut self, now_ns: u64, system: Option<&mut System>) -> Change {
        let change = if self.active.iter().any(|active| active.until_ns <= now_ns) {
            self.end(now_ns, |active| active.until_ns <= now_ns, system)
        } else if self.stop_waiting(|waiting| waiting.until_ns <= now_ns) > 0 {
            Change::default()
        } else if let Some(&(_, number)) = self.due.front().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.due.pop_front();
            self.begin(now_ns, number, system)
        } else {
            let planned = self.planned.pop_front().expect("something is due");
            self.arm(now_ns, planned.ends(), planned.timed, system).1
        };
        self.look_ahead();
        change
    }

    /// Starts a fault, or lets it wait for its trigger from now on.
    fn arm(
        &mut self,
        now_ns: u64,
        ends: (u64, Option<u64>),
        timed: Timed,
        system: Option<&mut System>,
    ) -> (u32, Change) {
        let (number, seed) = self.enter(now_ns, ends, timed, system.as_deref());
        let until_ns = ends.1.map_or(ends.0, |lasts_ns| now_ns.saturating_add(lasts_ns));
        let change = seed.map_or(Change::default(), |seed| self.strike(now_ns, until_ns, number, seed, system));
        (number, change)
    }

    /// Injects a fault by command, at once or on its trigger. Returns its number.
    ///
    /// # Errors
    /// A fault that cannot be injected: the key and the allowed values.
    pub fn inject(
        &mut self,
        now_ns: u64,
        timed: Timed,
        system: Option<&mut System>,
    ) -> Result<(u32, Change), SimError> {
        let wrong = |(key, message): (&'static str, String)| SimError::Fault(format!("fault.{key}: {message}"));
        if let Some(StrikeTime::Time(_)) = timed.trigger.at {
            return Err(wrong((
                "at",
                "an injected fault strikes immediately; a request such as { flush = 7 } is allowed".to_owned(),
            )));
        }
        let devices = named_devices(&devices_of(system.as_deref()));
        let effect = effect_of(&timed.fault, &self.subject, &devices).map_err(wrong)?;
        timed.trigger.plan(effect.is_event(), self.subject.extent(), Some(0)).map_err(wrong)?;
        self.bit_of_pattern(&timed)?;
        let from = DurationNs(now_ns as i64);
        let at = timed.trigger.at.or_else(|| timed.trigger.is_timed().then_some(StrikeTime::Time(from)));
        let mut timed = timed;
        timed.trigger.at = at;
        timed.from = (!matches!(at, Some(StrikeTime::Time(_)))).then_some(from);
        let (_, until_ns) = timed.span_ns().map_err(wrong)?;
        let ends = Planned { at_ns: now_ns, until_ns, timed: timed.clone() }.ends();
        let (number, change) = self.arm(now_ns, ends, timed, system);
        self.look_ahead();
        match &self.log[number as usize].refused {
            Some(refused) => Err(SimError::Fault(refused.clone())),
            None => Ok((number, change)),
        }
    }

    /// Returns the log entry of a fault that has not taken effect.
    pub(super) fn entry(&self, number: u32, at_ns: u64, until_ns: u64, timed: Timed) -> Injection {
        let is_timed = timed.trigger.is_timed();
        Injection {
            number,
            at_ns,
            until_ns: (until_ns != u64::MAX).then_some(until_ns),
            fault: timed.fault.clone(),
            stated: (!is_timed).then_some(timed),
            strikes: 0,
            refused: None,
            met: 0,
            failed: 0,
            first: None,
            last: None,
            harms: Vec::new(),
            harmed: 0,
            counters: None,
            loss: None,
        }
    }

    /// Whether the fault of this number is active.
    pub(super) fn is_active(&self, number: u32) -> bool {
        self.active.iter().any(|active| active.number == number)
    }

    pub(super) fn strike(
        &mut self,
        now_ns: u64,
        until_ns: u64,
        number: u32,
        seed: u64,
        mut system: Option<&mut System>,
    ) -> Change {
        let devices = devices_of(system.as_deref());
        let fault = self.log[number as usize].fault.clone();
        let effect = effect_of(&fault, &self.subject, &named_devices(&devices));
        let (at_ns, until) = (now_ns, until_ns);
        let mut change = Change::default();
        let done = match (effect, &mut system) {
            (Err((key, message)), _) => Err(format!("{key}: {message}")),
            (Ok(Effect::Incident(what)), Some(system)) => {
                // A failed member no longer serves a place.
                let place = if let IncidentKind::MemberFails { member } = what { system.slot_of(member) } else { None };
                let struck = system.strike(now_ns, what).map_err(|error| error.to_string());
                struck.map(|()| self.record_defect(number, what, place))
            }
            (Ok(Effect::PowerOn), system) => {
                let is_cut = |active: &Active| matches!(active.effect, Effect::PowerCut(_));
                change = self.end(now_ns, is_cut, system.as_deref_mut());
                if change.restores_power { Ok(()) } else { Err("power is on".to_owned()) }
            }
            (Ok(Effect::Rot { member, spans, corruptor }), system) => {
                let refused = member.zip(system.as_deref()).and_then(|(member, system)| system.holds_nothing(member));
                let capacity_bytes = member.map_or(self.subject.capacity_bytes(), |member| {
                    devices.get(member as usize).map_or(0, |device| device.capacity_bytes)
                });
                let whole = Span { start_bytes: 0, length_bytes: capacity_bytes };
                let spans = if spans.is_empty() { vec![whole] } else { spans };
                if refused.is_none() {
                    self.rot(now_ns, number, member, &spans, &corruptor, Random::new(seed, Purpose::Faults));
                }
                refused.map_or(Ok(()), Err)
            }
            (Ok(Effect::SetState(to)), _) => {
                self.state = to;
                Ok(())
            }
            (Ok(Effect::PowerCut(_)), _) if self.is_powerless() => Err("power is off already".to_owned()),
            (Ok(effect), system) => {
                change.drops = matches!(effect, Effect::DropOut);
                let choice = self.choices.get(&number).cloned().unwrap_or_else(Choice::all);
                if let Effect::PowerCut(cut) = effect {
                    change.cuts_power = Some((number, cut, Random::new(seed, Purpose::Faults)));
                }
                let member = match effect {
                    Effect::Media { member, .. } => Some(member),
                    Effect::Spike { .. }
                    | Effect::Hang(_)
                    | Effect::DropOut
                    | Effect::Incident(_)
                    | Effect::LinkErrors { .. }
                    | Effect::LinkResets { .. }
                    | Effect::LyingCache
                    | Effect::PowerCut(_)
                    | Effect::PowerOn
                    | Effect::Damaging(_)
                    | Effect::Rot { .. }
                    | Effect::SetState(_) => None,
                };
                let before = member.map_or(Counters::default(), |member| counted(&devices, member));
                let random = Random::new(seed, Purpose::Faults);
                let chosen = Vec::new();
                self.active.push(Active { number, at_ns, until_ns: until, effect, random, choice, chosen, before });
                let set = member.zip(system.as_deref_mut()).map(|(member, system)| self.set_media(member, system));
                set.unwrap_or(Ok(()))
            }
        };
        let injection = &mut self.log[number as usize];
        match done {
            Ok(()) => {
                if injection.stated.is_some() {
                    injection.until_ns = (until_ns != u64::MAX).then_some(until_ns);
                }
                injection.strikes += 1;
            }
            Err(refused) => {
                injection.refused = Some(refused);
                self.active.retain(|active| active.number != number);
            }
        }
        change
    }

    /// Corrupts stored data in one of these ranges, of the system or of a member.
    fn rot(
        &mut self,
        at_ns: u64,
        number: u32,
        member: Option<u32>,
        spans: &[Span],
        corruptor: &Corruptor,
        mut random: Random,
    ) {
        let mut at_bytes = random.below(spans.iter().map(|span| span.length_bytes).sum());
        let chosen = spans.iter().find(|span| {
            let is_here = at_bytes < span.length_bytes;
            at_bytes = at_bytes.saturating_sub(span.length_bytes);
            is_here
        });
        let drawn = corruptor.draw(*chosen.expect("it lies in one of them"), &mut random);
        for (how, what) in drawn {
            self.damages.push(match member {
                None => Damage::Altered { change: None, how },
                Some(member) => Damage::OfMember { member, what: MemberDamage::Altered(how) },
            });
            self.harm(number, DamageProof { at_ns, request: None, what });
        }
    }

    fn harm(&mut self, number: u32, harm: DamageProof) {
        let injection = &mut self.log[number as usize];
        injection.harmed += 1;
        if injection.harms.len() < HARMS_LISTED_MAX {
            injection.harms.push(harm);
        }
    }

    /// Records the lasting defect that an incident causes or removes.
    fn record_defect(&mut self, number: u32, what: IncidentKind, place: Option<(u32, u32)>) {
        match what {
            IncidentKind::MemberFails { .. } => {
                self.standing.extend(place.map(|place| (number, LastingDefect::Member(place))));
            }
            IncidentKind::BatteryFails => self.standing.push((number, LastingDefect::Battery)),
            IncidentKind::BatteryReturns => self.put_right(|standing| standing == LastingDefect::Battery),
            // It is still to be filled: until then its place does not hold all its data.
            IncidentKind::MemberReturns { .. } | IncidentKind::SpareAdded { .. } => {}
            IncidentKind::Scrub { .. } => {}
        }
    }

    fn put_right(&mut self, is_right: impl Fn(LastingDefect) -> bool) {
        self.standing.retain(|(_, standing)| !is_right(*standing));
    }

    /// Ends faults by command; returns how many, and the consequences.
    pub fn end_some(&mut self, now_ns: u64, which: FaultsToEnd, system: Option<&mut System>) -> (usize, Change) {
        let before = self.active.len();
        let ends = |active: &Active| match which {
            FaultsToEnd::Hangs => matches!(active.effect, Effect::Hang(_)),
            FaultsToEnd::All => true,
            FaultsToEnd::One(number) => active.number == number,
        };
        for active in self.active.iter().filter(|active| ends(active)) {
            self.log[active.number as usize].ends_by_order(now_ns);
        }
        let change = self.end(now_ns, ends, system);
        let is_meant = |waiting: &Waiting| match which {
            FaultsToEnd::Hangs => false,
            FaultsToEnd::All => true,
            FaultsToEnd::One(number) => waiting.number == number,
        };
        let waited: Vec<u32> = self.waiting.iter().filter(|waiting| is_meant(waiting)).map(|one| one.number).collect();
        for &number in &waited {
            self.log[number as usize].ends_by_order(now_ns);
        }
        let stopped = self.stop_waiting(|waiting| waited.contains(&waiting.number));
        self.look_ahead();
        (before - self.active.len() + stopped, change)
    }

    fn end(&mut self, now_ns: u64, ends: impl Fn(&Active) -> bool, mut system: Option<&mut System>) -> Change {
        let mut change = Change::default();
        let devices = devices_of(system.as_deref());
        for over in self.active.extract_if(.., |active| ends(active)).collect::<Vec<_>>() {
            let injection = &mut self.log[over.number as usize];
            injection.until_ns = Some(now_ns);
            change.releases |= matches!(over.effect, Effect::Hang(_));
            change.restores_power |= matches!(over.effect, Effect::PowerCut(_));
            let mut over = over;
            if let Effect::Damaging(damaging) = &mut over.effect {
                damaging.end(&mut self.damages);
            }
            let (Effect::Media { member, .. }, Some(system)) = (over.effect, system.as_deref_mut()) else { continue };
            injection.counters = Some(since(counted(&devices, member), over.before));
            self.set_media(member, system).expect("what was allowed still is");
        }
        change
    }

    /// Sets all media defects of a device in the system.
    fn set_media(&mut self, wanted: Option<u32>, system: &mut System) -> Result<(), String> {
        let (mut all, mut seed) = (Vec::<MediaDefect>::new(), 0);
        for active in &mut self.active {
            let Effect::Media { member, media_defects, .. } = &active.effect else { continue };
            if *member == wanted {
                all.extend(media_defects);
                seed = active.random.bits();
            }
        }
        system.set_media_defects(wanted, all, seed).map_err(|error| error.to_string())
    }

    /// Moves the damages that are still to be applied to the contents.
    pub fn take_damages(&mut self, into: &mut Vec<Damage>) {
        into.append(&mut self.damages);
    }

    /// Returns the wrong data that the last request returns.
    pub fn take_spoils(&mut self) -> Vec<ReadCorruption> {
        std::mem::take(&mut self.spoils)
    }

    /// Returns the patterns to find in contents.
    pub fn patterns(&self) -> &[Box<[u8]>] {
        &self.patterns
    }

    /// Whether the device is absent.
    pub fn is_away(&self) -> bool {
        self.active.iter().any(|active| matches!(active.effect, Effect::DropOut | Effect::PowerCut(_)))
    }

    fn is_powerless(&self) -> bool {
        self.active.iter().any(|active| matches!(active.effect, Effect::PowerCut(_)))
    }

    /// Records what the power cut of this number lost.
    pub fn note_loss(&mut self, number: u32, loss: PowerLoss) {
        self.log[number as usize].loss = Some(loss);
    }

    /// Returns a recorded loss, to add what is found later.
    pub fn loss_mut(&mut self, number: u32) -> Option<&mut PowerLoss> {
        self.log.get_mut(number as usize)?.loss.as_mut()
    }

    /// Returns a recorded loss.
    pub fn loss_of(&self, number: u32) -> Option<&PowerLoss> {
        self.log.get(number as usize)?.loss.as_ref()
    }

    /// Returns the log of what was injected so far.
    pub fn log(&self, system: Option<&System>) -> Log {
        let devices = devices_of(system);
        let mut injections = self.log.clone();
        for active in &self.active {
            if let Effect::Media { member, .. } = active.effect {
                let counters = since(counted(&devices, member), active.before);
                injections[active.number as usize].counters = Some(counters);
            }
        }
        Log { seed: self.seed, injections }
    }
}

impl std::fmt::Debug for Injector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").field("log", &self.log).finish_non_exhaustive()
    }
}

/// Returns the devices of a system and their health.
pub(crate) fn devices_of(system: Option<&System>) -> Vec<DeviceHealth> {
    let mut devices = Vec::new();
    if let Some(system) = system {
        system.device_health(&mut devices);
    }
    devices
}

fn counted(devices: &[DeviceHealth], member: Option<u32>) -> Counters {
    let device = &devices[member.unwrap_or(0) as usize];
    Counters { retried_passes: device.retried_passes, uncorrectable_errors: device.uncorrectable_errors }
}

fn since(now: Counters, before: Counters) -> Counters {
    Counters {
        retried_passes: now.retried_passes - before.retried_passes,
        uncorrectable_errors: now.uncorrectable_errors - before.uncorrectable_errors,
    }
}
