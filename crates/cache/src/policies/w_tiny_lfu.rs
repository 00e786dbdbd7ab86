//! W-TinyLFU: new ids wait in a small window. An id that leaves the window replaces the oldest id of the main part if
//! it was used more often recently; otherwise it is evicted (Einziger, Friedman and Manes, "TinyLFU: a highly efficient
//! cache admission policy", ACM TOS 13(4), 2017). The window is an LRU list, and the main part has two segments.

use super::slru::Segments;
use crate::list::List;
use crate::nodes::{KEPT, NONE, Nodes};
use crate::policy::Policy;
use crate::sketch::Sketch;

/// Bit of a mark: the id is in the main part. The segment number uses the bits below.
const MAIN: u32 = 16;
/// Number of uses per id of the main part's capacity after which all counts are halved.
const SAMPLE: u64 = 32;

#[derive(Clone, Debug)]
pub struct WTinyLfu {
    nodes: Nodes,
    keys: Vec<u64>,
    window: List,
    main: Segments,
    main_max: u64,
    sketch: Sketch,
    uses: u64,
    /// Number of cached ids, and their total weight.
    held: u64,
    held_weight: u64,
}

impl WTinyLfu {
    /// Creates a policy with 1 % of the cache for the window; the segments get 20 % and 80 % of the rest.
    pub fn new(nodes: Nodes, capacity: u64) -> WTinyLfu {
        let main_max = capacity - (capacity / 100).max(1).min(capacity);
        let main = Segments::new(vec![main_max / 5, main_max * 4 / 5]);
        let (keys, window, sketch) = (Vec::new(), List::default(), Sketch::new(main_max));
        WTinyLfu { nodes, keys, window, main, main_max, sketch, uses: 0, held: 0, held_weight: 0 }
    }

    /// Whether all counts are due to be halved, because the main part was used often enough. The limit is a number of
    /// uses per id that the part can hold, at the mean weight of cached ids.
    fn is_due(&self) -> bool {
        let (uses, weight) = (u128::from(self.uses), u128::from(self.held_weight));
        uses * weight >= u128::from(SAMPLE) * u128::from(self.main_max) * u128::from(self.held)
    }

    fn enter_main(&mut self, id: u32) {
        self.nodes.at_mut(id).mark |= MAIN;
        self.main.insert(&mut self.nodes, id);
    }

    fn unlist(&mut self, id: u32) {
        if self.nodes.mark(id) & MAIN == 0 {
            self.window.remove(&mut self.nodes, id);
        } else {
            self.main.remove(&mut self.nodes, id);
        }
    }

    fn estimate(&self, id: u32) -> u16 {
        self.sketch.estimate(self.keys[id as usize])
    }
}

impl Policy for WTinyLfu {
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        self.nodes.is_held(id)
    }

    fn hit(&mut self, id: u32) {
        let mark = self.nodes.mark(id);
        if mark & MAIN == 0 {
            if mark & KEPT == 0 {
                self.window.renew(&mut self.nodes, id);
            }
            return;
        }
        if mark & KEPT == 0 {
            self.main.hit(&mut self.nodes, id);
        }
        self.sketch.add(self.keys[id as usize]);
        self.uses += 1;
        if self.is_due() {
            self.uses = 0;
            self.sketch.halve();
        }
    }

    fn replace(&mut self) -> u32 {
        while !self.window.is_empty() {
            let newcomer = self.window.oldest;
            let weight = u64::from(self.nodes.at(newcomer).weight);
            let resident = self.main.oldest();
            let fits = self.main.weight() + weight <= self.main_max;
            let is_wanted = fits || (resident != NONE && self.estimate(newcomer) > self.estimate(resident));
            self.sketch.add(self.keys[newcomer as usize]);
            if !is_wanted {
                self.discard(newcomer);
                return newcomer;
            }
            if !fits {
                self.discard(resident);
            }
            self.window.remove(&mut self.nodes, newcomer);
            self.enter_main(newcomer);
            if !fits {
                return resident;
            }
        }
        let resident = self.main.oldest();
        self.discard(resident);
        resident
    }

    fn admit(&mut self, id: u32, weight: u32, key: u64) {
        self.nodes.hold(id, weight, 0);
        (self.held, self.held_weight) = (self.held + 1, self.held_weight + u64::from(weight));
        self.sketch.reach(self.held.min(self.main_max));
        if self.keys.len() <= id as usize {
            self.keys.resize(id as usize + 1, 0);
        }
        self.keys[id as usize] = key;
        self.window.push(&mut self.nodes, id);
        self.sketch.add(key);
    }

    fn keep(&mut self, id: u32) {
        self.unlist(id);
        self.nodes.at_mut(id).mark |= KEPT;
    }

    fn release(&mut self, id: u32) {
        let mark = &mut self.nodes.at_mut(id).mark;
        *mark &= !KEPT;
        if *mark & MAIN == 0 {
            self.window.push(&mut self.nodes, id);
        } else {
            self.main.release(&mut self.nodes, id);
        }
    }

    fn discard(&mut self, id: u32) {
        self.unlist(id);
        let weight = u64::from(self.nodes.at(id).weight);
        (self.held, self.held_weight) = (self.held - 1, self.held_weight - weight);
        self.nodes.forget(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of ids is not known before: a cache measured in bytes holds as many as are small enough. Counters that
    /// were copied when the filter grew hold 6 % of the places; a filter that does not grow would count 28 %.
    #[test]
    fn counts_stay_precise_however_many_ids_are_cached() {
        let ids = 1 << 18;
        let mut policy = WTinyLfu::new(Nodes::new(false), 1 << 20);
        policy.nodes().reach(ids as usize);
        (0..ids).for_each(|id| policy.admit(id, 1, u64::from(id)));
        let unused = (1 << 40..(1 << 40) + 10_000).filter(|&key| policy.sketch.estimate(key) > 0).count();
        assert!(unused <= 1_000, "{unused} of 10,000 unused keys have a count");
    }

    #[test]
    fn counts_are_halved_after_32_uses_of_each_id_that_the_main_part_can_hold() {
        let capacity = 10;
        let mut policy = WTinyLfu::new(Nodes::new(false), capacity);
        policy.nodes().reach(16);
        (0..10).for_each(|id| policy.admit(id, 1, u64::from(id)));
        // Ids leave the window for the main part when there is no room.
        let gone = policy.replace();
        let used = (0..10).find(|&id| id != gone && policy.nodes.mark(id) & MAIN != 0).expect("the main part has ids");
        let before = policy.estimate(used);
        let uses = SAMPLE * policy.main_max;
        (1..uses).for_each(|_| policy.hit(used));
        assert_eq!(u64::from(policy.estimate(used)), u64::from(before) + uses - 1);
        policy.hit(used);
        assert_eq!(u64::from(policy.estimate(used)), (u64::from(before) + uses) / 2);
    }
}
