//! Common interface of all levels: shapes, places, plans, sources.

use crate::description::level::{Rotation, SmallWrites};

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
    /// Exclusive end.
    pub fn end_bytes(&self) -> u64 {
        self.at_bytes + self.length_bytes
    }
}

/// Adds an extent; one that continues the last of its slot is merged with it.
#[inline]
pub fn join(extents: &mut Vec<Extent>, extent: Extent) {
    let last = extents.iter_mut().rev().find(|earlier| earlier.slot == extent.slot);
    match last {
        Some(last) if last.end_bytes() == extent.at_bytes => last.length_bytes += extent.length_bytes,
        _ => extents.push(extent),
    }
}

/// Requirements of a level on a group's description.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Fewest members of a span.
    pub members_min: u32,
    /// Most members of a span.
    pub members_max: u32,
    /// Members come in multiples of this.
    pub members_step: u32,
    /// It deals stripe units over its members.
    pub is_striped: bool,
    /// Its rows can be dealt over several spans (RAID 50, 60).
    pub has_spans: bool,
    /// It keeps records, in sectors that are its stripe units.
    pub has_records: bool,
    /// Its stripes are narrower than the group and lie elsewhere in each slice.
    pub is_declustered: bool,
    /// How many members systems are usually built with.
    pub usual: Usual,
    /// When a system is chosen to have it.
    pub choice: Choice,
}

/// Widest span of RAID 5 and 6 and of RAIDZ that is usually built: a convention of ours, wider ones are rare.
pub const USUAL_WIDTH: u32 = 16;

/// Common numbers of members, among those that a level permits.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Most members of a span.
    pub members_max: u32,
    /// Members come in multiples of this.
    pub members_step: u32,
}

/// When a system is chosen to have a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Candidate by default.
    Default,
    /// Candidate if the user names it.
    Named,
    /// Candidate if the user names it, but no message suggests it.
    Unlisted,
}

/// The units of a full row, or stripe, of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Units of data.
    pub data: u64,
    /// Units of parity.
    pub parity: u64,
    /// Copies of each unit: 2 or more for mirrors.
    pub copies: u64,
}

/// A group as sets of members that lose data independently of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy {
    /// Sets.
    pub groups: u64,
    /// Members of each set.
    pub members: u64,
    /// Failed members of one set that it survives, whichever they are.
    pub survives: u64,
    /// Members per stripe: fewer than those of the set if stripes are declustered.
    pub width: u64,
    /// Members' worth of spare space that is distributed over the set.
    pub spares: u64,
}

impl Redundancy {
    /// One set of all members, each of which holds a part of every stripe.
    pub const fn whole(members: u64, survives: u64) -> Redundancy {
        Redundancy { groups: 1, members, survives, width: members, spares: 0 }
    }

    /// Several equal sets.
    pub const fn dealt(groups: u64, members: u64, survives: u64) -> Redundancy {
        Redundancy { groups, members, survives, width: members, spares: 0 }
    }
}

/// The shape of a group: the inputs of its layout.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Members of all spans.
    pub members: u64,
    /// Spans.
    pub spans: u64,
    /// Bytes on one member before the next is used.
    pub unit_bytes: u64,
    /// Bytes used of each member.
    pub member_bytes: u64,
    /// Bytes of a record, if the level has records.
    pub record_bytes: u64,
    /// Rotation of parity from stripe to stripe.
    pub rotation: Rotation,
    /// How a write smaller than a row keeps parity true.
    pub small_writes: SmallWrites,
    /// Segments of a pool lie anywhere: any two neighbours may hold the copies of one.
    pub is_pooled: bool,
}

impl Shape {
    /// Whole stripe units of a member.
    pub fn units(&self) -> u64 {
        self.member_bytes.checked_div(self.unit_bytes).unwrap_or(0)
    }
}

/// How far a write may get before the power goes: a boundary within the group, or the members' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// At this byte of the group.
    At(u64),
    /// At the next boundary of the member of `slot`, whose first byte is byte `base_bytes` of the group.
    OfMember {
        /// The slot.
        slot: u32,
        /// Start of its bytes.
        base_bytes: u64,
    },
}

/// Layout of a RAID level.
pub trait Placing {
    /// Slots over all spans.
    fn slots(&self) -> u32;

    /// Appends the places of a run of bytes: its pieces in address order, each with all copies.
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>);

    /// Whether all data are available; `whole` returns whether a byte of a slot is valid.
    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool;

    /// Appends alternative sources of an extent; returns true if they suffice, where `readable` returns what can be
    /// read.
    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool;

    /// Parts of `slot` that cannot be restored if `bad`, a source of it, is unreadable.
    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent>;

    /// How far a write of the byte at `offset_bytes` may get before the power goes.
    fn tear(&self, offset_bytes: u64) -> Tear;

    /// Bytes that are best written together: the limit for joining destages.
    fn joint_bytes(&self) -> u64;
}

/// Layout of a level with spare space that is distributed over the members.
pub trait Sparing {
    /// Members' worth of spare space.
    fn spares(&self) -> u32;

    /// The slot with a distributed spare's copy, at the same offset, of a byte of the slots that it serves.
    fn spare_slot(&self, spare: u32, at_bytes: u64) -> u32;

    /// The distributed spare that contains a byte of a slot, if any.
    fn spare_at(&self, slot: u32, at_bytes: u64) -> Option<u32>;

    /// End of the bytes of a slot that one answer of these holds for.
    fn row_end(&self, at_bytes: u64) -> u64;
}

/// Layout of a level with copies.
pub trait Copying: Placing {
    /// Copies of each byte.
    fn copies(&self) -> usize;
}

/// The part of a stripe that a write touches, in bytes of the stripe's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The row, counted over all spans.
    pub row: u64,
    /// First byte of the row's data.
    pub from_bytes: u64,
    /// Exclusive end.
    pub to_bytes: u64,
}

impl RowPart {
    /// Bytes of the row's data that it touches.
    pub fn length_bytes(&self) -> u64 {
        self.to_bytes - self.from_bytes
    }
}

/// Reads and writes of a row write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Reads for parity.
    pub reads: Vec<Extent>,
    /// Places of the data.
    pub data: Vec<Extent>,
    /// Places of the parities.
    pub parity: Vec<Extent>,
    /// Whether parity is updated from the old parity and data (read-modify-write); otherwise it is computed from the
    /// data.
    pub modifies: bool,
}

/// Layout of a level with parity.
pub trait Coding: Placing {
    /// Bytes of a row's data.
    fn row_bytes(&self) -> u64;

    /// Whether a read of a part of a stripe reads more than the part.
    fn reads_whole_rows(&self) -> bool;

    /// Bytes of parity that a write of a part of a stripe computes.
    fn parity_bytes(&self, part: &RowPart) -> u64;

    /// Reads and writes of a write to a part of a stripe, given which extents are `readable` and `writable`.
    fn plan(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, writable: &impl Fn(&Extent) -> bool) -> Plan;

    /// Appends the accesses of a read of a part of a stripe; returns how much of it replaces unreadable data.
    fn read(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> u64;

    /// Calls `each` with the parities that a write of a data extent updates.
    fn parities_of(&self, extent: &Extent, each: impl FnMut(Extent));

    /// Calls `each` with the parts of stripes that a run of bytes touches.
    fn parts(&self, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(RowPart)) {
        let row_bytes = self.row_bytes();
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        while at < end {
            let (row, from_bytes) = (at / row_bytes, at % row_bytes);
            let to_bytes = row_bytes.min(from_bytes + (end - at));
            each(RowPart { row, from_bytes, to_bytes });
            at += to_bytes - from_bytes;
        }
    }
}

/// Calls `each` with (unit, first byte within it, length) for the units of `length_bytes` from `offset_bytes` on.
#[inline]
pub fn units(unit_bytes: u64, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(u64, u64, u64)) {
    let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
    while at < end {
        let (unit, within) = (at / unit_bytes, at % unit_bytes);
        let length = (unit_bytes - within).min(end - at);
        each(unit, within, length);
        at += length;
    }
}

/// The end of the unit that holds a byte.
pub fn unit_end(offset_bytes: u64, unit_bytes: u64) -> u64 {
    (offset_bytes / unit_bytes + 1) * unit_bytes
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A shape to change.
    pub fn shape() -> Shape {
        Shape {
            members: 4,
            spans: 1,
            unit_bytes: 4096,
            member_bytes: 1 << 20,
            record_bytes: 128 << 10,
            rotation: Rotation::default(),
            small_writes: SmallWrites::default(),
            is_pooled: false,
        }
    }
}
