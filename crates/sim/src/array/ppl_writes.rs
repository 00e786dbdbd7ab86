//! Row writes of an [`Array`] with a partial parity log: into the log first, then to the members.

use headstack_workload::{Kind, Request};

use super::levels::Plan;
use super::ppl::{Unit, partial_parity_bytes};
use super::state::{Array, Event};
use super::under_way::{Owner, RowWrite};
use crate::description::array::PartialParityLog;

impl Array {
    /// Adds a row write to the log, if the group has one and the parity is in sync. Returns whether the row must wait.
    pub(super) fn log_row(&mut self, now_ns: u64, number: u32, plan: &Plan) -> bool {
        let RowWrite { group, log, .. } = *self.row_writes.get(number);
        let state = &self.groups[group as usize];
        let Some(ppl) = self.ppls[group as usize].as_mut().filter(|_| log.is_none()) else { return false };
        let Some(parity) = plan.parity.first().filter(|parity| state.readable()(parity)) else { return false };
        let data_units = state.parity().row_bytes() / self.description.groups[group as usize].chunk_bytes;
        let own = &mut ppl.logs[parity.slot as usize];
        own.append(number, partial_parity_bytes(plan, data_units));
        self.row_writes.get_mut(number).log = Some(parity.slot);
        if own.becomes_due() {
            // A separate event, so that the rows of one moment share a unit.
            self.at(now_ns, Event::WriteLog(group, parity.slot));
        }
        true
    }

    /// Writes the next log unit of a slot, unless the previous one is in progress.
    pub(super) fn write_log(&mut self, now_ns: u64, group: u32, slot: u32) {
        let member = self.groups[group as usize].live_member(slot);
        let Some(ppl) = &mut self.ppls[group as usize] else { return };
        let own = &mut ppl.logs[slot as usize];
        own.is_due = false;
        debug_assert!(own.running.is_none(), "one unit of a log is in progress");
        let Some(unit) = own.waiting.pop_front() else { return };
        let length_bytes = PartialParityLog::HEADER_BYTES + unit.parity_bytes;
        let offset_bytes = own.place(length_bytes, ppl.area_bytes);
        own.running = Some(unit);
        let Some(member) = member else { return self.log_written(now_ns, group, slot) };
        (ppl.written, ppl.written_bytes) = (ppl.written + 1, ppl.written_bytes + length_bytes);
        let length_bytes = length_bytes as u32;
        let request =
            Request { kind: Kind::Write, offset_bytes, length_bytes, force_unit_access: true, ordered: false };
        self.issue(now_ns, member, Owner::Log(group, slot), request);
    }

    /// Handles a member that has written a log unit, or flushed its cache after the rows of one.
    pub(super) fn log_command_done(&mut self, now_ns: u64, group: u32, slot: u32, kind: Kind) {
        match kind {
            Kind::Write => self.log_written(now_ns, group, slot),
            Kind::Flush => self.log_part_done(now_ns, group, slot),
            Kind::Read | Kind::Trim => unreachable!("a log is only written and flushed"),
        }
    }

    /// Writes the rows of a unit that is logged.
    fn log_written(&mut self, now_ns: u64, group: u32, slot: u32) {
        let Some(unit) = self.running_log(group, slot) else { return };
        let rows = std::mem::take(&mut unit.rows);
        unit.pending = rows.len() as u32;
        let mut to_flush: Vec<u32> = rows.iter().flat_map(|&row| self.volatile_members_of(row)).collect();
        to_flush.sort_unstable();
        to_flush.dedup();
        if let Some(unit) = self.running_log(group, slot) {
            unit.to_flush = to_flush;
        }
        for row in rows {
            self.write_row(now_ns, row);
        }
    }

    /// Returns the members with a volatile cache that a row write writes to.
    fn volatile_members_of(&self, row: u32) -> Vec<u32> {
        let RowWrite { group, part, .. } = self.row_writes.get(row);
        let (state, plan) = (&self.groups[*group as usize], self.plan(*group, part));
        let written = plan.data.iter().chain(&plan.parity);
        let members = written.filter_map(|extent| state.member_for(extent, Kind::Write));
        members.filter(|&member| self.members[member as usize].caches_writes()).collect()
    }

    /// Counts a row of a unit that is written, or a member that is flushed. After the rows, flushes the members; after
    /// the members, the next unit may be written.
    pub(super) fn log_part_done(&mut self, now_ns: u64, group: u32, slot: u32) {
        let Some(unit) = self.running_log(group, slot) else { return };
        unit.pending -= 1;
        if unit.pending > 0 {
            return;
        }
        let mut to_flush = std::mem::take(&mut unit.to_flush);
        to_flush.retain(|&member| !self.missing[member as usize]);
        if !to_flush.is_empty() {
            if let Some(unit) = self.running_log(group, slot) {
                unit.pending = to_flush.len() as u32;
            }
            for member in to_flush {
                self.issue(now_ns, member, Owner::Log(group, slot), FLUSH);
            }
            return;
        }
        let Some(ppl) = &mut self.ppls[group as usize] else { return };
        let own = &mut ppl.logs[slot as usize];
        own.running = None;
        if own.becomes_due() {
            self.at(now_ns, Event::WriteLog(group, slot));
        }
    }

    fn running_log(&mut self, group: u32, slot: u32) -> Option<&mut Unit> {
        self.ppls[group as usize].as_mut()?.logs[slot as usize].running.as_mut()
    }
}

const FLUSH: Request =
    Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
