//! [`GroupState`]: the member that serves each slot of a group, lost bytes, and the spare that is being filled. The
//! layout is the same in every state.

use headstack_workload::Kind;

use super::levels::{Extent, Layout, Parity, Placing};
use super::sync_speed::SyncSpeed;
use crate::description::array::{Group, Level, MirrorReads, Rebuild};
use crate::gauges::{GroupGauge, GroupHealth};

/// The current state of a RAID group.
#[derive(Clone, Debug)]
pub struct GroupState {
    level: Level,
    /// Address arithmetic of the RAID level.
    pub layout: Layout,
    /// Bytes used of each slot.
    pub slot_bytes: u64,
    /// Policy that selects the copy to read.
    pub mirror_reads: MirrorReads,
    /// Number of reads so far, for selecting copies round-robin.
    pub reads: u64,
    /// Start time of the last write of data.
    pub(super) written_ns: Option<u64>,
    pub(super) slots: Vec<Slot>,
    pub(super) not_whole: u32,
    /// Whether more members have failed than redundancy covers; nothing is rebuilt then.
    pub(super) gone: bool,
    /// Idle hot spares.
    pub(super) spares: Vec<u32>,
    /// Distributed spares that are not in use.
    pub(super) free_spares: Vec<u32>,
    /// Number of rebuild steps so far, which is the number of the next step.
    pub(super) steps: u32,
    pub(super) rebuild: Rebuild,
    /// The rebuild in progress. Other missing slots wait for its end.
    pub(super) rebuilding: Option<Rebuilding>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The member that serves the slot, or served it last.
    pub member: u32,
    /// The distributed spare that serves the slot in place of its member.
    pub spare: Option<u32>,
    pub state: SlotState,
    /// Number of times that the contents of the slot were lost with its member.
    pub losses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// The slot holds all its data.
    Whole,
    /// No member serves the slot.
    Missing,
    /// A spare is being filled: bytes below `done_bytes` are valid, and writes below `begun_bytes` also go to the
    /// spare.
    Filling { done_bytes: u64, begun_bytes: u64 },
}

/// The rebuild of one slot.
#[derive(Clone, Debug)]
pub struct Rebuilding {
    /// The slot that is rebuilt.
    pub slot: u32,
    /// Steps in flight.
    pub steps: Vec<Step>,
    /// Start time of the rebuild.
    pub begun_ns: u64,
    /// Time from which the rate limit allows the next step.
    pub allowed_ns: u64,
    /// Whether an event for the next step is scheduled.
    pub scheduled: bool,
    /// Pacing of Linux md.
    pub speed: Option<SyncSpeed>,
    /// Bytes that the layer above has restored, if it fills the slot.
    pub restored_bytes: u64,
}

/// A step of a rebuild.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Number among all rebuild steps of the group.
    pub number: u32,
    /// First byte of the step, on the slot.
    pub from_bytes: u64,
    /// End of the step (exclusive).
    pub to_bytes: u64,
    /// Number of commands in flight.
    pub pending: u32,
    /// Start time of the step.
    pub begun_ns: u64,
    /// Whether the step is complete while an earlier step is not.
    pub done: bool,
}

/// Bytes of a member whose contents are lost.
#[derive(Clone, Copy, Debug)]
pub struct LostBytes {
    /// The member.
    pub member: u32,
    /// First byte.
    pub from: u64,
    /// End of the range (exclusive).
    pub to: u64,
}

impl GroupState {
    /// Creates the state of a healthy group.
    pub fn new(group: &Group) -> GroupState {
        let layout = Layout::new(group.level, &group.shape());
        let whole = |member| Slot { member, spare: None, state: SlotState::Whole, losses: 0 };
        GroupState {
            level: group.level,
            free_spares: (0..layout.distributed().map_or(0, |distributed| distributed.spares())).collect(),
            steps: 0,
            layout,
            slot_bytes: group.member_bytes,
            mirror_reads: group.mirror_reads,
            reads: 0,
            written_ns: None,
            slots: group.members.iter().map(|&member| whole(member)).collect(),
            not_whole: 0,
            gone: false,
            spares: group.spares.clone(),
            rebuild: group.rebuild,
            rebuilding: None,
        }
    }

    /// Whether every slot holds all its data.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.not_whole == 0
    }

    /// Whether `not_whole` matches the number of slots that are not whole.
    pub(super) fn is_counted(&self) -> bool {
        self.slots.iter().filter(|slot| slot.state != SlotState::Whole).count() == self.not_whole as usize
    }

    /// Returns the member that can read an extent or must write it; `None` if no member does.
    #[inline]
    pub fn member_for(&self, extent: &Extent, kind: Kind) -> Option<u32> {
        let slot = &self.slots[extent.slot as usize];
        let serves = match slot.state {
            SlotState::Whole => true,
            SlotState::Missing => false,
            SlotState::Filling { done_bytes, .. } if kind == Kind::Read => extent.end_bytes() <= done_bytes,
            SlotState::Filling { begun_bytes, .. } => extent.at_bytes < begun_bytes,
        };
        match slot.spare {
            None => serves.then_some(slot.member),
            Some(spare) if serves => self.member_for(&self.on_spare(spare, extent)?, kind),
            Some(_) => None,
        }
    }

    /// Returns where a distributed spare holds an extent of a slot; `None` if the spare column there is on the slot
    /// itself.
    fn on_spare(&self, spare: u32, extent: &Extent) -> Option<Extent> {
        let slot = self.layout.distributed()?.spare_slot(spare, extent.at_bytes);
        (slot != extent.slot).then_some(Extent { slot, ..*extent })
    }

    /// Returns the extent whose data are stored at `place`: `place` itself, or the extent for which a distributed spare
    /// uses it; `None` if no data are stored there.
    pub(super) fn held_at(&self, place: &Extent) -> Option<Extent> {
        let Some(distributed) = self.layout.distributed() else {
            return Some(*place);
        };
        let mut held = *place;
        // Spares that refer to each other in a cycle hold nothing.
        for _ in 0..=distributed.spares() {
            let Some(spare) = distributed.spare_at(held.slot, held.at_bytes) else {
                return Some(held);
            };
            held.slot = self.slots.iter().position(|slot| slot.spare == Some(spare))? as u32;
        }
        None
    }

    /// Returns the member to which a rebuild writes an extent.
    pub(super) fn filled_member(&self, extent: &Extent) -> Option<u32> {
        let slot = &self.slots[extent.slot as usize];
        match slot.spare {
            None => self.live_member(extent.slot),
            Some(spare) => self.member_for(&self.on_spare(spare, extent)?, Kind::Write),
        }
    }

    /// Returns the member that serves a slot at the slot's own addresses; `None` if the slot is missing or on a
    /// distributed spare.
    pub fn live_member(&self, slot: u32) -> Option<u32> {
        let slot = &self.slots[slot as usize];
        (slot.state != SlotState::Missing && slot.spare.is_none()).then_some(slot.member)
    }

    /// Whether a byte of a slot is valid.
    fn is_whole_at(&self, slot: u32, at_bytes: u64) -> bool {
        let at = &self.slots[slot as usize];
        at.state == SlotState::Whole
            && at.spare.is_none_or(|spare| {
                let place = self.on_spare(spare, &Extent { slot, at_bytes, length_bytes: 1 });
                place.is_some_and(|place| self.is_whole_at(place.slot, at_bytes))
            })
    }

    /// Returns a predicate for the extents that can be read now.
    pub fn readable(&self) -> impl Fn(&Extent) -> bool {
        |extent| self.member_for(extent, Kind::Read).is_some()
    }

    /// Returns a predicate for the extents that can be written, and must be.
    pub fn writable(&self) -> impl Fn(&Extent) -> bool {
        |extent| self.member_for(extent, Kind::Write).is_some()
    }

    /// Returns the layout of a group with parity.
    pub fn parity(&self) -> &Parity {
        match &self.layout {
            Layout::Parity(parity) => parity,
            Layout::Copies(_) => unreachable!("only levels with parity have rows"),
        }
    }

    /// Whether stored data can no longer be reconstructed from any slot.
    pub(super) fn lost(&self) -> bool {
        !self.layout.survives(&|slot, at_bytes| self.is_whole_at(slot, at_bytes))
    }

    /// Appends the extents from which an extent can be reconstructed: its other copy, or enough of its row.
    pub(super) fn sources(&self, extent: &Extent, into: &mut Vec<Extent>) {
        self.layout.sources(extent, &self.readable(), into);
    }

    /// Returns the readable extents from which an extent can be reconstructed; `None` if they do not suffice.
    pub fn recovery(&self, extent: &Extent) -> Option<Vec<Extent>> {
        let mut sources = Vec::new();
        self.layout.sources(extent, &self.readable(), &mut sources).then_some(sources)
    }

    /// Returns the slot whose data a member holds at `at_bytes`, or held when it last served a slot.
    ///
    /// # Panics
    /// If the member never served a slot.
    pub fn slot_at(&self, member: u32, at_bytes: u64) -> u32 {
        let own = self.slots.iter().position(|slot| slot.member == member).expect("the member served a slot") as u32;
        self.held_at(&Extent { slot: own, at_bytes, length_bytes: 1 }).map_or(own, |held| held.slot)
    }

    /// Returns the slot that a member serves at the slot's own addresses, including a slot that is being filled.
    pub fn served_by(&self, member: u32) -> Option<usize> {
        let serves = |slot: &Slot| slot.member == member && slot.state != SlotState::Missing && slot.spare.is_none();
        self.slots.iter().position(serves)
    }

    /// Whether the member serves a slot and responds.
    pub fn serves(&self, member: u32) -> bool {
        self.served_by(member).is_some()
    }

    /// Whether the member is being filled.
    pub fn is_filling(&self, member: u32) -> bool {
        self.served_by(member).is_some_and(|slot| match self.slots[slot].state {
            SlotState::Filling { .. } => true,
            SlotState::Whole | SlotState::Missing => false,
        })
    }

    /// Whether more members have failed than redundancy covers.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns the health of the group.
    pub fn state(&self) -> GroupHealth {
        match &self.rebuilding {
            _ if self.gone => GroupHealth::Failed,
            Some(_) => GroupHealth::Rebuilding,
            None if self.is_whole() => GroupHealth::Healthy,
            None => GroupHealth::Degraded,
        }
    }

    /// Returns the state of the group for display, without lost bytes, which only the array knows.
    pub fn gauge(&self, name: &str) -> GroupGauge {
        let state = self.state();
        let rebuilt_bytes = match self.rebuilding.as_ref().map(|rebuilding| self.slots[rebuilding.slot as usize].state)
        {
            Some(SlotState::Filling { done_bytes, .. }) => {
                done_bytes.max(self.rebuilding.as_ref().map_or(0, |rebuilding| rebuilding.restored_bytes))
            }
            Some(SlotState::Whole | SlotState::Missing) | None => 0,
        };
        GroupGauge {
            name: name.to_owned(),
            level: self.level,
            state,
            rebuilt_bytes,
            of_bytes: if self.rebuilding.is_some() { self.slot_bytes } else { 0 },
            lost_bytes: 0,
            pass: None,
        }
    }

    /// Returns for each slot its member, the number of times that its contents were lost, and the end of its valid
    /// range.
    pub fn served(&self) -> Vec<(u32, u32, u64)> {
        let filled_bytes = |slot: &Slot| match slot.state {
            SlotState::Whole => u64::MAX,
            SlotState::Missing => 0,
            SlotState::Filling { done_bytes, .. } => done_bytes,
        };
        self.slots.iter().map(|slot| (slot.member, slot.losses, filled_bytes(slot))).collect()
    }

    /// Returns a step of the rebuild in progress.
    pub(super) fn step(&mut self, number: u32) -> Option<&mut Step> {
        self.rebuilding.as_mut()?.steps.iter_mut().find(|step| step.number == number)
    }

    /// Counts one more command that a step waits for.
    pub fn expect_part(&mut self, number: u32) {
        if let Some(step) = self.step(number) {
            step.pending += 1;
        }
    }

    /// Returns the member that is being filled, and the extents that it will lack because `bad`, one of their sources,
    /// cannot be read.
    pub fn damage(&self, bad: &Extent) -> (u32, Vec<Extent>) {
        let slot = self.rebuilding.as_ref().expect("a rebuild is in progress").slot;
        let place = Extent { slot, ..*bad };
        let filled = self.held_at(&place).and_then(|_| self.filled_member(&place));
        let member = filled.unwrap_or(self.slots[slot as usize].member);
        (member, self.layout.damaged(bad, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::array::{Filler, Rotation, SmallWrites};

    /// A rebuild may have read data before a write changes them, so the write must also go to the spare.
    #[test]
    fn a_spare_receives_writes_below_the_rebuild_position() {
        let mut state = GroupState::new(&Group {
            name: "g".to_owned(),
            level: Level::Raid5,
            members: vec![0, 1, 2],
            spans: 1,
            chunk_bytes: 10,
            rotation: Rotation::default(),
            member_bytes: 1000,
            record_bytes: 0,
            small_writes: SmallWrites::default(),
            mirror_reads: MirrorReads::default(),
            spares: vec![],
            rebuild: Rebuild {
                step_bytes: 100,
                steps: 2,
                rate_limit_bytes_per_s: None,
                yield_to_host: 0.0,
                minimum: None,
                filled_by: Filler::Array,
            },
            pool: None,
            bitmap: None,
            ppl: None,
            is_journaled: false,
        });
        state.slots[1] =
            Slot { member: 7, state: SlotState::Filling { done_bytes: 200, begun_bytes: 400 }, ..state.slots[1] };
        let extent = |at_bytes, length_bytes| Extent { slot: 1, at_bytes, length_bytes };
        let served = |kind, at, length| state.member_for(&extent(at, length), kind);
        assert_eq!([190, 191, 200, 390, 400].map(|at| served(Kind::Read, at, 10)), [Some(7), None, None, None, None]);
        let writes = [0, 190, 200, 390, 395, 400].map(|at| served(Kind::Write, at, 10));
        assert_eq!(writes, [Some(7), Some(7), Some(7), Some(7), Some(7), None]);
    }
}
