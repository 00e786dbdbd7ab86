//! [`Raid10`]: two copies of each chunk on neighbouring members, for even and odd numbers of members (Linux md's
//! `near`). A write goes to both copies, a read to one, and a spare is filled from its neighbours.

use super::placing::{
    Choice, Copying, Extent, Placing, Redundancy, Rules, Shape, Stripe, Tear, Usual, join, unit_end, units,
};

pub const RULES: Rules = Rules {
    members_min: 2,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: true,
    has_spans: false,
    has_records: false,
    is_declustered: false,
    usual: Usual { members_max: u32::MAX, members_step: 2 },
    choice: Choice::Default,
};

pub fn capacity_bytes(shape: &Shape) -> u64 {
    (shape.members.saturating_mul(shape.units()) / 2).saturating_mul(shape.unit_bytes)
}

/// Returns the mirrored pairs. With an odd number of members, any two neighbours hold copies, including the last and
/// the first: there are as many pairs as members, each with half as much data.
pub const fn redundancy(members: u64) -> Redundancy {
    Redundancy::dealt(if members % 2 == 1 { members } else { members / 2 }, 2, 1)
}

pub const fn stripe(members: u64) -> Stripe {
    Stripe { data: if members < 2 { 1 } else { members / 2 }, parity: 0, copies: 2 }
}

#[derive(Clone, Debug)]
pub struct Raid10 {
    slots: u64,
    unit_bytes: u64,
    slot_bytes: u64,
    /// Whether any two neighbouring slots hold copies, including the last and the first; otherwise slots form pairs.
    all_round: bool,
}

impl Raid10 {
    pub fn new(shape: &Shape) -> Raid10 {
        let Shape { members: slots, unit_bytes, member_bytes: slot_bytes, is_pooled, .. } = *shape;
        Raid10 { slots, unit_bytes, slot_bytes, all_round: is_pooled || slots % 2 == 1 }
    }

    /// Returns the slot and the first byte of a copy of a unit.
    #[inline]
    fn copy(&self, unit: u64, copy: u64) -> (u32, u64) {
        let place = 2 * unit + copy;
        ((place % self.slots) as u32, place / self.slots * self.unit_bytes)
    }

    /// Returns the other copy of a run within one unit of a slot; `None` if the unit is the last one of an odd layout,
    /// which has no partner and holds no data.
    fn other_copy(&self, slot: u32, row: u64, within: u64, length_bytes: u64) -> Option<Extent> {
        let place = row * self.slots + u64::from(slot);
        let (slot, at) = self.copy(place / 2, 1 - place % 2);
        (at < self.slot_bytes).then_some(Extent { slot, at_bytes: at + within, length_bytes })
    }
}

impl Placing for Raid10 {
    fn slots(&self) -> u32 {
        self.slots as u32
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        units(self.unit_bytes, offset_bytes, length_bytes, |unit, within, length_bytes| {
            into.extend([0, 1].map(|copy| {
                let (slot, at) = self.copy(unit, copy);
                Extent { slot, at_bytes: at + within, length_bytes }
            }));
        });
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        let first_of_pair = |slot: &u32| self.all_round || slot.is_multiple_of(2);
        let slots = self.slots as u32;
        (0..slots).filter(first_of_pair).all(|slot| whole(slot, 0) || whole((slot + 1) % slots, 0))
    }

    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool {
        units(self.unit_bytes, extent.at_bytes, extent.length_bytes, |row, within, length_bytes| {
            if let Some(other) = self.other_copy(extent.slot, row, within, length_bytes) {
                join(into, other);
            }
        });
        !into.is_empty() && into.iter().all(readable)
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        let mut damaged = Vec::new();
        units(self.unit_bytes, bad.at_bytes, bad.length_bytes, |row, within, length_bytes| {
            let place = row * self.slots + u64::from(bad.slot);
            let (other, at) = self.copy(place / 2, 1 - place % 2);
            if other == slot {
                join(&mut damaged, Extent { slot, at_bytes: at + within, length_bytes });
            }
        });
        damaged
    }

    fn tear(&self, offset_bytes: u64) -> Tear {
        Tear::At(unit_end(offset_bytes, self.unit_bytes))
    }

    fn joint_bytes(&self) -> u64 {
        self.unit_bytes
    }
}

impl Copying for Raid10 {
    #[inline]
    fn copies(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn raid10_copies_are_on_neighbours_with_odd_counts() {
        for slots in [2, 5, 6] {
            let layout = Raid10 { slots, unit_bytes: 4, slot_bytes: 4 * 60, all_round: slots % 2 == 1 };
            let units = slots * layout.slot_bytes / layout.unit_bytes / 2;
            let places: HashSet<_> = (0..units).flat_map(|unit| [layout.copy(unit, 0), layout.copy(unit, 1)]).collect();
            assert_eq!(places.len() as u64, 2 * units);
            for unit in 0..units {
                let (first, second) = (layout.copy(unit, 0).0, layout.copy(unit, 1).0);
                assert_eq!(u64::from(first + 1) % slots, u64::from(second));
            }
        }
    }
}
