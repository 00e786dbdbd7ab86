//! Who serves which slot: failures, spares, rebuilding. The same layout serves in every state.

use headstack_workload::Kind;

use super::description::{Group, IncidentKind, Level, MirrorReads, Rebuild, SmallWrites};
use super::layout::{Extent, Layout};
use super::members::{Command, Owner};
use super::operations::request;
use super::{Array, Event};

/// A group in its present state.
#[derive(Clone, Debug)]
pub struct GroupState {
    /// Its layout.
    pub layout: Layout,
    /// Which copy a read takes.
    pub mirror_reads: MirrorReads,
    /// How small writes keep parity true.
    pub small_writes: SmallWrites,
    /// Reads so far, for taking turns.
    pub reads: u64,
    slots: Vec<Slot>,
    not_whole: u32,
    /// Segments lie anywhere: any two neighbours may hold the copies of one.
    pooled: bool,
    spares: Vec<u32>,
    rebuild: Rebuild,
    /// The rebuild that is under way; others wait for it.
    rebuilding: Option<Rebuilding>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    member: u32,
    state: SlotState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    /// It holds what it should.
    Whole,
    /// Nobody serves it.
    Missing,
    /// A spare is being filled: below `done_bytes` it holds what it should; below `begun_bytes` writes go there too.
    Filling { done_bytes: u64, begun_bytes: u64 },
}

/// The rebuild of one slot.
#[derive(Clone, Debug)]
struct Rebuilding {
    slot: u32,
    /// Steps under way: first byte, commands that are not done, finished.
    steps: Vec<Step>,
    begun_ns: u64,
    /// When the rate limit allows the next step.
    allowed_ns: u64,
    /// An event will begin the next step.
    scheduled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    from_bytes: u64,
    to_bytes: u64,
    pending: u32,
    begun_ns: u64,
    done: bool,
}

impl GroupState {
    /// A group in good health.
    pub fn new(group: &Group) -> GroupState {
        GroupState {
            layout: Layout::new(group),
            mirror_reads: group.mirror_reads,
            small_writes: group.small_writes,
            reads: 0,
            slots: group.members.iter().map(|&member| Slot { member, state: SlotState::Whole }).collect(),
            not_whole: 0,
            pooled: group.pool.is_some(),
            spares: group.spares.clone(),
            rebuild: group.rebuild,
            rebuilding: None,
        }
    }

    /// Every slot holds what it should.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.not_whole == 0
    }

    /// The member that can read an extent, or must write it; `None` if nobody.
    #[inline]
    pub fn member_for(&self, extent: &Extent, kind: Kind) -> Option<u32> {
        let slot = &self.slots[extent.slot as usize];
        let serves = match slot.state {
            SlotState::Whole => true,
            SlotState::Missing => false,
            SlotState::Filling { done_bytes, .. } if kind == Kind::Read => extent.end_bytes() <= done_bytes,
            SlotState::Filling { begun_bytes, .. } => extent.at_bytes < begun_bytes,
        };
        serves.then_some(slot.member)
    }

    /// The member of a slot that takes commands at all.
    pub fn live_member(&self, slot: u32) -> Option<u32> {
        let slot = &self.slots[slot as usize];
        (slot.state != SlotState::Missing).then_some(slot.member)
    }

    /// Something that was stored is on no slot any more: where.
    fn lost(&self) -> bool {
        let whole = |slot: u64| self.slots[slot as usize].state == SlotState::Whole;
        let layout = &self.layout;
        match layout.level {
            Level::Concat | Level::Raid0 => self.not_whole > 0,
            Level::Raid1 => self.not_whole as usize == self.slots.len(),
            // Neighbours hold the copies: in pairs where their number is even, all round where it is odd.
            Level::Raid10 => (0..layout.slots).any(|slot| {
                let pair = self.pooled || layout.slots % 2 == 1 || slot % 2 == 0;
                pair && !whole(slot) && !whole((slot + 1) % layout.slots)
            }),
            Level::Raid5 | Level::Raid6 => (0..layout.spans).any(|span| {
                let slots = span * layout.slots..(span + 1) * layout.slots;
                slots.filter(|&slot| !whole(slot)).count() as u64 > layout.parities
            }),
        }
    }
}

impl Array {
    /// Something happens to the array.
    pub(super) fn incident(&mut self, now_ns: u64, number: u32) {
        match self.description.incidents[number as usize].what {
            IncidentKind::MemberFails { member } => self.member_fails(now_ns, member),
            IncidentKind::MemberReturns { .. } | IncidentKind::SpareAdded { .. } => {}
            IncidentKind::BatteryFails => self.set_battery(now_ns, false),
            IncidentKind::BatteryReturns => self.set_battery(now_ns, true),
        }
    }

    fn member_fails(&mut self, now_ns: u64, member: u32) {
        self.set_member_next(member as usize, u64::MAX);
        for group in 0..self.groups.len() as u32 {
            let state = &mut self.groups[group as usize];
            state.spares.retain(|&spare| spare != member);
            let Some(slot) = state.slots.iter().position(|slot| slot.member == member) else {
                continue;
            };
            if state.slots[slot].state == SlotState::Missing {
                continue;
            }
            if state.slots[slot].state == SlotState::Whole {
                state.not_whole += 1;
            } else {
                // The spare itself: what it held of the rebuild is gone with it.
                state.rebuilding = None;
            }
            state.slots[slot].state = SlotState::Missing;
            if state.lost() {
                return self.lose(now_ns, group, member);
            }
        }
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
        self.data_loss =
            Some(format!("group {group_name} lost {} at {seconds:.3} s{gone}: data are gone", name(member)));
    }

    /// What was under way at a member that is gone is done otherwise.
    fn reissue(&mut self, now_ns: u64, member: u32) {
        let lost: Vec<u32> =
            self.commands.numbers().filter(|&number| self.commands.get(number).member == member).collect();
        for number in lost {
            let command = *self.commands.get(number);
            // What is tagged may come up in an event or a queue of the array yet: it is kept, for nobody.
            self.commands.get_mut(number).owner = Owner::Nobody;
            self.replace(now_ns, &command);
        }
        self.release_link_of_lost(now_ns, member as usize);
    }

    fn replace(&mut self, now_ns: u64, command: &Command) {
        match command.owner {
            Owner::Operation(operation) if command.request.kind == Kind::Read => {
                self.read_elsewhere(now_ns, operation, command);
            }
            Owner::Row(row) => self.row_writes.get_mut(row).again |= command.request.kind == Kind::Read,
            _ => {}
        }
        self.command_done(now_ns, command);
    }

    /// Reads again, from those that are left, what a member did not deliver.
    fn read_elsewhere(&mut self, now_ns: u64, operation: u32, command: &Command) {
        let group = self.operations.get(operation).group;
        let state = &self.groups[group as usize];
        let slot = state.slots.iter().position(|slot| slot.member == command.member).expect("it had a slot") as u32;
        let (at, length) = (command.request.offset_bytes, u64::from(command.request.length_bytes));
        let mut extents = Vec::new();
        state.sources(&Extent { slot, at_bytes: at, length_bytes: length }, &mut extents);
        self.counters.reconstruction_reads += extents.len() as u64;
        for extent in &extents {
            self.command(now_ns, operation, group, Kind::Read, extent);
        }
    }

    /// A missing slot gets a spare, if there is one and no other is being filled.
    fn take_spare(&mut self, now_ns: u64, group: u32) {
        let state = &mut self.groups[group as usize];
        if state.rebuilding.is_some() {
            return;
        }
        let Some(slot) = state.slots.iter().position(|slot| slot.state == SlotState::Missing) else {
            return;
        };
        if state.spares.is_empty() {
            return;
        }
        let spare = state.spares.remove(0);
        state.slots[slot] = Slot { member: spare, state: SlotState::Filling { done_bytes: 0, begun_bytes: 0 } };
        state.rebuilding = Some(Rebuilding {
            slot: slot as u32,
            steps: Vec::new(),
            begun_ns: now_ns,
            allowed_ns: now_ns,
            scheduled: false,
        });
        for _ in 0..state.rebuild.steps {
            self.rebuild_on(now_ns, group);
        }
    }

    /// Begins the next step of a rebuild, if it is time.
    pub(super) fn rebuild_on(&mut self, now_ns: u64, group: u32) {
        let busy = self.host_requests > 0;
        let state = &mut self.groups[group as usize];
        let Some(rebuilding) = &mut state.rebuilding else {
            return;
        };
        rebuilding.scheduled = false;
        let slot = rebuilding.slot as usize;
        let SlotState::Filling { done_bytes, begun_bytes } = state.slots[slot].state else {
            return;
        };
        if begun_bytes == state.layout.slot_bytes || rebuilding.steps.len() >= state.rebuild.steps as usize {
            return;
        }
        if now_ns < rebuilding.allowed_ns && (busy || state.rebuild.rate_limit_bytes_per_s.is_some()) {
            rebuilding.scheduled = true;
            let allowed_ns = rebuilding.allowed_ns;
            return self.at(allowed_ns, Event::Rebuild(group));
        }
        let to_bytes = (begun_bytes + state.rebuild.step_bytes).min(state.layout.slot_bytes);
        state.slots[slot].state = SlotState::Filling { done_bytes, begun_bytes: to_bytes };
        if let Some(rate) = state.rebuild.rate_limit_bytes_per_s {
            let pause_ns = ((to_bytes - begun_bytes) as f64 / rate * 1e9) as u64;
            rebuilding.allowed_ns = rebuilding.allowed_ns.max(now_ns.saturating_sub(pause_ns)) + pause_ns;
        }
        let step = Step { from_bytes: begun_bytes, to_bytes, pending: 1, begun_ns: now_ns, done: false };
        rebuilding.steps.push(step);
        let extent = Extent { slot: slot as u32, at_bytes: begun_bytes, length_bytes: to_bytes - begun_bytes };
        let mut sources = Vec::new();
        state.sources(&extent, &mut sources);
        let number = step_number(begun_bytes, state.rebuild.step_bytes);
        for source in &sources {
            self.rebuild_command(now_ns, group, number, Kind::Read, source);
        }
        self.rebuild_part_done(now_ns, group, number, true);
    }

    fn rebuild_command(&mut self, now_ns: u64, group: u32, number: u32, kind: Kind, extent: &Extent) {
        let state = &mut self.groups[group as usize];
        let member = match kind {
            Kind::Read => state.member_for(extent, Kind::Read),
            _ => state.live_member(extent.slot),
        };
        let Some(member) = member else {
            return;
        };
        if let Some(step) = state.step(number) {
            step.pending += 1;
        }
        self.counters.rebuild_commands += 1;
        self.issue(now_ns, member, Owner::Rebuild(group, number), request(kind, extent));
    }

    /// A step of a rebuild waits for one command less: when all is read it writes, when that is done the next may begin.
    pub(super) fn rebuild_part_done(&mut self, now_ns: u64, group: u32, number: u32, reads: bool) {
        let state = &mut self.groups[group as usize];
        let Some(step) = state.step(number) else {
            return;
        };
        step.pending -= 1;
        if step.pending > 0 {
            return;
        }
        let step = *step;
        if reads {
            let slot = state.rebuilding.as_ref().expect("a step belongs to a rebuild").slot;
            let length_bytes = step.to_bytes - step.from_bytes;
            let extent = Extent { slot, at_bytes: step.from_bytes, length_bytes };
            self.rebuild_command(now_ns, group, number, Kind::Write, &extent);
            return;
        }
        self.counters.rebuilt_bytes += step.to_bytes - step.from_bytes;
        self.step_done(now_ns, group, number, step.begun_ns);
    }

    fn step_done(&mut self, now_ns: u64, group: u32, number: u32, begun_ns: u64) {
        let busy = self.host_requests > 0;
        let state = &mut self.groups[group as usize];
        state.step(number).expect("just found").done = true;
        let yields_ns = ((now_ns - begun_ns) as f64 * state.rebuild.yield_to_host) as u64;
        let rebuilding = state.rebuilding.as_mut().expect("a step belongs to a rebuild");
        if busy {
            rebuilding.allowed_ns = rebuilding.allowed_ns.max(now_ns + yields_ns);
        }
        let slot = rebuilding.slot as usize;
        let SlotState::Filling { mut done_bytes, begun_bytes } = state.slots[slot].state else {
            return;
        };
        // Steps end in any order; what holds is what has no gap.
        while let Some(at) = rebuilding.steps.iter().position(|step| step.done && step.from_bytes == done_bytes) {
            done_bytes = rebuilding.steps.remove(at).to_bytes;
        }
        state.slots[slot].state = SlotState::Filling { done_bytes, begun_bytes };
        if done_bytes == state.layout.slot_bytes {
            let took_ns = now_ns - rebuilding.begun_ns;
            state.slots[slot].state = SlotState::Whole;
            state.not_whole -= 1;
            state.rebuilding = None;
            self.rebuilds_ns.push(took_ns);
            return self.take_spare(now_ns, group);
        }
        if !rebuilding.scheduled {
            self.rebuild_on(now_ns, group);
        }
    }
}

fn step_number(from_bytes: u64, step_bytes: u64) -> u32 {
    (from_bytes / step_bytes) as u32
}

impl GroupState {
    fn step(&mut self, number: u32) -> Option<&mut Step> {
        let step_bytes = self.rebuild.step_bytes;
        let steps = &mut self.rebuilding.as_mut()?.steps;
        steps.iter_mut().find(|step| step_number(step.from_bytes, step_bytes) == number)
    }

    /// Where what an extent should hold can be had from: its other copy, or enough of its row.
    fn sources(&self, extent: &Extent, into: &mut Vec<Extent>) {
        let layout = &self.layout;
        let readable = |extent: &Extent| self.member_for(extent, Kind::Read).is_some();
        match layout.level {
            Level::Concat | Level::Raid0 => {}
            Level::Raid1 => {
                let copies = (0..layout.all_slots()).map(|slot| Extent { slot, ..*extent });
                into.extend(copies.filter(readable).take(1));
            }
            Level::Raid10 => layout.units(extent.at_bytes, extent.length_bytes, |row, within, length_bytes| {
                let place = row * layout.slots + u64::from(extent.slot);
                let (slot, at) = layout.copy(place / 2, 1 - place % 2);
                // The last place of an odd layout may have no partner, and holds nothing then.
                if at < layout.slot_bytes {
                    super::layout::join(into, Extent { slot, at_bytes: at + within, length_bytes });
                }
            }),
            Level::Raid5 | Level::Raid6 => {
                let span = u64::from(extent.slot) / layout.slots * layout.slots;
                let others = (span..span + layout.slots).map(|slot| Extent { slot: slot as u32, ..*extent });
                let others = others.filter(|other| other.slot != extent.slot && readable(other));
                into.extend(others.take(layout.data_units as usize));
            }
        }
    }
}
