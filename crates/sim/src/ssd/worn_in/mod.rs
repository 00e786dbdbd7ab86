//! [`WornIn`]: the steady state of uniform random overwrites, drawn when it is needed instead of reached by writing.
//!
//! Random overwrites of a whole drive treat all of its units alike. So once the number of valid units in each block is
//! drawn from its law, every assignment of the drive's units to the valid slots is equally likely, and it can be
//! revealed one unit at a time, when a unit is first touched (the principle of deferred decisions). This is exact: what
//! happens later depends on the past only through what was revealed and through the counts.
//!
//! A read needs only the die of its unit, which a keyed permutation of the units fixes; nothing is stored. An overwrite
//! also needs the block, which is drawn in proportion to the undecided units of the die's blocks. Slots are drawn when a
//! block is collected. The blocks of a die are drawn when it is first written to, so setting a drive up costs time and
//! memory for its dies only.
//!
//! Skewed overwrites treat the units of a class alike, so the same holds class by class: see [`skewed`].

mod drawn;
mod pilot;
mod skewed;

use headstack_workload::{Permutation, Random};

use super::die_space::{DieSpace, OpenBlock, Victim};
use super::layout::FlashLayout;
use crate::description::ssd::SkewedWrites;
pub use pilot::{Blocks, PilotUnit, RunPilot};

use drawn::{Drawn, Fills, shuffle};
use skewed::Skewed;

/// Places of the units that were not written since the start.
#[derive(Clone, Debug)]
pub struct WornIn {
    permutation: Permutation,
    /// First rank of each die's units in the permutation, and the number of units.
    ranks: Vec<u64>,
    /// Classes of units, if the overwrites were skewed.
    skewed: Option<Box<Skewed>>,
}

impl WornIn {
    /// Distributes `units` among the dies; the number on each varies as random overwrites, which go to the dies in turn,
    /// leave it.
    pub fn new(units: u32, layout: &FlashLayout, random: &mut Random) -> WornIn {
        let permutation = Permutation::new(u64::from(units), random);
        let dies = f64::from(layout.dies);
        // Each turn adds a row to a die, and each write takes a unit away from a random one: an Ornstein-Uhlenbeck
        // process with the variance of half a Poisson variable.
        let deviation = (f64::from(units) / dies / 2.0).sqrt();
        let most = f64::from(layout.usable_units());
        let draws: Vec<f64> = (0..layout.dies)
            .map(|_| (f64::from(units) / dies + deviation * random.normal()).clamp(0.0, most))
            .collect();
        let scale = f64::from(units) / draws.iter().sum::<f64>();
        let mut sum = 0.0;
        let mut ranks = vec![0];
        ranks.extend(draws.iter().map(|draw| {
            sum += draw * scale;
            (sum.round() as u64).min(u64::from(units))
        }));
        ranks[layout.dies as usize] = u64::from(units);
        WornIn { permutation, ranks, skewed: None }
    }

    /// Replaces the uniform overwrites by skewed ones; `seed` is that of the run.
    pub fn skew(
        &mut self,
        writes: &SkewedWrites,
        layout: &FlashLayout,
        seed: u64,
        run_pilot: RunPilot,
        random: &mut Random,
    ) {
        let units = self.ranks[self.ranks.len() - 1] as u32;
        let mut skewed = Skewed::new(writes, units, layout, seed, run_pilot, random);
        skewed.count_on_dies(units, layout.dies, |unit| self.die_of(unit));
        self.skewed = Some(Box::new(skewed));
    }

    /// Returns the class of a unit; 0 if there is only one.
    #[inline]
    pub fn class_of(&self, unit: u32) -> usize {
        self.skewed.as_ref().map_or(0, |skewed| skewed.class_of(unit))
    }

    /// Returns the number of units on a die at the start.
    pub fn units_of(&self, die: u32) -> u32 {
        (self.ranks[die as usize + 1] - self.ranks[die as usize]) as u32
    }

    /// Returns the die of a unit that was not written since the start.
    #[inline]
    pub fn die_of(&self, unit: u32) -> u32 {
        let rank = self.permutation.apply(u64::from(unit));
        let dies = self.ranks.len() - 1;
        // The dies have almost equal numbers of units.
        let mut die = ((rank * dies as u64) / self.ranks[dies]) as usize;
        while rank < self.ranks[die] {
            die -= 1;
        }
        while rank >= self.ranks[die + 1] {
            die += 1;
        }
        die as u32
    }

    /// Draws the blocks of a die, as they are while the host overwrites: two open blocks at random fills, a block that
    /// is partly collected, and closed ones.
    ///
    /// A die collects whenever fewer than `free_blocks_min` blocks are free, at the pace at which the host uses what
    /// that frees. Free space, counting the collected part of the victim, then stays where it starts to collect: at
    /// `free_blocks_min` blocks in total, or what a pilot shows (collection is ahead or behind by up to a row).
    pub fn draw(&self, space: &mut DieSpace, die: u32, layout: &FlashLayout, random: &mut Random) {
        let (block, row) = (layout.units_per_block, layout.units_per_row);
        let rows = u64::from(block / row);
        let used_host = random.below(rows) as u32 * row;
        let collected = random.below(rows) as u32 * row;
        let target = self.skewed.as_ref().map_or(layout.free_blocks_min * block, |skewed| skewed.free_units(layout));
        let used_moved = (collected + 2 * block - used_host - target % block) % block;
        let in_parts = 2 * block - used_host - used_moved + collected;
        let free = target.saturating_sub(in_parts) / block;
        let fills = Fills {
            die,
            units: self.units_of(die),
            closed: layout.blocks_per_die - layout.slc_static_blocks - free - 3,
            used_host,
            used_moved,
            collected,
        };
        (space.undrawn, space.valid, space.unplaced) = (false, 0, 0);
        let drawn = match &self.skewed {
            None => draw_uniform(&fills, layout, random),
            Some(skewed) => skewed.draw(&fills, layout, random),
        };

        drawn.closed.iter().for_each(|&valid| space.add_closed(valid));
        let host = space.add_open(used_host, drawn.host, layout);
        space.host = OpenBlock { next: host * block + used_host, left: block - used_host };
        space.moved_block = space.add_open(used_moved, drawn.moved, layout);
        (space.moved_left, space.moved_waiting) = (block - used_moved, used_moved % (row * layout.rows_per_program));
        let index = space.blocks.len() as u32;
        space.add_closed(drawn.victim);
        let moved = drawn.victim_before - drawn.victim;
        space.victim = Some(Victim {
            block: index,
            next_row: collected / row,
            valid: drawn.victim_before,
            moved,
            accepted: collected - moved,
            candidates: block - collected,
            folds: false,
        });
        space.classes = drawn.classes;
        debug_assert_eq!(space.valid, self.units_of(die), "die {die}");
    }
}

/// Draws the valid units of blocks after uniform overwrites.
fn draw_uniform(fills: &Fills, layout: &FlashLayout, random: &mut Random) -> Drawn {
    let (block, units) = (layout.units_per_block, fills.units);
    let in_use = layout.blocks_per_die - layout.slc_static_blocks - layout.free_blocks_min;
    let mut closed = valid_of_blocks(block, units, in_use, fills.closed + 1);
    let victim_before = closed.remove(0);
    let collected = (u64::from(victim_before) * u64::from(fills.collected) / u64::from(block)) as u32;
    // The host fills its block directly; the other receives the moved units of victims.
    let per_unit = f64::from(block - victim_before) / f64::from(victim_before.max(1)) / f64::from(units.max(1));
    let mut left = units;
    let mut take = |count: u32| {
        let count = count.min(left);
        left -= count;
        count
    };
    let host = take(still_valid(fills.used_host, 1.0 / f64::from(units.max(1))));
    let moved = take(still_valid(fills.used_moved, per_unit));
    let victim = take(victim_before - collected);
    fit_sum(&mut closed, block, left, random);
    shuffle(&mut closed, random);
    Drawn { closed, host, moved, victim, victim_before, classes: None }
}

/// Returns the number of valid units in each of the `count` oldest of `in_use` blocks of a die with `units`, fewest
/// first, under greedy collection of uniform random overwrites.
///
/// With many blocks the victim has one of two neighbouring counts, `j` and `j - 1` (Bux and Iliadis, Performance of
/// greedy garbage collection in flash-based solid-state drives, 2010). Let `r` blocks be erased per block in the time
/// that overwrites each unit once. Blocks with `i > j` valid units lose one at the rate `i`, so their share is `r / i`;
/// that of `j` is the rest, and the sum of the valid units is given.
fn valid_of_blocks(units_per_block: u32, units: u32, in_use: u32, count: u32) -> Vec<u32> {
    let full = f64::from(units_per_block);
    let mean = (f64::from(units) / f64::from(in_use)).min(full);
    // The sum of 1 / i over i > j.
    let mut harmonic = 0.0;
    let mut j = units_per_block;
    let (rate, share_of_j) = loop {
        let lowest = f64::from(j);
        if lowest < mean || j == 0 {
            let rate = (mean - lowest) / ((full - lowest) - lowest * harmonic);
            let share = 1.0 - rate * harmonic;
            if j == 0 || share <= rate / lowest {
                break (rate, share.clamp(0.0, 1.0));
            }
        }
        harmonic += 1.0 / lowest;
        j -= 1;
    };
    let mut valid = Vec::with_capacity(count as usize);
    // Walks from the fewest valid units: `below` is the share of blocks with at most `at`.
    let (mut at, mut below) = (j, share_of_j);
    for index in 0..count {
        let quantile = (f64::from(index) + 0.5) / f64::from(in_use);
        while below < quantile && at < units_per_block {
            at += 1;
            below += rate / f64::from(at);
        }
        valid.push(at);
    }
    valid
}

/// Returns how many of the `used` units of an open block are still valid, if `rate` of them become stale while one more
/// is written to it.
fn still_valid(used: u32, rate: f64) -> u32 {
    let age = f64::from(used) * rate;
    if age < 1e-9 { used } else { (f64::from(used) * -libm::expm1(-age) / age).round() as u32 }
}

/// Changes counts of at most `most` by small steps until their sum is `sum`.
fn fit_sum(counts: &mut [u32], most: u32, sum: u32, random: &mut Random) {
    let mut now: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let sum = u64::from(sum).min(u64::from(most) * counts.len() as u64);
    while now != sum && !counts.is_empty() {
        let difference = now.abs_diff(sum);
        let step = (difference / counts.len() as u64).max(1) as u32;
        let index = random.below(counts.len() as u64) as usize;
        let before = counts[index];
        counts[index] = if now < sum { (before + step).min(most) } else { before.saturating_sub(step) };
        now = now + u64::from(counts[index]) - u64::from(before);
    }
}

#[cfg(test)]
mod tests;
