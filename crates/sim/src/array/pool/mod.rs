//! [`Pool`]: the map of a virtual array, from each segment of each LUN to its place on the disks.
//!
//! A LUN owns no space until it is written. The first write to a segment takes the next slot in physical order,
//! regardless of its address: random writes to a new LUN are stored in sequence, and reading them in sequence is random
//! afterwards. Only deleting the LUN frees space. In a migrating pool ([`Classes::Migrating`]) segments that have not
//! been written for long move from mirrored slots into stripes of double parity, and back when they are written, after
//! AutoRAID (Wilkes, Golding, Staelin and Sullivan, "The HP AutoRAID hierarchical storage system", TOCS 14(1), 1996).
//!
//! The map has no time: its caller performs the accesses that it returns, and accounts for their time.

mod check;
mod coldest;
mod groups;
mod layout;
mod luns;
mod migrating;
mod migration;

pub use crate::description::pool::{Classes, PoolDescription};
pub use check::{check, check_luns};
pub use layout::{Extent, Placement, Stripe};
pub use migration::{Migration, MigrationKind};

use coldest::Coldest;
use groups::{EMPTY, Groups, RESERVED};
use layout::{Class, DiskLayout, Slot};
use luns::{Entry, Luns};
use migration::UnderWay;

use crate::error::InvalidDescription;

/// A write with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Place of the data.
    pub placement: Placement,
    /// Additional work of the write.
    pub effect: Effect,
}

/// A change of the map by a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None: the segment stays where it was.
    Overwritten,
    /// The first write of the segment: the controller takes [`PoolDescription::allocation_ns`] more.
    Allocated {
        /// Migrations that had to make room first, each already committed: their accesses precede the write's.
        moves: Vec<Migration>,
    },
    /// The segment was in a stripe until now: bytes that the write does not cover must be read from there.
    Promoted {
        /// Its place in the stripe.
        from: Placement,
    },
}

/// A write found no room, and no migration could make any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "pool is full: {live_bytes} bytes of LUNs on {usable_bytes} usable raw bytes, with no segment left to demote or compact"
)]
pub struct PoolFull {
    /// Data in the pool, each segment once.
    pub live_bytes: u64,
    /// Raw bytes less the spare.
    pub usable_bytes: u64,
}

/// Use of the raw bytes. All fields but `dead_bytes`, a part of `parity_bytes`, add up to `raw_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes of all members.
    pub raw_bytes: u64,
    /// Spare space, and the remainder that is less than a group.
    pub reserved_bytes: u64,
    /// Both copies of mirrored segments.
    pub mirrored_bytes: u64,
    /// Stripes: data, dead data and parities.
    pub parity_bytes: u64,
    /// Data in stripes that were since written elsewhere or deleted.
    pub dead_bytes: u64,
    /// Empty pairs in mirrored groups.
    pub hole_bytes: u64,
    /// Bytes of free groups.
    pub free_bytes: u64,
}

impl Space {
    /// Returns the room for mirrored segments, which is compared with the marks.
    pub fn available_bytes(&self) -> u64 {
        self.hole_bytes + self.free_bytes
    }
}

/// The map of a virtual array.
#[derive(Clone, Debug)]
pub struct Pool {
    description: PoolDescription,
    groups: Groups,
    luns: Luns,
    /// Writes so far, halved when 32 bits run out.
    clock: u32,
    coldest: Coldest,
    /// Whether free space fell below the low mark and has not reached the high one since.
    demoting: bool,
    under_way: Option<UnderWay>,
    migrations: u64,
}

impl Pool {
    /// Creates an empty pool that exports LUNs of these lengths in bytes; they are numbered from 0.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &PoolDescription, lun_lengths: &[u64]) -> Result<Pool, InvalidDescription> {
        check(description)?;
        check_luns(description, lun_lengths)?;
        Ok(Pool {
            description: description.clone(),
            groups: Groups::new(DiskLayout::new(description)),
            luns: Luns::new(lun_lengths, description.segment_bytes),
            clock: 0,
            coldest: Coldest::default(),
            demoting: false,
            under_way: None,
            migrations: 0,
        })
    }

    /// Returns its description.
    pub fn description(&self) -> &PoolDescription {
        &self.description
    }

    /// Returns the place of a segment; `None` if it was never written. Reads change nothing.
    #[inline]
    pub fn place(&self, lun: u32, segment: u32) -> Option<Placement> {
        let slot = self.luns.get(lun, segment).slot;
        (slot != Slot::NONE).then(|| self.groups.layout.placement(slot))
    }

    /// Writes to a segment: allocates or promotes it where needed. A segment in a stripe stays there if no mirrored
    /// slot is available, and is updated in place (data and both parities read and written).
    ///
    /// # Errors
    /// When the segment has no space yet and there is none.
    #[inline]
    pub fn write(&mut self, lun: u32, segment: u32) -> Result<Written, PoolFull> {
        let stamp = self.tick();
        let slot = self.luns.get(lun, segment).slot;
        if slot == Slot::NONE {
            return self.allocate(lun, segment, stamp);
        }
        self.luns.get_mut(lun, segment).stamp = stamp;
        match slot.class() {
            Class::Mirrored => Ok(self.written(slot)),
            Class::Parity => Ok(self.promote(self.luns.owner(lun, segment), slot)),
        }
    }

    fn written(&self, slot: Slot) -> Written {
        let placement = self.groups.layout.placement(slot);
        Written { placement, effect: Effect::Overwritten }
    }

    fn allocate(&mut self, lun: u32, segment: u32, stamp: u32) -> Result<Written, PoolFull> {
        let owner = self.luns.owner(lun, segment);
        let mut moves = Vec::new();
        let slot = loop {
            match self.take_mirrored(owner) {
                Some(slot) => break slot,
                None => moves.push(self.make_room().ok_or_else(|| self.full())?),
            }
        };
        self.luns.insert(lun, segment, Entry { slot, stamp });
        Ok(Written { effect: Effect::Allocated { moves }, ..self.written(slot) })
    }

    fn promote(&mut self, owner: u32, from: Slot) -> Written {
        let Some(slot) = self.take_mirrored(owner) else { return self.written(from) };
        self.groups.release(from);
        self.luns.move_to(owner, slot);
        let from = self.groups.layout.placement(from);
        Written { effect: Effect::Promoted { from }, ..self.written(slot) }
    }

    /// Returns the next mirrored slot in physical order: in the group being filled, else in a free one, else in any
    /// hole. A migrating pool keeps a free group, or holes from which compaction can make one: otherwise nothing could
    /// be demoted any more.
    fn take_mirrored(&mut self, owner: u32) -> Option<Slot> {
        let groups = &mut self.groups;
        let kept_groups = u32::from(groups.layout.migrates());
        let holes = groups.holes(Class::Mirrored);
        let hole_allowed = groups.free() >= kept_groups || holes > groups.layout.slots(Class::Mirrored);
        if hole_allowed && groups.filling(Class::Mirrored) {
            groups.take_hole(Class::Mirrored, owner, None)
        } else if groups.free() > kept_groups {
            let group = groups.open(Class::Mirrored)?;
            Some(groups.take(Class::Mirrored, group, owner))
        } else if hole_allowed && holes > 0 {
            groups.take_hole(Class::Mirrored, owner, None)
        } else {
            None
        }
    }

    #[inline]
    fn tick(&mut self) -> u32 {
        if self.clock == u32::MAX {
            self.luns.halve_stamps();
            self.coldest.clear();
            self.clock /= 2;
        }
        self.clock += 1;
        self.clock
    }

    /// Deletes a LUN and creates it again, empty and as long as before: the only operation that frees space. Returns
    /// the bytes of its data.
    pub fn recreate_lun(&mut self, lun: u32) -> u64 {
        let freed_bytes = self.allocated_bytes(lun);
        let groups = &mut self.groups;
        self.luns.clear(lun, |slot| groups.release(slot));
        freed_bytes
    }

    /// Returns the bytes of a LUN that have space, in whole segments, each counted once.
    pub fn allocated_bytes(&self, lun: u32) -> u64 {
        u64::from(self.luns.written(lun)) * self.description.segment_bytes
    }

    /// Returns the current use of the raw bytes.
    pub fn space(&self) -> Space {
        let (groups, layout) = (&self.groups, &self.groups.layout);
        let (mirrored, parity) = (groups.total(Class::Mirrored), groups.total(Class::Parity));
        let raw_bytes = self.description.member_bytes * u64::from(layout.members);
        Space {
            raw_bytes,
            reserved_bytes: raw_bytes - layout.usable_bytes(),
            mirrored_bytes: layout.bytes(2 * mirrored.taken),
            parity_bytes: u64::from(parity.groups) * layout.group_bytes(),
            dead_bytes: if layout.migrates() { layout.bytes(groups.holes(Class::Parity)) } else { 0 },
            hole_bytes: layout.bytes(2 * groups.holes(Class::Mirrored)),
            free_bytes: u64::from(groups.free()) * layout.group_bytes(),
        }
    }

    /// Returns the slots taken, whether used or reserved.
    fn live(&self) -> u32 {
        self.groups.total(Class::Mirrored).taken + self.groups.total(Class::Parity).taken
    }

    fn full(&self) -> PoolFull {
        let live_bytes = u64::from(self.live()) * self.description.segment_bytes;
        PoolFull { live_bytes, usable_bytes: self.groups.layout.usable_bytes() }
    }

    /// Recounts everything, to check a run for consistency.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn verify(&self) -> Result<(), String> {
        let mut live = 0;
        for (owner, Entry { slot, .. }) in self.luns.all() {
            live += 1;
            if !self.groups.is_live(slot) || self.groups.owner(slot) != owner {
                return Err(format!("segment {owner} is not in its slot, {slot:?}"));
            }
        }
        let reserved = self.groups.verify()?;
        let taken = self.live();
        let under_way = self.under_way.as_ref().map_or(0, UnderWay::len);
        if (taken, reserved) != (live + under_way, under_way) {
            return Err(format!("{taken} slots for {live} segments, {reserved} reserved for {under_way} under way"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_survives_the_end_of_the_clock() {
        let segment_bytes = 256 << 10;
        let group_bytes = 16 * segment_bytes;
        let description = PoolDescription {
            segment_bytes,
            members: 16,
            member_bytes: 40 * segment_bytes,
            spare_bytes: 0,
            allocation_ns: 0,
            classes: Classes::Migrating {
                parity_width: 16,
                low_free_bytes: 10 * group_bytes,
                high_free_bytes: 10 * group_bytes,
            },
        };
        let mut pool = Pool::new(&description, &[250 * segment_bytes]).unwrap();
        pool.clock = u32::MAX - 100;
        (0..250).for_each(|segment| drop(pool.write(0, segment).unwrap()));
        assert!(pool.clock < u32::MAX / 2 + 250);
        while let Some(migration) = pool.next_migration() {
            pool.complete(&migration);
        }
        let demoted = (0..250).filter(|&segment| pool.luns.get(0, segment).slot.class() == Class::Parity);
        assert!(demoted.eq(0..pool.groups.total(Class::Parity).taken));
        pool.verify().unwrap();
    }
}
