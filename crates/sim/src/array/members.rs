//! Commands on their way to members and back: tags, links, events.

use headstack_workload::{Kind, Request};

use super::state::{Array, Event};
use super::under_way::{Command, Owner};
use crate::chronicle;
use crate::link::Upstream;

impl Array {
    /// Sends a command to a member.
    pub(super) fn issue(&mut self, now_ns: u64, member: u32, owner: Owner, request: Request) {
        let number = self.commands.insert(Command { owner, member, request, tagged: false });
        let ready_ns = self.processors.work(now_ns, self.description.controller.command_ns);
        self.log_command(now_ns, number);
        self.ports[member as usize].last_end_bytes = request.offset_bytes + u64::from(request.length_bytes);
        if ready_ns > now_ns { self.at(ready_ns, Event::Offer(number)) } else { self.offer(now_ns, number) }
    }

    /// Gives a prepared command a tag, or queues the command until a tag is free.
    pub(super) fn offer(&mut self, now_ns: u64, number: u32) {
        if self.drop_if_unowned(number) {
            return;
        }
        let member = self.commands.get(number).member;
        let port = &mut self.ports[member as usize];
        if port.tagged < port.tags {
            port.tagged += 1;
            self.deliver(now_ns, number);
        } else {
            port.waiting.push_back(number);
        }
        debug_assert!(self.ports[member as usize].is_filled_up(), "no command waits while a tag is free");
    }

    /// Drops a command whose member is gone and for which no request waits; returns whether it did.
    fn drop_if_unowned(&mut self, number: u32) -> bool {
        let forgotten = self.commands.get(number).owner == Owner::Nobody;
        if forgotten {
            self.commands.remove(number);
        }
        forgotten
    }

    /// Sends a command with a tag, one adapter interval after the previous command to the member.
    fn deliver(&mut self, now_ns: u64, number: u32) {
        self.commands.get_mut(number).tagged = true;
        let Command { member, request, .. } = *self.commands.get(number);
        let interval_ns = self.description.controller.adapter.map_or(0, |adapter| adapter.interval_ns(&request));
        let port = &mut self.ports[member as usize];
        let start_ns = now_ns.max(port.free_ns);
        port.free_ns = start_ns + interval_ns;
        if start_ns > now_ns {
            self.at(start_ns, Event::Deliver(number));
        } else {
            self.cross_links(now_ns, number);
        }
    }

    /// Sends a command across the links.
    pub(super) fn cross_links(&mut self, now_ns: u64, number: u32) {
        if self.drop_if_unowned(number) {
            return;
        }
        let member = self.commands.get(number).member as usize;
        let port = &mut self.ports[member];
        port.way = if port.way + 1 == port.ways.len() { 0 } else { port.way + 1 };
        let way = self.ports[member].way();
        if way.is_empty() {
            return self.hand_over(now_ns, number);
        }
        let held = way.iter().find(|&&link| self.links[link as usize].description().held_by_command);
        if let Some(&link) = held {
            let held = &mut self.held[link as usize];
            if held.by_command {
                held.waiting.push_back(number);
                return;
            }
            (held.by_command, held.member) = (true, member as u32);
        }
        let links = &mut self.links;
        let waited_ns = way.iter().map(|&link| links[link as usize].deliver_command(now_ns)).max().unwrap_or(0);
        if waited_ns > 0 {
            self.at(now_ns + waited_ns, Event::HandOver(number));
        } else {
            self.hand_over(now_ns, number);
        }
    }

    /// Hands a command to its member.
    pub(super) fn hand_over(&mut self, now_ns: u64, number: u32) {
        if self.drop_if_unowned(number) {
            return;
        }
        let command = self.commands.get(number);
        let at = command.member as usize;
        let mut upstream = Upstream::new(now_ns, &mut self.links, self.ports[at].way());
        self.traffic[at].count(&command.request);
        chronicle::at_member(at);
        self.members[at].submit(&mut upstream, now_ns, number, &command.request);
        self.set_member_next(at, self.members[at].next_event_ns());
    }

    /// Processes an event of a member.
    pub(super) fn member_event(&mut self, at: usize, now_ns: u64) {
        let mut batch = std::mem::take(&mut self.batch);
        let mut upstream = Upstream::new(now_ns, &mut self.links, self.ports[at].way());
        chronicle::at_member(at);
        self.members[at].advance(&mut upstream, now_ns, |completion| batch.push(completion));
        self.set_member_next(at, self.members[at].next_event_ns());
        let is_suspect = self.members[at].has_failures() || !self.lost.is_empty();
        for completion in batch.drain(..) {
            Self::log_answer(completion.at_ns, completion.id);
            self.release(completion.at_ns, completion.id);
            let command = self.commands.remove(completion.id);
            if is_suspect {
                self.suspect_command_done(&completion, &command);
            } else {
                self.command_done(completion.at_ns, &command);
            }
        }
        self.batch = batch;
    }

    /// Releases the tag of a command, and the link that the command holds.
    pub(super) fn release(&mut self, now_ns: u64, number: u32) {
        let at = self.commands.get(number).member as usize;
        debug_assert!(self.ports[at].tagged > 0, "only a command with a tag releases one");
        self.ports[at].tagged -= 1;
        if let Some(next) = self.ports[at].waiting.pop_front() {
            self.ports[at].tagged += 1;
            self.deliver(now_ns, next);
        }
        debug_assert!(self.ports[at].is_filled_up(), "no command waits while a tag is free");
        self.release_link(now_ns, at);
    }

    /// Gives the link that a member's command held to the next waiting command.
    fn release_link(&mut self, now_ns: u64, at: usize) {
        let held = |link: &&u32| self.links[**link as usize].description().held_by_command;
        let Some(&link) = self.ports[at].ways[0].iter().find(held) else {
            return;
        };
        self.held[link as usize].by_command = false;
        while let Some(next) = self.held[link as usize].waiting.pop_front() {
            if !self.drop_if_unowned(next) {
                return self.deliver(now_ns, next);
            }
        }
    }

    /// Releases the link that a command of a failed member held.
    pub(super) fn release_link_of_lost(&mut self, now_ns: u64, at: usize) {
        let holds = |link: &u32| {
            let held = &self.held[*link as usize];
            held.by_command && held.member as usize == at
        };
        if self.ports[at].ways[0].iter().any(holds) {
            self.release_link(now_ns, at);
        }
    }

    /// Notifies the owner of a completed command.
    pub(super) fn command_done(&mut self, now_ns: u64, command: &Command) {
        match command.owner {
            Owner::Request(number) => self.part_done(now_ns, number),
            Owner::Operation(number) => self.operation_part_done(now_ns, number),
            Owner::Relay(number) => self.relay_part_done(now_ns, number),
            Owner::Row(number) => self.row_part_done(now_ns, number),
            Owner::Rebuild(group, step) => {
                self.rebuild_part_done(now_ns, group, step, command.request.kind == Kind::Read)
            }
            Owner::Pass(group, pass) => self.pass_part_done(now_ns, group, pass),
            Owner::Transfer(number) => self.transfer_part_done(now_ns, number),
            Owner::Bitmap(group) => self.bitmap_command_done(now_ns, group, command.member, command.request.kind),
            Owner::Log(group, slot) => self.log_command_done(now_ns, group, slot, command.request.kind),
            Owner::Background | Owner::Nobody => {}
        }
    }
}
