//! What is drawn for a die at the start of a run.

use headstack_workload::Random;

use super::super::class_counts::ClassCounts;

/// Fills of the blocks of a die at the start of a run, in units.
#[derive(Clone, Copy, Debug)]
pub struct Fills {
    pub die: u32,
    /// Valid units of the die.
    pub units: u32,
    /// Number of full blocks besides the one that is being collected.
    pub closed: u32,
    /// Used slots of the block that the host's rows are written to, and of the block that receives moved units.
    pub used_host: u32,
    pub used_moved: u32,
    /// Slots of the victim that were already collected.
    pub collected: u32,
}

/// Valid units of the blocks of a die.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub closed: Vec<u32>,
    pub host: u32,
    pub moved: u32,
    pub victim: u32,
    /// Valid units of the victim when it was chosen.
    pub victim_before: u32,
    /// The same by class: the closed blocks, then the other three in this order.
    pub classes: Option<Box<ClassCounts>>,
}

/// Shuffles values (Fisher and Yates).
pub fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last as u64 + 1) as usize);
    }
}
