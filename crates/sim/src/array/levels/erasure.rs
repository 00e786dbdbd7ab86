//! Erasure codes of k data and m parity units, with k and m up to 8 (Reed-Solomon, as in Ceph and MinIO): RAID 5 and 6
//! generalized to any number of parities. Rows are distributed over groups of k+m members. A small write reads the old
//! unit and the m old parities, or the k-1 other units if they are not more; m members of each group of k+m may fail.

use super::placing::{Choice, Redundancy, Rules, Shape, Stripe, Usual};
use super::rows::{self, Rows};

pub const fn rules(data: u32, parity: u32) -> Rules {
    let width = data + parity;
    Rules {
        members_min: width,
        members_max: u32::MAX,
        members_step: width,
        is_striped: true,
        has_spans: false,
        has_records: false,
        is_declustered: false,
        usual: Usual { members_max: u32::MAX, members_step: width },
        choice: Choice::Named,
    }
}

pub fn capacity_bytes(shape: &Shape, data: u32, parity: u32) -> u64 {
    rows::capacity_bytes(&dealt(shape, data, parity), parity)
}

pub fn redundancy(members: u64, data: u32, parity: u32) -> Redundancy {
    let width = u64::from(data + parity);
    Redundancy::dealt(members / width, width, u64::from(parity))
}

pub fn stripe(data: u32, parity: u32) -> Stripe {
    Stripe { data: u64::from(data), parity: u64::from(parity), copies: 1 }
}

/// Returns the data capacity in units of a member's capacity, as numerator and denominator.
pub fn data_share(members: u64, data: u32, parity: u32) -> (u64, u64) {
    (members * u64::from(data), u64::from(data + parity))
}

/// Returns the layout of a validated shape.
pub fn rows(shape: &Shape, data: u32, parity: u32) -> Rows {
    Rows::new(&dealt(shape, data, parity), parity)
}

/// Returns the shape with as many spans as the number of members allows.
fn dealt(shape: &Shape, data: u32, parity: u32) -> Shape {
    Shape { spans: shape.members / u64::from(data + parity).max(1), ..*shape }
}
