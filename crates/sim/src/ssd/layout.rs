//! [`FlashLayout`]: the sizes of an SSD's flash, in mapping units, rows and blocks.

use crate::description::ssd::SsdDescription;

/// Sizes in units and rows.
#[derive(Clone, Copy, Debug)]
pub struct FlashLayout {
    pub dies: u32,
    pub unit_bytes: u32,
    pub units_per_page: u32,
    pub units_per_row: u32,
    /// Rows that a die programs at once, unless they are in the SLC cache.
    pub rows_per_program: u32,
    pub units_per_block: u32,
    pub blocks_per_die: u32,
    pub units_per_die: u32,
    pub free_blocks_min: u32,
    /// Units in a block with one bit a cell; 0 if there are none.
    pub units_per_slc_block: u32,
    /// Blocks of a die that are reserved for one bit a cell, and the most in addition to them.
    pub slc_static_blocks: u32,
    pub slc_dynamic_blocks: u32,
}

impl FlashLayout {
    /// Returns the sizes of a checked description.
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
            dies: description.dies(),
            unit_bytes,
            units_per_page,
            units_per_row,
            rows_per_program: flash.pages_per_program,
            units_per_block,
            blocks_per_die: flash.blocks_per_plane,
            units_per_die: units_per_block * flash.blocks_per_plane,
            free_blocks_min: description.collection.free_blocks_min,
        }
    }

    /// Returns the place of a unit in a drive that was filled in order: rows go to the dies in turn.
    #[inline]
    pub fn filled_place(&self, unit: u32) -> u32 {
        let (row, in_row) = (unit / self.units_per_row, unit % self.units_per_row);
        row % self.dies * self.units_per_die + row / self.dies * self.units_per_row + in_row
    }

    /// Returns the unit that [`Self::filled_place`] puts into a place; it may exceed the capacity.
    #[inline]
    pub fn filled_unit(&self, place: u32) -> u32 {
        let (die, slot) = (place / self.units_per_die, place % self.units_per_die);
        let row = slot / self.units_per_row * self.dies + die;
        row.saturating_mul(self.units_per_row).saturating_add(slot % self.units_per_row)
    }

    /// Returns the units of a die that may hold data while collection still finds a block with stale data: two blocks
    /// are open and the others are kept free or reserved.
    pub fn usable_units(&self) -> u32 {
        let open = 2 + u32::from(self.slc_dynamic_blocks > 0);
        self.units_per_block * self.blocks_per_die.saturating_sub(open + self.free_blocks_min + self.slc_static_blocks)
    }
}
