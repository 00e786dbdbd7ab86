//! Member failures: other members serve the commands in flight at a failed member, or the commands fail.

use headstack_workload::Kind;

use super::health::{GroupState, SlotState};
use super::levels::Extent;
use super::state::{Array, Event};
use super::under_way::{Command, Owner};

impl Array {
    pub(super) fn member_fails(&mut self, now_ns: u64, member: u32) {
        self.set_member_next(member as usize, u64::MAX);
        self.missing[member as usize] = true;
        Self::log_failure(now_ns, member);
        self.lost.retain(|lost| lost.member != member);
        self.standing += 1;
        self.fillings_changed = true;
        let mut lost = false;
        for group in 0..self.groups.len() as u32 {
            let state = &mut self.groups[group as usize];
            state.spares.retain(|&spare| spare != member);
            let Some(slot) = state.served_by(member) else {
                continue;
            };
            if state.slots[slot].state == SlotState::Whole {
                state.not_whole += 1;
            } else {
                // The spare itself failed, and everything rebuilt so far is lost.
                state.rebuilding = None;
            }
            state.slots[slot].state = SlotState::Missing;
            state.slots[slot].losses += 1;
            debug_assert!(state.is_counted(), "`not_whole` matches the slots");
            if state.lost() {
                state.gone = true;
                state.rebuilding = None;
                lost = true;
                self.lose(now_ns, group, member);
            }
            self.stop_pass(group);
        }
        if lost {
            // The run ends here. If it continues, the commands are resolved first.
            self.at(now_ns, Event::Replace(member));
        } else {
            self.replace_member(now_ns, member);
        }
    }

    /// Serves the commands of a failed member from other members, and gives its slot to a spare.
    pub(super) fn replace_member(&mut self, now_ns: u64, member: u32) {
        self.reissue(now_ns, member);
        (0..self.groups.len() as u32).for_each(|group| self.take_spare(now_ns, group));
    }

    fn lose(&mut self, now_ns: u64, group: u32, member: u32) {
        let group_name = &self.description.groups[group as usize].name;
        let name = |member: u32| self.description.members[member as usize].name.as_str();
        let state = &self.groups[group as usize];
        let earlier = state.slots.iter().filter(|slot| slot.state != SlotState::Whole && slot.member != member);
        let earlier: Vec<&str> = earlier.map(|slot| name(slot.member)).collect();
        let gone =
            if earlier.is_empty() { String::new() } else { format!(" while {} was missing", earlier.join(", ")) };
        let seconds = now_ns as f64 / 1e9;
        let text = format!("group {group_name} lost {} at {seconds:.3} s{gone}: data are gone", name(member));
        self.data_loss.get_or_insert(text);
    }

    /// Serves commands that were in flight at a failed member from other members.
    fn reissue(&mut self, now_ns: u64, member: u32) {
        let of_member = self.commands.iter().filter(|(_, command)| command.member == member);
        let lost: Vec<u32> = of_member.map(|(number, _)| number).collect();
        for number in lost {
            let command = *self.commands.get(number);
            // An event or a queue may still refer to a tagged command: keep the command, without an owner.
            self.commands.get_mut(number).owner = Owner::Nobody;
            self.replace(now_ns, &command);
        }
        self.release_link_of_lost(now_ns, member as usize);
    }

    fn replace(&mut self, now_ns: u64, command: &Command) {
        self.fail_if_gone(command);
        match command.owner {
            Owner::Operation(operation) if command.request.kind == Kind::Read => {
                self.read_elsewhere(now_ns, operation, command);
            }
            Owner::Row(row) => self.row_writes.get_mut(row).again |= command.request.kind == Kind::Read,
            Owner::Operation(_) | Owner::Request(_) | Owner::Relay(_) | Owner::Rebuild(..) | Owner::Pass(..) => {}
            Owner::Transfer(_) | Owner::Bitmap(_) | Owner::Log(..) | Owner::Background | Owner::Nobody => {}
        }
        self.command_done(now_ns, command);
    }

    /// Reads the data that a failed member did not deliver from the remaining members.
    fn read_elsewhere(&mut self, now_ns: u64, operation: u32, command: &Command) {
        let group = self.operations.get(operation).group;
        let state = &self.groups[group as usize];
        let (at, length) = (command.request.offset_bytes, u64::from(command.request.length_bytes));
        let slot = state.slot_at(command.member, at);
        let mut extents = Vec::new();
        state.sources(&Extent { slot, at_bytes: at, length_bytes: length }, &mut extents);
        self.counters.reconstruction_reads += extents.len() as u64;
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Read, extent);
        }
    }

    /// Fails a command that no other member can serve.
    fn fail_if_gone(&mut self, command: &Command) {
        let operation = match command.owner {
            Owner::Operation(operation) => operation,
            Owner::Row(row) => self.row_writes.get(row).operation,
            Owner::Relay(relay) => {
                let has_slot = |state: &GroupState| state.slots.iter().any(|slot| slot.member == command.member);
                if self.groups.iter().any(|state| state.gone && has_slot(state)) {
                    let from = command.request.offset_bytes;
                    let to = from + u64::from(command.request.length_bytes);
                    self.relay_failed(relay, command.member, (from, to));
                }
                return;
            }
            Owner::Request(_) | Owner::Rebuild(..) | Owner::Pass(..) | Owner::Transfer(_) => return,
            Owner::Bitmap(_) | Owner::Log(..) | Owner::Background | Owner::Nobody => return,
        };
        let state = &self.groups[self.operations.get(operation).group as usize];
        let (at_bytes, length_bytes) = (command.request.offset_bytes, u64::from(command.request.length_bytes));
        let extent = Extent { slot: state.slot_at(command.member, at_bytes), at_bytes, length_bytes };
        if state.gone && state.recovery(&extent).is_none() {
            self.fail_part(operation, extent.slot, (at_bytes, extent.end_bytes()));
        }
    }
}
