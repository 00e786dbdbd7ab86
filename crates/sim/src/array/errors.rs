//! Failed commands of an [`Array`], which redundancy repairs, and host requests that fail when redundancy cannot.
//!
//! A run that a member cannot read is reconstructed from the other members and written to the member again, which
//! remaps the run to spare sectors; the host's read waits for the reconstruction, as in Linux md. Without redundancy,
//! the host's request fails. A run that could not be written to a member, or that a rebuild could not reconstruct, is
//! unreadable like a bad sector until it is written again (md's bad block list).

use headstack_workload::{Kind, Request};

use super::health::LostBytes;
use super::levels::Extent;
use super::state::Array;
use super::under_way::{Command, Origin, Owner, RelayEnd, request};
use crate::drive::Completion;
use crate::media_defects::Failure;

impl Array {
    /// Completes a command while there are media errors or lost data.
    #[cold]
    pub(super) fn suspect_command_done(&mut self, completion: &Completion, command: &Command) {
        let Command { member, request, .. } = *command;
        let failure = self.members[member as usize].take_failure(completion.id);
        if matches!(command.owner, Owner::Bitmap(_) | Owner::Log(..)) {
            // The bitmap, the superblock and a log hold no data: the array continues without this member's copy.
            return self.command_done(completion.at_ns, command);
        }
        let (from, to) = (request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        let bad = match (failure, request.kind) {
            (Some(Failure { from_bytes, to_bytes, .. }), Kind::Flush) => Some((from_bytes, to_bytes)),
            (Some(Failure { from_bytes, to_bytes, .. }), _) => Some((from_bytes.max(from), to_bytes.min(to))),
            (None, Kind::Read) => self.first_lost(member, from, to),
            (None, _) => None,
        };
        if let Some(bad) = bad {
            self.command_failed(completion.at_ns, command, bad);
        } else if request.kind == Kind::Write && !matches!(command.owner, Owner::Rebuild(..)) {
            self.mark_valid(member, from, to);
        }
        self.command_done(completion.at_ns, command);
    }

    /// Handles a command that could not read or write the bytes `bad` of its member.
    fn command_failed(&mut self, now_ns: u64, command: &Command, bad: (u64, u64)) {
        if command.request.kind != Kind::Read {
            return self.write_failed(command, bad);
        }
        match command.owner {
            Owner::Operation(number) => {
                self.read_failed(now_ns, command, number, bad);
                self.read_after_bad_run(now_ns, command, bad.1);
            }
            Owner::Row(number) => {
                self.row_read_failed(now_ns, command, number, bad);
                self.read_after_bad_run(now_ns, command, bad.1);
            }
            Owner::Rebuild(group, _) => {
                self.rebuild_read_failed(now_ns, command, group, bad);
                self.read_after_bad_run(now_ns, command, bad.1);
            }
            Owner::Pass(group, _) => {
                self.pass_read_failed(now_ns, command.member, group, bad);
                self.read_after_bad_run(now_ns, command, bad.1);
            }
            // Second failure of a run: no other source is left.
            Owner::Relay(number) if matches!(self.relays.get(number).then, RelayEnd::Restore { .. }) => {
                self.repair_read_failed(now_ns, command, number, bad);
            }
            Owner::Relay(number) => self.relay_failed(number, command.member, bad),
            // The cache in flash reads only one copy.
            Owner::Request(number) => {
                let at_bytes = self.requests.get(number).request.offset_bytes;
                self.fail_origin(Origin::Request(number), at_bytes);
            }
            Owner::Transfer(number) => self.fail_origin(Origin::Transfer(number), 0),
            Owner::Bitmap(_) | Owner::Log(..) | Owner::Background | Owner::Nobody => {}
        }
    }

    /// Reads the rest of a command after a bad run.
    fn read_after_bad_run(&mut self, now_ns: u64, command: &Command, from: u64) {
        let to = command.request.offset_bytes + u64::from(command.request.length_bytes);
        if from < to {
            let rest = Request { offset_bytes: from, length_bytes: (to - from) as u32, ..command.request };
            self.expect_command(command.owner);
            self.issue(now_ns, command.member, command.owner, rest);
        }
    }

    /// Counts one more command that `owner` waits for.
    fn expect_command(&mut self, owner: Owner) {
        match owner {
            Owner::Operation(number) => self.operations.get_mut(number).pending += 1,
            Owner::Row(number) => self.row_writes.get_mut(number).pending += 1,
            Owner::Rebuild(group, step) => self.groups[group as usize].expect_part(step),
            Owner::Pass(group, pass) => self.expect_pass_part(group, pass),
            // Commands of these owners do not continue after a bad run.
            Owner::Request(_) | Owner::Relay(_) | Owner::Transfer(_) | Owner::Bitmap(_) | Owner::Log(..) => {}
            Owner::Background | Owner::Nobody => {}
        }
    }

    fn read_failed(&mut self, now_ns: u64, command: &Command, operation: u32, (from, to): (u64, u64)) {
        let group = self.operations.get(operation).group;
        let slot = self.groups[group as usize].slot_at(command.member, from);
        let bad = Extent { slot, at_bytes: from, length_bytes: to - from };
        let run = self.run_of(operation);
        let Some(sources) = self.recovery(run, group, &bad) else {
            return self.fail_part(operation, slot, (from, to));
        };
        self.counters.reconstruction_reads += sources.len() as u64;
        self.relay(now_ns, now_ns, operation, group, &sources, vec![bad]);
    }

    /// Handles old data or parity that a row write needs but a member cannot read: reconstructs the bytes from the rest
    /// of the row, and rewrites them unless the row write replaces them anyway.
    fn row_read_failed(&mut self, now_ns: u64, command: &Command, number: u32, (from, to): (u64, u64)) {
        let row = *self.row_writes.get(number);
        let slot = self.groups[row.group as usize].slot_at(command.member, from);
        let bad = Extent { slot, at_bytes: from, length_bytes: to - from };
        let Some(sources) = self.groups[row.group as usize].recovery(&bad) else {
            return self.fail_part(row.operation, slot, (from, to));
        };
        self.counters.reconstruction_reads += sources.len() as u64;
        for source in &sources {
            self.row_command(now_ns, number, row.group, Kind::Read, source);
        }
        if !self.row_renews(row.group, &row.part, &bad) {
            self.issue(now_ns, command.member, Owner::Background, request(Kind::Write, &bad));
        }
    }

    fn rebuild_read_failed(&mut self, now_ns: u64, command: &Command, group: u32, (from, to): (u64, u64)) {
        let state = &self.groups[group as usize];
        let bad = Extent { slot: state.slot_at(command.member, from), at_bytes: from, length_bytes: to - from };
        if let Some(sources) = state.recovery(&bad) {
            self.counters.reconstruction_reads += sources.len() as u64;
            for source in &sources {
                if let Some(member) = self.groups[group as usize].member_for(source, Kind::Read) {
                    self.expect_command(command.owner);
                    self.issue(now_ns, member, command.owner, request(Kind::Read, source));
                }
            }
            return self.issue(now_ns, command.member, Owner::Background, request(Kind::Write, &bad));
        }
        self.add_damage(group, &bad);
    }

    /// Records the bytes that the member being filled will lack because of bytes that cannot be read.
    pub(super) fn add_damage(&mut self, group: u32, bad: &Extent) {
        let (member, damaged) = self.groups[group as usize].damage(bad);
        for extent in damaged {
            self.counters.lost_bytes += extent.length_bytes;
            self.lost.push(LostBytes { member, from: extent.at_bytes, to: extent.end_bytes() });
        }
    }

    /// Handles bytes that a member could not store: fails the write unless redundancy still holds the data.
    fn write_failed(&mut self, command: &Command, (from, to): (u64, u64)) {
        let Command { member, owner, .. } = *command;
        self.lost.push(LostBytes { member, from, to });
        let Some(group) = self.groups.iter().position(|state| state.serves(member)) else {
            return;
        };
        let state = &self.groups[group];
        let bad = Extent { slot: state.slot_at(member, from), at_bytes: from, length_bytes: to - from };
        let is_held_elsewhere = match self.pools[group] {
            Some(_) => !state.is_gone(),
            None => state.recovery(&bad).is_some(),
        };
        if is_held_elsewhere {
            return;
        }
        match owner {
            Owner::Operation(operation) => self.fail_part(operation, bad.slot, (from, to)),
            Owner::Row(row) => self.fail_part(self.row_writes.get(row).operation, bad.slot, (from, to)),
            Owner::Request(number) => {
                let whole = (0, self.lun_bases[self.lun_bases.len() - 1]);
                let at_bytes = self.address_of(whole, group as u32, bad.slot, (from, to)).unwrap_or(0);
                self.fail_origin(Origin::Request(number), at_bytes);
            }
            Owner::Relay(number) => self.relay_failed(number, member, (from, to)),
            Owner::Rebuild(..) | Owner::Pass(..) | Owner::Transfer(_) | Owner::Bitmap(_) | Owner::Log(..) => {}
            Owner::Background | Owner::Nobody => {}
        }
    }

    /// Returns the address range of an operation.
    fn run_of(&self, operation: u32) -> (u64, u64) {
        match self.operations.get(operation).origin {
            Origin::Request(number) => {
                let request = self.requests.get(number).request;
                (request.offset_bytes, u64::from(request.length_bytes))
            }
            Origin::Transfer(number) => self.transfer_run(number),
        }
    }

    /// Records that an operation cannot read bytes of a slot.
    pub(super) fn fail_part(&mut self, operation: u32, slot: u32, bad: (u64, u64)) {
        let run = self.run_of(operation);
        let group = self.operations.get(operation).group;
        let at_bytes = self.address_of(run, group, slot, bad).unwrap_or(run.0);
        self.fail_operation(operation, at_bytes);
    }

    /// Fails an operation that cannot read or write the bytes from an address on.
    pub(super) fn fail_operation(&mut self, operation: u32, at_bytes: u64) {
        self.fail_origin(self.operations.get(operation).origin, at_bytes);
    }

    /// Reports a failure to the origin of an operation. If several addresses fail, the lowest is reported.
    pub(super) fn fail_origin(&mut self, origin: Origin, at_bytes: u64) {
        match origin {
            Origin::Request(number) => {
                let failed = &mut self.requests.get_mut(number).failed;
                *failed = Some(failed.map_or(at_bytes, |known| known.min(at_bytes)));
            }
            Origin::Transfer(number) => self.fail_transfer(number),
        }
    }

    /// Returns the first run of a member's bytes that is lost, between `from` and `to`.
    fn first_lost(&self, member: u32, from: u64, to: u64) -> Option<(u64, u64)> {
        let overlaps = self.lost.iter().filter(|lost| lost.member == member && lost.from < to && from < lost.to);
        overlaps.map(|lost| (lost.from.max(from), lost.to.min(to))).min()
    }

    /// Marks bytes of a member as holding valid data again.
    fn mark_valid(&mut self, member: u32, from: u64, to: u64) {
        let mut kept = Vec::with_capacity(self.lost.len());
        for lost in self.lost.drain(..) {
            if lost.member != member || lost.to <= from || to <= lost.from {
                kept.push(lost);
                continue;
            }
            let parts = [LostBytes { to: from, ..lost }, LostBytes { from: to, ..lost }];
            kept.extend(parts.into_iter().filter(|part| part.from < part.to));
        }
        self.lost = kept;
    }
}
