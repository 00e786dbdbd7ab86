//! Where a group's blocks lie: the arithmetic of RAID levels.
//!
//! A *slot* is a position in the group's layout; which member serves it is the group's business. A *row* is one stripe
//! unit on every slot of a span. Rows of several spans (RAID 50, 60) are dealt in turn.

use super::description::{Group, Level, Rotation};

/// A run of bytes on one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Position in the layout.
    pub slot: u32,
    /// First byte on the slot.
    pub at_bytes: u64,
    /// Length.
    pub length_bytes: u64,
}

impl Extent {
    /// One past the last byte.
    pub fn end_bytes(&self) -> u64 {
        self.at_bytes + self.length_bytes
    }
}

/// The part of a row that a request touches, in bytes of the row's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The row, counted over all spans.
    pub row: u64,
    /// First byte of the row's data.
    pub from_bytes: u64,
    /// One past the last.
    pub to_bytes: u64,
}

/// A group's layout.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its level.
    pub level: Level,
    /// Slots of a span.
    pub slots: u64,
    /// Spans.
    pub spans: u64,
    /// Units of data in a row.
    pub data_units: u64,
    /// Units of parity in a row.
    pub parities: u64,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Bytes used of a slot.
    pub slot_bytes: u64,
    rotation: Rotation,
}

impl Layout {
    /// The layout of a checked group.
    pub fn new(group: &Group) -> Layout {
        let spans = u64::from(group.spans);
        let slots = group.members.len() as u64 / spans;
        let parities = u64::from(group.level.parities());
        Layout {
            level: group.level,
            slots,
            spans,
            data_units: slots - parities,
            parities,
            unit_bytes: group.stripe_unit_bytes,
            slot_bytes: group.member_bytes,
            rotation: group.rotation,
        }
    }

    /// Has parity.
    #[inline]
    pub fn has_parity(&self) -> bool {
        self.parities > 0
    }

    /// Bytes of a row's data; of a unit where there are no rows.
    #[inline]
    pub fn row_bytes(&self) -> u64 {
        self.data_units * self.unit_bytes
    }

    /// Number of slots over all spans.
    pub fn all_slots(&self) -> u32 {
        (self.slots * self.spans) as u32
    }

    /// First byte on its slots of a row.
    #[inline]
    pub fn row_at_bytes(&self, row: u64) -> u64 {
        row / self.spans * self.unit_bytes
    }

    /// First slot of the span of a row.
    #[inline]
    pub fn row_span_slot(&self, row: u64) -> u32 {
        (row % self.spans * self.slots) as u32
    }

    /// Slot of parity `number` (0 P, 1 Q) in a row.
    #[inline]
    pub fn parity_slot(&self, row: u64, number: u64) -> u32 {
        let (turn, n) = (row / self.spans % self.slots, self.slots);
        let first = match self.rotation {
            Rotation::LeftSymmetric | Rotation::LeftAsymmetric => n - 1 - turn,
            Rotation::RightSymmetric | Rotation::RightAsymmetric => turn,
        };
        self.row_span_slot(row) + ((first + number) % n) as u32
    }

    /// Parity `number` of what an extent of a row holds.
    pub fn parity_of(&self, extent: &Extent, number: u64) -> Extent {
        let row = extent.at_bytes / self.unit_bytes * self.spans + u64::from(extent.slot) / self.slots;
        Extent { slot: self.parity_slot(row, number), ..*extent }
    }

    /// Slot of data unit `unit` in a row.
    #[inline]
    pub fn data_slot(&self, row: u64, unit: u64) -> u32 {
        let span = self.row_span_slot(row);
        if self.parities == 0 {
            return span + unit as u32;
        }
        let n = self.slots;
        let parity = u64::from(self.parity_slot(row, 0) - span);
        let slot = match self.rotation {
            Rotation::LeftSymmetric | Rotation::RightSymmetric => (parity + self.parities + unit) % n,
            Rotation::LeftAsymmetric | Rotation::RightAsymmetric => {
                // Parity that wraps round leaves its last part on slot 0.
                let wrapped = (parity + self.parities).saturating_sub(n);
                let unit = unit + wrapped;
                if unit < parity { unit } else { unit + self.parities - wrapped }
            }
        };
        span + slot as u32
    }

    /// The copies of a unit of a mirrored layout: slot and first byte. RAID 1 has one unit, which is everything.
    #[inline]
    pub fn copy(&self, unit: u64, copy: u64) -> (u32, u64) {
        let place = 2 * unit + copy;
        ((place % self.slots) as u32, place / self.slots * self.unit_bytes)
    }

    /// Calls `each` with (unit, first byte within it, length) for the units of `length_bytes` from `offset_bytes` on.
    #[inline]
    pub fn units(&self, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(u64, u64, u64)) {
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        while at < end {
            let (unit, within) = (at / self.unit_bytes, at % self.unit_bytes);
            let length = (self.unit_bytes - within).min(end - at);
            each(unit, within, length);
            at += length;
        }
    }

    /// Calls `each` with the rows that a request touches.
    #[inline]
    pub fn rows(&self, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(RowPart)) {
        let row_bytes = self.row_bytes();
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        while at < end {
            let (row, from_bytes) = (at / row_bytes, at % row_bytes);
            let to_bytes = row_bytes.min(from_bytes + (end - at));
            each(RowPart { row, from_bytes, to_bytes });
            at += to_bytes - from_bytes;
        }
    }

    /// What `part` touches of data unit `unit`, as bytes within the unit; empty where it does not touch it.
    #[inline]
    pub fn touched(&self, part: &RowPart, unit: u64) -> (u64, u64) {
        let begin = unit * self.unit_bytes;
        let from = part.from_bytes.clamp(begin, begin + self.unit_bytes) - begin;
        let to = part.to_bytes.clamp(begin, begin + self.unit_bytes) - begin;
        (from, to)
    }

    /// The extents of a request on levels without parity and copies, and of the data of those with parity; neighbours on
    /// a slot are joined.
    #[inline]
    pub fn extents(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        match self.level {
            Level::Concat => {
                let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
                while at < end {
                    let (slot, within) = (at / self.slot_bytes, at % self.slot_bytes);
                    let length = (self.slot_bytes - within).min(end - at);
                    into.push(Extent { slot: slot as u32, at_bytes: within, length_bytes: length });
                    at += length;
                }
            }
            Level::Raid0 | Level::Raid5 | Level::Raid6 => {
                self.units(offset_bytes, length_bytes, |unit, within, length_bytes| {
                    let (row, place) = (unit / self.data_units, unit % self.data_units);
                    let extent = Extent {
                        slot: self.data_slot(row, place),
                        at_bytes: self.row_at_bytes(row) + within,
                        length_bytes,
                    };
                    join(into, extent);
                });
            }
            Level::Raid1 | Level::Raid10 => unreachable!("copies are chosen one by one"),
        }
    }
}

/// Adds an extent; one that goes on where the last of its slot ended becomes part of it.
#[inline]
pub fn join(extents: &mut Vec<Extent>, extent: Extent) {
    let last = extents.iter_mut().rev().find(|earlier| earlier.slot == extent.slot);
    match last {
        Some(last) if last.end_bytes() == extent.at_bytes => last.length_bytes += extent.length_bytes,
        _ => extents.push(extent),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn layout(level: Level, slots: u64, spans: u64, rotation: Rotation) -> Layout {
        let parities = u64::from(level.parities());
        let (unit_bytes, slot_bytes) = (4, 4 * 60);
        Layout { level, slots, spans, data_units: slots - parities, parities, unit_bytes, slot_bytes, rotation }
    }

    /// A row as md's documentation draws it: the slot of each data unit, then those of the parities.
    fn row(layout: &Layout, row: u64) -> Vec<u32> {
        let data = (0..layout.data_units).map(|unit| layout.data_slot(row, unit));
        data.chain((0..layout.parities).map(|number| layout.parity_slot(row, number))).collect()
    }

    #[test]
    fn parity_rotates_as_in_linux_md() {
        let raid5 = |rotation| (0..3).map(|at| row(&layout(Level::Raid5, 3, 1, rotation), at)).collect::<Vec<_>>();
        assert_eq!(raid5(Rotation::LeftSymmetric), [[0, 1, 2], [2, 0, 1], [1, 2, 0]]);
        assert_eq!(raid5(Rotation::LeftAsymmetric), [[0, 1, 2], [0, 2, 1], [1, 2, 0]]);
        assert_eq!(raid5(Rotation::RightSymmetric), [[1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(raid5(Rotation::RightAsymmetric), [[1, 2, 0], [0, 2, 1], [0, 1, 2]]);
        let raid6 = |rotation| (0..4).map(|at| row(&layout(Level::Raid6, 4, 1, rotation), at)).collect::<Vec<_>>();
        assert_eq!(raid6(Rotation::LeftSymmetric), [[1, 2, 3, 0], [0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]);
        assert_eq!(raid6(Rotation::LeftAsymmetric), [[1, 2, 3, 0], [0, 1, 2, 3], [0, 3, 1, 2], [2, 3, 0, 1]]);
    }

    #[test]
    fn no_two_blocks_share_a_place() {
        for rotation in Rotation::ALL {
            for (level, slots, spans) in
                [(Level::Raid0, 5, 1), (Level::Raid5, 5, 1), (Level::Raid5, 4, 3), (Level::Raid6, 6, 2)]
            {
                let layout = layout(level, slots, spans, rotation);
                let rows = layout.slot_bytes / layout.unit_bytes * spans;
                let mut places = HashSet::new();
                for at in 0..rows {
                    assert_eq!(row(&layout, at).iter().collect::<HashSet<_>>().len() as u64, slots, "{level:?}");
                    let mut extents = Vec::new();
                    layout.extents(at * layout.row_bytes(), layout.row_bytes(), &mut extents);
                    for extent in &extents {
                        assert!(extent.end_bytes() <= layout.slot_bytes);
                        assert!((extent.at_bytes..extent.end_bytes()).all(|byte| places.insert((extent.slot, byte))));
                    }
                    for number in 0..layout.parities {
                        let (slot, from) = (layout.parity_slot(at, number), layout.row_at_bytes(at));
                        assert!((from..from + layout.unit_bytes).all(|byte| places.insert((slot, byte))));
                    }
                }
                assert_eq!(places.len() as u64, layout.slot_bytes * slots * spans, "{level:?}: all of it is used");
            }
        }
    }

    #[test]
    fn copies_lie_on_neighbours_and_fill_odd_counts_too() {
        for slots in [2, 5, 6] {
            let layout = layout(Level::Raid10, slots, 1, Rotation::default());
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
