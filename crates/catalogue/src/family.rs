//! [`Family`]: the market that a disk is built for, which determines its firmware and how fast its arm moves.

use serde::{Deserialize, Serialize};

/// Market of a disk drive.
///
/// Measured are desktop, mobile and nearline drives; see [`crate::constants::DESKTOP_SEEK_RATIO`] and
/// [`crate::constants::CONSUMER_COMMITTED`]. For NAS and surveillance drives no depth curve is known: they have the
/// firmware of desktop drives and the seek times of their sheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// 3.5-inch drives for desktop computers.
    Desktop,
    /// 2.5-inch drives for notebooks.
    Mobile,
    /// Drives for network-attached storage of up to a few bays.
    Nas,
    /// Drives for video recorders.
    Surveillance,
    /// Drives for servers.
    Nearline,
}

/// Lowest stated mean time between failures, in hours, of a nearline drive. Sheets of nearline drives since 2009 state
/// 1.2 to 2.5 million, those of desktop, NAS and surveillance drives at most 1 million, or nothing.
const NEARLINE_MTBF_H: u64 = 1_200_000;

impl Family {
    /// Returns the family of a SATA drive whose file does not state it, from its stated time between failures.
    pub fn from_mtbf(mtbf_h: Option<u64>) -> Family {
        match mtbf_h {
            Some(NEARLINE_MTBF_H..) => Family::Nearline,
            Some(_) | None => Family::Desktop,
        }
    }

    /// Whether the firmware fixes the order of some commands in advance, instead of choosing among all at each completion.
    pub fn commits(self) -> bool {
        match self {
            Family::Desktop | Family::Mobile | Family::Nas | Family::Surveillance => true,
            Family::Nearline => false,
        }
    }

    /// Whether the arm moves more slowly than it could, to be quiet.
    pub fn is_quiet(self) -> bool {
        match self {
            Family::Desktop => true,
            Family::Mobile | Family::Nas | Family::Surveillance | Family::Nearline => false,
        }
    }
}
