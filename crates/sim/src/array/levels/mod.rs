//! RAID levels: where a group's bytes lie, what is redundant, and what a read, a write and a rebuild ask of its members. One file
//! a level; the files know addresses only, neither time nor members.
//!
//! A *slot* is a position in the group's layout; which member serves it is the group's business. Levels of *copies* keep every
//! byte once or several times; levels with *parity* keep it once, in a row from which the others and the parities bring it back.

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

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use concat::Concat;
pub use draid::Draid;
use placing::{Coding, Copying};
pub use placing::{Extent, Placing, Plan, Rotation, RowPart, Rules, Shape, SmallWrites, Tear, join};
use raid0::Raid0;
use raid1::Raid1;
use raid10::Raid10;
use raidz::Raidz;
use rows::Rows;

/// RAID levels. In text `raid5`, `4+2` (k+m), `raidz2` or `draid2:8d:1s` (parities, data and spares).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Striped with any number of rotating parities: k+m.
    Erasure {
        /// Units of data in a row: k.
        data: u32,
        /// Units of parity: m.
        parity: u32,
    },
    /// Records in rows of variable width, as OpenZFS has them.
    Raidz {
        /// Parities of a row.
        parity: u32,
    },
    /// Records in groups that lie elsewhere in each slice, and distributed spares, as OpenZFS has them.
    Draid {
        /// Parities of a group.
        parity: u32,
        /// Columns of data in a group.
        data: u32,
        /// Members' worth of space that is kept for spares.
        spares: u32,
    },
}

impl Level {
    /// What it can be in text.
    pub const FORMS: &[&str] =
        &["concat", "raid0", "raid1", "raid10", "raid5", "raid6", "raidz1", "raidz2", "raidz3", "K+M", "draidP:Dd:Ss"];

    /// The level that a text names.
    pub fn parse(text: &str) -> Option<Level> {
        let level = match text {
            "concat" => Level::Concat,
            "raid0" => Level::Raid0,
            "raid1" => Level::Raid1,
            "raid10" => Level::Raid10,
            "raid5" => Level::Raid5,
            "raid6" => Level::Raid6,
            other => match (other.strip_prefix("raidz"), other.strip_prefix("draid"), other.split_once('+')) {
                (Some(parity), None, None) => Level::Raidz { parity: count(parity)? },
                (None, Some(draid), None) => parse_draid(draid)?,
                (None, None, Some((data, parity))) => Level::Erasure { data: count(data)?, parity: count(parity)? },
                (Some(_), _, _) | (_, Some(_), _) | (None, None, None) => return None,
            },
        };
        level.is_possible().then_some(level)
    }

    /// Its counts are such as there are.
    pub fn is_possible(self) -> bool {
        match self {
            Level::Concat | Level::Raid0 | Level::Raid1 | Level::Raid10 | Level::Raid5 | Level::Raid6 => true,
            Level::Erasure { data, parity } => {
                (1..=erasure::UNITS_MAX).contains(&data) && (1..=erasure::UNITS_MAX).contains(&parity)
            }
            Level::Raidz { parity } => (1..=raidz::PARITIES_MAX).contains(&parity),
            Level::Draid { parity, data, spares } => {
                (1..=draid::PARITIES_MAX).contains(&parity)
                    && (1..draid::MEMBERS_MAX).contains(&data)
                    && spares < draid::MEMBERS_MAX
            }
        }
    }

    /// What it asks of a group's description.
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

    /// Bytes that a group of a shape holds for its users: whole stripe units where the level deals them. Of any shape, possible or not.
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

/// `P:Dd:Ss`, where `Ss` may be left out.
fn parse_draid(text: &str) -> Option<Level> {
    let mut parts = text.split(':');
    let parity = count(parts.next()?)?;
    let data = count(parts.next()?.strip_suffix('d')?)?;
    let spares = parts.next().map_or(Some(0), |spares| count(spares.strip_suffix('s')?))?;
    parts.next().is_none().then_some(Level::Draid { parity, data, spares })
}

/// A number without a sign.
fn count(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Level::Concat => write!(f, "concat"),
            Level::Raid0 => write!(f, "raid0"),
            Level::Raid1 => write!(f, "raid1"),
            Level::Raid10 => write!(f, "raid10"),
            Level::Raid5 => write!(f, "raid5"),
            Level::Raid6 => write!(f, "raid6"),
            Level::Erasure { data, parity } => write!(f, "{data}+{parity}"),
            Level::Raidz { parity } => write!(f, "raidz{parity}"),
            Level::Draid { parity, data, spares } => write!(f, "draid{parity}:{data}d:{spares}s"),
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        let text = String::deserialize(deserializer)?;
        Level::parse(&text).ok_or_else(|| D::Error::unknown_variant(&text, Level::FORMS))
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
    /// RAID 5 and 6, k+m: rows of stripe units, whose parities rotate.
    Rows(Rows),
    /// Records in rows of variable width.
    Raidz(Raidz),
    /// Records in groups that lie elsewhere in each slice.
    Draid(Draid),
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
    /// The layout of a level and a shape that were checked.
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
    /// Copies of each byte.
    #[inline]
    pub fn copies(&self) -> usize {
        match self {
            Layout::Copies(copies) => of_copies!(copies, level => level.copies()),
            Layout::Parity(_) => 1,
        }
    }

    /// The spares that are distributed over the members, where there are such.
    pub fn distributed(&self) -> Option<&Draid> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_they_are_written() {
        for text in ["concat", "raid0", "raid1", "raid10", "raid5", "raid6", "4+2", "8+8", "raidz3", "draid2:8d:1s"] {
            assert_eq!(Level::parse(text).map(|level| level.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Level::parse("draid1:4d"), Some(Level::Draid { parity: 1, data: 4, spares: 0 }));
        for text in
            ["raid7", "raidz", "raidz4", "0+1", "4+9", "+4+2", "4+", "draid", "draid4:8d", "draid1:8", "draid1:8d:1s:2"]
        {
            assert_eq!(Level::parse(text), None, "{text}");
        }
    }
}
