//! Events of an array for the event log ([`crate::chronicle`]).

use headstack_workload::{Kind, Request};

use super::levels::Layout;
use super::state::Array;
use super::under_way::{Origin, Owner, RowWrite};
use crate::chronicle::{Event, Purpose, note};

impl Array {
    /// Logs a command on its way to a member.
    #[inline(always)]
    pub(super) fn log_command(&self, now_ns: u64, number: u32) {
        note(|names| {
            let command = self.commands.get(number);
            let (purpose, host) = self.purpose_of(command.owner, command.member, &command.request);
            Event::Command {
                at_ns: now_ns,
                command: names.new_command(number),
                member: command.member,
                kind: command.request.kind.name(),
                offset_bytes: command.request.offset_bytes,
                length_bytes: command.request.length_bytes,
                purpose,
                request: host.map(|id| names.request(id)),
            }
        });
    }

    /// Logs the completion of a member's command.
    #[inline(always)]
    pub(super) fn log_answer(now_ns: u64, number: u32) {
        note(|names| Event::Answers { at_ns: now_ns, command: names.command(number) });
    }

    /// Logs the failure of a member.
    #[inline(always)]
    pub(super) fn log_failure(now_ns: u64, member: u32) {
        note(|_| Event::Fails { at_ns: now_ns, member });
    }

    /// Logs the progress of a rebuild.
    #[inline(always)]
    pub(super) fn log_rebuilt(now_ns: u64, member: u32, done_bytes: u64, of_bytes: u64) {
        note(|_| Event::Rebuilt { at_ns: now_ns, member, done_bytes, of_bytes });
    }

    /// Returns the purpose of a command to a member, and the host's ID of the request that waits for the command.
    fn purpose_of(&self, owner: Owner, member: u32, request: &Request) -> (Purpose, Option<u32>) {
        match owner {
            Owner::Request(number) => (Purpose::Data, Some(self.requests.get(number).id)),
            Owner::Operation(operation) => {
                let host = self.host_of(self.operations.get(operation).origin);
                (self.purpose_in_operation(operation, member, request), host)
            }
            Owner::Row(row) => {
                let row = self.row_writes.get(row);
                let host = self.host_of(self.operations.get(row.operation).origin);
                (self.purpose_in_row(row, member, request), host)
            }
            Owner::Rebuild(..) => (Purpose::Rebuild, None),
            Owner::Transfer(number) => (Purpose::Upkeep, self.host_of(Origin::Transfer(number))),
            Owner::Pass(..) | Owner::Relay(_) | Owner::Bitmap(_) | Owner::Log(..) => (Purpose::Upkeep, None),
            Owner::Background | Owner::Nobody => (Purpose::Upkeep, None),
        }
    }

    fn host_of(&self, origin: Origin) -> Option<u32> {
        let number = match origin {
            Origin::Request(number) => Some(number),
            Origin::Transfer(number) => self.cache.as_ref().and_then(|cache| cache.transfers.get(number).request),
        };
        number.map(|number| self.requests.get(number).id)
    }

    /// Returns the purpose of a command of an operation. On a degraded stripe, an operation reads more than the
    /// requested data.
    fn purpose_in_operation(&self, operation: u32, member: u32, request: &Request) -> Purpose {
        let operation = self.operations.get(operation);
        let state = &self.groups[operation.group as usize];
        let Layout::Parity(_) = &state.layout else {
            return Purpose::Data;
        };
        if state.is_whole() || request.kind != Kind::Read {
            return Purpose::Data;
        }
        let (from, length) = match operation.origin {
            Origin::Request(number) => {
                let request = &self.requests.get(number).request;
                (request.offset_bytes, u64::from(request.length_bytes))
            }
            Origin::Transfer(number) => {
                let transfer =
                    self.cache.as_ref().expect("only arrays with a cache have transfers").transfers.get(number);
                (transfer.offset_bytes, transfer.length_bytes)
            }
        };
        let slot = state.slot_at(member, request.offset_bytes);
        let end_bytes = request.offset_bytes + u64::from(request.length_bytes);
        match self.address_of((from, length), operation.group, slot, (request.offset_bytes, end_bytes)) {
            Some(_) => Purpose::Data,
            None => Purpose::Survivor,
        }
    }

    fn purpose_in_row(&self, row: &RowWrite, member: u32, request: &Request) -> Purpose {
        let slot = self.groups[row.group as usize].slot_at(member, request.offset_bytes);
        let plan = self.plan(row.group, &row.part);
        let is_parity = plan.parity.iter().any(|extent| extent.slot == slot);
        match (is_parity, request.kind) {
            (true, _) => Purpose::Parity,
            (false, Kind::Read) => Purpose::Old,
            (false, Kind::Write | Kind::Trim | Kind::Flush) => Purpose::Data,
        }
    }
}
