//! Finds faults of a schedule that cannot have an effect in a session.

use headstack_workload::Span;

use super::effect::{Effect, Known, Subject, effect_of};
use super::filter::Complaint;
use super::{At, Fault, Schedule};
use crate::description::model::Model;

impl Schedule {
    /// Faults without a possible effect, by index, with the key and the reason: those that no request of `parts`, the
    /// exported ranges of a model, can meet; lying caches without a cache (`may_lose_data`); states that are never set
    /// or used; and returns of something that no fault removes.
    ///
    /// # Panics
    /// For a schedule that [`check`](Schedule::check) refuses.
    pub fn without_effect(&self, model: &Model, parts: &[Span], may_lose_data: bool) -> Vec<(usize, Complaint)> {
        let (subject, devices) = (Subject::of(model), Known::devices_of(model));
        let (capacity_bytes, block_bytes, _) = subject.extent();
        let is_met = |span: &Span| parts.iter().any(|part| overlap(part, span));
        let mut idle = Vec::new();
        for (index, timed) in self.faults.iter().enumerate() {
            let mut note = |key: &'static str, why: String| idle.push((index, (key, why)));
            let spans = effect_of(&timed.fault, &subject, &devices).map_or(Vec::new(), spans_of);
            if !spans.is_empty() && !spans.iter().any(is_met) {
                note("ranges", format!("lies outside of what is exported ({})", format_spans(parts)));
            }
            if let Some(touching) = &timed.trigger.touching
                && Span::parse(touching, capacity_bytes, block_bytes).is_ok_and(|span| !is_met(&span))
            {
                note("touching", format!("lies outside of what is exported ({})", format_spans(parts)));
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

    /// Why a fault of its kind has no effect together with the others.
    fn idle_by_kind(&self, index: usize, may_lose_data: bool) -> Option<String> {
        let taken_away = |matches: &dyn Fn(&Fault) -> bool| {
            let begins_ns = |index: usize| match self.faults[index].trigger.at {
                Some(At::Time(at)) => Some(at.0),
                Some(At::Request(_)) | None => None,
            };
            let is_before = |other: usize| match (begins_ns(other), begins_ns(index)) {
                (Some(other_ns), Some(own_ns)) => other_ns <= own_ns,
                _ => true,
            };
            (0..self.faults.len()).any(|other| matches(&self.faults[other].fault) && is_before(other))
        };
        match &self.faults[index].fault {
            Fault::LyingCache if !may_lose_data => {
                Some("nothing here is in a volatile cache that a flush would empty".to_owned())
            }
            Fault::SetState { to } => {
                let is_looked_at = |other: &super::Timed| other.trigger.state.is_some();
                (!self.faults.iter().any(is_looked_at)).then(|| format!("no fault looks whether the state is {to}"))
            }
            Fault::PowerOn if !taken_away(&|fault| matches!(fault, Fault::PowerCut { .. })) => {
                Some("no fault before it cuts the power".to_owned())
            }
            Fault::BatteryReturns if !taken_away(&|fault| matches!(fault, Fault::BatteryFails)) => {
                Some("the battery has not failed before it".to_owned())
            }
            Fault::MemberReturns { member, .. } => {
                let fails = |fault: &Fault| matches!(fault, Fault::MemberFails { member: other } if other == member);
                (!taken_away(&fails)).then(|| format!("{member} has not failed before it"))
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

/// The state in which a schedule begins.
const FIRST_STATE: u32 = 1;

/// Ranges of an effect in the system's address space; empty if it is everywhere, or on a member.
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
    let told = parts.iter().map(|part| format!("{}..{} B", part.start_bytes, part.start_bytes + part.length_bytes));
    told.collect::<Vec<_>>().join(", ")
}
