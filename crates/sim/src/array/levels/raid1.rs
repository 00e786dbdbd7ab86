//! [`Raid1`]: every member holds all data, at the same addresses. A write goes to all members, a read to one. All but
//! one member may fail, and a spare is filled from any other member.

use super::placing::{Choice, Copying, Extent, Placing, Redundancy, Rules, Shape, Stripe, Tear, Usual};

pub const RULES: Rules = Rules {
    members_min: 2,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: false,
    has_spans: false,
    has_records: false,
    is_declustered: false,
    usual: Usual { members_max: 4, members_step: 1 },
    choice: Choice::Named,
};

pub fn capacity_bytes(shape: &Shape) -> u64 {
    shape.member_bytes
}

pub const fn redundancy(members: u64) -> Redundancy {
    Redundancy::whole(members, members - 1)
}

pub const fn stripe(members: u64) -> Stripe {
    Stripe { data: 1, parity: 0, copies: members }
}

#[derive(Clone, Debug)]
pub struct Raid1 {
    slots: u32,
    unit_bytes: u64,
}

impl Raid1 {
    pub fn new(shape: &Shape) -> Raid1 {
        Raid1 { slots: shape.members as u32, unit_bytes: shape.unit_bytes }
    }
}

impl Placing for Raid1 {
    fn slots(&self) -> u32 {
        self.slots
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        into.extend((0..self.slots).map(|slot| Extent { slot, at_bytes: offset_bytes, length_bytes }));
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        (0..self.slots).any(|slot| whole(slot, 0))
    }

    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool {
        let others = (0..self.slots).filter(|&slot| slot != extent.slot);
        let source = others.map(|slot| Extent { slot, ..*extent }).find(readable);
        into.extend(source);
        source.is_some()
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        vec![Extent { slot, ..*bad }]
    }

    fn tear(&self, _offset_bytes: u64) -> Tear {
        Tear::OfMember { slot: 0, base_bytes: 0 }
    }

    fn joint_bytes(&self) -> u64 {
        self.unit_bytes
    }
}

impl Copying for Raid1 {
    #[inline]
    fn copies(&self) -> usize {
        self.slots as usize
    }
}
