//! [`check`]: rejects impossible descriptions of pools.

use super::layout::DiskLayout;
use crate::description::pool::{Classes, PoolDescription};
use crate::error::InvalidDescription;

impl PoolDescription {
    /// Returns the usable bytes of the pool when every segment is mirrored; 0 if the description is impossible.
    pub fn mirrored_bytes(&self) -> u64 {
        if check(self).is_ok() { DiskLayout::new(self).usable_bytes() / 2 } else { 0 }
    }
}

/// Maximum number of members: controllers of this period numbered them in a byte.
const MEMBERS_MAX: u32 = 255;
/// Maximum number of cells: a place in the map takes 31 bits, and the largest numbers are reserved.
const CELLS_MAX: u64 = (1 << 31) - 16;
/// Maximum number of segments of all LUNs: a number has 32 bits, and the largest numbers are reserved.
const SEGMENTS_MAX: u64 = (1 << 32) - 16;

fn require(holds: bool, key: impl Into<String>, message: impl FnOnce() -> String) -> Result<(), InvalidDescription> {
    if holds { Ok(()) } else { Err(InvalidDescription { key: key.into(), message: message() }) }
}

/// Checks the description of a pool.
///
/// # Errors
/// Returns an error for the first impossible field.
pub fn check(pool: &PoolDescription) -> Result<(), InvalidDescription> {
    let segment_bytes = pool.segment_bytes;
    let possible = (4096..=1 << 30).contains(&segment_bytes) && segment_bytes.is_power_of_two();
    require(possible, "pool.segment_bytes", || {
        format!("{segment_bytes} bytes is not allowed; must be a power of two from 4096 (4 KiB) to 1073741824 (1 GiB)")
    })?;
    require((2..=MEMBERS_MAX).contains(&pool.members), "pool.members", || {
        format!("{} members are out of range; must be 2 to {MEMBERS_MAX}", pool.members)
    })?;
    let most = CELLS_MAX / u64::from(pool.members);
    let rows = pool.member_bytes / segment_bytes;
    require((1..=most).contains(&rows), "pool.member_bytes", || {
        let most = most.saturating_mul(segment_bytes);
        format!("{} bytes are out of range; must be {segment_bytes} (a segment) to {most}", pool.member_bytes)
    })?;
    if let Classes::Migrating { parity_width, .. } = pool.classes {
        require((5..=pool.members).contains(&parity_width), "pool.parity_width", || {
            let members = pool.members;
            format!("{parity_width} disks are out of range; must be 5 (fewer save nothing over mirroring) to {members}")
        })?;
    }
    let raw_bytes = pool.member_bytes * u64::from(pool.members);
    let layout = DiskLayout::new(pool);
    // One group to write to, and one that stays free for the demotion that makes more room.
    let groups_min = if layout.migrates() { 2 } else { 1 };
    require(layout.groups >= groups_min, "pool.spare_bytes", || {
        let most =
            (rows * segment_bytes * u64::from(pool.members)).checked_sub(layout.group_bytes() * groups_min as u64);
        match most {
            Some(most) => format!("{} of {raw_bytes} bytes are too many; the maximum is {most}", pool.spare_bytes),
            None => {
                format!(
                    "{raw_bytes} raw bytes are too few; must be at least {groups_min} groups of {}",
                    layout.group_bytes()
                )
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
        format!("{low} bytes are out of range; must be {least} (needed for one demotion) to {most} (usable)")
    })?;
    require((low..=most).contains(&high), "pool.high_free_bytes", || {
        format!("{high} bytes are out of range; must be {low} (low_free_bytes) to {most} (usable)")
    })
}

/// Checks the LUNs that a pool exports. Their total size may exceed the size of the pool.
///
/// # Errors
/// Returns an error for the first impossible LUN.
pub fn check_luns(pool: &PoolDescription, lun_lengths: &[u64]) -> Result<(), InvalidDescription> {
    let mut segments = 0;
    for (lun, &length) in lun_lengths.iter().enumerate() {
        segments += length.div_ceil(pool.segment_bytes);
        require(length >= 1 && segments <= SEGMENTS_MAX, format!("luns[{lun}]"), || {
            format!(
                "{length} bytes is not allowed; must be at least 1, and at most {SEGMENTS_MAX} segments in all LUNs"
            )
        })?;
    }
    Ok(())
}
