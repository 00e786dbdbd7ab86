//! RAID 6: rows of chunks with two rotating parities. A small write is six accesses; two members of a span may
//! fail.

use super::placing::{Choice, Rules, USUAL_WIDTH, Usual};

pub const RULES: Rules = Rules {
    members_min: 4,
    members_max: u32::MAX,
    members_step: 1,
    is_striped: true,
    has_spans: true,
    has_records: false,
    is_declustered: false,
    usual: Usual { members_max: USUAL_WIDTH, members_step: 1 },
    choice: Choice::Default,
};

/// Parities of a row.
pub const PARITIES: u32 = 2;
