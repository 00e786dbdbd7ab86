//! [`run`]: overwrites a pilot, a small die, until its blocks are in a steady state.

use headstack_workload::{AliasTable, Random};

use super::ftl::Ftl;
use super::layout::FlashLayout;
use super::worn_in::{Blocks, PilotUnit};

/// Overwritten capacities before the first record.
const CAPACITIES: f64 = 16.0;
/// Number of times at which free space is recorded, for each time at which blocks are.
const FREE_SPACE_SAMPLES: u32 = 16;
/// Number of times at which blocks are recorded, and the overwritten capacities between two of them.
const RECORDS: u32 = 8;
const CAPACITIES_BETWEEN: f64 = 0.3;

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
