//! [`Sketch`]: approximate counts of the uses of keys: a counting Bloom filter that halves as it ages.

/// Counters of a key, and counters per key that the cache holds: a filter for one error in a thousand, -ln(0.001) /
/// ln(2)^2 = 14.38, of which 14.38 ln(2) are a key's.
const HASHES: u32 = 10;
const COUNTERS_PER_KEY: f64 = 14.377_587_51;

/// Most keys for which a new filter has counters, 2 MB of them: a cache measured in bytes cannot know how many it will
/// hold.
const KEYS_AT_FIRST: u64 = 1 << 16;

/// The counters. A key's estimate is the smallest of its counters, so it may be too high and never too low.
#[derive(Clone, Debug)]
pub struct Sketch {
    counters: Vec<u16>,
    /// Number of keys for which there are counters.
    keys: u64,
}

impl Sketch {
    /// Creates a filter for a cache of at most `most` keys; it grows with the number of cached keys.
    pub fn new(most: u64) -> Sketch {
        // Halved, so that doubling returns to as many counters as `most` keys need.
        let mut keys = most;
        while keys > KEYS_AT_FIRST {
            keys = keys.div_ceil(2);
        }
        let counters = (COUNTERS_PER_KEY * keys as f64).ceil() as usize;
        Sketch { counters: vec![0; counters.max(2 * HASHES as usize)], keys }
    }

    /// Makes room for the cached keys. With twice as many counters the place of a key is its previous one, or that plus
    /// their previous number, so a copy of all counters keeps every estimate.
    #[inline]
    pub fn reach(&mut self, keys: u64) {
        while self.keys < keys {
            self.counters.extend_from_within(..);
            self.keys *= 2;
        }
    }

    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let (first, step) = (mix(key) as u32, mix(!key) as u32);
        let counters = self.counters.len() as u64;
        (0..HASHES).map(move |number| (u64::from(first.wrapping_add(number.wrapping_mul(step))) % counters) as usize)
    }

    pub fn add(&mut self, key: u64) {
        for place in self.places(key) {
            self.counters[place] = self.counters[place].saturating_add(1);
        }
    }

    pub fn estimate(&self, key: u64) -> u16 {
        self.places(key).map(|place| self.counters[place]).min().unwrap_or(0)
    }

    pub fn halve(&mut self) {
        self.counters.iter_mut().for_each(|counter| *counter /= 2);
    }
}

/// Mixes bits so that every bit of the result depends on every bit.
fn mix(value: u64) -> u64 {
    let mut mixed = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of 10,000 keys that were never added have a count.
    fn false_positives(sketch: &Sketch) -> usize {
        (1 << 40..(1 << 40) + 10_000).filter(|&key| sketch.estimate(key) > 0).count()
    }

    #[test]
    fn keys_that_were_not_used_have_no_count_but_for_one_in_a_thousand() {
        let mut sketch = Sketch::new(10_000);
        (0..10_000).for_each(|key| sketch.add(key));
        assert!((0..10_000).all(|key| sketch.estimate(key) >= 1));
        let exact = (0..10_000).filter(|&key| sketch.estimate(key) == 1).count();
        assert!(exact >= 9_950, "{exact} of 10,000 are counted exactly");
        assert!(false_positives(&sketch) <= 50, "{} of 10,000", false_positives(&sketch));
    }

    #[test]
    fn a_filter_that_grows_keeps_its_counts_and_its_precision() {
        let most = 4 * KEYS_AT_FIRST;
        let mut sketch = Sketch::new(most);
        assert!(sketch.counters.len() < 1_000_000, "2 MB at first");
        (0..1_000).for_each(|key| sketch.add(key));
        let (before, counters) =
            ((0..2_000).map(|key| sketch.estimate(key)).collect::<Vec<_>>(), sketch.counters.len());
        sketch.reach(KEYS_AT_FIRST);
        assert_eq!(sketch.counters.len(), counters, "there is room");
        sketch.reach(most);
        assert_eq!(sketch.counters.len(), 4 * counters);
        assert_eq!((0..2_000).map(|key| sketch.estimate(key)).collect::<Vec<_>>(), before);
        (0..most).for_each(|key| sketch.add(key));
        assert!(false_positives(&sketch) <= 50, "{} of 10,000", false_positives(&sketch));
    }

    #[test]
    fn uses_add_up_and_age_by_halves() {
        let mut sketch = Sketch::new(100);
        (0..5).for_each(|_| sketch.add(7));
        assert_eq!((sketch.estimate(7), sketch.estimate(8)), (5, 0));
        sketch.halve();
        assert_eq!(sketch.estimate(7), 2);
        (0..u32::from(u16::MAX) + 9).for_each(|_| sketch.add(7));
        assert_eq!(sketch.estimate(7), u16::MAX);
        // Even a filter for no key has counters.
        assert_eq!(Sketch::new(0).counters.len(), 20);
    }
}
