//! [`ClassCounts`]: how many undecided units of each class the blocks of a die hold.

use headstack_workload::Random;

/// Number of blocks with a common sum, so that a draw visits a few dozen numbers instead of all blocks.
const BLOCKS_PER_SUM: usize = 32;

/// Undecided units of each block by class. Units of a class are overwritten at the same rate, so each is equally likely
/// to be any undecided unit of its class on its die.
#[derive(Clone, Debug)]
pub struct ClassCounts {
    classes: usize,
    blocks: usize,
    /// Count of class `c` in block `b` at `c * blocks + b`.
    counts: Vec<u32>,
    /// Sums over [`BLOCKS_PER_SUM`] consecutive blocks of a class.
    sums: Vec<u32>,
    /// Units of each class on the die.
    totals: Vec<u32>,
}

impl ClassCounts {
    /// Creates counts of 0 for `blocks` blocks.
    pub fn new(classes: usize, blocks: u32) -> Self {
        let blocks = blocks as usize;
        ClassCounts {
            classes,
            blocks,
            counts: vec![0; classes * blocks],
            sums: vec![0; classes * blocks.div_ceil(BLOCKS_PER_SUM)],
            totals: vec![0; classes],
        }
    }

    /// Adds units of a class to a block.
    pub fn add(&mut self, class: usize, block: u32, units: u32) {
        self.change(class, block as usize, |count| *count += units);
    }

    #[inline]
    fn change(&mut self, class: usize, block: usize, change: impl Fn(&mut u32)) {
        change(&mut self.counts[class * self.blocks + block]);
        change(&mut self.sums[class * self.blocks.div_ceil(BLOCKS_PER_SUM) + block / BLOCKS_PER_SUM]);
        change(&mut self.totals[class]);
    }

    /// Returns the counts of a block, by class.
    #[inline]
    pub fn of_block(&self, block: u32) -> impl Iterator<Item = u32> {
        (0..self.classes).map(move |class| self.counts[class * self.blocks + block as usize])
    }

    /// Removes a unit of a class from a block drawn in proportion to the units there; returns the block. The number of a
    /// class on a die is an expectation: if no unit of the class is left, takes one of the nearest class. A unit must be
    /// left.
    pub fn take_one(&mut self, class: usize, random: &mut Random) -> u32 {
        let is_left = |class: &usize| self.totals.get(*class).is_some_and(|&units| units > 0);
        let nearest =
            (0..self.classes).find_map(|step| [class + step, class.wrapping_sub(step)].into_iter().find(is_left));
        let class = nearest.expect("a unit is left on the die");
        let mut rank = random.below(u64::from(self.totals[class])) as u32;
        let mut position = |counts: &[u32]| {
            let holds_it = |count: &u32| {
                let is_here = rank < *count;
                rank = rank.wrapping_sub(if is_here { 0 } else { *count });
                is_here
            };
            counts.iter().position(holds_it).expect("counts add up to the sum")
        };
        let sums = self.blocks.div_ceil(BLOCKS_PER_SUM);
        let part = position(&self.sums[class * sums..(class + 1) * sums]) * BLOCKS_PER_SUM;
        let end = (part + BLOCKS_PER_SUM).min(self.blocks);
        let block = part + position(&self.counts[class * self.blocks + part..class * self.blocks + end]);
        self.change(class, block, |count| *count -= 1);
        block as u32
    }

    /// Moves a unit from a block to another, each of its undecided units with the same probability.
    pub fn move_one(&mut self, from: u32, to: u32, random: &mut Random) {
        let left: u32 = self.of_block(from).sum();
        let mut rank = random.below(u64::from(left)) as u32;
        let holds_it = |count: u32| {
            let is_here = rank < count;
            rank = rank.wrapping_sub(count);
            is_here
        };
        let class = self.of_block(from).position(holds_it).expect("a unit of some class is moved");
        self.change(class, from as usize, |count| *count -= 1);
        self.change(class, to as usize, |count| *count += 1);
    }
}
