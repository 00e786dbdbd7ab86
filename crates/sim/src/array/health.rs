//! Who serves which slot: failures, spares, rebuilding. The same layout serves in every state.

use headstack_workload::Kind;

use super::description::{Group, Level, MirrorReads, Rebuild, SmallWrites};
use super::layout::{Extent, Layout};
use super::members::{Command, Owner};
use super::rebuild::Rebuilding;
use super::{Array, Event};
use crate::gauges::{GroupGauge, GroupHealth};

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
    pub(super) slots: Vec<Slot>,
    pub(super) not_whole: u32,
    /// More went than redundancy makes up for: nothing is rebuilt any more.
    pub(super) gone: bool,
    /// Segments lie anywhere: any two neighbours may hold the copies of one.
    pooled: bool,
    pub(super) spares: Vec<u32>,
    pub(super) rebuild: Rebuild,
    /// The rebuild that is under way; others wait for it.
    pub(super) rebuilding: Option<Rebuilding>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub member: u32,
    pub state: SlotState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// It holds what it should.
    Whole,
    /// Nobody serves it.
    Missing,
    /// A spare is being filled: below `done_bytes` it holds what it should; below `begun_bytes` writes go there too.
    Filling { done_bytes: u64, begun_bytes: u64 },
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
            gone: false,
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
    pub(super) fn member_fails(&mut self, now_ns: u64, member: u32) {
        self.set_member_next(member as usize, u64::MAX);
        self.missing[member as usize] = true;
        self.lost.retain(|lost| lost.member != member);
        let mut lost = false;
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
                state.gone = true;
                state.rebuilding = None;
                lost = true;
                self.lose(now_ns, group, member);
            }
        }
        if lost {
            // A run ends here; who goes on hears next what became of the commands.
            self.at(now_ns, Event::Replace(member));
        } else {
            self.replace_member(now_ns, member);
        }
    }

    /// Its commands are done otherwise, and its place is taken.
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
        self.fail_if_gone(command);
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

    /// Nobody can do the command in place of its member.
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
            _ => return,
        };
        let state = &self.groups[self.operations.get(operation).group as usize];
        let (at_bytes, length_bytes) = (command.request.offset_bytes, u64::from(command.request.length_bytes));
        let extent = Extent { slot: state.slot_of(command.member), at_bytes, length_bytes };
        if state.gone && state.recovery(&extent).is_none() {
            self.fail_part(operation, extent.slot, (at_bytes, extent.end_bytes()));
        }
    }
}

impl GroupState {
    /// Where what an extent should hold can be had from: its other copy, or enough of its row.
    pub(super) fn sources(&self, extent: &Extent, into: &mut Vec<Extent>) {
        let layout = &self.layout;
        let readable = |extent: &Extent| self.member_for(extent, Kind::Read).is_some();
        match layout.level {
            Level::Concat | Level::Raid0 => {}
            Level::Raid1 => {
                let others = (0..layout.all_slots()).filter(|&slot| slot != extent.slot);
                let copies = others.map(|slot| Extent { slot, ..*extent });
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

    /// As [`Self::sources`], from members that can be read; `None` where they do not suffice.
    pub fn recovery(&self, extent: &Extent) -> Option<Vec<Extent>> {
        let mut sources = Vec::new();
        self.sources(extent, &mut sources);
        let readable = sources.iter().all(|source| self.member_for(source, Kind::Read).is_some());
        let suffice = match self.layout.level {
            Level::Concat | Level::Raid0 => false,
            Level::Raid1 | Level::Raid10 => !sources.is_empty(),
            Level::Raid5 | Level::Raid6 => sources.len() as u64 == self.layout.data_units,
        };
        (readable && suffice).then_some(sources)
    }

    /// The slot of a member that serves, or served last.
    ///
    /// # Panics
    /// If it never did.
    pub fn slot_of(&self, member: u32) -> u32 {
        self.slots.iter().position(|slot| slot.member == member).expect("it had a slot") as u32
    }

    /// The member has a slot and answers.
    pub fn serves(&self, member: u32) -> bool {
        self.slots.iter().any(|slot| slot.member == member && slot.state != SlotState::Missing)
    }

    /// The member is being filled.
    pub fn is_filling(&self, member: u32) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.member == member && matches!(slot.state, SlotState::Filling { .. }))
    }

    /// More went than redundancy makes up for.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// How it is, for people; what members lost of it is the array's to say.
    pub fn gauge(&self, name: &str) -> GroupGauge {
        let state = match &self.rebuilding {
            _ if self.gone => GroupHealth::Failed,
            Some(_) => GroupHealth::Rebuilding,
            None if self.is_whole() => GroupHealth::Healthy,
            None => GroupHealth::Degraded,
        };
        let rebuilt_bytes = match self.rebuilding.as_ref().map(|rebuilding| self.slots[rebuilding.slot as usize].state)
        {
            Some(SlotState::Filling { done_bytes, .. }) => done_bytes,
            _ => 0,
        };
        GroupGauge {
            name: name.to_owned(),
            level: self.layout.level,
            state,
            rebuilt_bytes,
            of_bytes: if self.rebuilding.is_some() { self.layout.slot_bytes } else { 0 },
            lost_bytes: 0,
        }
    }
}
