//! [`UnitMap`]: the map of a drive, with the place of each of the host's units.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// While at most one unit in this many is mapped, the mapped ones are in a hash table: an array of all units would take
/// a page of memory for each unit that is written at random, gigabytes for a few seconds of an array of drives.
const SPARSE_RATIO: usize = 32;

/// A code for each unit.
#[derive(Clone, Debug)]
pub struct UnitMap {
    units: u32,
    /// The code of units that were never set, which takes no memory.
    initial: u32,
    codes: Codes,
}

#[derive(Clone, Debug)]
enum Codes {
    Few(HashMap<u32, u32, FxBuildHasher>),
    All(Vec<u32>),
}

impl UnitMap {
    /// Creates a map of `units` units that have the code `initial`.
    pub fn new(units: u32, initial: u32) -> Self {
        UnitMap { units, initial, codes: Codes::Few(HashMap::default()) }
    }

    /// Returns the number of units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Returns a unit's code.
    #[inline]
    pub fn get(&self, unit: u32) -> u32 {
        debug_assert!(unit < self.units, "unit {unit} of {}", self.units);
        match &self.codes {
            Codes::Few(few) => few.get(&unit).copied().unwrap_or(self.initial),
            Codes::All(all) => all[unit as usize],
        }
    }

    /// Sets a unit's code.
    #[inline]
    pub fn set(&mut self, unit: u32, code: u32) {
        debug_assert!(unit < self.units, "unit {unit} of {}", self.units);
        match &mut self.codes {
            Codes::All(all) => all[unit as usize] = code,
            Codes::Few(few) => {
                if code == self.initial {
                    few.remove(&unit);
                } else {
                    few.insert(unit, code);
                    if few.len() > self.units as usize / SPARSE_RATIO {
                        self.hold_all();
                    }
                }
            }
        }
    }

    #[cold]
    fn hold_all(&mut self) {
        let Codes::Few(few) = &self.codes else { return };
        let mut all = vec![self.initial; self.units as usize];
        few.iter().for_each(|(&unit, &code)| all[unit as usize] = code);
        self.codes = Codes::All(all);
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::{Purpose, Random};

    use super::*;

    #[test]
    fn few_and_all_are_the_same_map() {
        for initial in [0, u32::MAX] {
            let (mut map, mut plain) = (UnitMap::new(3200, initial), vec![initial; 3200]);
            let mut random = Random::new(1, Purpose::Preconditioning);
            for code in 1..400 {
                let unit = random.below(3200) as u32;
                let code = [0, code, initial][code as usize % 3];
                map.set(unit, code);
                plain[unit as usize] = code;
                assert!((0..3200).all(|unit| map.get(unit) == plain[unit as usize]));
            }
            assert!(matches!(map.codes, Codes::All(_)), "more than a hundred are mapped");
            assert_eq!(map.units(), 3200);
        }
    }
}
