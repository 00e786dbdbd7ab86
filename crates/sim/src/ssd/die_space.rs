//! [`DieSpace`]: the blocks of one die, their data, and the block that is being collected.
//!
//! Valid data of a block are of two kinds. *Placed* units have a slot that is known: the simulated host wrote them, or
//! they moved since. *Unplaced* units have been there since the initial state, which says only how many of them a block
//! holds (see [`super::worn_in`]).

use std::collections::VecDeque;

use headstack_workload::Random;

use super::class_counts::ClassCounts;
use super::layout::FlashLayout;
use super::unit_map::UnitMap;

/// Owner of a slot that holds nothing valid.
const NO_OWNER: u32 = 0;
/// Owner of a slot that was programmed with an unplaced unit, which may be stale by now.
const UNPLACED: u32 = u32::MAX;

/// A block: one of each plane, which act together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Valid units, unplaced ones included.
    pub valid: u32,
    /// Valid units whose slot in the block is undecided.
    pub unplaced: u32,
    /// Number of erases since the start of the simulation.
    pub erases: u32,
    /// Index of its owners in [`DieSpace::owners`], plus 1; 0 while every unit in it is unplaced.
    owners: u32,
    /// Whether it is full and not yet erased.
    pub closed: bool,
    /// Whether it holds one bit a cell.
    pub slc: bool,
}

impl Block {
    /// Decides whether a slot of this victim holds one of its unplaced units, which are equally likely in each slot that
    /// is left.
    #[inline]
    pub fn draw_unplaced(&mut self, victim: &mut Victim, random: &mut Random) -> bool {
        debug_assert!(self.unplaced <= victim.candidates, "unplaced units fit into the rows that are left");
        if self.unplaced == 0 {
            return false;
        }
        let holds = random.below(u64::from(victim.candidates)) < u64::from(self.unplaced);
        victim.candidates -= 1;
        self.unplaced -= u32::from(holds);
        holds
    }
}

/// Contents of a slot that was programmed before the start.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    /// Stale data.
    Stale,
    /// A valid unit, undecided which.
    Unplaced,
    /// This valid unit.
    Unit(u32),
}

/// A block that is being collected.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    pub block: u32,
    pub next_row: u32,
    /// Valid units when it was chosen.
    pub valid: u32,
    pub moved: u32,
    /// Units of the host that the die has accepted since.
    pub accepted: u32,
    /// Slots of its remaining rows that an unplaced unit can be in.
    pub candidates: u32,
    /// Whether it holds one bit a cell: folding it does not wait for the host.
    pub folds: bool,
}

impl Victim {
    /// Whether the host has used more of the space that this block will free than has been moved out of it.
    pub fn is_behind(&self, units_per_block: u32) -> bool {
        let gains = u64::from(units_per_block - self.valid);
        u64::from(self.moved) * gains < u64::from(self.accepted) * u64::from(self.valid)
    }
}

/// A block that the host's rows are written to.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenBlock {
    /// The next row's place, as a unit of the die.
    pub next: u32,
    /// Units left in the block; 0 if no block is open.
    pub left: u32,
}

/// A row of a victim whose valid units are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedRow {
    pub units: u32,
    pub pages: u32,
}

/// The blocks of one die.
#[derive(Clone, Debug, Default)]
pub struct DieSpace {
    /// Blocks that were ever used.
    pub blocks: Vec<Block>,
    /// For blocks with placed units, the owner of each slot: the host's unit plus 1, [`NO_OWNER`] or [`UNPLACED`].
    owners: Vec<Box<[u32]>>,
    /// Indexes of owners that no block uses.
    spare_owners: Vec<u32>,
    /// Erased blocks, oldest first, which spreads wear.
    pub erased: VecDeque<u32>,
    /// Place of the host's next row: in a one-bit block if one is available.
    pub host: OpenBlock,
    pub host_slc: OpenBlock,
    /// Whether the rows that are being programmed go to one-bit cells.
    pub programs_slc: Option<bool>,
    /// Number of blocks with one bit a cell, the open one included.
    pub slc_blocks: u32,
    /// Block that receives moved units, slots left in it, and units that wait for a full program.
    pub moved_block: u32,
    pub moved_left: u32,
    pub moved_waiting: u32,
    /// Full programs of moved units that are still to do.
    pub moved_programs: u32,
    pub victim: Option<Victim>,
    /// Full blocks that lost their last valid unit, in case they have not been erased since.
    emptied: Vec<u32>,
    /// Valid units, unplaced ones included.
    pub valid: u32,
    /// Unplaced units.
    pub unplaced: u32,
    /// Unplaced units of each block by class, if they differ in how often the host writes them.
    pub classes: Option<Box<ClassCounts>>,
    /// Units of rows that wait for this die.
    pub promised: u32,
    /// Whether its blocks have yet to be drawn from the initial state.
    pub undrawn: bool,
}

impl DieSpace {
    /// Returns the number of erased and unused blocks.
    pub fn free_blocks(&self, layout: &FlashLayout) -> u32 {
        self.erased.len() as u32 + layout.blocks_per_die - self.blocks.len() as u32
    }

    /// Returns the free units, those in open blocks and in the collected part of the victim included.
    pub fn free_units(&self, layout: &FlashLayout) -> u32 {
        let collected = self.victim.map_or(0, |victim| victim.next_row * layout.units_per_row);
        self.free_blocks(layout) * layout.units_per_block + self.host.left + self.moved_left + collected
    }

    fn take_free_block(&mut self, layout: &FlashLayout) -> u32 {
        let index = self.erased.pop_front().unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() as u32 - 1
        });
        self.own(index, layout);
        index
    }

    /// Gives a block an owner for each slot, none at first.
    fn own(&mut self, block: u32, layout: &FlashLayout) {
        let owners = match self.spare_owners.pop() {
            Some(owners) => {
                self.owners[owners as usize].fill(NO_OWNER);
                owners
            }
            None => {
                self.owners.push(vec![NO_OWNER; layout.units_per_block as usize].into_boxed_slice());
                self.owners.len() as u32 - 1
            }
        };
        let block = &mut self.blocks[block as usize];
        debug_assert_eq!(block.owners, 0, "a block in use is not opened");
        block.owners = owners + 1;
    }

    /// Returns the owners of a block's slots.
    #[inline]
    fn owners_mut(&mut self, block: u32) -> &mut [u32] {
        let owners = self.blocks[block as usize].owners;
        &mut self.owners[owners as usize - 1]
    }

    /// Returns the number of free blocks kept for collection, including unused ones reserved for one bit a cell.
    pub fn free_blocks_kept(&self, layout: &FlashLayout) -> u32 {
        layout.free_blocks_min + layout.slc_static_blocks.saturating_sub(self.slc_blocks)
    }

    /// Whether another block shall hold one bit a cell. In addition to the reserved ones, only blocks that nothing else
    /// needs do.
    fn takes_slc(&self, layout: &FlashLayout) -> bool {
        let free = self.free_blocks(layout);
        if self.slc_blocks < layout.slc_static_blocks {
            return free >= 2;
        }
        self.slc_blocks < layout.slc_static_blocks.saturating_add(layout.slc_dynamic_blocks)
            && free > layout.free_blocks_min + 1
    }

    /// Whether the host's next row is programmed with one bit a cell.
    fn next_is_slc(&self, layout: &FlashLayout) -> bool {
        layout.units_per_slc_block > 0 && (self.host_slc.left > 0 || self.takes_slc(layout))
    }

    /// Returns the number of rows in the host's next program.
    #[inline]
    pub fn rows_per_program(&self, layout: &FlashLayout) -> u32 {
        if layout.rows_per_program == 1 || self.next_is_slc(layout) {
            return 1;
        }
        let left = if self.host.left == 0 { layout.units_per_block } else { self.host.left };
        layout.rows_per_program.min(left / layout.units_per_row)
    }

    /// Opens a block for the host's next row if needed; returns whether it holds one bit a cell.
    pub fn open_host_block(&mut self, layout: &FlashLayout) -> bool {
        let slc = self.next_is_slc(layout);
        let left = if slc { self.host_slc.left } else { self.host.left };
        if left == 0 {
            let block = self.take_free_block(layout);
            self.blocks[block as usize].slc = slc;
            self.slc_blocks += u32::from(slc);
            let left = if slc { layout.units_per_slc_block } else { layout.units_per_block };
            let open = if slc { &mut self.host_slc } else { &mut self.host };
            *open = OpenBlock { next: block * layout.units_per_block, left };
        }
        slc
    }

    /// Chooses a block to collect if too few blocks are free; otherwise one that holds nothing valid, which only needs
    /// to be erased.
    pub fn choose_victim(&mut self, layout: &FlashLayout) {
        if self.victim.is_some() {
            return;
        }
        if self.free_blocks(layout) >= self.free_blocks_kept(layout) {
            while let Some(block) = self.emptied.pop() {
                let Block { closed, valid, slc, .. } = self.blocks[block as usize];
                if closed && valid == 0 {
                    let (next_row, moved, accepted, candidates) = (0, 0, 0, 0);
                    self.victim = Some(Victim { block, next_row, valid, moved, accepted, candidates, folds: slc });
                    return;
                }
            }
            return;
        }
        // Blocks reserved for one bit a cell free nothing, since they are used for that again.
        let folds = self.slc_blocks > layout.slc_static_blocks;
        self.victim = self
            .least_valid(layout, |block| folds || !block.slc)
            .filter(|victim| victim.valid < layout.units_per_block);
    }

    /// Makes folding a full one-bit block the next task.
    pub fn fold(&mut self, layout: &FlashLayout) {
        self.victim = self.least_valid(layout, |block| block.slc);
    }

    /// Returns the allowed closed block with the fewest valid units, the least worn of several.
    fn least_valid(&self, layout: &FlashLayout, mut allowed: impl FnMut(&Block) -> bool) -> Option<Victim> {
        let closed = (0u32..).zip(&self.blocks).filter(|(_, block)| block.closed && allowed(block));
        let (index, block) = closed.min_by_key(|(_, block)| (block.valid, block.erases))?;
        let candidates = if block.unplaced == 0 {
            0
        } else if block.owners == 0 {
            layout.units_per_block
        } else {
            self.owners[block.owners as usize - 1].iter().filter(|&&owner| owner == UNPLACED).count() as u32
        };
        let (valid, folds) = (block.valid, block.slc);
        Some(Victim { block: index, next_row: 0, valid, moved: 0, accepted: 0, candidates, folds })
    }

    /// Records that a slot, as a unit of the die, holds a unit of the host.
    #[inline]
    pub fn hold(&mut self, slot: u32, unit: u32, layout: &FlashLayout) {
        let block = slot / layout.units_per_block;
        self.owners_mut(block)[(slot % layout.units_per_block) as usize] = unit + 1;
        self.blocks[block as usize].valid += 1;
        self.valid += 1;
    }

    /// Records that the data in a slot are stale. Data that are there since the start have no owner on record.
    #[inline]
    pub fn release(&mut self, slot: u32, since_start: bool, layout: &FlashLayout) {
        let block = slot / layout.units_per_block;
        if since_start {
            self.blocks[block as usize].unplaced -= 1;
            self.unplaced -= 1;
        } else {
            self.owners_mut(block)[(slot % layout.units_per_block) as usize] = NO_OWNER;
        }
        self.lose_valid_unit(block);
    }

    /// Counts one valid unit less in a block.
    #[inline]
    fn lose_valid_unit(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        state.valid -= 1;
        self.valid -= 1;
        if state.valid == 0 && state.closed {
            self.emptied.push(block);
        }
    }

    /// Records that an unplaced unit of a class is stale: each is in a block with a probability in proportion to the
    /// unplaced units of its class in that block.
    #[inline]
    pub fn release_unplaced(&mut self, class: usize, layout: &FlashLayout, random: &mut Random) {
        debug_assert!(self.unplaced > 0);
        if let Some(classes) = &mut self.classes {
            let block = classes.take_one(class, random);
            self.blocks[block as usize].unplaced -= 1;
            self.unplaced -= 1;
            self.lose_valid_unit(block);
            return;
        }
        let slots = u64::from(layout.units_per_block) * self.blocks.len() as u64;
        let index = if u64::from(self.unplaced) * 16 > slots {
            loop {
                let slot = random.below(slots);
                let index = (slot / u64::from(layout.units_per_block)) as usize;
                if slot % u64::from(layout.units_per_block) < u64::from(self.blocks[index].unplaced) {
                    break index;
                }
            }
        } else {
            // Few are left: a draw would be rejected too often.
            let mut rank = random.below(u64::from(self.unplaced)) as u32;
            let holds_it = |block: &Block| {
                let is_here = rank < block.unplaced;
                rank = rank.wrapping_sub(block.unplaced);
                is_here
            };
            self.blocks.iter().position(holds_it).expect("the blocks hold all unplaced units of the die")
        };
        self.blocks[index].unplaced -= 1;
        self.unplaced -= 1;
        self.lose_valid_unit(index as u32);
    }

    /// Gives each valid unit of the victim's next row a new slot at once, and records it in the map, where `base` is the
    /// code of the die's first slot. That it is programmed there later only matters to a read in between, which finds
    /// the same die busy with it. `initial` decides what a slot holds that was programmed before the start.
    pub fn move_row(
        &mut self,
        victim: &mut Victim,
        layout: &FlashLayout,
        map: &mut UnitMap,
        base: u32,
        random: &mut Random,
        mut initial: impl FnMut(u32, &UnitMap, &mut Block, &mut Victim, &mut Random) -> Initial,
    ) -> MovedRow {
        let mut row = MovedRow::default();
        let mut last_page = u32::MAX;
        let first = victim.next_row * layout.units_per_row;
        victim.next_row += 1;
        for slot in first..first + layout.units_per_row {
            let block = &mut self.blocks[victim.block as usize];
            let owner = match block.owners {
                0 => UNPLACED,
                owners => self.owners[owners as usize - 1][slot as usize],
            };
            let new_owner = if owner == UNPLACED {
                match initial(victim.block * layout.units_per_block + slot, map, block, victim, random) {
                    Initial::Stale => continue,
                    Initial::Unplaced => UNPLACED,
                    Initial::Unit(unit) => {
                        block.unplaced -= 1;
                        self.unplaced -= 1;
                        unit + 1
                    }
                }
            } else if owner == NO_OWNER {
                continue;
            } else {
                self.owners_mut(victim.block)[slot as usize] = NO_OWNER;
                owner
            };
            row.units += 1;
            let page = slot / layout.units_per_page;
            row.pages += u32::from(page != last_page);
            last_page = page;
            let to = self.slot_for_moved(layout);
            let to_block = to / layout.units_per_block;
            self.owners_mut(to_block)[(to % layout.units_per_block) as usize] = new_owner;
            if new_owner == UNPLACED {
                self.blocks[to_block as usize].unplaced += 1;
                if let Some(classes) = &mut self.classes {
                    classes.move_one(victim.block, to_block, random);
                }
            } else {
                map.set(new_owner - 1, base + to);
            }
        }
        self.blocks[victim.block as usize].valid -= row.units;
        victim.moved += row.units;
        row
    }

    /// Returns the next slot for a moved unit, which is counted there.
    #[inline]
    fn slot_for_moved(&mut self, layout: &FlashLayout) -> u32 {
        if self.moved_left == 0 {
            self.moved_block = self.take_free_block(layout);
            self.moved_left = layout.units_per_block;
        }
        self.moved_left -= 1;
        self.moved_waiting += 1;
        if self.moved_waiting == layout.units_per_row * layout.rows_per_program {
            self.moved_waiting = 0;
            self.moved_programs += 1;
        }
        let block = &mut self.blocks[self.moved_block as usize];
        block.valid += 1;
        block.closed = self.moved_left == 0;
        (self.moved_block + 1) * layout.units_per_block - self.moved_left - 1
    }

    /// Frees the victim, which is erased.
    pub fn finish_erase(&mut self) {
        let victim = self.victim.take().expect("a die erases its victim");
        let block = &mut self.blocks[victim.block as usize];
        debug_assert_eq!((block.valid, block.unplaced), (0, 0), "an erased block holds nothing valid");
        self.slc_blocks -= u32::from(block.slc);
        let owners = std::mem::take(&mut block.owners);
        (block.closed, block.slc, block.erases) = (false, false, block.erases + 1);
        self.spare_owners.extend(owners.checked_sub(1));
        self.erased.push_back(victim.block);
    }

    /// Creates the blocks of a die that was filled in order: full ones, and the one that the host's next row goes to.
    pub fn fill_in_order(&mut self, layout: &FlashLayout) {
        let units = self.valid;
        (self.undrawn, self.valid, self.unplaced) = (false, 0, 0);
        let block = layout.units_per_block;
        for _ in 0..units / block {
            self.add_closed(block);
        }
        let (rest, used) = (units % block, (units % block).next_multiple_of(layout.units_per_row));
        if used == block {
            self.add_closed(rest);
        } else if used > 0 {
            let index = self.add_open(used, rest, layout);
            self.host = OpenBlock { next: index * block + used, left: block - used };
        }
    }

    /// Adds a block of the initial state: full, with `valid` unplaced units.
    pub fn add_closed(&mut self, valid: u32) {
        self.blocks.push(Block { valid, unplaced: valid, closed: true, ..Block::default() });
        (self.valid, self.unplaced) = (self.valid + valid, self.unplaced + valid);
    }

    /// Adds an open block of the initial state, with `valid` unplaced units in its first `used` slots; returns its index.
    pub fn add_open(&mut self, used: u32, valid: u32, layout: &FlashLayout) -> u32 {
        let index = self.blocks.len() as u32;
        self.add_closed(valid);
        self.blocks[index as usize].closed = false;
        self.own(index, layout);
        self.owners_mut(index)[..used as usize].fill(UNPLACED);
        index
    }

    /// Returns the placed units of each full block that is not being collected.
    pub fn closed_contents(&self) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        let victim = self.victim.map(|victim| victim.block);
        let closed = (0u32..).zip(&self.blocks).filter(move |(index, block)| block.closed && victim != Some(*index));
        closed.map(|(_, block)| {
            let owners = block.owners.checked_sub(1).map(|owners| &self.owners[owners as usize]);
            let placed = owners.into_iter().flat_map(|owners| owners.iter());
            placed.filter(|&&owner| owner != NO_OWNER && owner != UNPLACED).map(|owner| owner - 1)
        })
    }

    /// Recomputes every count, for tests; calls `placed` with each placed unit and its slot.
    #[cfg(test)]
    pub fn check_consistency(&self, layout: &FlashLayout, mut placed: impl FnMut(u32, u32)) {
        for (index, block) in (0u32..).zip(&self.blocks) {
            let mut count = 0;
            let owners = block.owners.checked_sub(1).map(|owners| &self.owners[owners as usize]);
            for (slot, &owner) in (0u32..).zip(owners.into_iter().flat_map(|owners| owners.iter())) {
                if owner != NO_OWNER && owner != UNPLACED {
                    placed(owner - 1, index * layout.units_per_block + slot);
                    count += 1;
                }
            }
            assert_eq!(count + block.unplaced, block.valid, "block {index}");
            if let Some(classes) = &self.classes {
                assert_eq!(classes.of_block(index).sum::<u32>(), block.unplaced, "classes of block {index}");
            }
        }
        assert_eq!(self.valid, self.blocks.iter().map(|block| block.valid).sum::<u32>());
        assert_eq!(self.unplaced, self.blocks.iter().map(|block| block.unplaced).sum::<u32>());
    }
}
