//! Interfaces of all RAID levels, such as [`Placing`] and [`Coding`]: shapes, extents, plans, sources.

use crate::description::level::{Rotation, SmallWrites};

/// A run of bytes on one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Position in the layout.
    pub slot: u32,
    /// First byte on the slot.
    pub at_bytes: u64,
    /// Length, in bytes.
    pub length_bytes: u64,
}

impl Extent {
    /// Returns the end of the extent (exclusive).
    pub fn end_bytes(&self) -> u64 {
        self.at_bytes + self.length_bytes
    }
}

/// Adds an extent, merging it with the last extent of the same slot if the two are adjacent.
#[inline]
pub fn join(extents: &mut Vec<Extent>, extent: Extent) {
    let last = extents.iter_mut().rev().find(|earlier| earlier.slot == extent.slot);
    match last {
        Some(last) if last.end_bytes() == extent.at_bytes => last.length_bytes += extent.length_bytes,
        _ => extents.push(extent),
    }
}

/// Requirements of a level on a group.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Minimum number of members of a span.
    pub members_min: u32,
    /// Maximum number of members of a span.
    pub members_max: u32,
    /// Divisor of the number of members.
    pub members_step: u32,
    /// Whether the level distributes chunks over the members.
    pub is_striped: bool,
    /// Whether rows can be distributed over several spans (RAID 50 and 60).
    pub has_spans: bool,
    /// Whether the level stores records; its chunks are then sectors.
    pub has_records: bool,
    /// Whether stripes are narrower than the group and change members from slice to slice.
    pub is_declustered: bool,
    /// Usual numbers of members.
    pub usual: Usual,
    /// Whether `choose` considers the level.
    pub choice: Choice,
}

/// Usual maximum width of a span of RAID 5, RAID 6 and RAIDZ. This is our convention; wider spans are rare.
pub const USUAL_WIDTH: u32 = 16;

/// Usual numbers of members, within the numbers that the level allows.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Maximum number of members of a span.
    pub members_max: u32,
    /// Divisor of the number of members.
    pub members_step: u32,
}

/// Whether `choose` considers a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The level is a candidate by default.
    Default,
    /// The level is a candidate only if the user names it.
    Named,
    /// Like [`Self::Named`], but no message suggests the level.
    Unlisted,
}

/// Numbers of units in a full stripe of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Number of data units.
    pub data: u64,
    /// Number of parity units.
    pub parity: u64,
    /// Number of copies of each unit; 2 or more in a mirrored level.
    pub copies: u64,
}

/// A group as sets of members that lose data independently of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy {
    /// Number of sets.
    pub groups: u64,
    /// Number of members of each set.
    pub members: u64,
    /// Number of failed members that a set always survives.
    pub survives: u64,
    /// Number of members that hold a stripe; less than the size of the set if stripes are declustered.
    pub width: u64,
    /// Number of distributed spares in the set.
    pub spares: u64,
}

impl Redundancy {
    /// Returns one set of all members, each of which holds part of every stripe.
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
    /// Number of members, over all spans.
    pub members: u64,
    /// Number of spans.
    pub spans: u64,
    /// Chunk size: bytes on one member before the next is used.
    pub unit_bytes: u64,
    /// Bytes used of each member.
    pub member_bytes: u64,
    /// Size of a record in bytes, if the level has records.
    pub record_bytes: u64,
    /// How parity rotates from row to row.
    pub rotation: Rotation,
    /// How a write smaller than a row updates parity.
    pub small_writes: SmallWrites,
    /// Whether a pool may place segments anywhere, so that any two neighbouring members may hold the copies of a
    /// segment.
    pub is_pooled: bool,
}

impl Shape {
    /// Returns the number of whole chunks on a member.
    pub fn units(&self) -> u64 {
        self.member_bytes.checked_div(self.unit_bytes).unwrap_or(0)
    }
}

/// Place at which a power loss may cut a write short: at a boundary within the group, or at a boundary of the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// At this byte of the group.
    At(u64),
    /// At the next internal boundary of the member of `slot`; the unit begins at byte `base_bytes` of the group.
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

    /// Appends the extents that store a run of bytes: its pieces in order of address, each with all copies.
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>);

    /// Whether all stored data can be reconstructed; `whole` states whether a byte of a slot is valid.
    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool;

    /// Appends the extents from which an extent can be reconstructed; returns true if they suffice. `readable` states
    /// which extents can be read.
    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool;

    /// Returns the extents of `slot` that cannot be reconstructed if `bad`, one of their sources, cannot be read.
    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent>;

    /// Returns where a power loss may cut short a write that includes the byte at `offset_bytes`.
    fn tear(&self, offset_bytes: u64) -> Tear;

    /// Returns the number of bytes that one destage should write together.
    fn joint_bytes(&self) -> u64;
}

/// Layout of a level with distributed spare space.
pub trait Sparing {
    /// Returns the number of distributed spares.
    fn spares(&self) -> u32;

    /// Returns the slot that holds the copy of a byte for a distributed spare, at the same address.
    fn spare_slot(&self, spare: u32, at_bytes: u64) -> u32;

    /// Returns the distributed spare whose space includes a byte of a slot, if any.
    fn spare_at(&self, slot: u32, at_bytes: u64) -> Option<u32>;

    /// Returns the end of the range of a slot within which the answers of these methods stay the same.
    fn row_end(&self, at_bytes: u64) -> u64;
}

/// Layout of a level with copies.
pub trait Copying: Placing {
    /// Returns the number of copies of each byte.
    fn copies(&self) -> usize;
}

/// The part of a row that a write touches, in bytes of the row's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// Row number, over all spans.
    pub row: u64,
    /// First byte, within the row's data.
    pub from_bytes: u64,
    /// End of the part (exclusive).
    pub to_bytes: u64,
    /// If set, the write touches this range of some chunks only, in place of all bytes of the part.
    pub chunks: Option<ChunkRange>,
}

/// The same range of several chunks of a row: stripes of Linux md, which are a page high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// Data units that are written, one bit each.
    pub units: u128,
    /// First byte, within each chunk.
    pub from_bytes: u64,
    /// End of the range (exclusive).
    pub to_bytes: u64,
}

impl ChunkRange {
    /// Returns the number of bytes in all its chunks.
    pub fn length_bytes(&self) -> u64 {
        u64::from(self.units.count_ones()) * (self.to_bytes - self.from_bytes)
    }

    /// Whether a data unit is written.
    pub fn writes(&self, unit: u64) -> bool {
        self.units >> unit & 1 == 1
    }
}

impl RowPart {
    /// Returns the length of the part, in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.chunks.map_or(self.to_bytes - self.from_bytes, |chunks| chunks.length_bytes())
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
    /// Whether the parities are updated from the old data and parities (read-modify-write); otherwise they are computed
    /// from all data of the row.
    pub modifies: bool,
}

/// Layout of a level with parity.
pub trait Coding: Placing {
    /// Returns the number of data bytes in a row.
    fn row_bytes(&self) -> u64;

    /// Whether a read of part of a row must read more than this part.
    fn reads_whole_rows(&self) -> bool;

    /// Returns the number of parity bytes that a write of part of a row computes.
    fn parity_bytes(&self, part: &RowPart) -> u64;

    /// Returns the reads and writes of a write of part of a row; `readable` and `writable` state the usable extents.
    fn plan(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, writable: &impl Fn(&Extent) -> bool) -> Plan;

    /// Appends the extents that a read of part of a row requires; returns the number of bytes that replace unreadable
    /// bytes.
    fn read(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> u64;

    /// Calls `each` with the parity extents that a write of a data extent updates.
    fn parities_of(&self, extent: &Extent, each: impl FnMut(Extent));

    /// Calls `each` with the row parts that a run of bytes touches.
    fn parts(&self, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(RowPart)) {
        let row_bytes = self.row_bytes();
        let (mut at, end) = (offset_bytes, offset_bytes + length_bytes);
        while at < end {
            let (row, from_bytes) = (at / row_bytes, at % row_bytes);
            let to_bytes = row_bytes.min(from_bytes + (end - at));
            each(RowPart { row, from_bytes, to_bytes, chunks: None });
            at += to_bytes - from_bytes;
        }
    }
}

/// Calls `each` with (unit, first byte within the unit, length) for each unit of `length_bytes` from `offset_bytes` on.
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

/// Returns the end of the unit that contains a byte.
pub fn unit_end(offset_bytes: u64, unit_bytes: u64) -> u64 {
    (offset_bytes / unit_bytes + 1) * unit_bytes
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a shape that tests modify.
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
