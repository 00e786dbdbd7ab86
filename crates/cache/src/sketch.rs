//! [`Sketch`]: approximate use counts of keys, in a counting Bloom filter whose counts are halved periodically.

/// Number of counters of each key. For an error rate of 0.1 %, a filter needs -ln(0.001) / ln(2)^2 = 14.38 counters for
/// each cached key and 14.38 ln(2) = 10 hashes.
const HASHES: u32 = 10;
const COUNTERS_PER_KEY: f64 = 14.377_587_51;

/// Maximum number of keys for which a new filter allocates counters (2 MB), because a cache measured in bytes does not
/// know how many keys it will hold.
const KEYS_AT_FIRST: u64 = 1 << 16;

/// The counters. A key's estimate is the minimum of its counters, so it may be too high but never too low.
#[derive(Clone, Debug)]
pub struct Sketch {
    counters: Vec<u16>,
    /// Number of keys for which counters are allocated.
    keys: u64,
}

impl Sketch {
    /// Creates a filter for a cache of at most `most` keys. The filter grows with the number of cached keys.
    pub fn new(most: u64) -> Sketch {
        // Halve repeatedly, so that later doubling returns to the size that `most` keys need.
        let mut keys = most;
        while keys > KEYS_AT_FIRST {
            keys = keys.div_ceil(2);
        }
        let counters = (COUNTERS_PER_KEY * keys as f64).ceil() as usize;
        Sketch { counters: vec![0; counters.max(2 * HASHES as usize)], keys }
    }

    /// Makes room for `keys` cached keys. When the number of counters doubles, each key's position stays or moves up by
    /// the old number, so copying all counters preserves every estimate.
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

/// Mixes bits so that every bit of the result depends on every bit of the input.
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
