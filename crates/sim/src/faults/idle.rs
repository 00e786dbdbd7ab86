//! Detects faults of a schedule that can have no effect in a session.

use headstack_workload::Span;

use super::effect::{Effect, NamedDevice, Subject, effect_of};
use super::filter::Complaint;
use super::{Fault, Schedule, StrikeTime};
use crate::description::model::Model;

impl Schedule {
    /// Returns the indexes of faults that can have no effect, with the key at fault and the reason: those that no
    /// request of `parts`, the exported parts of a model, can meet; lying caches where there is no cache
    /// (`may_lose_data`); states that nothing sets or checks; and returns of what no fault takes away.
    ///
    /// # Panics
    /// A schedule that [`check`](Schedule::check) rejects.
    pub fn without_effect(&self, model: &Model, parts: &[Span], may_lose_data: bool) -> Vec<(usize, Complaint)> {
        let (subject, devices) = (Subject::of(model), NamedDevice::devices_of(model));
        let (capacity_bytes, block_bytes, _) = subject.extent();
        let is_met = |span: &Span| parts.iter().any(|part| overlap(part, span));
        let mut idle = Vec::new();
        for (index, timed) in self.faults.iter().enumerate() {
            let mut note = |key: &'static str, why: String| idle.push((index, (key, why)));
            let spans = effect_of(&timed.fault, &subject, &devices).map_or(Vec::new(), spans_of);
            if !spans.is_empty() && !spans.iter().any(is_met) {
                note("ranges", format!("is outside the exported range ({})", format_spans(parts)));
            }
            if let Some(touching) = &timed.trigger.touching
                && Span::parse(touching, capacity_bytes, block_bytes).is_ok_and(|span| !is_met(&span))
            {
                note("touching", format!("is outside the exported range ({})", format_spans(parts)));
            }
            if let Some(state) = timed.trigger.state.filter(|state| *state != FIRST_STATE)
                && !self.faults.iter().any(|other| matches!(other.fault, Fault::SetState { to } if to == state))
            {
                note("state", format!("no fault sets the state {state}"));
            }
            if let Some(why) = self.idle_by_kind(index, may_lose_data) {
                note("what", why);
            }
        }
        idle
    }

    /// Returns why a fault, by its kind, has no effect among the others.
    fn idle_by_kind(&self, index: usize, may_lose_data: bool) -> Option<String> {
        let taken_away = |matches: &dyn Fn(&Fault) -> bool| {
            let begins_ns = |index: usize| match self.faults[index].trigger.at {
                Some(StrikeTime::Time(at)) => Some(at.0),
                Some(StrikeTime::Request(_)) | None => None,
            };
            let is_before = |other: usize| match (begins_ns(other), begins_ns(index)) {
                (Some(other_ns), Some(own_ns)) => other_ns <= own_ns,
                _ => true,
            };
            (0..self.faults.len()).any(|other| matches(&self.faults[other].fault) && is_before(other))
        };
        match &self.faults[index].fault {
            Fault::LyingCache if !may_lose_data => Some("there is no volatile cache to flush".to_owned()),
            Fault::SetState { to } => {
                let is_looked_at = |other: &super::Timed| other.trigger.state.is_some();
                (!self.faults.iter().any(is_looked_at)).then(|| format!("no fault depends on the state {to}"))
            }
            Fault::PowerOn if !taken_away(&|fault| matches!(fault, Fault::PowerCut { .. })) => {
                Some("no earlier fault cuts the power".to_owned())
            }
            Fault::BatteryReturns if !taken_away(&|fault| matches!(fault, Fault::BatteryFails)) => {
                Some("the battery has not failed before".to_owned())
            }
            Fault::MemberReturns { member, .. } => {
                let fails = |fault: &Fault| matches!(fault, Fault::MemberFails { member: other } if other == member);
                (!taken_away(&fails)).then(|| format!("{member} has not failed before"))
            }
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::Corrupt { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::Errno { .. } => None,
        }
    }
}

/// Initial state of a schedule.
const FIRST_STATE: u32 = 1;

/// Returns the spans of an effect in the system's address space; none if it is everywhere, or on a member.
fn spans_of(effect: Effect) -> Vec<Span> {
    match effect {
        Effect::Media { filter, .. } => filter.map_or(Vec::new(), |filter| filter.spans),
        Effect::Spike { filter, .. } | Effect::Hang(filter) => filter.spans,
        Effect::Damaging(damaging) => damaging.filter.spans,
        Effect::Rot { member: None, spans, .. } => spans,
        Effect::Rot { member: Some(_), .. }
        | Effect::DropOut
        | Effect::Incident(_)
        | Effect::LinkErrors { .. }
        | Effect::LinkResets { .. }
        | Effect::LyingCache
        | Effect::PowerCut(_)
        | Effect::PowerOn
        | Effect::SetState(_) => Vec::new(),
    }
}

fn overlap(one: &Span, other: &Span) -> bool {
    one.start_bytes < other.start_bytes + other.length_bytes && other.start_bytes < one.start_bytes + one.length_bytes
}

fn format_spans(parts: &[Span]) -> String {
    let ranges = parts.iter().map(|part| format!("{}..{} B", part.start_bytes, part.start_bytes + part.length_bytes));
    ranges.collect::<Vec<_>>().join(", ")
}
