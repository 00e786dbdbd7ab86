//! Concatenated members, without redundancy: a write is one access, and the first failure loses data.

use super::placing::{Choice, Copying, Extent, Placing, Redundancy, Rules, Shape, Tear, Usual, units};

pub const RULES: Rules = Rules {
    members_min: 1,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: false,
    has_spans: false,
    has_records: false,
    is_declustered: false,
    usual: Usual { members_max: u32::MAX, members_step: 1 },
    choice: Choice::Unlisted,
};

pub fn capacity_bytes(shape: &Shape) -> u64 {
    shape.members.saturating_mul(shape.member_bytes)
}

pub const fn redundancy(members: u64) -> Redundancy {
    Redundancy::whole(members, 0)
}

#[derive(Clone, Debug)]
pub struct Concat {
    slots: u64,
    unit_bytes: u64,
    slot_bytes: u64,
}

impl Concat {
    pub fn new(shape: &Shape) -> Concat {
        Concat { slots: shape.members, unit_bytes: shape.unit_bytes, slot_bytes: shape.member_bytes }
    }
}

impl Placing for Concat {
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        units(self.slot_bytes, offset_bytes, length_bytes, |slot, at_bytes, length_bytes| {
            into.push(Extent { slot: slot as u32, at_bytes, length_bytes });
        });
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        (0..self.slots()).all(|slot| whole(slot, 0))
    }

    fn sources(&self, _extent: &Extent, _readable: &impl Fn(&Extent) -> bool, _into: &mut Vec<Extent>) -> bool {
        false
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        vec![Extent { slot, ..*bad }]
    }

    fn tear(&self, offset_bytes: u64) -> Tear {
        let slot = offset_bytes / self.slot_bytes;
        Tear::OfMember { slot: slot as u32, base_bytes: slot * self.slot_bytes }
    }

    fn joint_bytes(&self) -> u64 {
        self.unit_bytes
    }
}

impl Copying for Concat {
    #[inline]
    fn copies(&self) -> usize {
        1
    }
}
