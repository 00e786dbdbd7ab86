//! Sizes and contents of a pilot: a small die that is overwritten until its blocks are in a steady state, whose contents
//! are those of the drive's blocks.
//!
//! With enough blocks and units in a block, what a block holds depends only on the share of the flash in use and on how
//! often each share of the units is written, not on their numbers. So the translation layer itself, on one die with
//! fewer and smaller blocks, shows the contents of the real blocks by class.

use headstack_workload::Random;

use super::super::layout::FlashLayout;

/// Number of blocks in use. A victim is the emptiest of them, so more blocks barely change its contents.
const BLOCKS: u32 = 128;
/// The two open blocks and the victim shall take at most this share of the spare flash, as in a die of a thousand blocks.
const OPEN_SHARE_OF_SPARE: f64 = 0.25;
/// Number of units in a block. Greedy collection of uniform writes moves 0.5 % less than with blocks of 18,432 units.
const UNITS_PER_BLOCK: u32 = 512;
/// Number of rows in a block.
const ROWS_PER_BLOCK: u32 = 64;
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

/// A unit of the pilot.
#[derive(Clone, Copy, Debug)]
pub struct PilotUnit {
    /// Share of the writes.
    pub share: f64,
    pub class: usize,
}

/// A function that overwrites units, least used first, and returns their blocks, with a number of classes.
pub type RunPilot = fn(FlashLayout, &[PilotUnit], usize, &mut Random) -> Blocks;
