//! Moves segments between the classes: demotion, promotion, and compaction that frees groups.
//!
//! Room is reserved when a migration is proposed; segments move when the migration is complete. Every rule requires
//! more room than it uses up, so the proposals end eventually: demotion stops at the high mark, promotion never goes
//! below this mark, and compaction turns a group's worth of holes into a free group.

use super::layout::{Class, Extent, Placement, Slot};
use super::luns::Entry;
use super::migration::{Migration, MigrationKind, Move, UnderWay};
use super::{Classes, EMPTY, Pool, RESERVED};

/// If more than 1/8 of the data in stripes are dead, stripes are compacted before more segments are demoted. AutoRAID's
/// own limit is not published. Without a limit, dead data would crowd out hot segments, and a pool in which segments
/// are continually promoted would never stop demoting.
const DEAD_PART_MAX: u32 = 8;

type Plan = (MigrationKind, Vec<Move>);

impl Pool {
    /// Returns the next migration to perform in idle time, if there is any. While a migration is in progress, returns
    /// `None`.
    pub fn next_migration(&mut self) -> Option<Migration> {
        if self.under_way.is_some() {
            return None;
        }
        let plan = self.plan_idle()?;
        Some(self.begin(plan))
    }

    /// Completes a migration whose accesses are done: moves its segments, except segments that were written or deleted
    /// meanwhile. Returns the number of moved segments, which is also 0 for a migration that was cancelled by a write
    /// that needed room at once.
    pub fn complete(&mut self, migration: &Migration) -> u32 {
        match &self.under_way {
            Some(under_way) if under_way.number == migration.number => self.commit(),
            _ => 0,
        }
    }

    /// Makes room for a waiting write.
    pub(super) fn make_room(&mut self) -> Option<Migration> {
        if !self.groups.layout.migrates() {
            return None;
        }
        self.cancel();
        let plan = self.plan_room()?;
        let migration = self.begin(plan);
        self.commit();
        Some(migration)
    }

    fn plan_idle(&mut self) -> Option<Plan> {
        let Classes::Migrating { low_free_bytes, high_free_bytes, .. } = self.description.classes else {
            return None;
        };
        let available_bytes = self.space().available_bytes();
        self.demoting = available_bytes < low_free_bytes || self.demoting && available_bytes < high_free_bytes;
        if self.demoting {
            return self.plan_room();
        }
        if self.groups.free() == 0 {
            return self.plan_compaction(Class::Parity).or_else(|| self.plan_compaction(Class::Mirrored));
        }
        let layout = &self.groups.layout;
        let group_of_pairs_bytes = layout.bytes(2 * layout.slots(Class::Parity));
        if available_bytes >= high_free_bytes + group_of_pairs_bytes { self.plan_promotion() } else { None }
    }

    /// Returns the next step towards more room: demotion into a free group, or compaction that frees a group.
    fn plan_room(&mut self) -> Option<Plan> {
        if self.groups.free() == 0 {
            return self.plan_compaction(Class::Parity).or_else(|| self.plan_compaction(Class::Mirrored));
        }
        let dead = self.groups.holes(Class::Parity);
        if dead > (self.groups.total(Class::Parity).taken + dead) / DEAD_PART_MAX
            && let Some(plan) = self.plan_compaction(Class::Parity)
        {
            return Some(plan);
        }
        self.plan_demotion().or_else(|| self.plan_compaction(Class::Parity))
    }

    fn plan_demotion(&mut self) -> Option<Plan> {
        let count = self.groups.layout.slots(Class::Parity);
        if self.groups.total(Class::Mirrored).taken < count {
            return None;
        }
        let coldest = self.coldest.pop(&self.luns, count, self.live());
        let group = self.groups.open(Class::Parity)?;
        let moves = coldest.into_iter().map(|(owner, Entry { slot: from, stamp })| Move {
            owner,
            from,
            to: self.groups.take(Class::Parity, group, RESERVED),
            stamp,
        });
        Some((MigrationKind::Demotion, moves.collect()))
    }

    /// Plans a compaction that empties the sparsest group of a class, if its segments fit into holes of the other
    /// groups.
    fn plan_compaction(&mut self, class: Class) -> Option<Plan> {
        if self.groups.holes(class) < self.groups.layout.slots(class) {
            return None;
        }
        let group = self.sparsest(class)?;
        let moves = self.live_in(class, group).into_iter().map(|from| {
            let to = self.groups.take_hole(class, RESERVED, Some(group)).expect("the others have enough holes");
            self.move_between(from, to)
        });
        Some((MigrationKind::Compaction, moves.collect()))
    }

    fn plan_promotion(&mut self) -> Option<Plan> {
        let group = self.sparsest(Class::Parity)?;
        let moves = self.live_in(Class::Parity, group).into_iter().map(|from| {
            let to = self.take_mirrored(RESERVED).expect("the high mark leaves room");
            self.move_between(from, to)
        });
        Some((MigrationKind::Promotion, moves.collect()))
    }

    fn move_between(&self, from: Slot, to: Slot) -> Move {
        let owner = self.groups.owner(from);
        Move { owner, from, to, stamp: self.luns.get_owned(owner).stamp }
    }

    fn sparsest(&self, class: Class) -> Option<u32> {
        self.groups.of_class(class).min_by_key(|&(_, taken)| taken).map(|(group, _)| group)
    }

    fn live_in(&self, class: Class, group: u32) -> Vec<Slot> {
        self.groups.layout.slots_of(class, group).filter(|&slot| self.groups.owner(slot) != EMPTY).collect()
    }

    fn begin(&mut self, (kind, moves): Plan) -> Migration {
        self.migrations += 1;
        let number = self.migrations;
        let (reads, writes) = self.accesses(kind, &moves);
        self.under_way = Some(UnderWay { kind, number, moves });
        Migration { kind, reads, writes, number }
    }

    fn accesses(&self, kind: MigrationKind, moves: &[Move]) -> (Vec<Extent>, Vec<Extent>) {
        let layout = &self.groups.layout;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (number, step) in moves.iter().enumerate() {
            match layout.placement(step.from) {
                // Reads alternate between the two copies.
                Placement::Mirrored(copies) => reads.push(copies[number % 2]),
                Placement::Parity { data, .. } => reads.push(data),
            }
            match layout.placement(step.to) {
                Placement::Mirrored(copies) => writes.extend(copies),
                // A whole group is written: its parities are computed from the data just read.
                Placement::Parity { .. } if kind == MigrationKind::Demotion => {}
                Placement::Parity { data, stripe } => {
                    let updated = [data, stripe.parity()[0], stripe.parity()[1]];
                    reads.extend(updated);
                    writes.extend(updated);
                }
            }
        }
        if let (MigrationKind::Demotion, Some(first)) = (kind, moves.first()) {
            writes.extend(layout.cell_extents(layout.group_of(first.to)));
        }
        for accesses in [&mut reads, &mut writes] {
            accesses.sort_unstable();
            accesses.dedup();
        }
        (reads, writes)
    }

    fn commit(&mut self) -> u32 {
        let Some(under_way) = self.under_way.take() else { return 0 };
        let unchanged = under_way.moves.iter().filter(|step| self.is_unchanged(step)).count() as u32;
        if under_way.kind == MigrationKind::Demotion && !self.can_demote_after(unchanged) {
            self.under_way = Some(under_way);
            self.cancel();
            return 0;
        }
        for step in &under_way.moves {
            if !self.is_unchanged(step) {
                self.groups.release(step.to);
                continue;
            }
            self.groups.set_owner(step.to, step.owner);
            self.groups.release(step.from);
            self.luns.move_to(step.owner, step.to);
        }
        unchanged
    }

    /// Whether another demotion will be possible after a demotion that frees `slots` slots, directly or after
    /// compaction. It may not be if most of the demoted segments were written meanwhile: the stripes are then not worth
    /// the group that they take.
    fn can_demote_after(&self, slots: u32) -> bool {
        self.groups.free() > 0
            || self.groups.holes(Class::Mirrored) + slots >= self.groups.layout.slots(Class::Mirrored)
    }

    fn is_unchanged(&self, step: &Move) -> bool {
        self.luns.get_owned(step.owner) == Entry { slot: step.from, stamp: step.stamp }
    }

    fn cancel(&mut self) {
        let Some(under_way) = self.under_way.take() else { return };
        under_way.moves.iter().for_each(|step| self.groups.release(step.to));
        // Collect the victims again: they are as cold as before.
        self.coldest.clear();
    }
}
