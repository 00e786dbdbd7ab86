//! Operations: reads and writes of runs of a group's bytes, and the commands that they become.

use headstack_workload::{Kind, Request};

use super::Array;
use super::description::{Level, MirrorReads};
use super::layout::{Extent, join};
use super::members::Owner;

/// A read or write of a run of bytes of one group.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Whom it is for.
    pub origin: Origin,
    /// The group.
    pub group: u32,
    /// Commands and row writes that it waits for.
    pub pending: u32,
}

/// Whom an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host request.
    Request(u32),
    /// A run of bytes between cache and members.
    Transfer(u32),
}

impl Array {
    /// Splits a run of the array's address space into operations on groups and starts them. The origin hears of each.
    pub(super) fn operate(&mut self, now_ns: u64, origin: Origin, write: bool, offset_bytes: u64, length_bytes: u64) {
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        let mut lun = self.lun_bases.partition_point(|&base| base <= at) - 1;
        let kind = if write { Kind::Write } else { Kind::Read };
        while at < end {
            let length = (self.lun_bases[lun + 1] - at).min(end - at);
            let place = &self.description.luns[lun];
            let (group, start) = (place.group, place.start_bytes + (at - self.lun_bases[lun]));
            at += length;
            lun += 1;
            if self.data_loss.is_some()
                && let Some(at_bytes) = self.first_unserved(at - length, length, kind)
            {
                self.fail_origin(origin, at_bytes);
                continue;
            }
            match origin {
                Origin::Request(number) => self.requests.get_mut(number).pending += 1,
                Origin::Transfer(number) => self.expect_transfer_part(number),
            }
            self.start(now_ns, origin, (group, self.lun_numbers[lun - 1]), write, start, length);
        }
    }

    /// `place` is the group, and the number of the LUN within it.
    fn start(&mut self, now_ns: u64, origin: Origin, place: (u32, u32), write: bool, offset: u64, length: u64) {
        let (group, _) = place;
        let number = self.operations.insert(Operation { origin, group, pending: 1 });
        match (write, self.groups[group as usize].layout.has_parity()) {
            _ if self.pools[group as usize].is_some() => {
                self.operate_pooled(now_ns, number, place, write, offset, length);
            }
            (false, _) => self.read(now_ns, number, group, offset, length),
            (true, true) => self.write_rows(now_ns, number, group, offset, length),
            (true, false) => self.write_copies(now_ns, number, group, offset, length),
        }
        self.operation_part_done(now_ns, number);
    }

    /// An operation waits for one thing less.
    pub(super) fn operation_part_done(&mut self, now_ns: u64, number: u32) {
        let operation = self.operations.get_mut(number);
        operation.pending -= 1;
        if operation.pending > 0 {
            return;
        }
        match self.operations.remove(number).origin {
            Origin::Request(request) => self.part_done(now_ns, request),
            Origin::Transfer(transfer) => self.transfer_part_done(now_ns, transfer),
        }
    }

    /// Commands of an operation to the member of an extent's slot.
    pub(super) fn command(&mut self, now_ns: u64, operation: u32, group: u32, kind: Kind, extent: &Extent) {
        let Some(member) = self.groups[group as usize].member_for(extent, kind) else {
            return;
        };
        self.operations.get_mut(operation).pending += 1;
        match kind {
            Kind::Read => self.counters.data_reads += 1,
            _ => self.counters.data_writes += 1,
        }
        self.issue(now_ns, member, Owner::Operation(operation), request(kind, extent));
    }

    /// Shows the caches of the controller and of the members a request of the past, in no time. Pools are left out: what
    /// a write places is no cache.
    pub fn warm_with(&mut self, past: &Request) {
        let (offset, length) = (past.offset_bytes, u64::from(past.length_bytes));
        if length == 0 || self.warm_cache(past.kind, offset, length) {
            return;
        }
        let lun = self.lun_bases.partition_point(|&base| base <= offset) - 1;
        let place = &self.description.luns[lun];
        let (group, start) = (place.group, place.start_bytes + (offset - self.lun_bases[lun]));
        let layout = self.groups[group as usize].layout;
        let length = length.min(self.lun_bases[lun + 1] - offset);
        if self.pools[group as usize].is_some() {
            return;
        }
        let mut extents = Vec::new();
        match layout.level {
            Level::Raid1 | Level::Raid10 => self.choose_copies(group, start, length, &mut extents),
            _ => layout.extents(start, length, &mut extents),
        }
        for extent in &extents {
            if let Some(member) = self.groups[group as usize].member_for(extent, Kind::Read) {
                self.members[member as usize].warm_with(&request(past.kind, extent));
            }
        }
    }

    fn read(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        let mut extents = std::mem::take(&mut self.extents);
        extents.clear();
        let state = &self.groups[group as usize];
        let layout = state.layout;
        match layout.level {
            Level::Raid1 | Level::Raid10 => self.choose_copies(group, offset, length, &mut extents),
            _ if !state.is_whole() && layout.has_parity() => {
                self.read_with_missing(group, offset, length, &mut extents);
            }
            _ => layout.extents(offset, length, &mut extents),
        }
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Read, extent);
        }
        self.extents = extents;
    }

    /// The copies that a read takes.
    fn choose_copies(&mut self, group: u32, offset: u64, length: u64, extents: &mut Vec<Extent>) {
        let layout = self.groups[group as usize].layout;
        if layout.level == Level::Raid1 {
            let slots = layout.all_slots();
            let copies = (0..slots).map(|slot| Extent { slot, at_bytes: offset, length_bytes: length });
            extents.extend(self.best_copy(group, copies));
            return;
        }
        layout.units(offset, length, |unit, within, length_bytes| {
            let copies = (0..2).map(|copy| {
                let (slot, at) = layout.copy(unit, copy);
                Extent { slot, at_bytes: at + within, length_bytes }
            });
            if let Some(best) = self.best_copy(group, copies) {
                join(extents, best);
            }
        });
    }

    /// The copy to read among those that are there; none where data are gone.
    pub(super) fn best_copy(&mut self, group: u32, copies: impl Iterator<Item = Extent>) -> Option<Extent> {
        let state = &mut self.groups[group as usize];
        state.reads += 1;
        let (choice, turn) = (state.mirror_reads, state.reads);
        let state = &self.groups[group as usize];
        let readable = copies.filter_map(|copy| state.member_for(&copy, Kind::Read).map(|member| (copy, member)));
        let chosen = match choice {
            MirrorReads::Primary => readable.min_by_key(|(copy, _)| (copy.slot, copy.at_bytes)),
            MirrorReads::RoundRobin => {
                let all = u64::from(state.layout.all_slots());
                readable.min_by_key(|(copy, _)| (u64::from(copy.slot) + turn) % all)
            }
            MirrorReads::ShortestQueue => {
                let all = u64::from(state.layout.all_slots());
                let queue = |member: u32| self.ports[member as usize].outstanding();
                readable.min_by_key(|(copy, member)| (queue(*member), (u64::from(copy.slot) + turn) % all))
            }
            MirrorReads::Nearest => readable.min_by_key(|(copy, member)| {
                let port = &self.ports[*member as usize];
                (port.outstanding(), port.last_end_bytes.abs_diff(copy.at_bytes), copy.slot)
            }),
        };
        chosen.map(|(copy, _)| copy)
    }

    /// A write on levels without parity: every copy that is there.
    fn write_copies(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        let mut extents = std::mem::take(&mut self.extents);
        extents.clear();
        let layout = self.groups[group as usize].layout;
        match layout.level {
            Level::Raid1 => {
                extents.extend((0..layout.all_slots()).map(|slot| Extent {
                    slot,
                    at_bytes: offset,
                    length_bytes: length,
                }));
            }
            Level::Raid10 => layout.units(offset, length, |unit, within, length_bytes| {
                for copy in 0..2 {
                    let (slot, at) = layout.copy(unit, copy);
                    join(&mut extents, Extent { slot, at_bytes: at + within, length_bytes });
                }
            }),
            _ => layout.extents(offset, length, &mut extents),
        }
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Write, extent);
        }
        self.extents = extents;
    }

    /// A flush goes to every member that serves.
    pub(super) fn flush_members(&mut self, now_ns: u64, number: u32) {
        self.requests.get_mut(number).pending = 1;
        for group in 0..self.groups.len() {
            for slot in 0..self.groups[group].layout.all_slots() {
                let Some(member) = self.groups[group].live_member(slot) else {
                    continue;
                };
                self.requests.get_mut(number).pending += 1;
                let flush = Request {
                    kind: Kind::Flush,
                    offset_bytes: 0,
                    length_bytes: 0,
                    force_unit_access: false,
                    ordered: false,
                };
                self.issue(now_ns, member, Owner::Request(number), flush);
            }
        }
        self.part_done(now_ns, number);
    }
}

/// A command for an extent.
pub fn request(kind: Kind, extent: &Extent) -> Request {
    Request {
        kind,
        offset_bytes: extent.at_bytes,
        length_bytes: u32::try_from(extent.length_bytes).expect("a request is shorter than 4 GiB"),
        force_unit_access: false,
        ordered: false,
    }
}
