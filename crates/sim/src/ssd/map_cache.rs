//! The cached part of the map, in a drive whose memory does not hold all of it.

use crate::description::ssd::SsdDescription;

/// Bytes of the map that are read and cached at once.
pub const MAP_PAGE_BYTES: u64 = 4096;
/// An entry.
const ENTRY_BYTES: u64 = 4;
const UNITS_PER_PAGE: u32 = (MAP_PAGE_BYTES / ENTRY_BYTES) as u32;
/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u32,
    used: bool,
}

/// Cached pages of the map; evicts approximately the least recently used one (second chance).
#[derive(Clone, Debug)]
pub struct MapCache {
    slots: Vec<Slot>,
    slots_max: usize,
    hand: usize,
    /// Slot of each page of the map.
    slot_of: Vec<u32>,
}

impl MapCache {
    /// An empty one.
    pub fn new(description: &SsdDescription, bytes: u64) -> Self {
        let units = description.capacity.logical_bytes / u64::from(description.capacity.mapping_unit_bytes);
        let pages = units.div_ceil(u64::from(UNITS_PER_PAGE)) as usize;
        let slots_max = usize::try_from(bytes / MAP_PAGE_BYTES).unwrap_or(usize::MAX).min(pages);
        MapCache { slots: Vec::new(), slots_max, hand: 0, slot_of: vec![NONE; pages] }
    }

    /// Caches the pages of a range of units; returns the missing ones, from the first to the last.
    pub fn miss(&mut self, first_unit: u32, last_unit: u32) -> std::ops::Range<u32> {
        let mut missing = 0..0;
        for page in first_unit / UNITS_PER_PAGE..=last_unit / UNITS_PER_PAGE {
            match self.slot_of.get(page as usize).copied() {
                Some(NONE) => {
                    self.take(page);
                    missing = if missing.is_empty() { page..page + 1 } else { missing.start..page + 1 };
                }
                Some(slot) => self.slots[slot as usize].used = true,
                None => {}
            }
        }
        missing
    }

    fn take(&mut self, page: u32) {
        let taken = Slot { page, used: true };
        if self.slots.len() < self.slots_max {
            self.slot_of[page as usize] = self.slots.len() as u32;
            self.slots.push(taken);
            return;
        }
        while std::mem::take(&mut self.slots[self.hand].used) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        self.slot_of[self.slots[self.hand].page as usize] = NONE;
        self.slot_of[page as usize] = self.hand as u32;
        self.slots[self.hand] = taken;
        self.hand = (self.hand + 1) % self.slots.len();
    }
}
