//! [`run`]: a small die that is overwritten until its blocks are in a steady state, whose contents are those of the
//! drive's blocks.
//!
//! With enough blocks and units in a block, what a block holds depends only on the share of the flash in use and on how
//! often each share of the units is written, not on their numbers. So the translation layer itself, on one die with
//! fewer and smaller blocks, shows the contents of the real blocks by class.

use headstack_workload::{AliasTable, Random};

use super::super::ftl::Ftl;
use super::super::layout::FlashLayout;
use super::skewed::PilotUnit;

/// Number of blocks in use. A victim is the emptiest of them, so more blocks barely change its contents.
const BLOCKS: u32 = 128;
/// The two open blocks and the victim shall take at most this share of the spare flash, as in a die of a thousand blocks.
const OPEN_SHARE_OF_SPARE: f64 = 0.25;
/// Number of units in a block. Greedy collection of uniform writes moves 0.5 % less than with blocks of 18,432 units.
const UNITS_PER_BLOCK: u32 = 512;
/// Number of rows in a block.
const ROWS_PER_BLOCK: u32 = 64;
/// Overwritten capacities before the first record.
const CAPACITIES: f64 = 16.0;
/// Number of times at which free space is recorded, for each time at which blocks are.
const FREE_SPACE_SAMPLES: u32 = 16;
/// Number of times at which blocks are recorded, and the overwritten capacities between two of them.
const RECORDS: u32 = 8;
const CAPACITIES_BETWEEN: f64 = 0.3;

/// Sizes of the pilot of a die, and its number of valid units. `units_per_block` is the number of units in a block of the
/// drive that can be overwritten apart from each other, `units` the number of these on a die.
pub fn size(layout: &FlashLayout, units: f64, units_per_block: u32) -> (FlashLayout, u32) {
    let in_use = layout.blocks_per_die - layout.slc_static_blocks - layout.free_blocks_min;
    let valid_share = (units / f64::from(in_use) / f64::from(units_per_block)).min(1.0);
    let needed = 3.0 / OPEN_SHARE_OF_SPARE / (1.0 - valid_share).max(0.01);
    let blocks = in_use.min(BLOCKS.max(needed as u32));
    let units_per_block = units_per_block.min(UNITS_PER_BLOCK);
    let rows = (layout.units_per_block / layout.units_per_row).min(ROWS_PER_BLOCK).min(units_per_block);
    let units_per_row = units_per_block / rows;
    let units_per_block = units_per_row * rows;
    let pilot = FlashLayout {
        dies: 1,
        units_per_page: 1,
        units_per_row,
        units_per_block,
        blocks_per_die: blocks + layout.free_blocks_min,
        units_per_die: units_per_block * (blocks + layout.free_blocks_min),
        units_per_slc_block: 0,
        slc_static_blocks: 0,
        slc_dynamic_blocks: 0,
        ..*layout
    };
    let units = (valid_share * f64::from(blocks) * f64::from(units_per_block)).round();
    (pilot, (units as u32).clamp(1, pilot.usable_units()))
}

/// Blocks of the die of a pilot.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Share of the slots of full blocks that holds valid units of each class, from the emptiest block to the fullest.
    pub full: Vec<Vec<f32>>,
    /// Mean free space, in blocks, that in open blocks and in the collected part of the victim included.
    pub free: f64,
}

/// Overwrites `units`, least used first, and records the blocks and their units by class.
pub fn run(layout: FlashLayout, units: &[PilotUnit], classes: usize, random: &mut Random) -> Blocks {
    let never_written = units.partition_point(|unit| unit.share <= 0.0);
    let shares: Vec<f64> = units[never_written..].iter().map(|unit| unit.share).collect();
    let table = AliasTable::new(&shares);
    let mut ftl = Ftl::empty(layout, units.len() as u32, random.bits());
    // Written in this order, units of a kind share blocks, as they do after many collections.
    let in_order: Vec<u32> = (0..units.len() as u32).collect();
    in_order.chunks(layout.units_per_row as usize).for_each(|row| ftl.write_row(row));
    let mut row = vec![0; layout.units_per_row as usize];
    let mut overwrite = |ftl: &mut Ftl, capacities: f64| {
        let rows = (units.len() as f64 * capacities / f64::from(layout.units_per_row)) as u32;
        for _ in 0..rows {
            row.iter_mut().for_each(|unit| *unit = (never_written + table.pick(random)) as u32);
            ftl.write_row(&row);
        }
    };
    overwrite(&mut ftl, CAPACITIES);
    let mut blocks = Blocks::default();
    for _ in 0..RECORDS {
        for _ in 0..FREE_SPACE_SAMPLES {
            overwrite(&mut ftl, CAPACITIES_BETWEEN / f64::from(FREE_SPACE_SAMPLES));
            blocks.free += f64::from(ftl.free_units_of(0)) / f64::from(layout.units_per_block);
        }
        blocks.full.extend(ftl.closed_contents(0).map(|block| {
            let mut shares = vec![0.0; classes];
            block.for_each(|unit| shares[units[unit as usize].class] += 1.0 / layout.units_per_block as f32);
            shares
        }));
    }
    blocks.free /= f64::from(RECORDS * FREE_SPACE_SAMPLES);
    blocks.full.sort_by(|first: &Vec<f32>, second| first.iter().sum::<f32>().total_cmp(&second.iter().sum()));
    blocks
}
