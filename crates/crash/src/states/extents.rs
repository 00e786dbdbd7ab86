//! [`Extents`]: the last change of each range of a device.

use std::collections::BTreeMap;

/// Version of a range: the number of its last change, or `None` for the initial contents.
pub(crate) type Version = Option<u32>;

/// A range of bytes: its first byte, and the byte after its last.
pub(crate) type Range = (u64, u64);

/// The last change of each range, by the start of the range; gaps have the initial contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents(BTreeMap<u64, (u64, u32)>);

impl Extents {
    /// Sets the last change of a range.
    pub(crate) fn put(&mut self, range: Range, change: u32) {
        self.remove(range);
        self.0.insert(range.0, (range.1, change));
    }

    /// Resets a range to the initial contents.
    pub(crate) fn remove(&mut self, (start, end): Range) {
        self.split(start);
        self.split(end);
        let over: Vec<u64> = self.0.range(start..end).map(|(&at, _)| at).collect();
        for at in over {
            self.0.remove(&at);
        }
    }

    /// Resets the whole device to the initial contents.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the parts of a range with the version of each, in order and without gaps.
    pub(crate) fn parts(&self, (start, end): Range) -> Vec<(Range, Version)> {
        let mut parts = Vec::new();
        let mut at = start;
        let first = self.0.range(..start).next_back().map_or(start, |(&first, _)| first);
        for (&from, &(to, change)) in self.0.range(first..end) {
            if to <= at {
                continue;
            }
            if from > at {
                parts.push(((at, from), None));
            }
            parts.push(((from.max(at), to.min(end)), Some(change)));
            at = to.min(end);
        }
        if at < end {
            parts.push(((at, end), None));
        }
        parts
    }

    /// Returns all changed ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range, u32)> + '_ {
        self.0.iter().map(|(&start, &(end, change))| ((start, end), change))
    }

    fn split(&mut self, at: u64) {
        let Some((_, within)) = self.0.range_mut(..at).next_back() else { return };
        let (end, change) = *within;
        if end > at {
            within.0 = at;
            self.0.insert(at, (end, change));
        }
    }
}

/// Subtracts a range from each of `ranges`.
pub(crate) fn without(ranges: &mut Vec<Range>, (start, end): Range) {
    if ranges.iter().all(|&(from, to)| to <= start || from >= end) {
        return;
    }
    let left = |&(from, to): &Range| {
        let parts = [(from, to.min(start)), (from.max(end), to)];
        parts.into_iter().filter(|&(from, to)| from < to)
    };
    *ranges = ranges.iter().flat_map(left).collect();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extents_are_an_array_of_the_last_changes(puts in proptest::collection::vec((0..64_u64, 1..20_u64), 0..30)) {
            let (mut extents, mut model) = (Extents::default(), [None; 100]);
            for (change, &(start, length)) in puts.iter().enumerate() {
                extents.put((start, start + length), change as u32);
                model[start as usize..(start + length) as usize].fill(Some(change as u32));
            }
            for start in 0..100 {
                for end in start + 1..100 {
                    let parts = extents.parts((start, end));
                    let bytes: Vec<_> = parts.iter().flat_map(|&((from, to), held)| (from..to).map(move |_| held)).collect();
                    prop_assert_eq!(&bytes[..], &model[start as usize..end as usize]);
                }
            }
        }

        #[test]
        fn what_is_taken_out_is_missing(outs in proptest::collection::vec((0..64_u64, 1..20_u64), 0..10)) {
            let (mut ranges, mut model) = (vec![(10, 50)], [false; 100]);
            model[10..50].fill(true);
            for (start, length) in outs {
                without(&mut ranges, (start, start + length));
                model[start as usize..(start + length) as usize].fill(false);
            }
            let holds = |at: u64| ranges.iter().any(|&(from, to)| from <= at && at < to);
            prop_assert!((0..100).all(|at| holds(at) == model[at as usize]));
        }
    }
}
