//! [`Extents`]: blocks of a top-level device that wait to be scanned, sorted by address (`scan_io_queue_t`,
//! dsl_scan.c). Blocks that are close together form an extent; the extent with most blocks is taken first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// An extent: places from its start to `end`, of which `blocks` are occupied.
#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u64,
    blocks: u64,
}

/// Blocks by their place on a top-level device.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    /// First place of each run of blocks, and their number.
    runs: BTreeMap<u64, u64>,
    extents: BTreeMap<u64, Extent>,
    /// Number of blocks and start of each extent.
    by_blocks: BTreeSet<(u64, Reverse<u64>)>,
    /// Start of the extent from which blocks are taken.
    current: Option<u64>,
    /// Places between two blocks of an extent, at most.
    gap: u64,
    blocks: u64,
}

impl Extents {
    /// Creates an empty queue.
    pub fn new(gap: u64) -> Extents {
        let (runs, extents, by_blocks) = Default::default();
        Extents { runs, extents, by_blocks, current: None, gap, blocks: 0 }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Adds a run of blocks that are not in it.
    pub fn add(&mut self, first: u64, count: u64) {
        self.blocks += count;
        self.add_run(first, count);
        let mut start = first;
        let mut extent = Extent { end: first + count, blocks: count };
        // Extents on both sides may be close enough.
        while let Some((&before, &Extent { end, blocks })) = self.extents.range(..=start).next_back()
            && end + self.gap >= start
        {
            self.remove_extent(before, blocks);
            (start, extent.end, extent.blocks) = (before, extent.end.max(end), extent.blocks + blocks);
        }
        while let Some((&after, &Extent { end, blocks })) = self.extents.range(start..).next()
            && after <= extent.end + self.gap
        {
            self.remove_extent(after, blocks);
            (extent.end, extent.blocks) = (extent.end.max(end), extent.blocks + blocks);
        }
        self.insert_extent(start, extent);
        self.debug_check();
    }

    fn add_run(&mut self, first: u64, count: u64) {
        let (mut start, mut length) = (first, count);
        if let Some((&before, &blocks)) = self.runs.range(..first).next_back() {
            debug_assert!(before + blocks <= first, "a block is queued once");
            if before + blocks == first {
                self.runs.remove(&before);
                (start, length) = (before, blocks + length);
            }
        }
        if let Some(blocks) = self.runs.remove(&(first + count)) {
            length += blocks;
        }
        self.runs.insert(start, length);
    }

    fn remove_extent(&mut self, start: u64, blocks: u64) {
        self.extents.remove(&start);
        self.by_blocks.remove(&(blocks, Reverse(start)));
        if self.current == Some(start) {
            self.current = None;
        }
    }

    fn insert_extent(&mut self, start: u64, extent: Extent) {
        if extent.blocks > 0 {
            self.extents.insert(start, extent);
            self.by_blocks.insert((extent.blocks, Reverse(start)));
        }
    }

    /// Takes up to `count` neighbouring blocks: the next of the current extent, then of the largest one, or of the first
    /// if `in_order`. Returns the first place and their number.
    pub fn take(&mut self, count: u64, in_order: bool) -> Option<(u64, u64)> {
        let start = match self.current {
            Some(current) => current,
            None if in_order => *self.extents.first_key_value()?.0,
            None => self.by_blocks.last()?.1.0,
        };
        let (&first, &length) = self.runs.range(start..).next().expect("an extent has blocks");
        let taken = length.min(count);
        let extent = self.extents[&start];
        self.take_run(first, first, taken);
        self.remove_extent(start, extent.blocks);
        let left = Extent { blocks: extent.blocks - taken, ..extent };
        if left.blocks > 0 {
            let (&next, _) = self.runs.range(first..).next().expect("the extent has more blocks");
            self.insert_extent(next, left);
            self.current = Some(next);
        }
        self.debug_check();
        Some((first, taken))
    }

    /// Removes the blocks `first..first + count` of the run at `start`.
    fn take_run(&mut self, start: u64, first: u64, count: u64) {
        let length = self.runs.remove(&start).expect("the run exists");
        if start < first {
            self.runs.insert(start, first - start);
        }
        if first + count < start + length {
            self.runs.insert(first + count, start + length - (first + count));
        }
        self.blocks -= count;
    }

    /// Removes a block that was freed, if it waits.
    pub fn remove(&mut self, block: u64) -> bool {
        let Some((&run, &length)) = self.runs.range(..=block).next_back() else { return false };
        if run + length <= block {
            return false;
        }
        self.take_run(run, block, 1);
        let (&start, &extent) = self.extents.range(..=block).next_back().expect("a block is in an extent");
        let was_current = self.current == Some(start);
        self.remove_extent(start, extent.blocks);
        let left = Extent { blocks: extent.blocks - 1, ..extent };
        if left.blocks > 0 {
            let next = if start == block { *self.runs.range(block..).next().expect("it has more").0 } else { start };
            self.insert_extent(next, left);
            self.current = if was_current { Some(next) } else { self.current };
        }
        self.debug_check();
        true
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Extents::new(self.gap);
    }

    fn debug_check(&self) {
        debug_assert_eq!(self.extents.len(), self.by_blocks.len(), "each extent is sorted once");
        debug_assert!(self.current.is_none_or(|start| self.extents.contains_key(&start)), "the current extent exists");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest extent is taken first, from its start to its end, although others grow meanwhile; in order of
    /// addresses, the first.
    #[test]
    fn the_largest_extent_is_taken_to_its_end() {
        let mut extents = Extents::new(2);
        extents.add(0, 3);
        extents.add(100, 5);
        // Gaps of 2 places are bridged, of 3 not.
        extents.add(107, 4);
        extents.add(114, 1);
        assert_eq!(extents.take(4, false), Some((100, 4)));
        extents.add(3, 20);
        assert_eq!(extents.take(10, false), Some((104, 1)));
        assert_eq!(extents.take(10, false), Some((107, 4)));
        assert_eq!(extents.take(10, true), Some((0, 10)));
        assert_eq!(extents.take(100, true), Some((10, 13)));
        assert_eq!(extents.take(10, false), Some((114, 1)));
        assert_eq!(extents.take(10, false), None);
        assert_eq!(extents.blocks(), 0);
    }

    /// Runs in any order, removals in between: every block that was not removed is taken once.
    #[test]
    fn every_block_is_taken_once_unless_it_was_removed() {
        for (gap, in_order) in [(0, false), (3, false), (16, true)] {
            let mut extents = Extents::new(gap);
            let mut expected = BTreeSet::new();
            for step in 0..400_u64 {
                let (first, count) = (step * 7919 % 401 * 10, 1 + step * 31 % 9);
                extents.add(first, count);
                expected.extend(first..first + count);
                if step % 3 == 0 {
                    let gone = step * 613 % 4010;
                    assert_eq!(extents.remove(gone), expected.remove(&gone), "{gone}");
                }
                if step % 5 == 0
                    && let Some((from, taken)) = extents.take(4, in_order)
                {
                    assert!((from..from + taken).all(|block| expected.remove(&block)));
                }
                assert_eq!(extents.blocks(), expected.len() as u64);
            }
            // An extent that was begun is finished before an earlier one that was added since.
            let (mut is_begun, mut last) = (extents.current.is_some(), 0);
            while let Some((from, taken)) = extents.take(1 << 20, in_order) {
                assert!((from..from + taken).all(|block| expected.remove(&block)));
                assert!(!in_order || is_begun || from >= last);
                last = if is_begun { 0 } else { from };
                is_begun &= extents.current.is_some();
            }
            assert!(expected.is_empty());
        }
    }
}
