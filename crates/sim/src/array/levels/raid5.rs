//! RAID 5: rows of stripe units with one parity, which rotates. A small write is four accesses; one member of a span may fail.

use super::placing::Rules;

pub const RULES: Rules = Rules {
    members_min: 3,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: true,
    has_spans: true,
    has_records: false,
};

/// Parities of a row.
pub const PARITIES: u32 = 1;
