//! [`Ftl`]: the flash translation layer: the place of each mapping unit, and the work of each die to keep blocks free.
//!
//! It has no time. The dies request their next [`Task`] and do it in virtual time.
//!
//! Blocks here are a block of each plane of a die, rows a page of each: planes read, program and erase together, so
//! they act as one plane with pages that are as many times larger. Units are numbered over dies, then blocks, rows and
//! places in a row.

use headstack_workload::{Purpose, Random};

use super::die_space::{DieSpace, Initial, MovedRow};
use super::layout::FlashLayout;
use super::unit_map::UnitMap;
use super::worn_in::{RunPilot, WornIn};
use crate::description::ssd::{FlashState, Medium, SkewedWrites, SsdDescription};

/// Place of a unit of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashPlace {
    /// Never written, or trimmed.
    Nowhere,
    /// In a slot of the write buffer.
    Buffer(u32),
    /// In the flash.
    Flash(u32),
    /// Somewhere on a die of a worn-in drive, not written since the start.
    OnDie(u32),
}

/// Map entry of a unit that the drive holds since the start.
const UNPLACED: u32 = u32::MAX;

/// Initial contents of the flash.
#[derive(Clone, Debug)]
enum Origin {
    /// None.
    Fresh,
    /// Every unit, in order: the place of a unit is computed.
    Filled,
    /// The steady state of random overwrites.
    WornIn(Box<WornIn>),
    /// Every unit stays at a computed place, where it is overwritten.
    InPlace,
}

/// Next task of a die for its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Programs so many rows of host data at once.
    ProgramHost { rows: u32 },
    /// Programs moved units, as many as a program holds.
    ProgramMoved,
    /// Reads the valid data of a row of the victim, `units` on `pages`, and moves them.
    Move { units: u32, pages: u32, slc: bool },
    /// Erases the victim.
    Erase,
}

/// Map and blocks of a drive.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub layout: FlashLayout,
    /// Place of each unit of the host.
    map: UnitMap,
    dies: Vec<DieSpace>,
    /// The die whose turn it is.
    turn: u32,
    /// Units that a die may hold before it loses its turn, so that every die keeps half of its share of the spare.
    fair_units: u32,
    origin: Origin,
    /// Draws of what the initial state leaves open.
    random: Random,
    /// Units moved by collection so far.
    pub moved_units: u64,
    /// Blocks erased so far (one per plane counts as one).
    pub erases: u64,
}

impl Ftl {
    /// Creates a drive in the state of its description; `run_pilot` overwrites a small die, if the state is skewed.
    pub fn new(description: &SsdDescription, seed: u64, run_pilot: RunPilot) -> Self {
        match (description.medium, &description.state) {
            (Medium::Flash | Medium::XPoint, FlashState::Fresh) => Ftl::fresh(description, seed),
            (Medium::XPoint, FlashState::Filled | FlashState::Steady | FlashState::Skewed(_)) => {
                let mut ftl = Ftl::fresh(description, seed);
                ftl.map = UnitMap::new(ftl.logical_units(), UNPLACED);
                ftl
            }
            (Medium::Flash, FlashState::Filled) => Ftl::filled(description, seed),
            (Medium::Flash, FlashState::Steady) => Ftl::worn_in(description, None, seed, run_pilot),
            (Medium::Flash, FlashState::Skewed(writes)) => Ftl::worn_in(description, Some(writes), seed, run_pilot),
        }
    }

    /// Creates an empty drive.
    pub fn fresh(description: &SsdDescription, seed: u64) -> Self {
        let layout = FlashLayout::new(description);
        let units = description.capacity.logical_bytes / u64::from(layout.unit_bytes);
        let origin = match description.medium {
            Medium::Flash => Origin::Fresh,
            Medium::XPoint => Origin::InPlace,
        };
        Ftl { origin, ..Ftl::empty(layout, units as u32, seed) }
    }

    /// Creates an empty drive with these sizes that exports `units`.
    pub fn empty(layout: FlashLayout, units: u32, seed: u64) -> Self {
        let share = units.div_ceil(layout.dies);
        Ftl {
            map: UnitMap::new(units, 0),
            dies: vec![DieSpace::default(); layout.dies as usize],
            turn: 0,
            fair_units: share + layout.usable_units().saturating_sub(share) / 2,
            origin: Origin::Fresh,
            random: Random::new(seed, Purpose::Preconditioning),
            moved_units: 0,
            erases: 0,
            layout,
        }
    }

    /// Creates a drive that was filled once, in order.
    pub fn filled(description: &SsdDescription, seed: u64) -> Self {
        let mut ftl = Ftl::fresh(description, seed);
        let (units, layout) = (ftl.logical_units(), ftl.layout);
        ftl.map = UnitMap::new(units, UNPLACED);
        let turn = layout.dies * layout.units_per_row;
        for (number, die) in (0u32..).zip(&mut ftl.dies) {
            let rest = (units % turn).saturating_sub(number * layout.units_per_row).min(layout.units_per_row);
            let units = units / turn * layout.units_per_row + rest;
            (die.undrawn, die.valid, die.unplaced) = (true, units, units);
        }
        ftl.turn = units / layout.units_per_row % layout.dies;
        ftl.origin = Origin::Filled;
        ftl
    }

    /// Creates a drive in the steady state of random overwrites: skewed ones, or uniform ones of all of it.
    pub fn worn_in(
        description: &SsdDescription,
        skewed: Option<&SkewedWrites>,
        seed: u64,
        run_pilot: RunPilot,
    ) -> Self {
        let mut ftl = Ftl::fresh(description, seed);
        let units = ftl.logical_units();
        ftl.map = UnitMap::new(units, UNPLACED);
        let mut worn_in = WornIn::new(units, &ftl.layout, &mut ftl.random);
        if let Some(writes) = skewed {
            worn_in.skew(writes, &ftl.layout, seed, run_pilot, &mut ftl.random);
        }
        for (number, die) in (0u32..).zip(&mut ftl.dies) {
            let units = worn_in.units_of(number);
            (die.undrawn, die.valid, die.unplaced) = (true, units, units);
        }
        ftl.origin = Origin::WornIn(Box::new(worn_in));
        ftl
    }

    /// Returns the number of units that the drive exports.
    pub fn logical_units(&self) -> u32 {
        self.map.units()
    }

    /// Returns the place of a unit.
    #[inline]
    pub fn place(&self, unit: u32) -> FlashPlace {
        let code = self.map.get(unit);
        if code == 0 {
            FlashPlace::Nowhere
        } else if code <= self.layout.dies * self.layout.units_per_die {
            FlashPlace::Flash(code - 1)
        } else if code == UNPLACED {
            match &self.origin {
                Origin::Fresh => unreachable!("a fresh drive holds nothing since the start"),
                Origin::Filled | Origin::InPlace => FlashPlace::Flash(self.layout.filled_place(unit)),
                Origin::WornIn(worn_in) => FlashPlace::OnDie(worn_in.die_of(unit)),
            }
        } else {
            FlashPlace::Buffer(UNPLACED - 1 - code)
        }
    }

    /// Returns the die of a place.
    #[inline]
    pub fn die_of(&self, place: u32) -> u32 {
        place / self.layout.units_per_die
    }

    /// Records that a unit is in a slot of the write buffer; its data in flash become stale.
    #[inline]
    pub fn buffer(&mut self, unit: u32, slot: u32) {
        self.release(unit);
        self.map.set(unit, UNPLACED - 1 - slot);
    }

    /// Unmaps a unit; its data in flash become stale.
    pub fn unmap(&mut self, unit: u32) {
        self.release(unit);
        self.map.set(unit, 0);
    }

    /// Makes a unit's data in the flash stale.
    #[inline]
    fn release(&mut self, unit: u32) {
        if self.is_in_place() {
            return;
        }
        match self.place(unit) {
            FlashPlace::Flash(place) => {
                let die = self.die_of(place);
                self.draw(die);
                let since_start = self.map.get(unit) == UNPLACED;
                let space = &mut self.dies[die as usize];
                space.release(place - die * self.layout.units_per_die, since_start, &self.layout);
            }
            FlashPlace::OnDie(die) => {
                self.draw(die);
                let class = match &self.origin {
                    Origin::WornIn(worn_in) => worn_in.class_of(unit),
                    Origin::Fresh | Origin::Filled | Origin::InPlace => {
                        unreachable!("only worn-in drives have unplaced units")
                    }
                };
                self.dies[die as usize].release_unplaced(class, &self.layout, &mut self.random);
            }
            FlashPlace::Nowhere | FlashPlace::Buffer(_) => {}
        }
    }

    /// Creates the initial blocks of a die when they first matter.
    #[inline]
    pub fn draw(&mut self, die: u32) {
        let space = &mut self.dies[die as usize];
        if space.undrawn {
            match &self.origin {
                Origin::Fresh | Origin::InPlace => unreachable!("the drive has no initial blocks"),
                Origin::Filled => space.fill_in_order(&self.layout),
                Origin::WornIn(worn_in) => worn_in.draw(space, die, &self.layout, &mut self.random),
            }
        }
    }

    /// Whether data are overwritten where they are, so that no block is erased or collected.
    #[inline]
    fn is_in_place(&self) -> bool {
        matches!(self.origin, Origin::InPlace)
    }

    /// Chooses the die for the next row of `units`, which begins with unit `first`: each die in turn, except those that
    /// hold far more than their share, because their data are overwritten less often. Some die always has room: the
    /// check ensures spare flash for all that the drive exports and buffers. A unit that is overwritten in place stays
    /// on its die.
    pub fn choose_die(&mut self, units: u32, first: u32) -> u32 {
        if self.is_in_place() {
            return self.die_of(self.layout.filled_place(first));
        }
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

    /// Returns the next task of a die for which `waiting` host rows wait. Fewer than a program holds wait for more,
    /// unless they are `urgent`.
    ///
    /// Collection keeps pace with the host: by the time the host has used what the victim frees, it is freed. A die
    /// does not collect ahead of the host, except blocks that are folded and those that only need to be erased.
    pub fn next_task(&mut self, die: u32, waiting: u32, urgent: bool) -> Option<Task> {
        let layout = self.layout;
        if self.is_in_place() {
            return (waiting > 0).then_some(Task::ProgramHost { rows: 1 });
        }
        if self.dies[die as usize].undrawn {
            if waiting == 0 {
                return None;
            }
            self.draw(die);
        }
        let space = &mut self.dies[die as usize];
        if space.moved_programs > 0 {
            space.moved_programs -= 1;
            return Some(Task::ProgramMoved);
        }
        space.choose_victim(&layout);
        let rows = space.rows_per_program(&layout).min(waiting);
        let host_waits = waiting > 0 && (urgent || rows == space.rows_per_program(&layout));
        // The last free block is reserved for collection: without it nothing could ever be reclaimed.
        let has_room = space.host.left > 0 || space.host_slc.left > 0 || space.free_blocks(&layout) >= 2;
        let Some(victim) = &space.victim else {
            return (host_waits && has_room).then_some(Task::ProgramHost { rows });
        };
        let is_behind = victim.is_behind(layout.units_per_block);
        if host_waits && has_room && !is_behind {
            return Some(Task::ProgramHost { rows });
        }
        let is_empty = space.blocks[victim.block as usize].valid == 0;
        (host_waits || is_behind || is_empty || victim.folds).then(|| self.collect(die))
    }

    /// Moves the victim's next row with valid data, or erases the victim.
    fn collect(&mut self, die: u32) -> Task {
        let layout = self.layout;
        let Ftl { map, dies, random, moved_units, origin, .. } = self;
        let space = &mut dies[die as usize];
        let mut victim = space.victim.take().expect("a die that collects has a victim");
        let base = die * layout.units_per_die + 1;
        let mut row = MovedRow::default();
        while row.units == 0 && space.blocks[victim.block as usize].valid > 0 {
            row = match origin {
                Origin::Filled => space.move_row(&mut victim, &layout, map, base, random, |slot, map, _, _, _| {
                    let unit = layout.filled_unit(base - 1 + slot);
                    if unit < map.units() && map.get(unit) == UNPLACED { Initial::Unit(unit) } else { Initial::Stale }
                }),
                Origin::Fresh | Origin::WornIn(_) | Origin::InPlace => {
                    space.move_row(&mut victim, &layout, map, base, random, |_, _, block, victim, random| {
                        if block.draw_unplaced(victim, random) { Initial::Unplaced } else { Initial::Stale }
                    })
                }
            };
        }
        space.victim = Some(victim);
        *moved_units += u64::from(row.units);
        match row {
            MovedRow { units: 0, .. } => Task::Erase,
            MovedRow { units, pages } => Task::Move { units, pages, slc: space.blocks[victim.block as usize].slc },
        }
    }

    /// Frees the victim, which is erased.
    pub fn finish_erase(&mut self, die: u32) {
        self.dies[die as usize].finish_erase();
        self.erases += 1;
    }

    /// Whether the host's next program on a die is in one-bit cells.
    #[inline]
    pub fn host_row_is_slc(&mut self, die: u32) -> bool {
        if self.layout.units_per_slc_block == 0 {
            return false;
        }
        let space = &mut self.dies[die as usize];
        let slc = space.open_host_block(&self.layout);
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
        // The initial blocks of a die have all bits a cell.
        self.dies[die as usize].blocks.get(block as usize).is_some_and(|block| block.slc)
    }

    /// Whether a die that is not collecting has a full one-bit block.
    pub fn can_fold(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.victim.is_none() && space.slc_blocks > 0 && space.blocks.iter().any(|block| block.slc && block.closed)
    }

    /// Makes folding such a block the next task of a die.
    pub fn fold(&mut self, die: u32) {
        self.dies[die as usize].fold(&self.layout);
    }

    /// Completes a program of `rows` host rows, for which the die was chosen with `units` in total; returns the first
    /// place. Missing units of a row are lost until the block is erased.
    pub fn finish_host_program(&mut self, die: u32, rows: u32, units: u32) -> u32 {
        if self.is_in_place() {
            return die * self.layout.units_per_die;
        }
        let layout = self.layout;
        let space = &mut self.dies[die as usize];
        space.promised -= units;
        let slc = space.programs_slc.take().unwrap_or_else(|| space.open_host_block(&layout));
        let open = if slc { &mut space.host_slc } else { &mut space.host };
        let (start, slots) = (open.next, rows * layout.units_per_row);
        open.next += slots;
        open.left -= slots;
        if open.left == 0 {
            space.blocks[(start / layout.units_per_block) as usize].closed = true;
        }
        if let Some(victim) = &mut space.victim {
            victim.accepted += slots;
        }
        die * layout.units_per_die + start
    }

    /// Records that a unit was programmed into `place` of a row just finished.
    #[inline]
    pub fn settle(&mut self, unit: u32, place: u32) {
        if self.is_in_place() {
            self.map.set(unit, UNPLACED);
            return;
        }
        self.release(unit);
        self.map.set(unit, place + 1);
        let die = self.die_of(place);
        self.dies[die as usize].hold(place - die * self.layout.units_per_die, unit, &self.layout);
    }

    /// Returns the units that can be written before any die has to collect. The figure is one block less for each die,
    /// since a die that collects has one from time to time.
    pub fn free_units(&self) -> u64 {
        if self.is_in_place() {
            // It never collects, so no run waits until free flash is used up.
            return 0;
        }
        let layout = &self.layout;
        let free = |die: &DieSpace| {
            if die.undrawn {
                let blocks = layout.blocks_per_die.saturating_sub(die.valid.div_ceil(layout.units_per_block));
                let kept = layout.free_blocks_min + layout.slc_static_blocks + 1;
                return match self.origin {
                    Origin::Fresh | Origin::WornIn(_) | Origin::InPlace => 0,
                    Origin::Filled => u64::from(blocks.saturating_sub(kept)) * u64::from(layout.units_per_block),
                };
            }
            let blocks = die.free_blocks(layout).saturating_sub(die.free_blocks_kept(layout) + 1);
            // A one-bit block holds less, and takes as much flash.
            let slc = u64::from(die.host_slc.left) * u64::from(layout.units_per_block)
                / u64::from(layout.units_per_slc_block.max(1));
            let open = if blocks == 0 { 0 } else { u64::from(die.host.left) + slc };
            u64::from(blocks) * u64::from(layout.units_per_block) + open
        };
        self.dies.iter().map(free).sum()
    }

    /// Programs a row of units without time: the die whose turn it is first does the tasks that precede it.
    pub fn write_row(&mut self, row: &[u32]) {
        let die = self.choose_die(row.len() as u32, row[0]);
        loop {
            match self.next_task(die, 1, true).expect("a die with a row to program has a task") {
                Task::ProgramHost { .. } => break,
                Task::Erase => self.finish_erase(die),
                Task::ProgramMoved | Task::Move { .. } => {}
            }
        }
        let start = self.finish_host_program(die, 1, row.len() as u32);
        for (place, &unit) in (start..).zip(row) {
            self.settle(unit, place);
        }
    }

    /// Returns the free units of a die, those in open blocks and in the collected part of the victim included.
    pub fn free_units_of(&self, die: u32) -> u32 {
        self.dies[die as usize].free_units(&self.layout)
    }

    /// Returns the placed units of each full block of a die that is not being collected.
    pub fn closed_contents(&self, die: u32) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        self.dies[die as usize].closed_contents()
    }

    /// Returns the most and the mean erases of a block.
    pub fn wear(&self) -> (u32, f64) {
        let blocks = || self.dies.iter().flat_map(|die| &die.blocks);
        let most = blocks().map(|block| block.erases).max().unwrap_or(0);
        let total: u64 = blocks().map(|block| u64::from(block.erases)).sum();
        (most, total as f64 / (f64::from(self.layout.dies) * f64::from(self.layout.blocks_per_die)))
    }

    /// Returns the numbers of valid units of full blocks, for tests.
    #[cfg(test)]
    pub fn closed_blocks(&self) -> Vec<u32> {
        let blocks = self.dies.iter().flat_map(|die| &die.blocks);
        blocks.filter(|block| block.closed).map(|block| block.valid).collect()
    }

    /// Recomputes every count from the maps, for tests.
    #[cfg(test)]
    pub fn check_consistency(&self) {
        let layout = &self.layout;
        for (die, space) in (0u32..).zip(&self.dies).filter(|(_, space)| !space.undrawn) {
            space.check_consistency(layout, |unit, slot| {
                assert_eq!(self.place(unit), FlashPlace::Flash(die * layout.units_per_die + slot), "maps are inverse");
            });
        }
        let holds = |unit| matches!(self.place(unit), FlashPlace::Flash(_) | FlashPlace::OnDie(_));
        let mapped = (0..self.logical_units()).filter(|&unit| holds(unit)).count();
        assert_eq!(mapped as u32, self.dies.iter().map(|die| die.valid).sum::<u32>());
        let unplaced = |die: u32| {
            let is_on_die = |unit: u32| match self.place(unit) {
                FlashPlace::OnDie(other) => other == die,
                FlashPlace::Flash(place) => self.map.get(unit) == UNPLACED && self.die_of(place) == die,
                FlashPlace::Nowhere | FlashPlace::Buffer(_) => false,
            };
            (0..self.logical_units()).filter(|&unit| is_on_die(unit)).count() as u32
        };
        for (die, space) in (0u32..).zip(&self.dies) {
            assert_eq!(unplaced(die), space.unplaced, "die {die}");
        }
    }
}
