//! Operations, which read and write runs of a group's bytes, and the member commands that operations issue.

use headstack_workload::{Kind, Request};

use super::levels::{Extent, Layout, Placing, join};
use super::state::Array;
use super::under_way::{Operation, Origin, Owner, request};
use crate::description::array::MirrorReads;

impl Array {
    /// Splits a run of the array's address space into operations on groups and starts them. Each operation notifies the
    /// origin when it completes.
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

    /// Starts an operation. `place` is the group, and the number of the LUN within the group.
    fn start(&mut self, now_ns: u64, origin: Origin, place: (u32, u32), write: bool, offset: u64, length: u64) {
        let (group, _) = place;
        let number = self.operations.insert(Operation { origin, group, pending: 1, chunks: None });
        match (&self.groups[group as usize].layout, write) {
            _ if self.pools[group as usize].is_some() => {
                self.operate_pooled(now_ns, number, place, write, offset, length);
            }
            (_, false) => self.read(now_ns, number, group, offset, length),
            (_, true) => {
                if self.declare_write(now_ns, number, group, offset, length) {
                    self.write_data(now_ns, number, group, offset, length);
                }
            }
        }
        self.operation_part_done(now_ns, number);
    }

    /// Writes the data of an operation. If the group has a bitmap, the bits are set already.
    pub(super) fn write_data(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        self.groups[group as usize].written_ns = Some(now_ns);
        match &self.groups[group as usize].layout {
            Layout::Parity(_) => self.write_rows(now_ns, operation, group, offset, length),
            Layout::Copies(_) => self.write_copies(now_ns, operation, group, offset, length),
        }
    }

    /// Counts one completed part of an operation; completes the operation after the last part.
    pub(super) fn operation_part_done(&mut self, now_ns: u64, number: u32) {
        let operation = self.operations.get_mut(number);
        operation.pending -= 1;
        if operation.pending > 0 {
            return;
        }
        let Operation { origin, group, chunks, .. } = self.operations.remove(number);
        if let Some(chunks) = chunks {
            self.write_declared_done(now_ns, group, chunks);
        }
        match origin {
            Origin::Request(request) => self.part_done(now_ns, request),
            Origin::Transfer(transfer) => self.transfer_part_done(now_ns, transfer),
        }
    }

    /// Sends a command of an operation to the member that serves the slot of an extent.
    pub(super) fn command(&mut self, now_ns: u64, operation: u32, group: u32, kind: Kind, extent: &Extent) {
        let state = &self.groups[group as usize];
        debug_assert!(extent.end_bytes() <= state.slot_bytes, "{extent:?} of {} bytes", state.slot_bytes);
        let Some(member) = state.member_for(extent, kind) else {
            return;
        };
        self.operations.get_mut(operation).pending += 1;
        match kind {
            Kind::Read => self.counters.data_reads += 1,
            Kind::Write | Kind::Trim | Kind::Flush => self.counters.data_writes += 1,
        }
        self.issue(now_ns, member, Owner::Operation(operation), request(kind, extent));
    }

    /// Replays a past request into the caches of controller and members without taking time. Skips pools: a write to a
    /// pool changes its map, which is not a cache.
    pub fn warm_with(&mut self, past: &Request) {
        let (offset, length) = (past.offset_bytes, u64::from(past.length_bytes));
        if length == 0 || self.warm_cache(past.kind, offset, length) {
            return;
        }
        let lun = self.lun_bases.partition_point(|&base| base <= offset) - 1;
        let place = &self.description.luns[lun];
        let (group, start) = (place.group, place.start_bytes + (offset - self.lun_bases[lun]));
        let length = length.min(self.lun_bases[lun + 1] - offset);
        if self.pools[group as usize].is_some() {
            return;
        }
        let mut extents = Vec::new();
        self.choose_places(group, start, length, &mut extents);
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
        match &state.layout {
            Layout::Parity(parity) if !state.is_whole() || parity.reads_whole_rows() => {
                self.counters.reconstruction_reads += parity.read(offset, length, &state.readable(), &mut extents);
            }
            Layout::Parity(_) | Layout::Copies(_) => self.choose_places(group, offset, length, &mut extents),
        }
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Read, extent);
        }
        self.extents = extents;
    }

    /// Returns the extents that a read uses while the group is whole, one copy of each piece; merges adjacent extents
    /// of a slot.
    fn choose_places(&mut self, group: u32, offset: u64, length: u64, extents: &mut Vec<Extent>) {
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        let layout = &self.groups[group as usize].layout;
        layout.places(offset, length, &mut places);
        match layout.copies() {
            1 => places.iter().for_each(|place| join(extents, *place)),
            copies => {
                for piece in places.chunks(copies) {
                    self.best_copy(group, piece.iter().copied()).into_iter().for_each(|best| join(extents, best));
                }
            }
        }
        self.places = places;
    }

    /// Returns the copy to read among the available copies; `None` if there is none.
    pub(super) fn best_copy(&mut self, group: u32, copies: impl Iterator<Item = Extent>) -> Option<Extent> {
        let state = &mut self.groups[group as usize];
        state.reads += 1;
        let (choice, turn) = (state.mirror_reads, state.reads);
        let state = &self.groups[group as usize];
        let readable = copies.filter_map(|copy| state.member_for(&copy, Kind::Read).map(|member| (copy, member)));
        let chosen = match choice {
            MirrorReads::Primary => readable.min_by_key(|(copy, _)| (copy.slot, copy.at_bytes)),
            MirrorReads::RoundRobin => {
                let all = u64::from(state.layout.slots());
                readable.min_by_key(|(copy, _)| (u64::from(copy.slot) + turn) % all)
            }
            MirrorReads::ShortestQueue => {
                let all = u64::from(state.layout.slots());
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

    /// Writes every available copy, on a level with copies.
    fn write_copies(&mut self, now_ns: u64, operation: u32, group: u32, offset: u64, length: u64) {
        let mut extents = std::mem::take(&mut self.extents);
        let mut places = std::mem::take(&mut self.places);
        extents.clear();
        places.clear();
        self.groups[group as usize].layout.places(offset, length, &mut places);
        places.iter().for_each(|place| join(&mut extents, *place));
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Write, extent);
        }
        (self.extents, self.places) = (extents, places);
    }

    /// Sends a flush to every active member.
    pub(super) fn flush_members(&mut self, now_ns: u64, number: u32) {
        self.requests.get_mut(number).pending = 1;
        for group in 0..self.groups.len() {
            for slot in 0..self.groups[group].layout.slots() {
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
