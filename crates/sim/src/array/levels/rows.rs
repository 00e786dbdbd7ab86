//! [`Rows`]: rows of chunks, one on every slot of a span. Some units are parities, which rotate from row to row.
//! Rows are distributed round-robin over several spans (RAID 50 and 60).
//!
//! Any subset of units as large as the number of data units is enough to reconstruct the rest of a row, so as many
//! members of a span may fail as a row has parities. A write of part of a row reads old data and old parities
//! (read-modify-write) or the rest of the row (reconstruct-write); a write of a whole row reads nothing. A read of
//! missing data reads as many other units as a row has data units; a rebuild does the same for each unit that it
//! writes.

use super::placing::{Coding, Extent, Placing, Plan, Redundancy, RowPart, Shape, Stripe, Tear, unit_end, units};
use crate::description::level::{Rotation, SmallWrites};

/// Returns the number of data bytes of a group with `parities` parities per row.
pub fn capacity_bytes(shape: &Shape, parities: u32) -> u64 {
    let spans = shape.spans.max(1);
    let data = (shape.members / spans).saturating_sub(u64::from(parities));
    (data * spans).saturating_mul(shape.units() * shape.unit_bytes)
}

/// Returns the redundancy of a group with `parities` parities per row.
pub fn redundancy(members: u64, spans: u64, parities: u32) -> Redundancy {
    Redundancy::dealt(spans, members / spans, u64::from(parities))
}

/// Returns the units of a full stripe of a span.
pub fn stripe(members: u64, parities: u32) -> Stripe {
    let parity = u64::from(parities);
    Stripe { data: members.saturating_sub(parity), parity, copies: 1 }
}

/// The rows of a group.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Number of slots of a span.
    slots: u64,
    spans: u64,
    data_units: u64,
    parities: u64,
    unit_bytes: u64,
    rotation: Rotation,
    small_writes: SmallWrites,
}

impl Rows {
    /// Creates the layout of a validated shape with `parities` parities per row.
    pub fn new(shape: &Shape, parities: u32) -> Rows {
        let (slots, parities) = (shape.members / shape.spans, u64::from(parities));
        debug_assert!(slots > parities, "a row has at least one data unit");
        Rows {
            slots,
            spans: shape.spans,
            data_units: slots - parities,
            parities,
            unit_bytes: shape.unit_bytes,
            rotation: shape.rotation,
            small_writes: shape.small_writes,
        }
    }

    /// Returns the first byte of a row on its slots.
    #[inline]
    fn row_at_bytes(&self, row: u64) -> u64 {
        row / self.spans * self.unit_bytes
    }

    /// Returns the first slot of the span that holds a row.
    #[inline]
    fn row_span_slot(&self, row: u64) -> u32 {
        (row % self.spans * self.slots) as u32
    }

    /// Returns the slot of parity `number` in a row.
    #[inline]
    fn parity_slot(&self, row: u64, number: u64) -> u32 {
        let (turn, n) = (row / self.spans % self.slots, self.slots);
        let first = match self.rotation {
            Rotation::LeftSymmetric | Rotation::LeftAsymmetric => n - 1 - turn,
            Rotation::RightSymmetric | Rotation::RightAsymmetric => turn,
        };
        self.row_span_slot(row) + ((first + number) % n) as u32
    }

    /// Returns the slot of data unit `unit` in a row.
    #[inline]
    fn data_slot(&self, row: u64, unit: u64) -> u32 {
        let (span, n) = (self.row_span_slot(row), self.slots);
        let parity = u64::from(self.parity_slot(row, 0) - span);
        let slot = match self.rotation {
            Rotation::LeftSymmetric | Rotation::RightSymmetric => (parity + self.parities + unit) % n,
            Rotation::LeftAsymmetric | Rotation::RightAsymmetric => {
                // If the parities wrap around, the last of them are on the first slots.
                let wrapped = (parity + self.parities).saturating_sub(n);
                let unit = unit + wrapped;
                if unit < parity { unit } else { unit + self.parities - wrapped }
            }
        };
        span + slot as u32
    }

    /// Returns the bytes of data unit `unit` that `part` touches; an empty range if none.
    #[inline]
    fn touched(&self, part: &RowPart, unit: u64) -> (u64, u64) {
        if let Some(chunks) = &part.chunks {
            return if chunks.writes(unit) { (chunks.from_bytes, chunks.to_bytes) } else { (0, 0) };
        }
        let begin = unit * self.unit_bytes;
        let from = part.from_bytes.clamp(begin, begin + self.unit_bytes) - begin;
        let to = part.to_bytes.clamp(begin, begin + self.unit_bytes) - begin;
        (from, to)
    }

    /// Returns the range of a unit in which a write changes the parities: the touched bytes if the write touches one
    /// unit, the whole unit if it touches several.
    fn parity_range(&self, part: &RowPart) -> (u64, u64) {
        if let Some(chunks) = &part.chunks {
            return (chunks.from_bytes, chunks.to_bytes);
        }
        let unit = self.unit_bytes;
        let (first, last) = (part.from_bytes / unit, (part.to_bytes - 1) / unit);
        if first == last { (part.from_bytes % unit, (part.to_bytes - 1) % unit + 1) } else { (0, unit) }
    }

    fn in_row(&self, row: u64, slot: u32, (from, to): (u64, u64)) -> Extent {
        Extent { slot, at_bytes: self.row_at_bytes(row) + from, length_bytes: to - from }
    }

    /// Returns a range of every unit of a row, data before parity.
    fn everything(&self, row: u64, range: (u64, u64)) -> impl Iterator<Item = Extent> {
        let data = (0..self.data_units).map(move |unit| self.data_slot(row, unit));
        let parity = (0..self.parities).map(move |number| self.parity_slot(row, number));
        data.chain(parity).map(move |slot| self.in_row(row, slot, range))
    }
}

impl Placing for Rows {
    fn slots(&self) -> u32 {
        (self.slots * self.spans) as u32
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        units(self.unit_bytes, offset_bytes, length_bytes, |unit, within, length_bytes| {
            let (row, place) = (unit / self.data_units, unit % self.data_units);
            let at_bytes = self.row_at_bytes(row) + within;
            into.push(Extent { slot: self.data_slot(row, place), at_bytes, length_bytes });
        });
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        let slots = self.slots as u32;
        (0..self.spans as u32).all(|span| {
            let missing = (span * slots..(span + 1) * slots).filter(|&slot| !whole(slot, 0));
            missing.count() as u64 <= self.parities
        })
    }

    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool {
        let span = u64::from(extent.slot) / self.slots * self.slots;
        let others = (span..span + self.slots).map(|slot| Extent { slot: slot as u32, ..*extent });
        let others = others.filter(|other| other.slot != extent.slot && readable(other));
        into.extend(others.take(self.data_units as usize));
        into.len() as u64 == self.data_units
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        vec![Extent { slot, ..*bad }]
    }

    fn tear(&self, offset_bytes: u64) -> Tear {
        Tear::At(unit_end(offset_bytes, self.unit_bytes))
    }

    fn joint_bytes(&self) -> u64 {
        self.row_bytes()
    }
}

impl Coding for Rows {
    #[inline]
    fn row_bytes(&self) -> u64 {
        self.data_units * self.unit_bytes
    }

    #[inline]
    fn reads_whole_rows(&self) -> bool {
        false
    }

    fn parity_bytes(&self, part: &RowPart) -> u64 {
        self.parities * part.length_bytes()
    }

    /// Reads all remaining units of the row if a missing member rules out both read-modify-write and reconstruct-write.
    fn plan(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, writable: &impl Fn(&Extent) -> bool) -> Plan {
        let changed = self.parity_range(part);
        let mut plan = Plan::default();
        let (mut old, mut rest) = (Vec::new(), Vec::new());
        for unit in 0..self.data_units {
            let slot = self.data_slot(part.row, unit);
            let touched = self.touched(part, unit);
            if touched.0 < touched.1 {
                plan.data.push(self.in_row(part.row, slot, touched));
                old.push(self.in_row(part.row, slot, touched));
            }
            rest.extend(untouched(touched, changed).map(|range| self.in_row(part.row, slot, range)));
        }
        for number in 0..self.parities {
            let parity = self.in_row(part.row, self.parity_slot(part.row, number), changed);
            if writable(&parity) {
                plan.parity.push(parity);
            }
            if readable(&parity) {
                old.push(parity);
            }
        }
        if plan.parity.is_empty() {
            return plan;
        }
        let modify = old.iter().all(readable) && plan.parity.iter().all(readable);
        let rebuild = rest.iter().all(readable);
        (plan.reads, plan.modifies) = match (modify, rebuild, self.small_writes) {
            (true, true, SmallWrites::Cheapest | SmallWrites::NewBlocks) if old.len() < rest.len() => (old, true),
            (true, true, SmallWrites::ReadModifyWrite) if !rest.is_empty() => (old, true),
            (_, true, _) => (rest, false),
            (true, false, _) => (old, true),
            (false, false, _) => (self.everything(part.row, changed).filter(readable).collect(), false),
        };
        plan
    }

    /// For a degraded row, reads as many units as the row has data units, which are enough to reconstruct the missing
    /// units.
    fn read(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> u64 {
        let mut missing: Option<(u64, u64)> = None;
        let first = into.len();
        for unit in 0..self.data_units {
            let touched = self.touched(part, unit);
            if touched.0 == touched.1 {
                continue;
            }
            let extent = self.in_row(part.row, self.data_slot(part.row, unit), touched);
            if readable(&extent) {
                into.push(extent);
            } else {
                let hull = missing.unwrap_or(touched);
                missing = Some((hull.0.min(touched.0), hull.1.max(touched.1)));
            }
        }
        let Some(range) = missing else {
            return 0;
        };
        let mut reconstructions = 0;
        let others: Vec<Extent> = self.everything(part.row, range).filter(readable).collect();
        for other in others.into_iter().take(self.data_units as usize) {
            match into[first..].iter_mut().find(|extent| extent.slot == other.slot) {
                Some(asked) => {
                    let end = asked.end_bytes().max(other.end_bytes());
                    asked.at_bytes = asked.at_bytes.min(other.at_bytes);
                    asked.length_bytes = end - asked.at_bytes;
                }
                None => {
                    reconstructions += 1;
                    into.push(other);
                }
            }
        }
        reconstructions
    }

    fn parities_of(&self, extent: &Extent, mut each: impl FnMut(Extent)) {
        let row = extent.at_bytes / self.unit_bytes * self.spans + u64::from(extent.slot) / self.slots;
        (0..self.parities).for_each(|number| each(Extent { slot: self.parity_slot(row, number), ..*extent }));
    }
}

/// Returns the bytes of `changed` in a unit that a write does not touch, where `touched` are the touched bytes. This is
/// at most one run, because a write to several units touches the end of the first unit and the beginning of the last.
fn untouched(touched: (u64, u64), changed: (u64, u64)) -> Option<(u64, u64)> {
    if touched.0 == touched.1 {
        return Some(changed);
    }
    match (touched.0 > changed.0, touched.1 < changed.1) {
        (true, _) => Some((changed.0, touched.0)),
        (false, true) => Some((touched.1, changed.1)),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn layout(parities: u64, slots: u64, spans: u64, rotation: Rotation) -> Rows {
        let small_writes = SmallWrites::Cheapest;
        Rows { slots, spans, data_units: slots - parities, parities, unit_bytes: 4, rotation, small_writes }
    }

    /// Returns a row as drawn in md's documentation: the slot of each data unit, then the slots of the parities.
    fn row(layout: &Rows, row: u64) -> Vec<u32> {
        layout.everything(row, (0, 1)).map(|extent| extent.slot).collect()
    }

    #[test]
    fn parity_rotates_as_in_linux_md() {
        let raid5 = |rotation| (0..3).map(|at| row(&layout(1, 3, 1, rotation), at)).collect::<Vec<_>>();
        assert_eq!(raid5(Rotation::LeftSymmetric), [[0, 1, 2], [2, 0, 1], [1, 2, 0]]);
        assert_eq!(raid5(Rotation::LeftAsymmetric), [[0, 1, 2], [0, 2, 1], [1, 2, 0]]);
        assert_eq!(raid5(Rotation::RightSymmetric), [[1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(raid5(Rotation::RightAsymmetric), [[1, 2, 0], [0, 2, 1], [0, 1, 2]]);
        let raid6 = |rotation| (0..4).map(|at| row(&layout(2, 4, 1, rotation), at)).collect::<Vec<_>>();
        assert_eq!(raid6(Rotation::LeftSymmetric), [[1, 2, 3, 0], [0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]);
        assert_eq!(raid6(Rotation::LeftAsymmetric), [[1, 2, 3, 0], [0, 1, 2, 3], [0, 3, 1, 2], [2, 3, 0, 1]]);
    }

    #[test]
    fn no_two_blocks_share_a_place() {
        const SLOT_BYTES: u64 = 4 * 60;
        for rotation in Rotation::ALL {
            for (parities, slots, spans) in [(1, 5, 1), (1, 4, 3), (2, 6, 2), (3, 7, 1)] {
                let layout = layout(parities, slots, spans, rotation);
                let rows = SLOT_BYTES / layout.unit_bytes * spans;
                let mut places = HashSet::new();
                for at in 0..rows {
                    assert_eq!(row(&layout, at).iter().collect::<HashSet<_>>().len() as u64, slots, "{parities}");
                    let mut extents = Vec::new();
                    layout.places(at * layout.row_bytes(), layout.row_bytes(), &mut extents);
                    for extent in &extents {
                        assert!(extent.end_bytes() <= SLOT_BYTES);
                        assert!((extent.at_bytes..extent.end_bytes()).all(|byte| places.insert((extent.slot, byte))));
                    }
                    for number in 0..layout.parities {
                        let (slot, from) = (layout.parity_slot(at, number), layout.row_at_bytes(at));
                        assert!((from..from + layout.unit_bytes).all(|byte| places.insert((slot, byte))));
                    }
                }
                assert_eq!(places.len() as u64, SLOT_BYTES * slots * spans, "{parities}: every byte is used");
            }
        }
    }

    /// A write of one block on 3+1 reads two blocks either way: md reads old data and parity in this case, the model
    /// reads the rest of the row.
    #[test]
    fn a_tie_is_resolved_by_reading_the_rest_of_the_row() {
        let layout = layout(1, 4, 1, Rotation::LeftSymmetric);
        let part = RowPart { row: 0, from_bytes: 0, to_bytes: 4, chunks: None };
        let reads = layout.plan(&part, &|_| true, &|_| true).reads;
        assert_eq!(reads.iter().map(|extent| extent.slot).collect::<Vec<_>>(), [1, 2]);
        let five = self::layout(1, 5, 1, Rotation::LeftSymmetric);
        let reads = five.plan(&part, &|_| true, &|_| true).reads;
        assert_eq!(reads.iter().map(|extent| extent.slot).collect::<Vec<_>>(), [0, 4], "two reads rather than three");
    }
}
