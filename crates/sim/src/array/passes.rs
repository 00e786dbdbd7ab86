//! Passes over all stripes of a group, as in Linux md. A *check* reads every member and compares; a *repair* rewrites
//! redundant data that do not match; a *resync* does the same after a power loss, for stripes that may be only partly
//! written.
//!
//! A write interrupted by a power loss may have reached some members but not others, so that parity does not match the
//! data (the write hole). A group with a bitmap is resynced where bits are set. A group without a bitmap is resynced
//! completely if it was written to in the last 200 ms, the delay after which md marks an array clean
//! (`safe_mode_delay`). A group with a partial parity log or a journal needs no resync: recovery restores the logged
//! stripes, in no time here. A cache that survives the power loss writes its data again, and no resync is needed. A pass
//! here only takes time: it reads every member, one step at a time, with the rate limit and yielding of a rebuild. Only
//! a component that keeps contents knows which bytes differ.

use std::ops::Range;

use headstack_workload::Kind;

use super::levels::{Extent, Layout, Parity, Placing};
use super::pass::{Pass, PassKind, PassState};
use super::state::{Array, Event};
use super::sync_speed::{PAUSE_NS, SyncSpeed};
use super::under_way::{Command, Owner, request};
use crate::description::array::{AboveMinimum, ArrayDescription};

/// Time without writes after which md marks an array clean (Documentation/admin-guide/md.rst, `safe_mode_delay`).
const SAFE_MODE_NS: u64 = 200_000_000;

impl Array {
    /// Returns why a group cannot be scrubbed; `None` if it can be.
    pub(super) fn no_scrub(&self, group: u32) -> Option<String> {
        let name = match self.description.groups.get(group as usize) {
            Some(group) => &group.name,
            None => return Some(format!("group {group} is out of range; must be 0 to {}", self.groups.len() - 1)),
        };
        if !is_scrubbed(&self.description, &self.groups[group as usize].layout, group) {
            let allowed = "use a group with mirrors or rows with parity, without a pool";
            return Some(format!("group {name} has no redundancy to scrub; {allowed}"));
        }
        if !self.groups[group as usize].is_whole() {
            return Some(format!("group {name} is degraded; wait until it is healthy"));
        }
        let is_running = self.passes[group as usize].as_ref().is_some_and(Pass::is_running);
        is_running.then(|| format!("group {name} already runs a pass; wait for its end"))
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
        self.counters.scrubs_begun += u64::from(kind.is_scrub());
        let minimum = self.groups[group as usize].rebuild.minimum;
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
            started_ns: now_ns,
            speed: minimum.map(|minimum| SyncSpeed::new(minimum, now_ns, self.host_arrivals)),
        });
        self.continue_pass(now_ns, group);
    }

    /// Begins the next step of a pass, if the step is due.
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
        let mut step_bytes = state.rebuild.step_bytes;
        if let Some(speed) = &mut pass.speed
            && speed.must_wait(now_ns, self.host_arrivals, self.host_requests)
        {
            match speed.minimum.above {
                AboveMinimum::Drain => step_bytes = step_bytes.min(speed.minimum.window_bytes),
                AboveMinimum::Pause => return self.at(now_ns + PAUSE_NS, Event::Pass(group)),
            }
        }
        let run = pass.runs.iter().find(|run| pass.at_bytes < run.end).expect("a running pass has bytes left to read");
        let from_bytes = pass.at_bytes.max(run.start);
        pass.to_bytes = (from_bytes + step_bytes).min(run.end);
        if let Some(rate) = state.rebuild.rate_limit_bytes_per_s {
            let pause_ns = ((pass.to_bytes - from_bytes) as f64 / rate * 1e9) as u64;
            pass.allowed_ns = pass.allowed_ns.max(now_ns.saturating_sub(pause_ns)) + pause_ns;
        }
        // Start at one, so that the step ends only after all commands have been issued.
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

    /// Counts one completed command of a step of a pass; begins the next step after the last command.
    pub(super) fn pass_part_done(&mut self, now_ns: u64, group: u32, number: u32) {
        let busy = self.host_requests > 0;
        let yield_to_host = self.groups[group as usize].rebuild.yield_to_host;
        let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.number == number) else { return };
        pass.pending -= 1;
        if pass.pending > 0 || !pass.is_running() {
            return;
        }
        let done_bytes = pass.rest().first().map_or(0, |run| pass.to_bytes - run.start);
        if pass.kind.is_scrub() {
            self.counters.scrubbed_bytes += done_bytes;
        }
        pass.at_bytes = pass.to_bytes;
        if let Some(speed) = &mut pass.speed {
            speed.add(done_bytes);
        } else if busy {
            let yields_ns = ((now_ns - pass.begun_ns) as f64 * yield_to_host) as u64;
            pass.allowed_ns = pass.allowed_ns.max(now_ns + yields_ns);
        }
        if pass.rest().is_empty() {
            pass.state = PassState::Done;
            if pass.kind.is_scrub() {
                self.counters.scrubs += 1;
                self.counters.scrub_ns += now_ns - pass.started_ns;
            }
        }
        self.standing += 1;
        // Schedule the next step as a separate event, so that a pass whose members answer at once does not recurse.
        self.at(now_ns, Event::Pass(group));
    }

    /// Stops the pass of a group after a member failure, because there is no redundancy left to compare.
    pub(super) fn stop_pass(&mut self, group: u32) {
        if let Some(pass) = self.passes[group as usize].as_mut().filter(|pass| pass.is_running()) {
            pass.state = PassState::Stopped;
        }
    }

    /// Handles a read of a pass that a member could not serve: reconstructs the bytes from the other members and
    /// rewrites them.
    pub(super) fn pass_read_failed(&mut self, now_ns: u64, member: u32, group: u32, (from, to): (u64, u64)) {
        let state = &self.groups[group as usize];
        let bad = Extent { slot: state.slot_at(member, from), at_bytes: from, length_bytes: to - from };
        if state.recovery(&bad).is_some() {
            self.issue(now_ns, member, Owner::Background, request(Kind::Write, &bad));
        }
    }

    /// Whether a write interrupted by a power loss can reach some members but not others.
    pub(crate) fn leaves_halves(&self) -> bool {
        let is_logged = self.description.groups.iter().all(|group| group.ppl.is_some() || group.is_journaled);
        !is_logged && !self.cache.as_ref().is_some_and(|cache| cache.outlives_power())
    }

    /// Records at a power loss which bytes may be only partly written, for the resync after power-on.
    pub(crate) fn power_fails(&mut self, now_ns: u64) {
        for group in 0..self.groups.len() {
            let earlier = self.passes[group].take().filter(|pass| pass.kind == PassKind::Resync);
            let mut unclean = earlier.map_or_else(Vec::new, |pass| pass.rest());
            unclean.extend(self.half_written(now_ns, group));
            unclean.sort_by_key(|run| run.start);
            self.unclean[group] = joined(unclean);
        }
    }

    /// Returns the ranges of each slot of a group that may be only partly written.
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
        let is_written = |command: &Command| {
            let is_write = command.request.kind == Kind::Write;
            is_write && state.serves(command.member) && !matches!(command.owner, Owner::Rebuild(..))
        };
        let was_written = state.written_ns.is_some_and(|at_ns| now_ns < at_ns + SAFE_MODE_NS);
        let is_unclean = was_written || self.commands.iter().any(|(_, command)| is_written(command));
        Vec::from_iter(is_unclean.then_some(0..state.slot_bytes))
    }

    /// Resyncs partly written ranges of healthy groups after power-on.
    pub(super) fn resync(&mut self, now_ns: u64) {
        for group in 0..self.groups.len() as u32 {
            let unclean = std::mem::take(&mut self.unclean[group as usize]);
            if !unclean.is_empty() && self.groups[group as usize].is_whole() {
                self.begin_pass(now_ns, group, PassKind::Resync, unclean);
            }
        }
    }
}

/// Whether a scrub of a group compares any data.
fn is_scrubbed(description: &ArrayDescription, layout: &Layout, group: u32) -> bool {
    let is_compared = match layout {
        Layout::Copies(_) => layout.copies() > 1,
        Layout::Parity(Parity::Rows(_)) => true,
        // RAIDZ and dRAID verify data with checksums when they read.
        Layout::Parity(Parity::Raidz(_) | Parity::Draid(_)) => false,
    };
    is_compared && description.groups[group as usize].pool.is_none()
}

/// Merges adjacent runs of an ascending list.
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
