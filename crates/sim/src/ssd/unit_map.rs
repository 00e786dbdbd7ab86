//! The map of a drive: the place of each of the host's units.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// As long as at most one in this many units is mapped, those are kept in a hash table: an array of all units would
/// take a page of memory for each unit that is written at random, gigabytes for a few seconds of an array of drives.
const FEW: usize = 32;

/// A code for each unit, 0 if it has no place.
#[derive(Clone, Debug)]
pub struct UnitMap {
    units: u32,
    codes: Codes,
}

#[derive(Clone, Debug)]
enum Codes {
    Few(HashMap<u32, u32, FxBuildHasher>),
    All(Vec<u32>),
}

impl UnitMap {
    /// Creates a map of `units` units without places.
    pub fn new(units: u32) -> Self {
        UnitMap { units, codes: Codes::Few(HashMap::default()) }
    }

    /// Number of units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// A unit's code.
    #[inline]
    pub fn get(&self, unit: u32) -> u32 {
        debug_assert!(unit < self.units, "unit {unit} of {}", self.units);
        match &self.codes {
            Codes::Few(few) => few.get(&unit).copied().unwrap_or(0),
            Codes::All(all) => all[unit as usize],
        }
    }

    /// Gives a unit a code.
    #[inline]
    pub fn set(&mut self, unit: u32, code: u32) {
        debug_assert!(unit < self.units, "unit {unit} of {}", self.units);
        match &mut self.codes {
            Codes::All(all) => all[unit as usize] = code,
            Codes::Few(few) => {
                if code == 0 {
                    few.remove(&unit);
                } else {
                    few.insert(unit, code);
                    if few.len() > self.units as usize / FEW {
                        self.hold_all();
                    }
                }
            }
        }
    }

    #[cold]
    fn hold_all(&mut self) {
        let Codes::Few(few) = &self.codes else { return };
        let mut all = vec![0; self.units as usize];
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
        let (mut map, mut plain) = (UnitMap::new(3200), vec![0; 3200]);
        let mut random = Random::new(1, Purpose::Preconditioning);
        for code in 1..400 {
            let unit = random.below(3200) as u32;
            let code = if code % 3 == 0 { 0 } else { code };
            map.set(unit, code);
            plain[unit as usize] = code;
            assert!((0..3200).all(|unit| map.get(unit) == plain[unit as usize]));
        }
        assert!(matches!(map.codes, Codes::All(_)), "more than a hundred are mapped");
        assert_eq!(map.units(), 3200);
    }
}
