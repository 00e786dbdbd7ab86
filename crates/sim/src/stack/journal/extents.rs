//! [`Extents`]: a set of bytes as disjoint ranges, which merge when they touch.

use std::collections::BTreeMap;

/// Disjoint ranges by their first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    ends: BTreeMap<u64, u64>,
}

impl Extents {
    /// Returns the bytes below `end`.
    pub fn up_to(end: u64) -> Extents {
        Extents { ends: (end > 0).then_some((0, end)).into_iter().collect() }
    }

    /// Adds a range; returns whether a part of it is new.
    pub fn insert(&mut self, begin: u64, end: u64) -> bool {
        let before = self.ends.range(..=begin).next_back().map(|(&begin, &end)| (begin, end));
        if before.is_some_and(|(_, covered)| covered >= end) || begin >= end {
            return false;
        }
        let (mut from, mut to) = (begin, end);
        if let Some((first, covered)) = before.filter(|&(_, covered)| covered >= begin) {
            (from, to) = (first, to.max(covered));
        }
        while let Some((&next, &covered)) = self.ends.range(from..=to).next() {
            to = to.max(covered);
            self.ends.remove(&next);
        }
        self.ends.insert(from, to);
        true
    }

    /// Removes a range; returns whether a part of it was in the set.
    pub fn remove(&mut self, begin: u64, end: u64) -> bool {
        let mut was_in = false;
        while let Some((first, covered)) = self
            .ends
            .range(..end)
            .next_back()
            .map(|(&first, &covered)| (first, covered))
            .filter(|&(_, covered)| covered > begin)
        {
            was_in = true;
            self.ends.remove(&first);
            if covered > end {
                self.ends.insert(end, covered);
            }
            if first < begin {
                self.ends.insert(first, begin);
            }
        }
        was_in
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_range_splits_others() {
        let mut extents = Extents::up_to(10);
        extents.insert(20, 30);
        assert!(!extents.remove(10, 20));
        assert!(extents.remove(5, 25));
        assert_eq!(extents.ends, BTreeMap::from([(0, 5), (25, 30)]));
        assert!(extents.remove(1, 3) && extents.insert(2, 6) && extents.remove(0, 100));
        assert!(extents.ends.is_empty());
    }

    #[test]
    fn ranges_merge_when_they_touch() {
        let mut extents = Extents::up_to(10);
        assert!(!extents.insert(3, 10));
        assert!(extents.insert(20, 30));
        assert!(extents.insert(8, 12));
        assert!(extents.insert(12, 20));
        assert_eq!(extents.ends, BTreeMap::from([(0, 30)]));
        assert!(extents.insert(25, 31));
        assert!(!extents.insert(0, 31));
        assert!(extents.insert(40, 50) && extents.insert(35, 60));
        assert_eq!(extents.ends, BTreeMap::from([(0, 31), (35, 60)]));
    }
}
