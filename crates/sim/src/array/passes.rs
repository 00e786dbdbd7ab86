//! Passes over all stripes of a group, as in Linux md: a *check* reads every member and compares, a *repair* rewrites
//! redundant data where they differ, and a *resync* does the same after a power loss, for stripes that may be half
//! written.
//!
//! A write interrupted by a power loss may be on some members and not on others, so that parity does not match the data
//! (the write hole). A group with a bitmap is resynced where bits are set; one without it as a whole, if it was written
//! to in the last 200 ms, after which md marks an array clean (`safe_mode_delay`). A cache that survives the power loss
//! writes its data again, and nothing is resynced. Only a component that keeps contents knows what differs; here a pass
//! only takes its time: it reads every member, a step at a time, at the rate and with the restraint of a rebuild.

use std::ops::Range;

use headstack_workload::Kind;

use super::levels::{Extent, Layout, Parity, Placing};
use super::pass::{Pass, PassKind, PassState};
use super::state::{Array, Event};
use super::under_way::{Owner, request};
use crate::description::array::ArrayDescription;

/// Time without writes after which md marks an array clean (Documentation/admin-guide/md.rst, `safe_mode_delay`).
const SAFE_MODE_NS: u64 = 200_000_000;

impl Array {
    /// Returns why a group cannot be scrubbed, if it cannot.
    pub(super) fn no_scrub(&self, group: u32) -> Option<String> {
        let name = match self.description.groups.get(group as usize) {
            Some(group) => &group.name,
            None => return Some(format!("group {group}; 0 to {} are allowed", self.groups.len() - 1)),
        };
        if !is_scrubbed(&self.description, &self.groups[group as usize].layout, group) {
            let allowed = "mirrors and rows with parity, without a pool, are allowed";
            return Some(format!("group {name} has no redundancy to scrub; {allowed}"));
        }
        if !self.groups[group as usize].is_whole() {
            return Some(format!("group {name} is degraded; a healthy group is allowed"));
        }
        let is_running = self.passes[group as usize].as_ref().is_some_and(Pass::is_running);
        is_running.then(|| format!("group {name} already runs a pass; one at a time is allowed"))
    }

    /// Begins a pass over a whole group.
    pub(super) fn scrub(&mut self, now_ns: u64, group: u32, repairs: bool) {
        let kind = if repairs { PassKind::Repair } else { PassKind::Check };
        if self.no_scrub(group).is_none() {
            let all = 0..self.groups[group as usize].slot_bytes;
            self.begin_pass(now_ns, group, kind, vec![all]);
        }
    }

    fn begin_pass(&mut self, now_ns: u64, group: u32, kind: PassKind, runs: Vec<Range<u64>>) {
        self.pass_number += 1;
        self.standing += 1;
        let (number, at_bytes) = (self.pass_number, runs[0].start);
        self.passes[group as usize] = Some(Pass {
            kind,
            number,
            runs,
            at_bytes,
            state: PassState::Running,
            to_bytes: at_bytes,
            pending: 0,
            begun_ns: now_ns,
            allowed_ns: now_ns,
        });
        self.continue_pass(now_ns, group);
    }

    /// Begins the next step of a pass, if it is due.
    pub(super) fn continue_pass(&mut self, now_ns: u64, group: u32) {
        let busy = self.host_requests > 0;
        let state = &self.groups[group as usize];
        let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.is_running() && pass.pending == 0)
        else {
            return;
        };
        if now_ns < pass.allowed_ns && (busy || state.rebuild.rate_limit_bytes_per_s.is_some()) {
            let allowed_ns = pass.allowed_ns;
            return self.at(allowed_ns, Event::Pass(group));
        }
        let run = pass.runs.iter().find(|run| pass.at_bytes < run.end).expect("a pass that runs has something to see");
        let from_bytes = pass.at_bytes.max(run.start);
        pass.to_bytes = (from_bytes + state.rebuild.step_bytes).min(run.end);
        if let Some(rate) = state.rebuild.rate_limit_bytes_per_s {
            let pause_ns = ((pass.to_bytes - from_bytes) as f64 / rate * 1e9) as u64;
            pass.allowed_ns = pass.allowed_ns.max(now_ns.saturating_sub(pause_ns)) + pause_ns;
        }
        // One more than there are, so that the step ends only after all have begun.
        (pass.pending, pass.begun_ns) = (1, now_ns);
        let (number, length_bytes) = (pass.number, pass.to_bytes - from_bytes);
        for slot in 0..self.groups[group as usize].layout.slots() {
            let Some(member) = self.groups[group as usize].live_member(slot) else { continue };
            self.expect_pass_part(group, number);
            let extent = Extent { slot, at_bytes: from_bytes, length_bytes };
            self.issue(now_ns, member, Owner::Pass(group, number), request(Kind::Read, &extent));
        }
        self.pass_part_done(now_ns, group, number);
    }

    /// Counts one more command that a step of a pass waits for.
    pub(super) fn expect_pass_part(&mut self, group: u32, number: u32) {
        if let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.number == number) {
            pass.pending += 1;
        }
    }

    /// Counts one less command that a step of a pass waits for.
    pub(super) fn pass_part_done(&mut self, now_ns: u64, group: u32, number: u32) {
        let busy = self.host_requests > 0;
        let yield_to_host = self.groups[group as usize].rebuild.yield_to_host;
        let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.number == number) else { return };
        pass.pending -= 1;
        if pass.pending > 0 || !pass.is_running() {
            return;
        }
        pass.at_bytes = pass.to_bytes;
        if busy {
            let yields_ns = ((now_ns - pass.begun_ns) as f64 * yield_to_host) as u64;
            pass.allowed_ns = pass.allowed_ns.max(now_ns + yields_ns);
        }
        if pass.rest().is_empty() {
            pass.state = PassState::Done;
        }
        self.standing += 1;
        // The next step is an event of its own: a pass whose members answer at once does not recurse.
        self.at(now_ns, Event::Pass(group));
    }

    /// Stops the pass of a group after a member failed: the redundancy to compare is gone.
    pub(super) fn stop_pass(&mut self, group: u32) {
        if let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.is_running()) {
            pass.state = PassState::Stopped;
        }
    }

    /// Handles a read of a pass that a member could not serve: rewrites the bytes from the others, as a scrub does.
    pub(super) fn pass_read_failed(&mut self, now_ns: u64, member: u32, group: u32, (from, to): (u64, u64)) {
        let state = &self.groups[group as usize];
        let bad = Extent { slot: state.slot_at(member, from), at_bytes: from, length_bytes: to - from };
        if state.recovery(&bad).is_some() {
            self.issue(now_ns, member, Owner::Background, request(Kind::Write, &bad));
        }
    }

    /// Whether a write interrupted by a power loss can be on some members and not on others.
    pub(crate) fn leaves_halves(&self) -> bool {
        !self.cache.as_ref().is_some_and(|cache| cache.outlives_power())
    }

    /// Records at a power loss what may be half written, to be resynced when power is back.
    pub(crate) fn power_fails(&mut self, now_ns: u64) {
        for group in 0..self.groups.len() {
            let earlier = self.passes[group].take().filter(|pass| pass.kind == PassKind::Resync);
            let mut unclean = earlier.map_or_else(Vec::new, |pass| pass.rest());
            unclean.extend(self.half_written(now_ns, group));
            unclean.sort_by_key(|run| run.start);
            self.unclean[group] = joined(unclean);
        }
    }

    /// Returns the bytes of each slot of a group that may be half written.
    fn half_written(&self, now_ns: u64, group: usize) -> Vec<Range<u64>> {
        let state = &self.groups[group];
        if !self.leaves_halves() || !is_scrubbed(&self.description, &state.layout, group as u32) {
            return Vec::new();
        }
        if let Some(intent) = &self.intents[group] {
            let chunk_bytes = intent.table.chunk_bytes;
            let run = |&chunk: &u64| chunk * chunk_bytes..((chunk + 1) * chunk_bytes).min(state.slot_bytes);
            return intent.chunks.keys().map(run).collect();
        }
        let is_written = |number: u32| {
            let command = self.commands.get(number);
            let is_write = command.request.kind == Kind::Write;
            is_write && state.serves(command.member) && !matches!(command.owner, Owner::Rebuild(..))
        };
        let was_written = state.written_ns.is_some_and(|at_ns| now_ns < at_ns + SAFE_MODE_NS);
        let is_unclean = was_written || self.commands.numbers().any(is_written);
        Vec::from_iter(is_unclean.then_some(0..state.slot_bytes))
    }

    /// Resyncs after power-on what was left half written, where the group is whole.
    pub(super) fn resync(&mut self, now_ns: u64) {
        for group in 0..self.groups.len() as u32 {
            let unclean = std::mem::take(&mut self.unclean[group as usize]);
            if !unclean.is_empty() && self.groups[group as usize].is_whole() {
                self.begin_pass(now_ns, group, PassKind::Resync, unclean);
            }
        }
    }
}

/// Whether a scrub of a group compares anything.
fn is_scrubbed(description: &ArrayDescription, layout: &Layout, group: u32) -> bool {
    let is_compared = match layout {
        Layout::Copies(_) => layout.copies() > 1,
        Layout::Parity(Parity::Rows(_)) => true,
        // These verify what they read by its checksum.
        Layout::Parity(Parity::Raidz(_) | Parity::Draid(_)) => false,
    };
    is_compared && description.groups[group as usize].pool.is_none()
}

/// Returns ascending runs with adjacent ones merged.
fn joined(runs: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => joined.push(run),
        }
    }
    joined
}
