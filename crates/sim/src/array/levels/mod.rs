//! RAID levels ([`Layout`]): where the bytes of a group are stored, what is redundant, and which member accesses a
//! read, a write and a rebuild need. Each level has its own file, which knows only addresses, neither time nor members.
//! See docs/design/raid-levels.md.
//!
//! A *slot* is a position in the layout of a group; the group decides which member serves the slot. Levels with
//! *copies* store every byte once or several times; levels with *parity* store every byte once, in a row from whose
//! other units and parities it can be reconstructed.

mod concat;
mod draid;
mod erasure;
mod placing;
mod raid0;
mod raid1;
mod raid10;
mod raid5;
mod raid6;
mod raidz;
mod records;
mod rows;

use crate::description::level::Level;
use concat::Concat;
use draid::Draid;
pub use placing::{
    Choice, ChunkRange, Extent, Placing, Plan, Redundancy, RowPart, Rules, Shape, Sparing, Stripe, Tear, Usual, join,
};
use placing::{Coding, Copying};
use raid0::Raid0;
use raid1::Raid1;
use raid10::Raid10;
use raidz::Raidz;
use rows::Rows;

impl Level {
    /// Returns the requirements of the level on a group.
    pub const fn rules(self) -> Rules {
        match self {
            Level::Concat => concat::RULES,
            Level::Raid0 => raid0::RULES,
            Level::Raid1 => raid1::RULES,
            Level::Raid10 => raid10::RULES,
            Level::Raid5 => raid5::RULES,
            Level::Raid6 => raid6::RULES,
            Level::Erasure { data, parity } => erasure::rules(data, parity),
            Level::Raidz { parity } => raidz::rules(parity),
            Level::Draid { parity, data, spares } => draid::rules(parity, data, spares),
        }
    }

    /// Returns how many failures a group survives. Numbers of members and spans must satisfy the level's rules.
    pub fn redundancy(self, members: u64, spans: u64) -> Redundancy {
        match self {
            Level::Concat => concat::redundancy(members),
            Level::Raid0 => raid0::redundancy(members),
            Level::Raid1 => raid1::redundancy(members),
            Level::Raid10 => raid10::redundancy(members),
            Level::Raid5 => rows::redundancy(members, spans, raid5::PARITIES),
            Level::Raid6 => rows::redundancy(members, spans, raid6::PARITIES),
            Level::Erasure { data, parity } => erasure::redundancy(members, data, parity),
            Level::Raidz { parity } => raidz::redundancy(members, parity),
            Level::Draid { parity, data, spares } => draid::redundancy(members, parity, data, spares),
        }
    }

    /// Returns the units of a full stripe over a span of `members` members; `None` if the level has no stripes or their
    /// width varies.
    pub fn stripe(self, members: u64) -> Option<Stripe> {
        match self {
            Level::Raid0 => Some(raid0::stripe(members)),
            Level::Raid1 => Some(raid1::stripe(members)),
            Level::Raid10 => Some(raid10::stripe(members)),
            Level::Raid5 => Some(rows::stripe(members, raid5::PARITIES)),
            Level::Raid6 => Some(rows::stripe(members, raid6::PARITIES)),
            Level::Erasure { data, parity } => Some(erasure::stripe(data, parity)),
            Level::Concat | Level::Raidz { .. } | Level::Draid { .. } => None,
        }
    }

    /// Returns the data capacity of a group in units of a member's capacity, as numerator and denominator, ignoring
    /// rounding to whole stripes.
    fn data_share(self, members: u64, spans: u64) -> (u64, u64) {
        match self {
            Level::Concat | Level::Raid0 => (members, 1),
            Level::Raid1 => (1, 1),
            Level::Raid10 => (members / 2, 1),
            Level::Raid5 => (members - spans * u64::from(raid5::PARITIES), 1),
            Level::Raid6 => (members - spans * u64::from(raid6::PARITIES), 1),
            Level::Erasure { data, parity } => erasure::data_share(members, data, parity),
            Level::Raidz { parity } => raidz::data_share(members, parity),
            Level::Draid { parity, data, spares } => draid::data_share(members, parity, data, spares),
        }
    }

    /// Returns the bytes that a group exports, ignoring rounding to whole stripes. Numbers of members and spans must
    /// satisfy the level's rules.
    pub fn usable_bytes(self, members: u64, spans: u64, member_bytes: u64) -> u64 {
        let (data, of) = self.data_share(members, spans);
        u64::try_from(u128::from(data) * u128::from(member_bytes) / u128::from(of)).unwrap_or(u64::MAX)
    }

    /// Returns the usual combinations of members and spans, up to `members_max` members.
    pub fn usual_layouts(self, members_max: u32) -> impl Iterator<Item = (u32, u32)> {
        let rules = self.rules();
        let counts = rules.members_min..=members_max.min(rules.members_max);
        counts.filter(move |members| members.is_multiple_of(rules.usual.members_step)).filter_map(move |members| {
            let spans = members.div_ceil(rules.usual.members_max);
            let is_built = spans == 1 || rules.has_spans && members.is_multiple_of(spans);
            is_built.then_some((members, spans))
        })
    }

    /// Returns the bytes that a group exports, in whole chunks if the level is striped. Accepts any shape, even
    /// an impossible one.
    pub fn capacity_bytes(self, shape: &Shape) -> u64 {
        match self {
            Level::Concat => concat::capacity_bytes(shape),
            Level::Raid0 => raid0::capacity_bytes(shape),
            Level::Raid1 => raid1::capacity_bytes(shape),
            Level::Raid10 => raid10::capacity_bytes(shape),
            Level::Raid5 => rows::capacity_bytes(shape, raid5::PARITIES),
            Level::Raid6 => rows::capacity_bytes(shape, raid6::PARITIES),
            Level::Erasure { data, parity } => erasure::capacity_bytes(shape, data, parity),
            Level::Raidz { parity } => raidz::capacity_bytes(shape, parity),
            Level::Draid { parity, data, spares } => draid::capacity_bytes(shape, parity, data, spares),
        }
    }
}

/// Layout of a group.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Levels that store every byte once or several times.
    Copies(Copies),
    /// Levels that store every byte once, in a row with parity.
    Parity(Parity),
}

/// Layouts of the levels without parity.
#[derive(Clone, Debug)]
pub enum Copies {
    /// Concatenation: one slot after the other.
    Concat(Concat),
    /// Striped.
    Raid0(Raid0),
    /// Mirrored.
    Raid1(Raid1),
    /// Mirrored and striped.
    Raid10(Raid10),
}

/// Layouts of the levels with parity.
#[derive(Clone, Debug)]
pub enum Parity {
    /// RAID 5, RAID 6 and k+m: rows of chunks with rotating parities.
    Rows(Rows),
    /// RAIDZ: records in rows of variable width.
    Raidz(Raidz),
    /// dRAID: records in groups whose members change from slice to slice.
    Draid(Draid),
}

/// Calls a method of the layout inside [`Copies`].
macro_rules! of_copies {
    ($copies:expr, $level:ident => $answer:expr) => {
        match $copies {
            Copies::Concat($level) => $answer,
            Copies::Raid0($level) => $answer,
            Copies::Raid1($level) => $answer,
            Copies::Raid10($level) => $answer,
        }
    };
}

/// Calls a method of the layout inside [`Parity`].
macro_rules! of_parity {
    ($parity:expr, $level:ident => $answer:expr) => {
        match $parity {
            Parity::Rows($level) => $answer,
            Parity::Raidz($level) => $answer,
            Parity::Draid($level) => $answer,
        }
    };
}

macro_rules! of_layout {
    ($layout:expr, $level:ident => $answer:expr) => {
        match $layout {
            Layout::Copies(copies) => of_copies!(copies, $level => $answer),
            Layout::Parity(parity) => of_parity!(parity, $level => $answer),
        }
    };
}

impl Layout {
    /// Creates the layout of a validated level and shape.
    pub fn new(level: Level, shape: &Shape) -> Layout {
        match level {
            Level::Concat => Layout::Copies(Copies::Concat(Concat::new(shape))),
            Level::Raid0 => Layout::Copies(Copies::Raid0(Raid0::new(shape))),
            Level::Raid1 => Layout::Copies(Copies::Raid1(Raid1::new(shape))),
            Level::Raid10 => Layout::Copies(Copies::Raid10(Raid10::new(shape))),
            Level::Raid5 => Layout::Parity(Parity::Rows(Rows::new(shape, raid5::PARITIES))),
            Level::Raid6 => Layout::Parity(Parity::Rows(Rows::new(shape, raid6::PARITIES))),
            Level::Erasure { data, parity } => Layout::Parity(Parity::Rows(erasure::rows(shape, data, parity))),
            Level::Raidz { parity } => Layout::Parity(Parity::Raidz(Raidz::new(shape, parity))),
            Level::Draid { parity, data, spares } => {
                Layout::Parity(Parity::Draid(Draid::new(shape, parity, data, spares)))
            }
        }
    }
}

impl Layout {
    /// Returns the number of copies of each byte.
    #[inline]
    pub fn copies(&self) -> usize {
        match self {
            Layout::Copies(copies) => of_copies!(copies, level => level.copies()),
            Layout::Parity(_) => 1,
        }
    }

    /// Returns the distributed spares, if the level has any.
    pub fn distributed(&self) -> Option<&dyn Sparing> {
        match self {
            Layout::Copies(_) | Layout::Parity(Parity::Rows(_) | Parity::Raidz(_)) => None,
            Layout::Parity(Parity::Draid(draid)) => Some(draid),
        }
    }
}

impl Placing for Layout {
    fn slots(&self) -> u32 {
        of_layout!(self, level => level.slots())
    }

    #[inline]
    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        of_layout!(self, level => level.places(offset_bytes, length_bytes, into))
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        of_layout!(self, level => level.survives(whole))
    }

    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool {
        of_layout!(self, level => level.sources(extent, readable, into))
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        of_layout!(self, level => level.damaged(bad, slot))
    }

    fn tear(&self, offset_bytes: u64) -> Tear {
        of_layout!(self, level => level.tear(offset_bytes))
    }

    fn joint_bytes(&self) -> u64 {
        of_layout!(self, level => level.joint_bytes())
    }
}

impl Parity {
    /// Returns the number of data bytes in a row.
    pub fn row_bytes(&self) -> u64 {
        of_parity!(self, level => level.row_bytes())
    }

    /// Whether a read of part of a row must read more than this part.
    #[inline]
    pub fn reads_whole_rows(&self) -> bool {
        of_parity!(self, level => level.reads_whole_rows())
    }

    /// Returns the number of parity bytes that a write of part of a row computes.
    pub fn parity_bytes(&self, part: &RowPart) -> u64 {
        of_parity!(self, level => level.parity_bytes(part))
    }

    /// Calls `each` with the row parts that a run of bytes touches.
    pub fn parts(&self, offset_bytes: u64, length_bytes: u64, each: impl FnMut(RowPart)) {
        of_parity!(self, level => level.parts(offset_bytes, length_bytes, each))
    }

    /// Returns the reads and writes that a write of part of a row requires.
    pub fn plan(
        &self,
        part: &RowPart,
        readable: &impl Fn(&Extent) -> bool,
        writable: &impl Fn(&Extent) -> bool,
    ) -> Plan {
        of_parity!(self, level => level.plan(part, readable, writable))
    }

    /// Appends the extents that a read of a run of bytes requires, merging adjacent extents of a slot; returns the
    /// number of bytes that are read to replace unreadable bytes.
    pub fn read(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
        readable: &impl Fn(&Extent) -> bool,
        into: &mut Vec<Extent>,
    ) -> u64 {
        let (mut of_rows, mut stand_ins) = (Vec::new(), 0);
        self.parts(offset_bytes, length_bytes, |part| {
            stand_ins += of_parity!(self, level => level.read(&part, readable, &mut of_rows));
        });
        of_rows.into_iter().for_each(|extent| join(into, extent));
        stand_ins
    }

    /// Calls `each` with the parity extents that a write of a data extent updates.
    pub fn parities_of(&self, extent: &Extent, each: impl FnMut(Extent)) {
        of_parity!(self, level => level.parities_of(extent, each))
    }
}
