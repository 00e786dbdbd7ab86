//! [`Places`]: FIFO queues by address.

use rustc_hash::FxHashMap;

/// Marks the absence of a slot.
const NONE: u32 = u32::MAX;

/// Waiting items by device and sector. Allocates only if more items wait than ever before.
#[derive(Debug)]
pub(super) struct Places<T> {
    /// First and last slot of each address with waiting items.
    chains: FxHashMap<(u32, u64), (u32, u32)>,
    slots: Vec<Slot<T>>,
    /// First free slot.
    free: u32,
}

#[derive(Debug)]
struct Slot<T> {
    thing: Option<T>,
    next: u32,
}

impl<T> Places<T> {
    pub(super) fn new() -> Places<T> {
        Places { chains: FxHashMap::default(), slots: Vec::new(), free: NONE }
    }

    /// Appends `thing` to the queue of an address.
    #[inline]
    pub(super) fn push(&mut self, device: u32, sector: u64, thing: T) {
        let slot = Slot { thing: Some(thing), next: NONE };
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = std::mem::replace(&mut self.slots[index as usize], slot).next;
            index
        };
        let chain = self.chains.entry((device, sector)).or_insert((index, NONE));
        if chain.1 != NONE {
            self.slots[chain.1 as usize].next = index;
        }
        chain.1 = index;
    }

    /// Removes and returns the first item at an address for which `fits` is true.
    #[inline]
    pub(super) fn take(&mut self, device: u32, sector: u64, fits: impl Fn(&T) -> bool) -> Option<T> {
        let &(first, last) = self.chains.get(&(device, sector))?;
        let (mut before, mut index) = (NONE, first);
        while !self.slots[index as usize].thing.as_ref().is_some_and(&fits) {
            (before, index) = (index, self.slots[index as usize].next);
            if index == NONE {
                return None;
            }
        }
        let next = std::mem::replace(&mut self.slots[index as usize].next, self.free);
        self.free = index;
        if first == last {
            self.chains.remove(&(device, sector));
        } else if before == NONE {
            self.chains.insert((device, sector), (next, last));
        } else {
            self.slots[before as usize].next = next;
            if next == NONE {
                self.chains.insert((device, sector), (first, before));
            }
        }
        self.slots[index as usize].thing.take()
    }

    /// Returns the first item at an address for which `fits` is true.
    #[inline]
    pub(super) fn find(&self, device: u32, sector: u64, fits: impl Fn(&T) -> bool) -> Option<&T> {
        let mut index = self.chains.get(&(device, sector))?.0;
        while index != NONE {
            let slot = &self.slots[index as usize];
            if let Some(thing) = slot.thing.as_ref().filter(|thing| fits(thing)) {
                return Some(thing);
            }
            index = slot.next;
        }
        None
    }

    /// Drops all items for which `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let old = std::mem::replace(self, Places::new());
        let mut slots = old.slots;
        for ((device, sector), (first, _)) in old.chains {
            let mut index = first;
            while index != NONE {
                let slot = &mut slots[index as usize];
                index = slot.next;
                if let Some(thing) = slot.thing.take().filter(&keep) {
                    self.push(device, sector, thing);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_lists(steps in prop::collection::vec((any::<bool>(), 0u64..4, 0u32..4), 0..200), kept in 0u32..4) {
            let mut places = Places::new();
            let mut lists: HashMap<u64, Vec<(u32, usize)>> = HashMap::new();
            for (number, (pushes, sector, value)) in steps.into_iter().enumerate() {
                let list = lists.entry(sector).or_default();
                if pushes {
                    places.push(0, sector, (value, number));
                    list.push((value, number));
                } else {
                    let seen = places.find(0, sector, |thing: &(u32, usize)| thing.0 == value).copied();
                    let found = list.iter().position(|thing| thing.0 == value).map(|at| list.remove(at));
                    prop_assert_eq!(seen, found);
                    prop_assert_eq!(places.take(0, sector, |thing| thing.0 == value), found);
                }
                prop_assert!(places.take(1, sector, |_| true).is_none());
            }
            places.retain(|thing| thing.0 == kept);
            for (sector, list) in lists {
                for thing in list.into_iter().filter(|thing| thing.0 == kept) {
                    prop_assert_eq!(places.take(0, sector, |_| true), Some(thing));
                }
                prop_assert!(places.take(0, sector, |_| true).is_none());
            }
        }
    }
}
