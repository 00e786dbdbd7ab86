//! [`Raid0`]: chunks distributed over all members, without redundancy. A small write is one access, and the first
//! failure loses data.

use super::placing::{
    Choice, Copying, Extent, Placing, Redundancy, Rules, Shape, Stripe, Tear, Usual, unit_end, units,
};

pub const RULES: Rules = Rules {
    members_min: 1,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: true,
    has_spans: false,
    has_records: false,
    is_declustered: false,
    usual: Usual { members_max: u32::MAX, members_step: 1 },
    choice: Choice::Default,
};

pub fn capacity_bytes(shape: &Shape) -> u64 {
    shape.members.saturating_mul(shape.units() * shape.unit_bytes)
}

pub const fn redundancy(members: u64) -> Redundancy {
    Redundancy::whole(members, 0)
}

pub const fn stripe(members: u64) -> Stripe {
    Stripe { data: members, parity: 0, copies: 1 }
}

#[derive(Clone, Debug)]
pub struct Raid0 {
    slots: u64,
    unit_bytes: u64,
}

impl Raid0 {
    pub fn new(shape: &Shape) -> Raid0 {
        Raid0 { slots: shape.members, unit_bytes: shape.unit_bytes }
    }
}

impl Placing for Raid0 {
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        units(self.unit_bytes, offset_bytes, length_bytes, |unit, within, length_bytes| {
            let at_bytes = unit / self.slots * self.unit_bytes + within;
            into.push(Extent { slot: (unit % self.slots) as u32, at_bytes, length_bytes });
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
        Tear::At(unit_end(offset_bytes, self.unit_bytes))
    }

    fn joint_bytes(&self) -> u64 {
        self.unit_bytes
    }
}

impl Copying for Raid0 {
    #[inline]
    fn copies(&self) -> usize {
        1
    }
}
