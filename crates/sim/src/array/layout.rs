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
