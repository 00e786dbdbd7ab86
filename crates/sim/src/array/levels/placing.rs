//! Interfaces of all RAID levels, such as [`Placing`] and [`Coding`]: shapes, places, plans, sources.

use crate::description::level::{Rotation, SmallWrites};

/// A run of bytes on one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its position in the layout.
    pub slot: u32,
    /// First byte on the slot.
    pub at_bytes: u64,
    /// Length, in bytes.
    pub length_bytes: u64,
}

impl Extent {
    /// Returns the byte after its last one.
    pub fn end_bytes(&self) -> u64 {
        self.at_bytes + self.length_bytes
    }
}

/// Adds an extent, merging it with the last extent of its slot if it continues there.
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
    /// Whether it distributes stripe units over its members.
    pub is_striped: bool,
    /// Whether its rows can be distributed over several spans (RAID 50, 60).
    pub has_spans: bool,
    /// Whether it keeps records, whose sectors are its stripe units.
    pub has_records: bool,
    /// Whether its stripes are narrower than the group and change place from slice to slice.
    pub is_declustered: bool,
    /// Usual numbers of members.
    pub usual: Usual,
    /// Whether a choice of systems considers it.
    pub choice: Choice,
}

/// Widest span of RAID 5 and 6 and of RAIDZ that is usually built: our convention, wider ones are rare.
pub const USUAL_WIDTH: u32 = 16;

/// The numbers of members that are usually built, out of those that a level allows.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Most members of a span.
    pub members_max: u32,
    /// Members come in multiples of this.
    pub members_step: u32,
}

/// Whether a choice of systems considers a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A candidate by default.
    Default,
    /// A candidate only if the user names it.
    Named,
    /// Like [`Self::Named`], but no message suggests it.
    Unlisted,
}

/// The units of a full row, or stripe, of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Units of data.
    pub data: u64,
    /// Units of parity.
    pub parity: u64,
    /// Copies of each unit: 2 or more in a mirrored level.
    pub copies: u64,
}

/// A group as sets of members that lose data independently of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy {
    /// Number of sets.
    pub groups: u64,
    /// Members of each set.
    pub members: u64,
    /// How many failed members of one set it survives, in any combination.
    pub survives: u64,
    /// Members that hold a stripe: fewer than the set has where stripes are declustered.
    pub width: u64,
    /// Members' worth of distributed spare space in the set.
    pub spares: u64,
}

impl Redundancy {
    /// Returns one set of all members, each of which holds a part of every stripe.
    pub const fn whole(members: u64, survives: u64) -> Redundancy {
        Redundancy { groups: 1, members, survives, width: members, spares: 0 }
    }

    /// Returns several sets of the same size.
    pub const fn dealt(groups: u64, members: u64, survives: u64) -> Redundancy {
        Redundancy { groups, members, survives, width: members, spares: 0 }
    }
}

/// The shape of a group, which determines its layout.
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
    /// How parity rotates from row to row.
    pub rotation: Rotation,
    /// How a write smaller than a row updates parity.
    pub small_writes: SmallWrites,
    /// Whether segments of a pool can be anywhere, so that any two neighbours may hold the copies of one.
    pub is_pooled: bool,
}

impl Shape {
    /// Returns the number of whole stripe units of a member.
    pub fn units(&self) -> u64 {
        self.member_bytes.checked_div(self.unit_bytes).unwrap_or(0)
    }
}

/// Place at which a power loss may cut a write short: a boundary within the group, or one of the member's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// At this byte of the group.
    At(u64),
    /// At the next boundary of the member of `slot`, whose first byte is byte `base_bytes` of the group.
    OfMember {
        /// The slot.
        slot: u32,
        /// First byte of the slot's unit, as an address of the group.
        base_bytes: u64,
    },
}

/// Layout of a RAID level.
pub trait Placing {
    /// Returns the number of slots over all spans.
    fn slots(&self) -> u32;

    /// Appends where a run of bytes is stored: its pieces in order of address, each with all copies.
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>);

    /// Whether all stored data can be reconstructed, where `whole` says whether a byte of a slot is valid.
    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool;

    /// Appends the extents from which an extent can be reconstructed; returns true if they suffice. `readable` says
    /// which can be read.
    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool;

    /// Returns the extents of `slot` that cannot be reconstructed when `bad`, one of their sources, cannot be read.
    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent>;

    /// Returns where a power loss may cut a write of the byte at `offset_bytes` short.
    fn tear(&self, offset_bytes: u64) -> Tear;

    /// Returns the number of bytes that are best written together: what a destage joins.
    fn joint_bytes(&self) -> u64;
}

/// Layout of a level with spare space that is distributed over the members.
pub trait Sparing {
    /// Returns the members' worth of spare space.
    fn spares(&self) -> u32;

    /// Returns the slot that holds, at the same place, a distributed spare's copy of a byte of the slots that it
    /// serves.
    fn spare_slot(&self, spare: u32, at_bytes: u64) -> u32;

    /// Returns the distributed spare to which a byte of a slot belongs, if any.
    fn spare_at(&self, slot: u32, at_bytes: u64) -> Option<u32>;

    /// Returns the end of the bytes of a slot for which one answer of these methods holds.
    fn row_end(&self, at_bytes: u64) -> u64;
}

/// Layout of a level with copies.
pub trait Copying: Placing {
    /// Returns the number of copies of each byte.
    fn copies(&self) -> usize;
}

/// The part of a stripe that a write touches, in bytes of the stripe's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The row, counted over all spans.
    pub row: u64,
    /// First byte of the row's data.
    pub from_bytes: u64,
    /// The byte after the last.
    pub to_bytes: u64,
}

impl RowPart {
    /// Returns the bytes of the row's data that it touches.
    pub fn length_bytes(&self) -> u64 {
        self.to_bytes - self.from_bytes
    }
}

/// The reads and writes of a row write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Extents to read first, to compute the parities.
    pub reads: Vec<Extent>,
    /// Extents of data to write.
    pub data: Vec<Extent>,
    /// Extents of parity to write.
    pub parity: Vec<Extent>,
    /// Whether the parities are updated by the change of the data (read-modify-write); otherwise they are computed from
    /// all the data.
    pub modifies: bool,
}

/// Layout of a level with parity.
pub trait Coding: Placing {
    /// Returns the bytes of data in a row.
    fn row_bytes(&self) -> u64;

    /// Whether a read of part of a row reads more of it than that part.
    fn reads_whole_rows(&self) -> bool;

    /// Returns the bytes of parity that a write of part of a row computes.
    fn parity_bytes(&self, part: &RowPart) -> u64;

    /// Returns the reads and writes that a write of part of a row takes; `readable` and `writable` are the usable slots.
    fn plan(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, writable: &impl Fn(&Extent) -> bool) -> Plan;

    /// Appends the extents that a read of part of a row takes; returns how many of their bytes replace unreadable ones.
    fn read(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> u64;

    /// Calls `each` with the parities that a write of an extent of data updates.
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

/// Returns the end of the unit that holds a byte.
pub fn unit_end(offset_bytes: u64, unit_bytes: u64) -> u64 {
    (offset_bytes / unit_bytes + 1) * unit_bytes
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a shape for tests to modify.
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
