//! [`Level`]: the RAID levels and their options. [`crate::array::levels`] places the blocks. See
//! docs/design/raid-levels.md.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum number of data units, and of parity units, in a row of an erasure code.
const ERASURE_UNITS_MAX: u32 = 8;
/// Maximum number of parities of a RAIDZ row and of a dRAID group.
const RECORD_PARITIES_MAX: u32 = 3;
/// Maximum number of members of a dRAID, as in OpenZFS.
pub const DRAID_MEMBERS_MAX: u32 = 255;

/// RAID levels. Their text form is `raid5`, `4+2` (k+m), `raidz2` or `draid2:8d:1s` (parities, data and spares).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Concatenation: one member after another.
    Concat,
    /// Striping without redundancy.
    Raid0,
    /// Mirroring: every member holds all data.
    Raid1,
    /// Striped mirrors: two copies of each chunk on neighbouring members, for even and odd numbers of members
    /// (Linux md's `near`).
    Raid10,
    /// Striping with one rotating parity.
    Raid5,
    /// Striping with two rotating parities (5DP).
    Raid6,
    /// Striping with any number of rotating parities: k+m.
    Erasure {
        /// Number of data units in a row: k.
        data: u32,
        /// Number of parity units in a row: m.
        parity: u32,
    },
    /// Records in rows of variable width, as in OpenZFS.
    Raidz {
        /// Number of parities of a row.
        parity: u32,
    },
    /// Records in groups whose members change from slice to slice, with distributed spares, as in OpenZFS.
    Draid {
        /// Number of parities of a group.
        parity: u32,
        /// Number of data columns of a group.
        data: u32,
        /// Number of distributed spares.
        spares: u32,
    },
}

impl Level {
    /// All levels, with an example for each level that has counts.
    pub const ALL: &[Level] = &[
        Level::Concat,
        Level::Raid0,
        Level::Raid1,
        Level::Raid10,
        Level::Raid5,
        Level::Raid6,
        Level::Raidz { parity: 1 },
        Level::Raidz { parity: 2 },
        Level::Raidz { parity: 3 },
        Level::Erasure { data: 4, parity: 2 },
        Level::Draid { parity: 2, data: 8, spares: 1 },
    ];

    /// Text forms of [`Level::ALL`].
    pub const FORMS: &[&str] = &Level::forms();

    /// The levels that `choose` suggests, abbreviated for a message.
    pub const CHOICES: &str = "raid0, raid1, raid10, raid5, raid6, K+M, raidz1 to raidz3, draidP:Dd:Ss";

    const fn forms() -> [&'static str; Level::ALL.len()] {
        let mut forms = [""; Level::ALL.len()];
        let mut number = 0;
        while number < forms.len() {
            forms[number] = Level::ALL[number].form();
            number += 1;
        }
        forms
    }

    /// Returns the text form, with letters in place of variable counts: `raid5`, `K+M`.
    pub const fn form(self) -> &'static str {
        match self {
            Level::Concat => "concat",
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Raid10 => "raid10",
            Level::Raid5 => "raid5",
            Level::Raid6 => "raid6",
            Level::Raidz { parity: 1 } => "raidz1",
            Level::Raidz { parity: 2 } => "raidz2",
            Level::Raidz { .. } => "raidz3",
            Level::Erasure { .. } => "K+M",
            Level::Draid { .. } => "draidP:Dd:Ss",
        }
    }

    /// Parses the text form of a level.
    pub fn parse(text: &str) -> Option<Level> {
        if let Some(level) = Level::ALL.iter().find(|level| level.form() == text) {
            // A form with letters is not a complete level.
            return (level.to_string() == text).then_some(*level);
        }
        let level = match (text.strip_prefix("draid"), text.split_once('+')) {
            (Some(draid), None) => parse_draid(draid)?,
            (None, Some((data, parity))) => Level::Erasure { data: count(data)?, parity: count(parity)? },
            (Some(_), Some(_)) | (None, None) => return None,
        };
        level.is_possible().then_some(level)
    }

    /// Whether the counts of the level are within the allowed ranges.
    pub fn is_possible(self) -> bool {
        match self {
            Level::Concat | Level::Raid0 | Level::Raid1 | Level::Raid10 | Level::Raid5 | Level::Raid6 => true,
            Level::Erasure { data, parity } => {
                (1..=ERASURE_UNITS_MAX).contains(&data) && (1..=ERASURE_UNITS_MAX).contains(&parity)
            }
            Level::Raidz { parity } => (1..=RECORD_PARITIES_MAX).contains(&parity),
            Level::Draid { parity, data, spares } => {
                (1..=RECORD_PARITIES_MAX).contains(&parity)
                    && (1..DRAID_MEMBERS_MAX).contains(&data)
                    && spares < DRAID_MEMBERS_MAX
            }
        }
    }
}

/// Parses `P:Dd:Ss`, where `Ss` may be omitted.
fn parse_draid(text: &str) -> Option<Level> {
    let mut parts = text.split(':');
    let parity = count(parts.next()?)?;
    let data = count(parts.next()?.strip_suffix('d')?)?;
    let spares = parts.next().map_or(Some(0), |spares| count(spares.strip_suffix('s')?))?;
    parts.next().is_none().then_some(Level::Draid { parity, data, spares })
}

/// Parses an unsigned number.
fn count(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Level::Concat | Level::Raid0 | Level::Raid1 | Level::Raid10 | Level::Raid5 | Level::Raid6 => {
                f.write_str(self.form())
            }
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

/// Rotation of parity from stripe to stripe, named as in Linux md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rotation {
    /// Parity moves from the last member down; data begin after the parity and wrap around.
    #[default]
    LeftSymmetric,
    /// Parity moves from the last member down; data keep the order of the members.
    LeftAsymmetric,
    /// Parity moves from the first member up; data begin after the parity and wrap around.
    RightSymmetric,
    /// Parity moves from the first member up; data keep the order of the members.
    RightAsymmetric,
}

impl Rotation {
    /// All rotations.
    pub const ALL: [Rotation; 4] =
        [Rotation::LeftSymmetric, Rotation::LeftAsymmetric, Rotation::RightSymmetric, Rotation::RightAsymmetric];
}

/// How a write smaller than a stripe updates parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SmallWrites {
    /// The method that reads less; if both read the same, reconstruct-write.
    #[default]
    Cheapest,
    /// Read-modify-write: read old data and old parity.
    ReadModifyWrite,
    /// Reconstruct-write: read the rest of the stripe.
    Reconstruct,
    /// The write is a block of its own in a new place, with its own parities, and reads nothing. Of levels with records
    /// only, below a layer that does copy on write; the other levels choose as with `cheapest`.
    NewBlocks,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::levels::Choice;

    #[test]
    fn every_level_has_a_form_of_its_own_and_is_read_by_its_text() {
        assert_eq!(
            Level::FORMS,
            [
                "concat",
                "raid0",
                "raid1",
                "raid10",
                "raid5",
                "raid6",
                "raidz1",
                "raidz2",
                "raidz3",
                "K+M",
                "draidP:Dd:Ss"
            ]
        );
        for level in Level::ALL {
            assert_eq!(Level::parse(&level.to_string()), Some(*level));
        }
        assert_eq!((Level::parse("K+M"), Level::parse("draidP:Dd:Ss")), (None, None));
    }

    #[test]
    fn choices_are_the_levels_that_are_suggested() {
        let listed = Level::CHOICES.replace("raidz1 to raidz3", "raidz1, raidz2, raidz3");
        let mut listed: Vec<&str> = listed.split(", ").collect();
        let suggested = Level::ALL.iter().filter(|level| level.rules().choice != Choice::Unlisted);
        let mut suggested: Vec<&str> = suggested.map(|level| level.form()).collect();
        listed.sort_unstable();
        suggested.sort_unstable();
        assert_eq!(listed, suggested);
    }

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
