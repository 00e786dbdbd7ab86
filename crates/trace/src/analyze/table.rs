//! [`Table`]: an open-addressing hash table of blocks that stores neighbours together.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of blocks whose keys are adjacent. With 32, blocks of longer requests are found 20 % faster than with 8,
/// since lines are prefetched.
const NEIGHBOURS: usize = 32;
const SLOTS_MIN: usize = 1_024;
/// Limit of the load factor, above which probes get long.
const fn fits(len: usize, slots: usize) -> bool {
    len <= slots / 8 * 5
}

/// Key of an empty slot: [`place`] never yields it.
const EMPTY: u64 = u64::MAX;

/// Returns the `value`-th block of a device as one number.
///
/// Aligned neighbourhoods remain aligned neighbourhoods, and no two blocks of one device have the same number. Blocks
/// of two devices collide with a probability of 2^-64 per pair.
#[inline]
pub(crate) fn place(device: u32, value: u64) -> u64 {
    (value ^ u64::from(device).wrapping_mul(0xd6e8_feb8_6659_fd93)).min(EMPTY - 1)
}

/// Mixes a number: every bit of the result depends on every bit.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

/// A value for each of many blocks.
#[derive(Clone)]
pub(crate) struct Table<E> {
    places: Vec<u64>,
    values: Vec<E>,
    len: usize,
}

impl<E: Copy + Default> Table<E> {
    pub(crate) fn new() -> Table<E> {
        Table::with_slots(SLOTS_MIN)
    }

    fn with_slots(slots: usize) -> Table<E> {
        Table { places: vec![EMPTY; slots], values: vec![E::default(); slots], len: 0 }
    }

    /// Number of blocks for which the table stays within `memory_bytes`, including while it grows.
    pub(crate) fn blocks_within(memory_bytes: u64) -> usize {
        // While growing, the table of half the size exists as well.
        let bytes_per_slot = (size_of::<u64>() + size_of::<E>()) as u64 * 3 / 2;
        let slots = (memory_bytes / bytes_per_slot).clamp(SLOTS_MIN as u64, 1 << 30);
        (1usize << slots.ilog2()) / 8 * 5
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The value of a block, and whether it is new (and the default).
    #[inline]
    pub(crate) fn entry(&mut self, place: u64) -> (&mut E, bool) {
        let (slot, is_new) = self.find(place);
        if !is_new {
            return (&mut self.values[slot], false);
        }
        self.insert(place, slot)
    }

    /// The value of a block, if it exists.
    #[inline]
    pub(crate) fn get(&self, place: u64) -> Option<&E> {
        let (slot, is_new) = self.find(place);
        (!is_new).then(|| &self.values[slot])
    }

    #[cold]
    fn insert(&mut self, place: u64, slot: usize) -> (&mut E, bool) {
        let mut slot = slot;
        if !fits(self.len + 1, self.places.len()) {
            self.grow();
            slot = self.find(place).0;
        }
        self.places[slot] = place;
        self.len += 1;
        (&mut self.values[slot], true)
    }

    /// The slot of `place`, or the empty one where it belongs.
    #[inline]
    fn find(&self, place: u64) -> (usize, bool) {
        let slots = self.places.len();
        let mut mixed = (place / NEIGHBOURS as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let group = (mixed >> (u64::BITS + NEIGHBOURS.ilog2() - slots.ilog2())) as usize;
        // Rotated by the neighbourhood; otherwise blocks with equal alignment would use only a few slots.
        let lane = (place ^ mixed >> 8) as usize % NEIGHBOURS;
        let mut slot = group * NEIGHBOURS + lane;
        loop {
            let occupant = self.places[slot];
            if occupant == place {
                return (slot, false);
            }
            if occupant == EMPTY {
                return (slot, true);
            }
            slot += NEIGHBOURS;
            if slot >= slots {
                slot = (slot + 1) % NEIGHBOURS;
            }
        }
    }

    /// Makes room for more blocks. Inserted in the order of another table, they would all go to one side of a smaller
    /// table.
    pub(crate) fn make_room(&mut self, more: usize) {
        while !fits(self.len + more, self.places.len()) {
            self.grow();
        }
    }

    /// Drops the blocks for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        // Copied aside instead of into a second table: two tables of the full size exceed the memory.
        let mut kept = Vec::with_capacity(self.len);
        kept.extend(self.iter().filter(|(place, _)| keep(*place)).map(|(place, value)| (place, *value)));
        self.places.fill(EMPTY);
        self.values.fill(E::default());
        self.insert_all(kept.into_iter());
    }

    fn grow(&mut self) {
        let old = std::mem::replace(self, Table::with_slots(self.places.len() * 2));
        self.insert_all(old.places.into_iter().zip(old.values).filter(|(place, _)| *place != EMPTY));
    }

    fn insert_all(&mut self, blocks: impl Iterator<Item = (u64, E)>) {
        self.len = 0;
        for (place, value) in blocks {
            let (slot, _) = self.find(place);
            self.places[slot] = place;
            self.values[slot] = value;
            self.len += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &E)> {
        self.places.iter().copied().zip(&self.values).filter(|(place, _)| *place != EMPTY)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.places.iter().zip(&mut self.values).filter(|(place, _)| **place != EMPTY).map(|(_, value)| value)
    }
}

impl<E: Copy + Default + Serialize> Serialize for Table<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<(u64, &E)>>().serialize(serializer)
    }
}

impl<'de, E: Copy + Default + Deserialize<'de>> Deserialize<'de> for Table<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table<E>, D::Error> {
        let blocks = Vec::<(u64, E)>::deserialize(deserializer)?;
        let mut table = Table::new();
        table.make_room(blocks.len());
        for (place, value) in blocks {
            *table.entry(place).0 = value;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_equals_a_hash_map(values in prop::collection::vec((0u32..3, 0u64..3_000, 0u32..5), 0..5_000)) {
            let mut table = Table::<u32>::new();
            let mut map = HashMap::new();
            for (device, value, stride) in values {
                // Strides of powers of two put all blocks into one lane.
                let value = value << (stride * 8);
                let (entry, is_new) = table.entry(place(device, value));
                *entry += 1;
                prop_assert_eq!(is_new, !map.contains_key(&(device, value)));
                *map.entry((device, value)).or_insert(0u32) += 1;
            }
            prop_assert_eq!(table.len(), map.len());
            for ((device, value), count) in &map {
                prop_assert_eq!(*table.entry(place(*device, *value)).0, *count);
            }
            table.retain(|place| place & 1 == 0);
            prop_assert_eq!(table.len(), map.keys().filter(|(d, v)| place(*d, *v) & 1 == 0).count());
            prop_assert_eq!(table.iter().map(|(_, c)| *c).sum::<u32>(),
                map.iter().filter(|((d, v), _)| place(*d, *v) & 1 == 0).map(|(_, c)| *c).sum::<u32>());
        }
    }

    #[test]
    fn a_table_whose_places_are_all_in_one_lane_still_ends_its_probes() {
        let mut table = Table::<u8>::new();
        let places: Vec<u64> = (0..600u64).map(|index| (u64::MAX << 20) | index << 6).collect();
        for &place in &places {
            table.entry(place);
        }
        assert_eq!(table.len(), places.len());
        assert!(places.iter().all(|&place| !table.entry(place).1));
    }
}
