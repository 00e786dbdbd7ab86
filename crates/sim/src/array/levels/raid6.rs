//! RAID 6: rows of stripe units with two parities, which rotate. A small write is six accesses; two members of a span may fail.

use super::placing::Rules;

pub const RULES: Rules = Rules { name: "raid6", members_min: 4, is_striped: true, has_spans: true };

/// Parities of a row.
pub const PARITIES: u32 = 2;
