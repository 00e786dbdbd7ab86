//! Rebuilds: spares that replace missing members, and members that return.

use headstack_workload::Kind;

use super::health::{Rebuilding, Slot, SlotState, Step};
use super::levels::Extent;
use super::ports::Port;
use super::state::{Array, Event};
use super::sync_speed::{PAUSE_NS, SyncSpeed};
use super::under_way::{Owner, request};
use crate::description::array::{AboveMinimum, IncidentKind, Member};
use crate::device::Traffic;
use crate::error::SimError;

impl Array {
    /// Gives a missing slot to a spare, if there is one and no other slot is being filled.
    pub(super) fn take_spare(&mut self, now_ns: u64, group: u32) {
        let state = &mut self.groups[group as usize];
        if state.rebuilding.is_some() || state.gone {
            return;
        }
        let Some(slot) = state.slots.iter().position(|slot| slot.state == SlotState::Missing) else {
            return;
        };
        // Writes go to a member that the layer above fills from the start, and its reads to the others until the end.
        let begun_bytes = if state.rebuild.filled_by.is_array() { 0 } else { state.slot_bytes };
        let filling = SlotState::Filling { done_bytes: 0, begun_bytes };
        if !state.spares.is_empty() {
            state.slots[slot] =
                Slot { member: state.spares.remove(0), spare: None, state: filling, ..state.slots[slot] };
        } else if !state.free_spares.is_empty() {
            let spare = Some(state.free_spares.remove(0));
            state.slots[slot] = Slot { spare, state: filling, ..state.slots[slot] };
        } else {
            return;
        }
        self.standing += 1;
        Self::log_rebuilt(now_ns, state.slots[slot].member, 0, state.slot_bytes);
        state.rebuilding = Some(Rebuilding {
            slot: slot as u32,
            steps: Vec::new(),
            begun_ns: now_ns,
            allowed_ns: now_ns,
            scheduled: false,
            speed: state.rebuild.minimum.map(|minimum| SyncSpeed::new(minimum, now_ns, self.host_arrivals)),
            restored_bytes: 0,
        });
        self.fillings_changed = true;
        self.begin_steps(now_ns, group);
    }

    fn begin_steps(&mut self, now_ns: u64, group: u32) {
        for _ in 0..self.groups[group as usize].rebuild.steps {
            self.continue_rebuild(now_ns, group);
        }
    }

    /// Begins the steps of a rebuild that are due. That of Linux md may have drained before, so that several are.
    pub(super) fn continue_steps(&mut self, now_ns: u64, group: u32) {
        self.continue_rebuild(now_ns, group);
        let steps = self.groups[group as usize].rebuild.steps;
        for _ in 1..steps {
            match &self.groups[group as usize].rebuilding {
                Some(Rebuilding { speed: Some(_), scheduled: false, .. }) => self.continue_rebuild(now_ns, group),
                Some(_) | None => return,
            }
        }
    }

    /// Resumes an interrupted rebuild after a power loss.
    pub(super) fn resume_rebuild(&mut self, now_ns: u64, group: u32) {
        let state = &mut self.groups[group as usize];
        if let Some(rebuilding) = &mut state.rebuilding {
            let slot = &mut state.slots[rebuilding.slot as usize];
            if let SlotState::Filling { done_bytes, .. } = slot.state {
                let begun_bytes = if state.rebuild.filled_by.is_array() { done_bytes } else { state.slot_bytes };
                slot.state = SlotState::Filling { done_bytes, begun_bytes };
            }
            rebuilding.steps.clear();
            (rebuilding.allowed_ns, rebuilding.scheduled, rebuilding.restored_bytes) = (now_ns, false, 0);
            let arrivals = self.host_arrivals;
            rebuilding.speed = state.rebuild.minimum.map(|minimum| SyncSpeed::new(minimum, now_ns, arrivals));
            self.fillings_changed = true;
        }
        self.begin_steps(now_ns, group);
        self.take_spare(now_ns, group);
    }

    /// Begins the next step of a rebuild, if the step is due.
    pub(super) fn continue_rebuild(&mut self, now_ns: u64, group: u32) {
        let busy = self.host_requests > 0;
        let state = &mut self.groups[group as usize];
        let Some(rebuilding) = &mut state.rebuilding else {
            return;
        };
        rebuilding.scheduled = false;
        let slot = rebuilding.slot as usize;
        let SlotState::Filling { done_bytes, begun_bytes } = state.slots[slot].state else {
            return;
        };
        if begun_bytes == state.slot_bytes || rebuilding.steps.len() >= state.rebuild.steps as usize {
            return;
        }
        if now_ns < rebuilding.allowed_ns && (busy || state.rebuild.rate_limit_bytes_per_s.is_some()) {
            rebuilding.scheduled = true;
            let allowed_ns = rebuilding.allowed_ns;
            return self.at(allowed_ns, Event::Rebuild(group));
        }
        let mut step_bytes = state.rebuild.step_bytes;
        if let Some(speed) = &mut rebuilding.speed
            && speed.must_wait(now_ns, self.host_arrivals, self.host_requests)
        {
            match speed.minimum.above {
                AboveMinimum::Drain if !rebuilding.steps.is_empty() => return,
                AboveMinimum::Drain => step_bytes = step_bytes.min(speed.minimum.window_bytes),
                AboveMinimum::Pause => {
                    rebuilding.scheduled = true;
                    return self.at(now_ns + PAUSE_NS, Event::Rebuild(group));
                }
            }
        }
        let row_end = state.layout.distributed().map_or(u64::MAX, |distributed| distributed.row_end(begun_bytes));
        let to_bytes = (begun_bytes + step_bytes).min(row_end).min(state.slot_bytes);
        state.slots[slot].state = SlotState::Filling { done_bytes, begun_bytes: to_bytes };
        if let Some(rate) = state.rebuild.rate_limit_bytes_per_s {
            let pause_ns = ((to_bytes - begun_bytes) as f64 / rate * 1e9) as u64;
            rebuilding.allowed_ns = rebuilding.allowed_ns.max(now_ns.saturating_sub(pause_ns)) + pause_ns;
        }
        let number = state.steps;
        state.steps = state.steps.wrapping_add(1);
        let step = Step { number, from_bytes: begun_bytes, to_bytes, pending: 1, begun_ns: now_ns, done: false };
        rebuilding.steps.push(step);
        let place = Extent { slot: slot as u32, at_bytes: begun_bytes, length_bytes: to_bytes - begun_bytes };
        let mut sources = Vec::new();
        if let Some(held) = state.held_at(&place) {
            state.sources(&held, &mut sources);
        }
        for source in &sources {
            self.rebuild_command(now_ns, group, number, Kind::Read, source);
        }
        self.rebuild_part_done(now_ns, group, number, true);
    }

    fn rebuild_command(&mut self, now_ns: u64, group: u32, number: u32, kind: Kind, extent: &Extent) {
        let state = &mut self.groups[group as usize];
        let member = match kind {
            Kind::Read => state.member_for(extent, Kind::Read),
            Kind::Write | Kind::Flush | Kind::Trim => state.filled_member(extent),
        };
        let Some(member) = member else {
            return;
        };
        if let Some(step) = state.step(number) {
            step.pending += 1;
        }
        self.counters.rebuild_commands += 1;
        self.issue(now_ns, member, Owner::Rebuild(group, number), request(kind, extent));
    }

    /// Counts one completed command of a rebuild step: after the last read the writes begin, and after the last write
    /// the next step may begin.
    pub(super) fn rebuild_part_done(&mut self, now_ns: u64, group: u32, number: u32, reads: bool) {
        let state = &mut self.groups[group as usize];
        let Some(step) = state.step(number) else {
            return;
        };
        step.pending -= 1;
        if step.pending > 0 {
            return;
        }
        let step = *step;
        let slot = state.rebuilding.as_ref().expect("a rebuild is in progress").slot;
        let place = Extent { slot, at_bytes: step.from_bytes, length_bytes: step.to_bytes - step.from_bytes };
        if reads && state.held_at(&place).is_some() && state.filled_member(&place).is_some() {
            return self.rebuild_command(now_ns, group, number, Kind::Write, &place);
        }
        if !reads {
            self.counters.rebuilt_bytes += place.length_bytes;
        }
        self.step_done(now_ns, group, number, step.begun_ns);
    }

    fn step_done(&mut self, now_ns: u64, group: u32, number: u32, begun_ns: u64) {
        let busy = self.host_requests > 0;
        self.standing += 1;
        let state = &mut self.groups[group as usize];
        let step = state.step(number).expect("the step was found above");
        step.done = true;
        let step_bytes = step.to_bytes - step.from_bytes;
        let yields_ns = ((now_ns - begun_ns) as f64 * state.rebuild.yield_to_host) as u64;
        let rebuilding = state.rebuilding.as_mut().expect("a rebuild is in progress");
        if let Some(speed) = &mut rebuilding.speed {
            speed.add(step_bytes);
        } else if busy {
            rebuilding.allowed_ns = rebuilding.allowed_ns.max(now_ns + yields_ns);
        }
        let slot = rebuilding.slot as usize;
        let SlotState::Filling { mut done_bytes, begun_bytes } = state.slots[slot].state else {
            return;
        };
        // Steps end in any order; only a range without gaps counts as rebuilt.
        while let Some(at) = rebuilding.steps.iter().position(|step| step.done && step.from_bytes == done_bytes) {
            done_bytes = rebuilding.steps.remove(at).to_bytes;
        }
        Self::log_rebuilt(now_ns, state.slots[slot].member, done_bytes, state.slot_bytes);
        debug_assert!(
            done_bytes <= begun_bytes && begun_bytes <= state.slot_bytes,
            "bytes are begun before they are done"
        );
        state.slots[slot].state = SlotState::Filling { done_bytes, begun_bytes };
        if done_bytes == state.slot_bytes {
            let took_ns = now_ns - rebuilding.begun_ns;
            state.slots[slot].state = SlotState::Whole;
            state.not_whole -= 1;
            state.rebuilding = None;
            debug_assert!(state.is_counted(), "`not_whole` matches the slots");
            self.rebuilds_ns.push(took_ns);
            return self.take_spare(now_ns, group);
        }
        if !rebuilding.scheduled {
            self.continue_steps(now_ns, group);
        }
    }
}

impl Array {
    /// Applies an incident of the description to the array.
    pub(super) fn incident(&mut self, now_ns: u64, what: IncidentKind) {
        match what {
            IncidentKind::MemberFails { member } => self.member_fails(now_ns, member),
            IncidentKind::MemberReturns { member } => self.member_returns(now_ns, member),
            IncidentKind::SpareAdded { group } => self.add_spare(now_ns, group),
            IncidentKind::Scrub { group, repair } => self.scrub(now_ns, group, repair),
            IncidentKind::BatteryFails => self.set_battery(now_ns, false),
            IncidentKind::BatteryReturns => self.set_battery(now_ns, true),
        }
    }

    /// Applies an incident that is injected from outside.
    ///
    /// # Errors
    /// Returns an error if the incident cannot happen to the array.
    pub(crate) fn strike(&mut self, now_ns: u64, what: IncidentKind) -> Result<(), SimError> {
        let is_missing = |member: u32| match self.missing.get(member as usize) {
            Some(&missing) => Ok(missing),
            None => Err(SimError::Fault(format!(
                "member {member} is out of range; must be 0 to {}",
                self.missing.len() - 1
            ))),
        };
        let trouble = match what {
            IncidentKind::MemberFails { member } if is_missing(member)? => {
                Some(format!("member {member} has already failed; use an active member"))
            }
            IncidentKind::MemberReturns { member } if !is_missing(member)? => {
                Some(format!("member {member} is active; use a failed member"))
            }
            IncidentKind::SpareAdded { group } if group as usize >= self.groups.len() => {
                Some(format!("group {group} is out of range; must be 0 to {}", self.groups.len() - 1))
            }
            IncidentKind::Scrub { group, .. } => self.no_scrub(group),
            IncidentKind::BatteryFails | IncidentKind::BatteryReturns
                if !self.description.controller.cache.as_ref().is_some_and(|cache| cache.battery) =>
            {
                Some("the array has no cache with a battery".to_owned())
            }
            IncidentKind::MemberFails { .. }
            | IncidentKind::MemberReturns { .. }
            | IncidentKind::SpareAdded { .. }
            | IncidentKind::BatteryFails
            | IncidentKind::BatteryReturns => None,
        };
        match trouble {
            Some(trouble) => Err(SimError::Fault(trouble)),
            None => {
                self.incident(now_ns, what);
                Ok(())
            }
        }
    }

    /// Brings back a failed member, which is empty: it fills its old slot, or becomes a spare if another member serves
    /// this slot.
    fn member_returns(&mut self, now_ns: u64, member: u32) {
        let at = member as usize;
        self.missing[at] = false;
        self.members[at].power_cycle(now_ns);
        self.ports[at].reset();
        self.set_member_next(at, self.members[at].next_event_ns());
        for group in 0..self.groups.len() {
            let table = &self.description.groups[group];
            if table.members.contains(&member) || table.spares.contains(&member) {
                self.groups[group].spares.push(member);
                self.take_spare(now_ns, group as u32);
            }
        }
    }

    /// Adds a spare of the same kind and with the same paths as the group's first member. The spare fills a missing
    /// slot or waits for a failure.
    fn add_spare(&mut self, now_ns: u64, group: u32) {
        let model = self.description.groups[group as usize].members[0] as usize;
        let number = self.members.len();
        let Member { device, ref ways, .. } = self.description.members[model];
        let member = Member { name: format!("d{number}"), device, ways: ways.clone() };
        let mut drive = self.members[model].replacement(self.seed.wrapping_add(number as u64));
        let mut variations = self.description.spindles.variations(self.seed);
        drive.vary_spindle(variations.nth(number).expect("the sequence of variations is endless"));
        self.members.push(drive);
        self.member_next_ns.push(u64::MAX);
        self.ports.push(Port::new(&self.description, &member));
        self.description.members.push(member);
        self.description.groups[group as usize].spares.push(number as u32);
        self.missing.push(false);
        self.traffic.push(Traffic::default());
        self.set_member_next(number, self.members[number].next_event_ns());
        self.groups[group as usize].spares.push(number as u32);
        self.take_spare(now_ns, group);
    }
}
