//! The flash translation layer: the place of each mapping unit, and the work of each die to keep blocks free.
//!
//! It does not know time. The dies ask for their next [`Task`] and carry it out in virtual time; preconditioning
//! carries out the same tasks in no time.
//!
//! A block here is one block of each plane of a die, a row one page of each: planes read, program and erase together,
//! so that they act as one plane with larger pages. Units are numbered over dies, then blocks, rows and places in a
//! row.

use std::collections::VecDeque;

use super::unit_map::UnitMap;
use crate::description::ssd::SsdDescription;

/// Sizes in units and rows.
#[derive(Clone, Copy, Debug)]
pub struct FlashLayout {
    pub dies: u32,
    pub unit_bytes: u32,
    pub units_per_page: u32,
    pub units_per_row: u32,
    pub units_per_block: u32,
    pub blocks_per_die: u32,
    pub units_per_die: u32,
    free_blocks_min: u32,
    /// Units that a block holds with one bit per cell; 0 if no block does.
    units_per_slc_block: u32,
    /// Blocks of a die that are set aside for that, and most beyond them.
    pub slc_static_blocks: u32,
    slc_dynamic_blocks: u32,
    /// Whether unwritten units take space as well.
    filled: bool,
}

impl FlashLayout {
    /// The sizes of a description that has been found possible.
    pub fn new(description: &SsdDescription) -> Self {
        let flash = &description.flash;
        let unit_bytes = description.capacity.mapping_unit_bytes;
        let units_per_row = description.row_bytes() / unit_bytes;
        // A unit of several pages takes them from several planes.
        let units_per_page = (flash.page_bytes / unit_bytes).max(1);
        let units_per_block = units_per_row * flash.pages_per_block;
        let slc = description.slc_cache;
        let units_per_slc_block = slc.map_or(0, |slc| flash.pages_per_block / slc.bits_per_cell * units_per_row);
        let slc_blocks = |bytes: u64| {
            let of_all = u64::from(description.dies()) * u64::from(units_per_slc_block) * u64::from(unit_bytes);
            if of_all == 0 { 0 } else { u32::try_from(bytes.div_ceil(of_all)).unwrap_or(u32::MAX) }
        };
        FlashLayout {
            units_per_slc_block,
            slc_static_blocks: slc.map_or(0, |slc| slc_blocks(slc.static_bytes)),
            slc_dynamic_blocks: slc.map_or(0, |slc| slc_blocks(slc.dynamic_bytes)),
            filled: description.filled,
            dies: description.dies(),
            unit_bytes,
            units_per_page,
            units_per_row,
            units_per_block,
            blocks_per_die: flash.blocks_per_plane,
            units_per_die: units_per_block * flash.blocks_per_plane,
            free_blocks_min: description.collection.free_blocks_min,
        }
    }

    /// Units of a die that may hold data while collection still finds a block with something stale in it: two blocks are
    /// open and the others are kept free or set aside.
    pub fn usable_units(&self) -> u32 {
        let open = 2 + u32::from(self.slc_dynamic_blocks > 0);
        self.units_per_block * self.blocks_per_die.saturating_sub(open + self.free_blocks_min + self.slc_static_blocks)
    }
}

/// The place of a unit of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashPlace {
    /// Never written, or trimmed.
    Nowhere,
    /// In a slot of the write buffer.
    Buffer(u32),
    /// In the flash.
    Flash(u32),
}

impl FlashPlace {
    /// The map entry; 0 is nowhere.
    #[inline]
    fn code(self) -> u32 {
        match self {
            FlashPlace::Nowhere => 0,
            FlashPlace::Buffer(slot) => u32::MAX - slot,
            FlashPlace::Flash(place) => place + 1,
        }
    }
}

/// The next task of a die to manage its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Programs a row of the host's.
    ProgramHost,
    /// Programs a row of moved units.
    ProgramMoved,
    /// Reads the valid units in a row of the victim, `units` on `pages`, and moves them.
    Move { units: u32, pages: u32, slc: bool },
    /// Erases the victim.
    Erase,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    valid: u32,
    erases: u32,
    /// Full and not yet erased.
    closed: bool,
    /// It holds one bit a cell.
    slc: bool,
}

/// A block being collected.
#[derive(Clone, Copy, Debug)]
struct Victim {
    block: u32,
    next_row: u32,
    /// Valid units when it was chosen.
    valid: u32,
    moved: u32,
    /// Units of the host's that the die took meanwhile.
    accepted: u32,
}

/// A block that the host's rows go to.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBlock {
    /// The next row's place, as a unit of the die.
    next: u32,
    /// Free units of the block; 0 if no block is open.
    left: u32,
}

/// The blocks of one die.
#[derive(Clone, Debug)]
struct Die {
    /// Blocks that have been used.
    blocks: Vec<Block>,
    /// The host's unit in each place of these blocks, plus 1; 0 if the place holds nothing valid.
    owners: Vec<u32>,
    /// Blocks that were erased, oldest first, which spreads wear.
    erased: VecDeque<u32>,
    /// The block for the host's next row: the one with one bit per cell if there is one to write to.
    host: OpenBlock,
    host_slc: OpenBlock,
    /// The kind of block to which the current row is being programmed.
    programs_slc: Option<bool>,
    /// Blocks that hold one bit a cell, the open one included.
    slc_blocks: u32,
    /// Block that takes moved units, places left in it, and units in its unfinished row.
    moved_block: u32,
    moved_left: u32,
    moved_in_row: u32,
    /// Rows filled with moved units and not yet programmed.
    moved_rows: u32,
    victim: Option<Victim>,
    valid: u32,
    /// Units of rows that wait for this die.
    promised: u32,
}

impl Die {
    fn free_blocks(&self, layout: &FlashLayout) -> u32 {
        self.erased.len() as u32 + layout.blocks_per_die - self.blocks.len() as u32
    }

    fn take_free_block(&mut self, layout: &FlashLayout) -> u32 {
        self.erased.pop_front().unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.owners.resize(self.blocks.len() * layout.units_per_block as usize, 0);
            self.blocks.len() as u32 - 1
        })
    }

    /// Free blocks that collection maintains, including those reserved for one bit per cell and not in use.
    fn free_blocks_kept(&self, layout: &FlashLayout) -> u32 {
        layout.free_blocks_min + layout.slc_static_blocks.saturating_sub(self.slc_blocks)
    }

    /// Whether another block is to hold one bit per cell. Beyond the reserved ones, only blocks that are not needed
    /// otherwise do. `share` is the number of units on the die when the drive is full.
    fn takes_slc(&self, layout: &FlashLayout, share: u32) -> bool {
        let free = self.free_blocks(layout);
        if self.slc_blocks < layout.slc_static_blocks {
            return free >= 2;
        }
        let unwritten =
            if layout.filled { share.saturating_sub(self.valid).div_ceil(layout.units_per_block) } else { 0 };
        self.slc_blocks < layout.slc_static_blocks.saturating_add(layout.slc_dynamic_blocks)
            && free > layout.free_blocks_min + 1 + unwritten
    }

    /// Sees to it that the host's next row has a block; whether that holds one bit a cell.
    fn open_host_block(&mut self, layout: &FlashLayout, share: u32) -> bool {
        let has_slc = layout.units_per_slc_block > 0;
        let slc = has_slc && (self.host_slc.left > 0 || self.takes_slc(layout, share));
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
}

/// Map, reverse map and blocks.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub layout: FlashLayout,
    /// Place of each of the host's units.
    map: UnitMap,
    dies: Vec<Die>,
    /// The die whose turn it is.
    turn: u32,
    /// Units of a full drive that each die holds.
    share: u32,
    /// Units a die may hold before its turn passes over it, so that every die keeps half of its share of the spare.
    fair_units: u32,
    /// Units moved by collection so far.
    pub moved_units: u64,
    /// Blocks erased so far (one a plane counts as one).
    pub erases: u64,
}

impl Ftl {
    /// An empty drive.
    pub fn new(description: &SsdDescription) -> Self {
        let layout = FlashLayout::new(description);
        let logical_units = description.capacity.logical_bytes / u64::from(layout.unit_bytes);
        let share = logical_units.div_ceil(u64::from(layout.dies)) as u32;
        let die = Die {
            blocks: Vec::new(),
            owners: Vec::new(),
            erased: VecDeque::new(),
            host: OpenBlock::default(),
            host_slc: OpenBlock::default(),
            programs_slc: None,
            slc_blocks: 0,
            moved_block: 0,
            moved_left: 0,
            moved_in_row: 0,
            moved_rows: 0,
            victim: None,
            valid: 0,
            promised: 0,
        };
        Ftl {
            map: UnitMap::new(logical_units as u32),
            dies: vec![die; layout.dies as usize],
            turn: 0,
            share,
            fair_units: share + layout.usable_units().saturating_sub(share) / 2,
            moved_units: 0,
            erases: 0,
            layout,
        }
    }

    /// Units that the drive exports.
    pub fn logical_units(&self) -> u32 {
        self.map.units()
    }

    /// The place of a unit.
    #[inline]
    pub fn place(&self, unit: u32) -> FlashPlace {
        let code = self.map.get(unit);
        if code == 0 {
            FlashPlace::Nowhere
        } else if code <= self.layout.dies * self.layout.units_per_die {
            FlashPlace::Flash(code - 1)
        } else {
            FlashPlace::Buffer(u32::MAX - code)
        }
    }

    /// The die of a place.
    #[inline]
    pub fn die_of(&self, place: u32) -> u32 {
        place / self.layout.units_per_die
    }

    /// The die that would hold a unit, had the drive been filled in order.
    #[inline]
    pub fn die_of_filled(&self, unit: u32) -> u32 {
        unit / self.layout.units_per_row % self.layout.dies
    }

    /// Sets the place of a unit; its previous place in the flash becomes stale.
    #[inline]
    pub fn set_place(&mut self, unit: u32, place: FlashPlace) {
        if let FlashPlace::Flash(old) = self.place(unit) {
            let die = self.die_of(old);
            let of_die = old - die * self.layout.units_per_die;
            let die = &mut self.dies[die as usize];
            die.owners[of_die as usize] = 0;
            die.blocks[(of_die / self.layout.units_per_block) as usize].valid -= 1;
            die.valid -= 1;
        }
        self.map.set(unit, place.code());
    }

    /// Chooses the die for the next row of `units`: each in turn, except those that hold far more than their share,
    /// because their data are overwritten less often. Some die always has room: the check ensures spare space for all
    /// that the drive exports and buffers.
    pub fn choose_die(&mut self, units: u32) -> u32 {
        let dies = self.layout.dies;
        let load = |die: u32| self.dies[die as usize].valid + self.dies[die as usize].promised;
        let turns = (0..dies).map(|step| (self.turn + step) % dies);
        let chosen = turns
            .clone()
            .find(|&die| load(die) + units <= self.fair_units)
            .or_else(|| turns.min_by_key(|&die| load(die)))
            .expect("at least one die");
        self.turn = (chosen + 1) % dies;
        self.dies[chosen as usize].promised += units;
        chosen
    }

    /// The next task of a die, which has rows of the host's to program if `host_waits`.
    pub fn next_task(&mut self, die: u32, host_waits: bool) -> Option<Task> {
        let layout = self.layout;
        let space = &mut self.dies[die as usize];
        if space.moved_rows > 0 {
            space.moved_rows -= 1;
            return Some(Task::ProgramMoved);
        }
        let free = space.free_blocks(&layout);
        if space.victim.is_none() && free < space.free_blocks_kept(&layout) {
            space.victim = choose_victim(space, &layout);
        }
        // The last free block is collection's: without it nothing could ever be reclaimed.
        let has_room = space.host.left > 0 || space.host_slc.left > 0 || free >= 2;
        let Some(victim) = space.victim else {
            return (host_waits && has_room).then_some(Task::ProgramHost);
        };
        // Collection keeps pace with the host: when the host has used what the victim gives back, it is given back.
        let gains = u64::from(layout.units_per_block - victim.valid);
        let is_behind = u64::from(victim.moved) * gains < u64::from(victim.accepted) * u64::from(victim.valid);
        if host_waits && has_room && !is_behind {
            return Some(Task::ProgramHost);
        }
        Some(self.collect(die, victim))
    }

    /// Moves the victim's next row with something valid, or has it erased.
    fn collect(&mut self, die: u32, mut victim: Victim) -> Task {
        let layout = self.layout;
        let block_start = die * layout.units_per_die + victim.block * layout.units_per_block;
        let rows = layout.units_per_block / layout.units_per_row;
        while victim.next_row < rows && self.dies[die as usize].blocks[victim.block as usize].valid > 0 {
            let start = block_start + victim.next_row * layout.units_per_row;
            victim.next_row += 1;
            let (units, pages) = self.move_row(die, start);
            if units > 0 {
                victim.moved += units;
                let space = &mut self.dies[die as usize];
                space.victim = Some(victim);
                return Task::Move { units, pages, slc: space.blocks[victim.block as usize].slc };
            }
        }
        // Marked as read to its end, so that a die that is asked again gives the same answer.
        victim.next_row = rows;
        self.dies[die as usize].victim = Some(victim);
        Task::Erase
    }

    /// Gives each valid unit of a row a new place immediately; that it is programmed there later only matters to a read
    /// in between, which finds the same die busy with it.
    fn move_row(&mut self, die: u32, start: u32) -> (u32, u32) {
        let (mut units, mut pages, mut last_page) = (0, 0, u32::MAX);
        let base = die * self.layout.units_per_die;
        for from in start..start + self.layout.units_per_row {
            let owner = std::mem::take(&mut self.dies[die as usize].owners[(from - base) as usize]);
            if owner == 0 {
                continue;
            }
            units += 1;
            let page = (from - start) / self.layout.units_per_page;
            pages += u32::from(page != last_page);
            last_page = page;
            let to = self.place_for_moved(die);
            self.map.set(owner - 1, FlashPlace::Flash(to).code());
            self.dies[die as usize].owners[(to - base) as usize] = owner;
        }
        let block = (start - base) / self.layout.units_per_block;
        self.dies[die as usize].blocks[block as usize].valid -= units;
        self.moved_units += u64::from(units);
        (units, pages)
    }

    /// The next place for a moved unit, which is counted there.
    #[inline]
    fn place_for_moved(&mut self, die: u32) -> u32 {
        let layout = &self.layout;
        let space = &mut self.dies[die as usize];
        if space.moved_left == 0 {
            space.moved_block = space.take_free_block(layout);
            space.moved_left = layout.units_per_block;
        }
        space.moved_left -= 1;
        space.moved_in_row += 1;
        if space.moved_in_row == layout.units_per_row {
            space.moved_in_row = 0;
            space.moved_rows += 1;
        }
        let block = &mut space.blocks[space.moved_block as usize];
        block.valid += 1;
        block.closed = space.moved_left == 0;
        die * layout.units_per_die + (space.moved_block + 1) * layout.units_per_block - space.moved_left - 1
    }

    /// The place holds the unit.
    #[inline]
    fn hold(&mut self, die: u32, place: u32, unit: u32) {
        let of_die = place - die * self.layout.units_per_die;
        let space = &mut self.dies[die as usize];
        space.owners[of_die as usize] = unit + 1;
        space.blocks[(of_die / self.layout.units_per_block) as usize].valid += 1;
        space.valid += 1;
    }

    /// The victim is erased and free again.
    pub fn finish_erase(&mut self, die: u32) {
        let space = &mut self.dies[die as usize];
        let victim = space.victim.take().expect("a die erases its victim");
        let block = &mut space.blocks[victim.block as usize];
        debug_assert_eq!(block.valid, 0);
        space.slc_blocks -= u32::from(block.slc);
        (block.closed, block.slc, block.erases) = (false, false, block.erases + 1);
        space.erased.push_back(victim.block);
        self.erases += 1;
    }

    /// Whether the host's next row on a die is programmed with one bit a cell.
    #[inline]
    pub fn host_row_is_slc(&mut self, die: u32) -> bool {
        if self.layout.units_per_slc_block == 0 {
            return false;
        }
        let space = &mut self.dies[die as usize];
        let slc = space.open_host_block(&self.layout, self.share);
        space.programs_slc = Some(slc);
        slc
    }

    /// Whether a place is in a block with one bit a cell.
    #[inline]
    pub fn is_slc(&self, place: u32) -> bool {
        if self.layout.units_per_slc_block == 0 {
            return false;
        }
        let die = self.die_of(place);
        let block = (place - die * self.layout.units_per_die) / self.layout.units_per_block;
        self.dies[die as usize].blocks[block as usize].slc
    }

    /// Whether there is a full block with one bit per cell on a die that is not collecting.
    pub fn can_fold(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.victim.is_none() && space.slc_blocks > 0 && space.blocks.iter().any(|block| block.slc && block.closed)
    }

    /// The next task of a die is to fold such a block.
    pub fn fold(&mut self, die: u32) {
        let space = &mut self.dies[die as usize];
        space.victim = least_valid(space, |block| block.slc);
    }

    /// Finishes programming a row of the host, for which the die was chosen with `units`; returns its start. If the row
    /// has fewer units, the rest is lost until the block is erased.
    pub fn finish_host_row(&mut self, die: u32, units: u32) -> u32 {
        let layout = self.layout;
        let space = &mut self.dies[die as usize];
        space.promised -= units;
        let slc = space.programs_slc.take().unwrap_or_else(|| space.open_host_block(&layout, self.share));
        let open = if slc { &mut space.host_slc } else { &mut space.host };
        let start = open.next;
        open.next += layout.units_per_row;
        open.left -= layout.units_per_row;
        if open.left == 0 {
            space.blocks[(start / layout.units_per_block) as usize].closed = true;
        }
        if let Some(victim) = &mut space.victim {
            victim.accepted += layout.units_per_row;
        }
        die * layout.units_per_die + start
    }

    /// The unit was programmed into `place` of a row just finished.
    #[inline]
    pub fn settle(&mut self, unit: u32, place: u32) {
        self.set_place(unit, FlashPlace::Flash(place));
        self.hold(self.die_of(place), place, unit);
    }

    /// Units that can be written before any die has to collect. One block less is counted for each die, since a die
    /// that collects sometimes has one.
    pub fn free_units(&self) -> u64 {
        let layout = &self.layout;
        let free = |die: &Die| {
            let blocks = die.free_blocks(layout).saturating_sub(die.free_blocks_kept(layout) + 1);
            // A block with one bit a cell holds less, and takes as much flash.
            let slc = u64::from(die.host_slc.left) * u64::from(layout.units_per_block)
                / u64::from(layout.units_per_slc_block.max(1));
            let open = if blocks == 0 { 0 } else { u64::from(die.host.left) + slc };
            u64::from(blocks) * u64::from(layout.units_per_block) + open
        };
        self.dies.iter().map(free).sum()
    }

    /// (Most, mean) erases of a block.
    pub fn wear(&self) -> (u32, f64) {
        let blocks = || self.dies.iter().flat_map(|die| &die.blocks);
        let most = blocks().map(|block| block.erases).max().unwrap_or(0);
        let total: u64 = blocks().map(|block| u64::from(block.erases)).sum();
        (most, total as f64 / (f64::from(self.layout.dies) * f64::from(self.layout.blocks_per_die)))
    }

    /// Recomputes every count from the maps; for tests.
    #[cfg(test)]
    pub fn check_consistency(&self) {
        let layout = &self.layout;
        for (number, die) in self.dies.iter().enumerate() {
            let mut die_valid = 0;
            for (index, block) in die.blocks.iter().enumerate() {
                let first = index as u32 * layout.units_per_block;
                let held = (first..first + layout.units_per_block).filter(|&of_die| die.owners[of_die as usize] != 0);
                let held = held.inspect(|&of_die| {
                    assert_eq!(
                        self.place(die.owners[of_die as usize] - 1),
                        FlashPlace::Flash(number as u32 * layout.units_per_die + of_die),
                        "maps are inverse"
                    );
                });
                assert_eq!(held.count() as u32, block.valid);
                die_valid += block.valid;
            }
            assert_eq!(die_valid, die.valid);
        }
        let mapped = (0..self.logical_units()).filter(|&unit| matches!(self.place(unit), FlashPlace::Flash(_))).count();
        assert_eq!(mapped as u32, self.dies.iter().map(|die| die.valid).sum::<u32>());
    }
}

/// Chooses the next block to collect; none if every block is full of valid units. Blocks reserved for one bit per cell
/// yield no space, since they are kept for that.
fn choose_victim(space: &Die, layout: &FlashLayout) -> Option<Victim> {
    let folds = space.slc_blocks > layout.slc_static_blocks;
    least_valid(space, |block| folds || !block.slc).filter(|victim| victim.valid < layout.units_per_block)
}

/// The closed block with the fewest valid units among those allowed; of several, the least worn.
fn least_valid(space: &Die, mut allowed: impl FnMut(&Block) -> bool) -> Option<Victim> {
    let closed = (0u32..).zip(&space.blocks).filter(|(_, block)| block.closed && allowed(block));
    let (index, block) = closed.min_by_key(|(_, block)| (block.valid, block.erases))?;
    Some(Victim { block: index, next_row: 0, valid: block.valid, moved: 0, accepted: 0 })
}
