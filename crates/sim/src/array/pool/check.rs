//! [`check`]: rejects impossible descriptions of pools.

use super::layout::DiskLayout;
use crate::description::pool::{Classes, PoolDescription};
use crate::error::InvalidDescription;

impl PoolDescription {
    /// Returns the bytes of LUNs that it holds when every segment is mirrored; 0 for an impossible description.
    pub fn mirrored_bytes(&self) -> u64 {
        if check(self).is_ok() { DiskLayout::new(self).usable_bytes() / 2 } else { 0 }
    }
}

/// Most members: the controllers of the time numbered them in a byte.
const MEMBERS_MAX: u32 = 255;
/// A place in the map takes 31 bits; the largest numbers are marks.
const CELLS_MAX: u64 = (1 << 31) - 16;
/// Segments of all LUNs together are numbered in 32 bits; the largest numbers are marks.
const SEGMENTS_MAX: u64 = (1 << 32) - 16;

fn require(holds: bool, key: impl Into<String>, message: impl FnOnce() -> String) -> Result<(), InvalidDescription> {
    if holds { Ok(()) } else { Err(InvalidDescription { key: key.into(), message: message() }) }
}

/// Checks a description.
///
/// # Errors
/// The first impossible field.
pub fn check(pool: &PoolDescription) -> Result<(), InvalidDescription> {
    let segment_bytes = pool.segment_bytes;
    let possible = (4096..=1 << 30).contains(&segment_bytes) && segment_bytes.is_power_of_two();
    require(possible, "pool.segment_bytes", || {
        format!("{segment_bytes} bytes; a power of two from 4096 (4 KiB) to 1073741824 (1 GiB) is allowed")
    })?;
    require((2..=MEMBERS_MAX).contains(&pool.members), "pool.members", || {
        format!("{} members; 2 to {MEMBERS_MAX} are allowed", pool.members)
    })?;
    let most = CELLS_MAX / u64::from(pool.members);
    let rows = pool.member_bytes / segment_bytes;
    require((1..=most).contains(&rows), "pool.member_bytes", || {
        let most = most.saturating_mul(segment_bytes);
        format!("{} bytes; {segment_bytes} (a segment) to {most} are allowed", pool.member_bytes)
    })?;
    if let Classes::Migrating { parity_width, .. } = pool.classes {
        require((5..=pool.members).contains(&parity_width), "pool.parity_width", || {
            let members = pool.members;
            format!("{parity_width} disks; 5 (fewer save nothing over mirroring) to {members} (members) are allowed")
        })?;
    }
    let raw_bytes = pool.member_bytes * u64::from(pool.members);
    let layout = DiskLayout::new(pool);
    // One group to write, and one that stays free for the demotion that makes more room.
    let groups_min = if layout.migrates() { 2 } else { 1 };
    require(layout.groups >= groups_min, "pool.spare_bytes", || {
        let most =
            (rows * segment_bytes * u64::from(pool.members)).checked_sub(layout.group_bytes() * groups_min as u64);
        match most {
            Some(most) => format!("{} of {raw_bytes} bytes; at most {most} are allowed", pool.spare_bytes),
            None => {
                format!("{raw_bytes} raw bytes; at least {groups_min} groups of {} are required", layout.group_bytes())
            }
        }
    })?;
    check_marks(pool, &layout)
}

fn check_marks(pool: &PoolDescription, layout: &DiskLayout) -> Result<(), InvalidDescription> {
    let Classes::Migrating { low_free_bytes: low, high_free_bytes: high, .. } = pool.classes else {
        return Ok(());
    };
    let (least, most) = (layout.group_bytes(), layout.usable_bytes());
    require((least..=most).contains(&low), "pool.low_free_bytes", || {
        format!("{low} bytes; {least} (what one demotion needs) to {most} (usable) are allowed")
    })?;
    require((low..=most).contains(&high), "pool.high_free_bytes", || {
        format!("{high} bytes; {low} (low_free_bytes) to {most} (usable) are allowed")
    })
}

/// Checks the LUNs that a pool exports. They may promise more than it holds.
///
/// # Errors
/// The first impossible LUN.
pub fn check_luns(pool: &PoolDescription, lun_lengths: &[u64]) -> Result<(), InvalidDescription> {
    let mut segments = 0;
    for (lun, &length) in lun_lengths.iter().enumerate() {
        segments += length.div_ceil(pool.segment_bytes);
        require(length >= 1 && segments <= SEGMENTS_MAX, format!("luns[{lun}]"), || {
            format!("{length} bytes; 1 or more, and {SEGMENTS_MAX} segments in all LUNs up to it, are allowed")
        })?;
    }
    Ok(())
}
