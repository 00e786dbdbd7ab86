//! Address arithmetic of a pool: converts slot numbers to members and offsets.
//!
//! A *cell* is room for one segment on one member. Cells are numbered along the rows: cell `c` is on member `c %
//! members` in row `c / members`, so that any `members` consecutive cells are on different members. A *group* (PEG in
//! AutoRAID) is a run of cells of one class: two consecutive cells hold the copies of a mirrored segment,
//! `parity_width` consecutive ones a stripe. Neither needs to begin at a row, which makes odd member counts work.

use crate::description::pool::{Classes, PoolDescription};

/// Place of a segment on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Number of the member.
    pub member: u32,
    /// First byte on the member.
    pub offset_bytes: u64,
}

#[inline]
fn extent(cell: u32, members: u32, segment_shift: u8) -> Extent {
    Extent { member: cell % members, offset_bytes: u64::from(cell / members) << segment_shift }
}

/// Place of a segment on the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Two copies on adjacent members.
    Mirrored([Extent; 2]),
    /// A single copy, in a stripe with two parities.
    Parity {
        /// The segment itself.
        data: Extent,
        /// The stripe that contains the segment.
        stripe: Stripe,
    },
}

/// A stripe with double parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    first_cell: u32,
    members: u8,
    width: u8,
    /// Position of the first parity; the second parity follows, wrapping around.
    parity_position: u8,
    segment_shift: u8,
}

impl Stripe {
    /// Returns the two parities.
    pub fn parity(&self) -> [Extent; 2] {
        [0, 1].map(|number| self.extent(number))
    }

    /// Returns every data segment, live or dead: dead segments still count in the parities until they are overwritten.
    pub fn data(&self) -> impl Iterator<Item = Extent> + use<> {
        let stripe = *self;
        (2..u32::from(stripe.width)).map(move |number| stripe.extent(number))
    }

    /// Returns the other data segments, which a degraded read or a reconstruct-write reads.
    pub fn others(&self, data: Extent) -> impl Iterator<Item = Extent> + use<> {
        self.data().filter(move |&other| other != data)
    }

    /// Returns an extent by its number, counted from the first parity.
    fn extent(&self, number: u32) -> Extent {
        extent(self.cell(number), u32::from(self.members), self.segment_shift)
    }

    fn cell(&self, number: u32) -> u32 {
        self.first_cell + (u32::from(self.parity_position) + number) % u32::from(self.width)
    }
}

/// Redundancy class of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Mirrored,
    Parity,
}

/// A slot for a segment, in 32 bits: the cell of its data (the first copy), and the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

const PARITY_BIT: u32 = 1 << 31;

impl Slot {
    /// No slot. The bits of this value do not read as mirrored.
    pub const NONE: Slot = Slot(u32::MAX);

    pub fn new(class: Class, cell: u32) -> Slot {
        match class {
            Class::Mirrored => Slot(cell),
            Class::Parity => Slot(cell | PARITY_BIT),
        }
    }

    #[inline]
    pub fn class(self) -> Class {
        if self.0 & PARITY_BIT == 0 { Class::Mirrored } else { Class::Parity }
    }

    #[inline]
    pub fn cell(self) -> u32 {
        self.0 & !PARITY_BIT
    }
}

/// Address arithmetic of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskLayout {
    pub members: u32,
    /// log2 of a segment's bytes.
    segment_shift: u8,
    /// Number of cells of a group, a multiple of pairs and of stripes.
    pub group_cells: u32,
    pub groups: u32,
    /// Width of a stripe in disks; 0 in a pool that only mirrors.
    pub parity_width: u32,
}

impl DiskLayout {
    pub fn new(pool: &PoolDescription) -> DiskLayout {
        let (parity_width, group_cells) = match pool.classes {
            Classes::Mirrored => (0, 2 * pool.members),
            Classes::Migrating { parity_width, .. } if parity_width % 2 == 0 => (parity_width, parity_width),
            Classes::Migrating { parity_width, .. } => (parity_width, 2 * parity_width),
        };
        let cells = pool.member_bytes / pool.segment_bytes * u64::from(pool.members);
        let spare_cells = pool.spare_bytes.div_ceil(pool.segment_bytes);
        DiskLayout {
            members: pool.members,
            segment_shift: pool.segment_bytes.trailing_zeros() as u8,
            group_cells,
            groups: (cells.saturating_sub(spare_cells) / u64::from(group_cells)) as u32,
            parity_width,
        }
    }

    pub fn migrates(&self) -> bool {
        self.parity_width > 0
    }

    pub fn bytes(&self, cells: u32) -> u64 {
        u64::from(cells) << self.segment_shift
    }

    pub fn group_bytes(&self) -> u64 {
        self.bytes(self.group_cells)
    }

    pub fn usable_bytes(&self) -> u64 {
        u64::from(self.groups) * self.group_bytes()
    }

    /// Returns the number of segments that a group of a class holds.
    #[inline]
    pub fn slots(&self, class: Class) -> u32 {
        match class {
            Class::Mirrored => self.group_cells / 2,
            Class::Parity => self.group_cells / self.parity_width * (self.parity_width - 2),
        }
    }

    /// Returns slot `number` of a group.
    #[inline]
    pub fn slot(&self, class: Class, group: u32, number: u32) -> Slot {
        let first_cell = group * self.group_cells;
        match class {
            Class::Mirrored => Slot::new(class, first_cell + 2 * number),
            Class::Parity => {
                let data = self.parity_width - 2;
                let stripe = self.stripe(first_cell + number / data * self.parity_width);
                Slot::new(class, stripe.cell(2 + number % data))
            }
        }
    }

    pub fn slots_of(self, class: Class, group: u32) -> impl Iterator<Item = Slot> {
        (0..self.slots(class)).map(move |number| self.slot(class, group, number))
    }

    #[inline]
    pub fn group_of(&self, slot: Slot) -> u32 {
        slot.cell() / self.group_cells
    }

    #[inline]
    pub fn extent(&self, cell: u32) -> Extent {
        extent(cell, self.members, self.segment_shift)
    }

    pub fn cell_extents(self, group: u32) -> impl Iterator<Item = Extent> {
        (0..self.group_cells).map(move |number| self.extent(group * self.group_cells + number))
    }

    #[inline]
    pub fn placement(&self, slot: Slot) -> Placement {
        let data = self.extent(slot.cell());
        match slot.class() {
            Class::Mirrored => {
                // The next cell is on the next member, or first in the next row.
                let copy = if data.member + 1 < self.members {
                    Extent { member: data.member + 1, ..data }
                } else {
                    Extent { member: 0, offset_bytes: data.offset_bytes + self.bytes(1) }
                };
                Placement::Mirrored([data, copy])
            }
            Class::Parity => Placement::Parity { data, stripe: self.stripe(slot.cell()) },
        }
    }

    /// Returns the stripe of a cell. The parities move by one position from stripe to stripe, so that all members hold
    /// equally many even if a stripe spans all members.
    #[inline]
    fn stripe(&self, cell: u32) -> Stripe {
        let (width, number) = (self.parity_width, cell / self.parity_width);
        Stripe {
            first_cell: number * width,
            members: self.members as u8,
            width: width as u8,
            parity_position: (width - 1 - number % width) as u8,
            segment_shift: self.segment_shift,
        }
    }
}
