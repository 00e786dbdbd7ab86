//! Writes on levels with parity: row by row, each with the cheaper way of keeping parity true.

use std::collections::{HashMap, VecDeque};

use headstack_workload::Kind;

use super::description::SmallWrites;
use super::layout::{Extent, Layout, RowPart, join};
use super::members::Owner;
use super::operations::request;
use super::{Array, Event};

/// The write of a part of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite {
    /// The operation that it is a part of.
    pub operation: u32,
    /// The group.
    pub group: u32,
    /// What is written.
    pub part: RowPart,
    /// Commands of the present phase that are not done.
    pub pending: u32,
    /// It reads what it needs for parity; afterwards it writes.
    pub reading: bool,
    /// A member was lost meanwhile: what was read does not suffice.
    pub again: bool,
}

/// Rows that are being written: two writes of one row at a time would read each other's old parity.
#[derive(Clone, Debug, Default)]
pub struct RowLocks {
    rows: HashMap<(u32, u64), VecDeque<u32>>,
}

/// The commands of a row write.
#[derive(Debug, Default)]
struct Plan {
    reads: Vec<Extent>,
    data: Vec<Extent>,
    parity: Vec<Extent>,
}

impl Array {
    /// Splits a write into rows and starts each.
    pub(super) fn write_rows(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        let layout = self.groups[group as usize].layout;
        layout.rows(offset, length, |part| {
            self.operations.get_mut(operation).pending += 1;
            let write = RowWrite { operation, group, part, pending: 0, reading: true, again: false };
            let number = self.row_writes.insert(write);
            match self.row_locks.rows.get_mut(&(group, part.row)) {
                Some(waiting) => {
                    self.counters.row_waits += 1;
                    waiting.push_back(number);
                }
                None => {
                    self.row_locks.rows.insert((group, part.row), VecDeque::new());
                    self.read_for_row(now_ns, number);
                }
            }
        });
    }

    /// First phase: reads what parity needs.
    fn read_for_row(&mut self, now_ns: u64, number: u32) {
        let RowWrite { group, part, .. } = *self.row_writes.get(number);
        let plan = self.plan(group, &part);
        self.row_writes.get_mut(number).pending = 1;
        for extent in &plan.reads {
            self.counters.parity_reads += u64::from(self.row_command(now_ns, number, group, Kind::Read, extent));
        }
        if plan.reads.is_empty() && part.to_bytes - part.from_bytes == self.groups[group as usize].layout.row_bytes() {
            self.counters.full_rows += 1;
        }
        self.row_part_done(now_ns, number);
    }

    /// Sends a command of a row write, if there is a member for it.
    pub(super) fn row_command(&mut self, now_ns: u64, number: u32, group: u32, kind: Kind, extent: &Extent) -> bool {
        let member = self.groups[group as usize].member_for(extent, kind);
        if let Some(member) = member {
            self.row_writes.get_mut(number).pending += 1;
            self.issue(now_ns, member, Owner::Row(number), request(kind, extent));
        }
        member.is_some()
    }

    /// A row write waits for one command less.
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
        let layout = self.groups[group as usize].layout;
        let bytes = layout.parities * (part.to_bytes - part.from_bytes);
        let work_ns = (bytes as f64 * self.description.controller.parity_ns_per_byte).round() as u64;
        let computed_ns = self.processors.work(now_ns, work_ns);
        if computed_ns > now_ns {
            self.at(computed_ns, Event::WriteRow(number));
        } else {
            self.write_row(now_ns, number);
        }
    }

    /// Second phase: data and parity.
    pub(super) fn write_row(&mut self, now_ns: u64, number: u32) {
        let RowWrite { group, part, .. } = *self.row_writes.get(number);
        let plan = self.plan(group, &part);
        self.row_writes.get_mut(number).pending = 1;
        for extent in &plan.data {
            self.counters.data_writes += u64::from(self.row_command(now_ns, number, group, Kind::Write, extent));
        }
        for extent in &plan.parity {
            self.counters.parity_writes += u64::from(self.row_command(now_ns, number, group, Kind::Write, extent));
        }
        self.row_part_done(now_ns, number);
    }

    /// A row write will write what an extent holds.
    pub(super) fn row_renews(&self, group: u32, part: &RowPart, extent: &Extent) -> bool {
        let plan = self.plan(group, part);
        let mut written = plan.data.iter().chain(&plan.parity);
        written.any(|other| {
            other.slot == extent.slot && other.at_bytes <= extent.at_bytes && extent.end_bytes() <= other.end_bytes()
        })
    }

    fn row_done(&mut self, now_ns: u64, number: u32) {
        let RowWrite { operation, group, part, .. } = self.row_writes.remove(number);
        let waiting = self.row_locks.rows.get_mut(&(group, part.row)).expect("a row that is written is locked");
        match waiting.pop_front() {
            Some(next) => self.read_for_row(now_ns, next),
            None => {
                self.row_locks.rows.remove(&(group, part.row));
            }
        }
        self.operation_part_done(now_ns, operation);
    }

    /// What a row write reads and writes in the group's present state.
    ///
    /// Read-modify-write reads the old data and the old parity of what it changes; reconstruction reads the rest of the
    /// row. Where a missing member forbids both, everything that is left of the row is read.
    fn plan(&self, group: u32, part: &RowPart) -> Plan {
        let state = &self.groups[group as usize];
        let layout = &state.layout;
        let there = |extent: &Extent| state.member_for(extent, Kind::Read).is_some();
        let changed = parity_range(layout, part);
        let mut plan = Plan::default();
        let (mut old, mut rest) = (Vec::new(), Vec::new());
        for unit in 0..layout.data_units {
            let slot = layout.data_slot(part.row, unit);
            let touched = layout.touched(part, unit);
            if touched.0 < touched.1 {
                plan.data.push(in_row(layout, part.row, slot, touched));
                old.push(in_row(layout, part.row, slot, touched));
            }
            rest.extend(untouched(touched, changed).map(|range| in_row(layout, part.row, slot, range)));
        }
        for number in 0..layout.parities {
            let parity = in_row(layout, part.row, layout.parity_slot(part.row, number), changed);
            if state.member_for(&parity, Kind::Write).is_some() {
                plan.parity.push(parity);
            }
            if there(&parity) {
                old.push(parity);
            }
        }
        if plan.parity.is_empty() {
            return plan;
        }
        let modify = old.iter().all(there) && plan.parity.iter().all(there);
        let rebuild = rest.iter().all(there);
        plan.reads = match (modify, rebuild, state.small_writes) {
            (true, true, SmallWrites::Cheapest) if old.len() < rest.len() => old,
            (true, true, SmallWrites::ReadModifyWrite) if !rest.is_empty() => old,
            (_, true, _) => rest,
            (true, false, _) => old,
            (false, false, _) => everything(layout, part.row, changed).filter(there).collect(),
        };
        plan
    }

    /// Reads of a group that lacks a member: rows with what is missing are read as a whole.
    pub(super) fn read_with_missing(&mut self, group: u32, offset: u64, length: u64, extents: &mut Vec<Extent>) {
        let state = &self.groups[group as usize];
        let layout = state.layout;
        let there = |extent: &Extent| state.member_for(extent, Kind::Read).is_some();
        let mut reconstructions = 0;
        layout.rows(offset, length, |part| {
            let mut missing: Option<(u64, u64)> = None;
            let first = extents.len();
            for unit in 0..layout.data_units {
                let touched = layout.touched(&part, unit);
                if touched.0 == touched.1 {
                    continue;
                }
                let extent = in_row(&layout, part.row, layout.data_slot(part.row, unit), touched);
                if there(&extent) {
                    extents.push(extent);
                } else {
                    let hull = missing.unwrap_or(touched);
                    missing = Some((hull.0.min(touched.0), hull.1.max(touched.1)));
                }
            }
            let Some(range) = missing else {
                return;
            };
            // As many units as the row has data determine the rest: data first, then parities.
            let others: Vec<Extent> = everything(&layout, part.row, range).filter(there).collect();
            for other in others.into_iter().take(layout.data_units as usize) {
                match extents[first..].iter_mut().find(|extent| extent.slot == other.slot) {
                    Some(asked) => {
                        let end = asked.end_bytes().max(other.end_bytes());
                        asked.at_bytes = asked.at_bytes.min(other.at_bytes);
                        asked.length_bytes = end - asked.at_bytes;
                    }
                    None => {
                        reconstructions += 1;
                        extents.push(other);
                    }
                }
            }
        });
        self.counters.reconstruction_reads += reconstructions;
        let rows = std::mem::take(extents);
        rows.into_iter().for_each(|extent| join(extents, extent));
    }
}

/// The bytes of a unit whose parity a write changes: what it touches of one unit, all of it where it touches several.
fn parity_range(layout: &Layout, part: &RowPart) -> (u64, u64) {
    let unit = layout.unit_bytes;
    let (first, last) = (part.from_bytes / unit, (part.to_bytes - 1) / unit);
    if first == last { (part.from_bytes % unit, (part.to_bytes - 1) % unit + 1) } else { (0, unit) }
}

/// What of `changed` a write leaves alone in a unit of which it touches `touched`; at most one run, since a write that
/// touches several units touches the end of the first and the beginning of the last.
fn untouched(touched: (u64, u64), changed: (u64, u64)) -> Option<(u64, u64)> {
    if touched.0 == touched.1 {
        return Some(changed);
    }
    match (touched.0 > changed.0, touched.1 < changed.1) {
        (true, _) => Some((changed.0, touched.0)),
        (_, true) => Some((touched.1, changed.1)),
        _ => None,
    }
}

fn in_row(layout: &Layout, row: u64, slot: u32, (from, to): (u64, u64)) -> Extent {
    Extent { slot, at_bytes: layout.row_at_bytes(row) + from, length_bytes: to - from }
}

/// A range of every unit of a row, data before parity.
fn everything(layout: &Layout, row: u64, range: (u64, u64)) -> impl Iterator<Item = Extent> {
    let layout = *layout;
    let data = (0..layout.data_units).map(move |unit| layout.data_slot(row, unit));
    let parity = (0..layout.parities).map(move |number| layout.parity_slot(row, number));
    data.chain(parity).map(move |slot| in_row(&layout, row, slot, range))
}
