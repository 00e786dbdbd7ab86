//! RAID levels: where a group's bytes lie, what is redundant, and what a read, a write and a rebuild ask of its members. One file
//! a level; the files know addresses only, neither time nor members.
//!
//! A *slot* is a position in the group's layout; which member serves it is the group's business. Levels of *copies* keep every
//! byte once or several times; levels with *parity* keep it once, in a row from which the others and the parities bring it back.

mod concat;
mod placing;
mod raid0;
mod raid1;
mod raid10;
mod raid5;
mod raid6;
mod rows;

pub use placing::{Extent, Placing, Plan, Rotation, RowPart, Rules, Shape, SmallWrites, Tear, join};

use concat::Concat;
use placing::{Coding, Copying};
use raid0::Raid0;
use raid1::Raid1;
use raid10::Raid10;
use rows::Rows;
use serde::{Deserialize, Serialize};

/// RAID levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Level {
    /// One member after the other.
    Concat,
    /// Striped, no redundancy.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Two copies of each stripe unit on neighbouring members, striped over all; odd counts too (Linux md's `near`).
    Raid10,
    /// Striped with one rotating parity.
    Raid5,
    /// Striped with two rotating parities (5DP).
    Raid6,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 6] = [Level::Concat, Level::Raid0, Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6];

    /// What it asks of a group's description.
    pub const fn rules(self) -> Rules {
        match self {
            Level::Concat => concat::RULES,
            Level::Raid0 => raid0::RULES,
            Level::Raid1 => raid1::RULES,
            Level::Raid10 => raid10::RULES,
            Level::Raid5 => raid5::RULES,
            Level::Raid6 => raid6::RULES,
        }
    }

    /// Bytes that a group of a shape holds for its users: whole stripe units where the level deals them. Of any shape, possible or not.
    pub fn capacity_bytes(self, shape: &Shape) -> u64 {
        match self {
            Level::Concat => concat::capacity_bytes(shape),
            Level::Raid0 => raid0::capacity_bytes(shape),
            Level::Raid1 => raid1::capacity_bytes(shape),
            Level::Raid10 => raid10::capacity_bytes(shape),
            Level::Raid5 => rows::capacity_bytes(shape, raid5::PARITIES),
            Level::Raid6 => rows::capacity_bytes(shape, raid6::PARITIES),
        }
    }
}

/// A group's layout.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Every byte once, or several times.
    Copies(Copies),
    /// Every byte once, in a row with parity.
    Parity(Parity),
}

/// Levels of copies.
#[derive(Clone, Debug)]
pub enum Copies {
    /// One slot after the other.
    Concat(Concat),
    /// Striped.
    Raid0(Raid0),
    /// Mirrored.
    Raid1(Raid1),
    /// Mirrored and striped.
    Raid10(Raid10),
}

/// Levels with parity.
#[derive(Clone, Debug)]
pub enum Parity {
    /// RAID 5 and 6: rows of stripe units, whose parities rotate.
    Rows(Rows),
}

/// Asks the layout of copies that it is.
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

/// Asks the layout with parity that it is.
macro_rules! of_parity {
    ($parity:expr, $level:ident => $answer:expr) => {
        match $parity {
            Parity::Rows($level) => $answer,
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
    /// The layout of a level and a shape that were checked.
    pub fn new(level: Level, shape: &Shape) -> Layout {
        match level {
            Level::Concat => Layout::Copies(Copies::Concat(Concat::new(shape))),
            Level::Raid0 => Layout::Copies(Copies::Raid0(Raid0::new(shape))),
            Level::Raid1 => Layout::Copies(Copies::Raid1(Raid1::new(shape))),
            Level::Raid10 => Layout::Copies(Copies::Raid10(Raid10::new(shape))),
            Level::Raid5 => Layout::Parity(Parity::Rows(Rows::new(shape, raid5::PARITIES))),
            Level::Raid6 => Layout::Parity(Parity::Rows(Rows::new(shape, raid6::PARITIES))),
        }
    }
}

impl Layout {
    /// Copies of each byte.
    #[inline]
    pub fn copies(&self) -> usize {
        match self {
            Layout::Copies(copies) => of_copies!(copies, level => level.copies()),
            Layout::Parity(_) => 1,
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
    /// Bytes of a row's data.
    pub fn row_bytes(&self) -> u64 {
        of_parity!(self, level => level.row_bytes())
    }

    /// A read of a part of a row takes more of it than the part.
    #[inline]
    pub fn reads_whole_rows(&self) -> bool {
        of_parity!(self, level => level.reads_whole_rows())
    }

    /// Bytes of parity that a write of a part of a row computes.
    pub fn parity_bytes(&self, part: &RowPart) -> u64 {
        of_parity!(self, level => level.parity_bytes(part))
    }

    /// Calls `each` with the parts of rows that a run of bytes touches.
    pub fn parts(&self, offset_bytes: u64, length_bytes: u64, each: impl FnMut(RowPart)) {
        of_parity!(self, level => level.parts(offset_bytes, length_bytes, each))
    }

    /// What a write of a part of a row reads and writes.
    pub fn plan(
        &self,
        part: &RowPart,
        readable: &impl Fn(&Extent) -> bool,
        writable: &impl Fn(&Extent) -> bool,
    ) -> Plan {
        of_parity!(self, level => level.plan(part, readable, writable))
    }

    /// Appends what a read of a run of bytes takes, neighbours on a slot joined; returns how much of it stands in for what
    /// cannot be read.
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

    /// Calls `each` with the parities that a write of an extent of data renews.
    pub fn parities_of(&self, extent: &Extent, each: impl FnMut(Extent)) {
        of_parity!(self, level => level.parities_of(extent, each))
    }
}
