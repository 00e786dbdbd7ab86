//! [`Ranges`]: a set of bytes as disjoint ranges, which merge when they touch.

use std::collections::BTreeMap;

use headstack_workload::Span;

use crate::spans::common;

/// Disjoint ranges by their first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Returns the bytes below `end`.
    pub fn up_to(end: u64) -> Ranges {
        Ranges { ends: (end > 0).then_some((0, end)).into_iter().collect() }
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

    /// Whether a byte is in the set.
    pub fn contains(&self, byte: u64) -> bool {
        self.ends.range(..=byte).next_back().is_some_and(|(_, &end)| end > byte)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends the parts of a span that are in the set, ascending.
    pub fn within(&self, span: Span, into: &mut Vec<Span>) {
        let end = span.start_bytes + span.length_bytes;
        let first = self.ends.range(..=span.start_bytes).next_back().map_or(span.start_bytes, |(&begin, _)| begin);
        into.extend(self.ends.range(first..end).filter_map(|(&from, &to)| common(span, from, to)));
    }

    /// Returns the ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ends.iter().map(|(&begin, &end)| (begin, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_range_splits_others() {
        let mut ranges = Ranges::up_to(10);
        ranges.insert(20, 30);
        assert!(!ranges.remove(10, 20));
        assert!(ranges.remove(5, 25));
        assert_eq!(ranges.ends, BTreeMap::from([(0, 5), (25, 30)]));
        assert!(ranges.remove(1, 3) && ranges.insert(2, 6) && ranges.remove(0, 100));
        assert!(ranges.ends.is_empty());
    }

    #[test]
    fn ranges_merge_when_they_touch() {
        let mut ranges = Ranges::up_to(10);
        assert!(!ranges.insert(3, 10));
        assert!(ranges.insert(20, 30));
        assert!(ranges.insert(8, 12));
        assert!(ranges.insert(12, 20));
        assert_eq!(ranges.ends, BTreeMap::from([(0, 30)]));
        assert!(ranges.insert(25, 31));
        assert!(!ranges.insert(0, 31));
        assert!(ranges.insert(40, 50) && ranges.insert(35, 60));
        assert_eq!([30, 31, 59, 60].map(|byte| ranges.contains(byte)), [true, false, true, false]);
        let mut parts = Vec::new();
        ranges.within(Span { start_bytes: 25, length_bytes: 20 }, &mut parts);
        assert_eq!(
            parts.iter().map(|part| (part.start_bytes, part.length_bytes)).collect::<Vec<_>>(),
            [(25, 6), (35, 10)]
        );
        assert_eq!(ranges.ends, BTreeMap::from([(0, 31), (35, 60)]));
    }
}
