//! [`Skewed`]: the steady state of skewed overwrites.
//!
//! Units are divided into classes that are overwritten about equally often. A [pilot](super::pilot) shows what the
//! blocks hold of each class; inside a class, every assignment of units to valid slots is equally likely. Which units
//! are hot is computed from the popularity of the workload's blocks, so nothing is stored for a unit.

use headstack_workload::{Permutation, Places, Popularity, Random};

use super::super::class_counts::ClassCounts;
use super::super::layout::FlashLayout;
use super::drawn::{Drawn, Fills, shuffle};
use super::pilot::{self, PilotUnit, RunPilot};
use crate::description::ssd::SkewedWrites;

/// Shares of the units in the classes of Zipf and Pareto addresses end at these powers of 2, from the most to the least
/// used. The most used units are stale before their block is full, so their classes are wide; the rates of units of a
/// class that fills many blocks differ by at most 20 % at theta 1.
const CLASS_ENDS_LOG2: [f64; 18] =
    [-13.0, -11.0, -9.0, -7.0, -6.0, -5.0, -4.0, -3.5, -3.0, -2.5, -2.0, -1.6, -1.3, -1.0, -0.75, -0.5, -0.25, 0.0];

/// Number of units up to which they are counted by class and die, which takes 50 ns a unit. Above, with 64 dies, the
/// number of units of a class on a die varies by 3 %.
const COUNTED_UNITS_MAX: u32 = 1 << 20;

/// Classes of units, and the contents of blocks by class.
#[derive(Clone, Debug)]
pub struct Skewed {
    popularity: Popularity,
    unit_bytes: u64,
    /// Rank of the first block of each class, ascending.
    first_ranks: Vec<u64>,
    /// Fraction of the units and of the writes in each class.
    units: Vec<f64>,
    writes: Vec<f64>,
    blocks: pilot::Blocks,
    /// Units of each class on each die of a small drive; empty for a large one.
    on_dies: Vec<Vec<f64>>,
}

impl Skewed {
    /// Creates the state of a drive of `units` after skewed overwrites in a run with this seed.
    pub fn new(
        writes: &SkewedWrites,
        units: u32,
        layout: &FlashLayout,
        seed: u64,
        run_pilot: RunPilot,
        random: &mut Random,
    ) -> Skewed {
        let unit_bytes = u64::from(layout.unit_bytes);
        let each_unit = Places { first_bytes: 0, step_bytes: unit_bytes, count: u64::from(units) };
        let blocks = writes.blocks.unwrap_or(each_unit);
        let popularity = Popularity::new(&writes.addresses, blocks, seed).expect("the description was checked");
        let per_unit = (unit_bytes / blocks.step_bytes).max(1);
        let first_ranks = class_starts(&popularity, per_unit);
        let mut skewed = Skewed {
            popularity,
            unit_bytes,
            units: Vec::new(),
            writes: Vec::new(),
            blocks: pilot::Blocks::default(),
            on_dies: Vec::new(),
            first_ranks,
        };
        let used = ((blocks.count as f64 * blocks.step_bytes as f64 / unit_bytes as f64) / f64::from(units)).min(1.0);
        skewed.count_units(used, per_unit);

        let together = (blocks.step_bytes / unit_bytes).clamp(1, u64::from(layout.units_per_block)) as u32;
        let on_die = f64::from(units) / f64::from(layout.dies) / f64::from(together);
        let (pilot_layout, pilot_units) = pilot::size(layout, on_die, layout.units_per_block / together);
        let pilot_units = skewed.pilot_units(pilot_units, used, per_unit, random);
        let mut shares = vec![0.0; skewed.units.len()];
        pilot_units.iter().for_each(|unit| shares[unit.class] += unit.share);
        skewed.writes = shares;
        skewed.blocks = run_pilot(pilot_layout, &pilot_units, skewed.units.len(), random);
        skewed
    }

    /// Counts the units of each class on each of `dies` dies if the drive is small: then they differ from die to die by
    /// more than their expectation allows.
    pub fn count_on_dies(&mut self, units: u32, dies: u32, die_of: impl Fn(u32) -> u32) {
        if units <= COUNTED_UNITS_MAX {
            let mut on_dies = vec![vec![0.0; self.units.len()]; dies as usize];
            (0..units).for_each(|unit| on_dies[die_of(unit) as usize][self.class_of(unit)] += 1.0);
            self.on_dies = on_dies;
        }
    }

    /// Returns the free units of a die, those in open blocks and in the collected part of the victim included.
    pub fn free_units(&self, layout: &FlashLayout) -> u32 {
        let rows = self.blocks.free * f64::from(layout.units_per_block) / f64::from(layout.units_per_row);
        rows.round() as u32 * layout.units_per_row
    }

    /// Returns the class of a unit: that of its most used block.
    #[inline]
    pub fn class_of(&self, unit: u32) -> usize {
        let (start, step) = (u64::from(unit) * self.unit_bytes, self.popularity.blocks().step_bytes);
        let blocks = (self.unit_bytes / step).max(1);
        let rank = (0..blocks).filter_map(|block| self.popularity.rank_at(start + block * step)).min();
        rank.map_or(self.units.len() - 1, |rank| self.class_of_rank(rank))
    }

    /// Returns the fraction of the units in each class, for tests.
    #[cfg(test)]
    pub fn fractions(&self) -> impl Iterator<Item = f64> {
        self.units.iter().copied()
    }

    #[inline]
    fn class_of_rank(&self, rank: u64) -> usize {
        self.first_ranks.partition_point(|&first| first <= rank) - 1
    }

    /// Computes the fraction of the units in each class, if a fraction `used` of them is in the blocks, `per_unit` in each.
    fn count_units(&mut self, used: f64, per_unit: u64) {
        let blocks = self.popularity.blocks().count;
        let is_scattered = self.popularity.steps().is_empty();
        // The most used of several random blocks of a unit has at least this rank.
        let above = |rank: u64| {
            let share = 1.0 - rank as f64 / blocks as f64;
            if is_scattered { libm::pow(share, per_unit as f64) } else { share }
        };
        let ends = self.first_ranks.iter().skip(1).copied().chain([blocks]);
        self.units =
            self.first_ranks.iter().zip(ends).map(|(&first, end)| used * (above(first) - above(end))).collect();
        if used < 1.0 {
            self.units.push(1.0 - used);
        }
    }

    /// Returns `units` units that are used like those of the drive, least used first.
    fn pilot_units(&self, units: u32, used: f64, per_unit: u64, random: &mut Random) -> Vec<PilotUnit> {
        let unused = PilotUnit { share: 0.0, class: self.units.len() - 1 };
        let mut pilot = vec![unused; units as usize];
        let is_scattered = self.popularity.steps().is_empty();
        let used_units = ((f64::from(units) * used).round() as u64).max(1);
        let parts = if is_scattered { used_units * per_unit } else { used_units };
        let scatter = Permutation::new(parts, random);
        let blocks = self.popularity.blocks().count;
        let first_rank = |part: u64| (u128::from(part) * u128::from(blocks) / u128::from(parts)) as u64;
        let below = self.popularity.shares_below((0..=parts).map(first_rank));
        for (part, below) in (0..parts).zip(below.windows(2)) {
            let index = if is_scattered { scatter.apply(part) / per_unit } else { part };
            let unit = &mut pilot[index as usize];
            let class = self.class_of_rank(first_rank(part).min(blocks - 1));
            *unit = PilotUnit { share: unit.share + below[1] - below[0], class: unit.class.min(class) };
        }
        pilot.sort_by(|first, second| first.share.total_cmp(&second.share));
        pilot
    }

    /// Draws the valid units of the blocks of a die, by class.
    pub fn draw(&self, fills: &Fills, layout: &FlashLayout, random: &mut Random) -> Drawn {
        let block = layout.units_per_block;
        let mut left = apportion(fills.units, self.on_dies.get(fills.die as usize).unwrap_or(&self.units));
        let mut take = |counts: Vec<u32>| -> Vec<u32> {
            counts
                .iter()
                .zip(&mut left)
                .map(|(&count, left)| {
                    let count = count.min(*left);
                    *left -= count;
                    count
                })
                .collect()
        };
        let mut records = self.sample(fills.closed + 1, random);
        let first = records.remove(0);
        shuffle(&mut records, random);

        let shares: Vec<f64> = first.iter().map(|&share| f64::from(share)).collect();
        let valid = (shares.iter().sum::<f64>() * f64::from(block)).round().min(f64::from(block)) as u32;
        let collected = (u64::from(valid) * u64::from(fills.collected) / u64::from(block)) as u32;
        let victim = take(apportion(valid - collected, &shares));
        let host = take(self.host_block(fills));
        let gains = f64::from(block - valid) / f64::from(valid.max(1));
        let moved = take(self.moved_block(fills, &shares, gains));

        let mut counts = fitted(&records, &left);
        fit_blocks(&mut counts, block);
        let closed: Vec<u32> = counts.iter().map(|block| block.iter().sum()).collect();
        let mut classes = ClassCounts::new(self.units.len(), layout.blocks_per_die);
        for (index, block) in (0u32..).zip(counts.iter().chain([&host, &moved, &victim])) {
            block.iter().enumerate().for_each(|(class, &units)| classes.add(class, index, units));
        }
        let victim: u32 = victim.iter().sum();
        Drawn {
            closed,
            host: host.iter().sum(),
            moved: moved.iter().sum(),
            victim,
            victim_before: victim + collected,
            classes: Some(Box::new(classes)),
        }
    }

    /// Returns `count` records at random places of equal parts of all, from the emptiest to the fullest.
    fn sample(&self, count: u32, random: &mut Random) -> Vec<&[f32]> {
        let part = self.blocks.full.len() as f64 / f64::from(count);
        let index = |number: u32, random: &mut Random| ((f64::from(number) + random.fraction()) * part) as usize;
        (0..count).map(|number| &*self.blocks.full[index(number, random).min(self.blocks.full.len() - 1)]).collect()
    }

    /// Returns the valid units of the block that the host writes to: of the units that were written there, those of
    /// frequent classes are stale already.
    fn host_block(&self, fills: &Fills) -> Vec<u32> {
        let (used, units) = (f64::from(fills.used_host), f64::from(fills.units));
        let valid: Vec<f64> = (self.units.iter().zip(&self.writes))
            .map(|(share, writes)| share * units * -libm::expm1(-writes * used / (share * units).max(1.0)))
            .collect();
        apportion((valid.iter().sum::<f64>().round()).min(used) as u32, &valid)
    }

    /// Returns the valid units of the block that receives those of victims like one with the given shares. The host
    /// writes `gains` units meanwhile for each that is moved.
    fn moved_block(&self, fills: &Fills, shares: &[f64], gains: f64) -> Vec<u32> {
        let used = f64::from(fills.used_moved);
        let all = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let valid: Vec<f64> = (0..shares.len())
            .map(|class| {
                let units = (self.units[class] * f64::from(fills.units)).max(1.0);
                let age = used * gains * self.writes[class] / units;
                let kept = if age < 1e-9 { 1.0 } else { -libm::expm1(-age) / age };
                used * shares[class] / all * kept
            })
            .collect();
        apportion((valid.iter().sum::<f64>().round()).min(used) as u32, &valid)
    }
}

/// Returns the rank of the first block of each class.
fn class_starts(popularity: &Popularity, per_unit: u64) -> Vec<u64> {
    let blocks = popularity.blocks().count;
    let steps = popularity.steps();
    let mut starts: Vec<u64> = if steps.is_empty() {
        let end = |log2: &f64| {
            // The share of units whose most used block has a rank below the end.
            let share = 1.0 - libm::pow(1.0 - libm::exp2(*log2), 1.0 / per_unit as f64);
            (share * blocks as f64).round() as u64
        };
        [0].into_iter().chain(CLASS_ENDS_LOG2.iter().map(end)).collect()
    } else {
        steps
    };
    starts.retain(|&start| start < blocks);
    starts.dedup();
    starts
}

/// Divides `total` in proportion to weights.
fn apportion(total: u32, weights: &[f64]) -> Vec<u32> {
    let all: f64 = weights.iter().sum();
    let (mut sum, mut given) = (0.0, 0);
    let part = |weight: &f64| {
        sum += weight;
        let until = if all > 0.0 { (f64::from(total) * (sum / all)).round() as u32 } else { 0 };
        let part = until - given;
        given = until;
        part
    };
    weights.iter().map(part).collect()
}

/// Share of a block's units that may be of any class, so that few blocks with other classes than the drive's can be
/// fitted.
const ANY_CLASS: f64 = 0.02;
/// Number of rounds of the fit, after which the units of a block are right to 1 %.
const FITS: u32 = 8;

/// Returns the counts of each block by class: close to the records in valid units and in composition, with the given sum
/// of each class (iterative proportional fitting; Deming and Stephan 1940).
fn fitted(records: &[&[f32]], sums: &[u32]) -> Vec<Vec<u32>> {
    let all: f64 = sums.iter().map(|&sum| f64::from(sum)).sum::<f64>().max(1.0);
    let valid: Vec<f64> = records.iter().map(|shares| shares.iter().map(|&share| f64::from(share)).sum()).collect();
    let scale = all / valid.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mixed = |(shares, valid): (&&[f32], &f64)| -> Vec<f64> {
        let any = |&sum: &u32| ANY_CLASS * valid * f64::from(sum) / all;
        shares.iter().zip(sums).map(|(&share, sum)| f64::from(share) + any(sum)).collect()
    };
    let mut blocks: Vec<Vec<f64>> = records.iter().zip(&valid).map(mixed).collect();
    for _ in 0..FITS {
        for (class, &sum) in sums.iter().enumerate() {
            let now: f64 = blocks.iter().map(|block| block[class]).sum();
            let factor = f64::from(sum) / now.max(f64::MIN_POSITIVE);
            blocks.iter_mut().for_each(|block| block[class] *= factor);
        }
        for (block, valid) in blocks.iter_mut().zip(&valid) {
            let factor = valid * scale / block.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            block.iter_mut().for_each(|units| *units *= factor);
        }
    }
    let mut counts = vec![vec![0; sums.len()]; records.len()];
    for (class, &sum) in sums.iter().enumerate() {
        let weights: Vec<f64> = blocks.iter().map(|block| block[class]).collect();
        let counted = apportion(sum, &weights);
        counts.iter_mut().zip(counted).for_each(|(block, units)| block[class] = units);
    }
    counts
}

/// Moves units of blocks that hold more than `most` to blocks with room.
fn fit_blocks(counts: &mut [Vec<u32>], most: u32) {
    let mut receiver = 0;
    for index in 0..counts.len() {
        let mut excess = counts[index].iter().sum::<u32>().saturating_sub(most);
        while excess > 0 {
            let room = |block: &[u32]| most.saturating_sub(block.iter().sum());
            let Some(to) = (receiver..counts.len()).find(|&to| to != index && room(&counts[to]) > 0) else { return };
            receiver = to;
            let class = (0..counts[index].len()).max_by_key(|&class| counts[index][class]).expect("a class");
            let moved = excess.min(room(&counts[to])).min(counts[index][class]);
            counts[index][class] -= moved;
            counts[to][class] += moved;
            excess -= moved;
        }
    }
}
