//! Triggered faults of an [`Injector`], which wait for a request before they take effect.

use headstack_workload::{Kind, Random, Request};

use super::Timed;
use super::effect::{effect_of, named_devices};
use super::injector::{Change, Injector, devices_of};
use super::trigger::{PATTERNS_MAX, RequestView, bit_of};
use super::waiting::Waiting;
use crate::error::SimError;
use crate::system::System;

impl Injector {
    /// Returns the bit of the pattern that a fault looks for in contents; faults with the same pattern share it.
    ///
    /// # Errors
    /// Too many patterns.
    pub(super) fn bit_of_pattern(&mut self, timed: &Timed) -> Result<Option<u32>, SimError> {
        let Some(pattern) = &timed.trigger.containing else { return Ok(None) };
        let bytes = pattern.bytes();
        let pattern_index = self.patterns.iter().position(|known| **known == *bytes).unwrap_or_else(|| {
            self.patterns.push(bytes.into());
            self.patterns.len() - 1
        });
        if pattern_index >= PATTERNS_MAX {
            self.patterns.pop();
            return Err(SimError::Fault(format!("containing: up to {PATTERNS_MAX} patterns are allowed")));
        }
        Ok(Some(pattern_index as u32))
    }

    /// Returns what triggers see of a request.
    pub fn sight(&self, request: &Request, holds: u64, system: Option<&System>) -> RequestView {
        let asks = self.looks_at_health;
        let states = system.filter(|_| asks).map(System::group_states).unwrap_or_default();
        let health = states.into_iter().fold(0, |bits, state| bits | bit_of(state));
        RequestView { kind: request.kind, span: request.span(), holds, health, state: self.state }
    }

    /// Returns the faults that an arriving request triggers, before it meets any fault.
    pub fn cued(&mut self, sight: &RequestView) -> Vec<u32> {
        let comes = self.waiting.iter_mut().filter(|waiting| !waiting.cue.when_answered);
        comes.filter_map(|waiting| waiting.cue.sees(sight).then_some(waiting.number)).collect()
    }

    /// Records that a request was answered at `at_ns`: faults that this triggers take effect after all other events of
    /// that time.
    pub(super) fn counts_answer(&mut self, at_ns: u64, sight: &RequestView) {
        let answered = self.waiting.iter_mut().filter(|waiting| waiting.cue.when_answered);
        let cued: Vec<u32> = answered.filter_map(|waiting| waiting.cue.sees(sight).then_some(waiting.number)).collect();
        if !cued.is_empty() {
            self.due.extend(cued.into_iter().map(|number| (at_ns, number)));
            self.look_ahead();
        }
    }

    /// Starts a fault that waited, unless it is active already.
    pub fn begin(&mut self, now_ns: u64, number: u32, system: Option<&mut System>) -> Change {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.number == number) else {
            return Change::default();
        };
        if self.is_active(number) {
            return Change::default();
        }
        let waiting = &mut self.waiting[at];
        let until_ns = waiting.lasts_ns.map_or(waiting.until_ns, |lasts_ns| now_ns.saturating_add(lasts_ns));
        let seed = waiting.seeds.bits();
        if !waiting.cue.repeats {
            self.waiting.remove(at);
        }
        let change = self.strike(now_ns, until_ns, number, seed, system);
        self.look_ahead();
        change
    }

    /// Stops faults that have waited long enough; returns how many.
    pub(super) fn stop_waiting(&mut self, over: impl Fn(&Waiting) -> bool) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !over(waiting));
        before - self.waiting.len()
    }

    /// Adds a fault from `now_ns` on; returns its number, and a seed if it waits for nothing and takes effect at once.
    pub(super) fn enter(
        &mut self,
        now_ns: u64,
        (until_ns, lasts_ns): (u64, Option<u64>),
        timed: Timed,
        system: Option<&System>,
    ) -> (u32, Option<u64>) {
        let number = self.log.len() as u32;
        let seed = self.seeds.bits();
        let effect = effect_of(&timed.fault, &self.subject, &named_devices(&devices_of(system)));
        // An impossible fault is reported when it takes effect.
        let is_event = effect.is_ok_and(|effect| effect.is_event());
        let pattern = self.bit_of_pattern(&timed).unwrap_or_default();
        self.looks_at_health |= timed.trigger.health.is_some();
        let planned = timed.trigger.plan(is_event, self.subject.extent(), pattern);
        self.log.push(self.entry(number, now_ns, until_ns, timed));
        match planned {
            Ok((Some(cue), choice)) => {
                let seeds = Random::new(seed, headstack_workload::Purpose::Faults);
                self.waiting.push(Waiting::new(number, cue, (until_ns, lasts_ns), seeds));
                self.choices.insert(number, choice);
                (number, None)
            }
            Ok((None, choice)) => {
                self.choices.insert(number, choice);
                (number, Some(seed))
            }
            Err((key, message)) => {
                self.log[number as usize].refused = Some(format!("{key}: {message}"));
                (number, None)
            }
        }
    }

    /// Whether a request changes contents.
    pub(super) fn is_change(request: &Request) -> bool {
        matches!(request.kind, Kind::Write | Kind::Trim)
    }
}
