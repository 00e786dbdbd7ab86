//! RAID 5: rows of stripe units with one parity, which rotates. A small write is four accesses; one member of a span may fail.

use super::placing::Rules;

pub const RULES: Rules = Rules { name: "raid5", members_min: 3, is_striped: true, has_spans: true };

/// Parities of a row.
pub const PARITIES: u32 = 1;
