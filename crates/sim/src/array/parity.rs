//! Writes on levels with parity: row by row, each updating parity in the cheaper way.

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

use super::levels::{ChunkRange, Extent, Plan, RowPart};
use super::state::{Array, Event};
use super::under_way::{HostRequest, Operation, Origin, Owner, RowWrite, request};
use crate::stripes::StripeWrite;

impl Array {
    /// Splits a write into row writes and starts them.
    pub(super) fn write_rows(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        let mut parts = Vec::new();
        self.groups[group as usize].parity().parts(offset, length, |part| parts.push(part));
        for part in parts {
            self.write_part(now_ns, operation, group, part);
        }
    }

    /// Starts the write of part of a row, or queues it while another write of the row is in progress.
    fn write_part(&mut self, now_ns: u64, operation: u32, group: u32, part: RowPart) {
        self.operations.get_mut(operation).pending += 1;
        let write = RowWrite { operation, group, part, pending: 0, reading: true, again: false, log: None };
        let number = self.row_writes.insert(write);
        match self.row_locks.get_mut(&(group, part.row)) {
            Some(waiting) => {
                self.counters.row_waits += 1;
                waiting.push_back(number);
            }
            None => {
                self.row_locks.insert((group, part.row), VecDeque::new());
                self.read_for_row(now_ns, number);
            }
        }
    }

    /// First phase of a row write: reads the extents needed to compute parity.
    fn read_for_row(&mut self, now_ns: u64, number: u32) {
        let RowWrite { group, part, .. } = *self.row_writes.get(number);
        let plan = self.plan(group, &part);
        self.row_writes.get_mut(number).pending = 1;
        for extent in &plan.reads {
            self.counters.parity_reads += u64::from(self.row_command(now_ns, number, group, Kind::Read, extent));
        }
        if plan.reads.is_empty() && self.is_full(group, &part) {
            self.counters.full_rows += 1;
        }
        self.row_part_done(now_ns, number);
    }

    /// Whether a write touches every data unit of its stripes completely.
    fn is_full(&self, group: u32, part: &RowPart) -> bool {
        let row_bytes = self.groups[group as usize].parity().row_bytes();
        let units = row_bytes / self.description.groups[group as usize].chunk_bytes;
        match &part.chunks {
            None => part.length_bytes() == row_bytes,
            Some(chunks) => u64::from(chunks.units.count_ones()) == units,
        }
    }

    /// Takes a write of stripes at `now_ns`; it completes like a request.
    pub(crate) fn write_stripes(&mut self, now_ns: u64, id: u32, stripes: &StripeWrite) {
        if let Some(adapter) = &mut self.adapter {
            adapter.expect();
        }
        let StripeWrite { offset_bytes, chunks } = *stripes;
        let length_bytes = chunks.length_bytes() as u32;
        let request =
            Request { kind: Kind::Write, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        let host = HostRequest { stripes: Some(chunks), ..HostRequest::new(id, &request, now_ns) };
        self.take_host_request(now_ns, host);
    }

    /// Starts a write of stripes of one row.
    pub(super) fn begin_stripes(&mut self, now_ns: u64, number: u32, chunks: ChunkRange) {
        let offset_bytes = self.requests.get(number).request.offset_bytes;
        let lun = self.lun_bases.partition_point(|&base| base <= offset_bytes) - 1;
        let place = &self.description.luns[lun];
        let (group, start) = (place.group, place.start_bytes + (offset_bytes - self.lun_bases[lun]));
        let row_bytes = self.groups[group as usize].parity().row_bytes();
        debug_assert!(start.is_multiple_of(row_bytes), "stripes are addressed by their row");
        let part = RowPart { row: start / row_bytes, from_bytes: 0, to_bytes: row_bytes, chunks: Some(chunks) };
        self.groups[group as usize].written_ns = Some(now_ns);
        // Start at one, so that the request ends only after all commands have been issued.
        self.requests.get_mut(number).pending = 1;
        let origin = Origin::Request(number);
        let operation = self.operations.insert(Operation { origin, group, pending: 1, chunks: None });
        self.write_part(now_ns, operation, group, part);
        self.operation_part_done(now_ns, operation);
    }

    /// Sends a command of a row write if a member can serve it; returns whether one could.
    pub(super) fn row_command(&mut self, now_ns: u64, number: u32, group: u32, kind: Kind, extent: &Extent) -> bool {
        let member = self.groups[group as usize].member_for(extent, kind);
        if let Some(member) = member {
            self.row_writes.get_mut(number).pending += 1;
            self.issue(now_ns, member, Owner::Row(number), request(kind, extent));
        }
        member.is_some()
    }

    /// Counts one completed command of a row write; starts the next phase after the last command.
    pub(super) fn row_part_done(&mut self, now_ns: u64, number: u32) {
        let row = self.row_writes.get_mut(number);
        row.pending -= 1;
        if row.pending > 0 {
            return;
        }
        if row.again {
            row.again = false;
            return self.read_for_row(now_ns, number);
        }
        if !row.reading {
            return self.row_done(now_ns, number);
        }
        row.reading = false;
        let (group, part) = (row.group, row.part);
        let bytes = self.groups[group as usize].parity().parity_bytes(&part);
        let work_ns = (bytes as f64 * self.description.controller.parity_ns_per_byte).round() as u64;
        let computed_ns = self.processors.work(now_ns, work_ns);
        if computed_ns > now_ns {
            self.at(computed_ns, Event::WriteRow(number));
        } else {
            self.write_row(now_ns, number);
        }
    }

    /// Second phase of a row write: writes data and parity, after the partial parity is logged if there is a log.
    pub(super) fn write_row(&mut self, now_ns: u64, number: u32) {
        let RowWrite { group, part, .. } = *self.row_writes.get(number);
        let plan = self.plan(group, &part);
        if self.log_row(now_ns, number, &plan) {
            return;
        }
        debug_assert!(self.row_locks.contains_key(&(group, part.row)), "a row is locked while it is being written");
        self.row_writes.get_mut(number).pending = 1;
        for extent in &plan.data {
            self.counters.data_writes += u64::from(self.row_command(now_ns, number, group, Kind::Write, extent));
        }
        for extent in &plan.parity {
            self.counters.parity_writes += u64::from(self.row_command(now_ns, number, group, Kind::Write, extent));
        }
        self.row_part_done(now_ns, number);
    }

    /// Whether a row write will overwrite an extent completely.
    pub(super) fn row_renews(&self, group: u32, part: &RowPart, extent: &Extent) -> bool {
        let plan = self.plan(group, part);
        let mut written = plan.data.iter().chain(&plan.parity);
        written.any(|other| {
            other.slot == extent.slot && other.at_bytes <= extent.at_bytes && extent.end_bytes() <= other.end_bytes()
        })
    }

    fn row_done(&mut self, now_ns: u64, number: u32) {
        let RowWrite { operation, group, part, log, .. } = self.row_writes.remove(number);
        let waiting = self.row_locks.get_mut(&(group, part.row)).expect("a row is locked while it is being written");
        match waiting.pop_front() {
            Some(next) => self.read_for_row(now_ns, next),
            None => {
                self.row_locks.remove(&(group, part.row));
            }
        }
        self.operation_part_done(now_ns, operation);
        if let Some(slot) = log {
            self.log_part_done(now_ns, group, slot);
        }
    }

    /// Returns the reads and writes of a row write in the current state of the group.
    pub(super) fn plan(&self, group: u32, part: &RowPart) -> Plan {
        let state = &self.groups[group as usize];
        state.parity().plan(part, &state.readable(), &state.writable())
    }
}
