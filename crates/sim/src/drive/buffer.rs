//! The buffer of a drive: read [`Segments`] and the [`WriteCache`].

use super::recency::Recency;
use crate::description::drive::Buffer;

/// Read cache of runs of blocks. Each segment holds the blocks `[start, end)`; the least recently used segment is
/// replaced.
#[derive(Clone, Debug)]
pub struct Segments {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// Recency order of the segments available to reads.
    recency: Recency,
    written: Vec<bool>,
    size: u64,
    /// Index of the segment reserved for writes, if there is one.
    write_segment: Option<usize>,
    read_hits_on_writes: bool,
}

/// Buffered part of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Index of the segment.
    pub segment: usize,
    /// Block after the last buffered one.
    pub end: u64,
}

impl Segments {
    /// Creates empty segments for `buffer`.
    pub fn new(buffer: &Buffer) -> Self {
        let count = buffer.segments as usize;
        let write_segment = (buffer.separate_write_segment && count > 1).then(|| count - 1);
        Segments {
            starts: vec![0; count],
            ends: vec![0; count],
            recency: Recency::new(write_segment.unwrap_or(count)),
            written: vec![false; count],
            size: u64::from(buffer.segment_sectors),
            write_segment,
            read_hits_on_writes: buffer.read_hits_on_writes,
        }
    }

    /// Returns the segment that holds `block` and the longest run after it.
    #[inline]
    pub fn find(&self, block: u64) -> Option<Hit> {
        let mut best: Option<Hit> = None;
        let mut segment = 0;
        // Rarely more than one segment holds the block, so comparing their ends does not slow the search.
        while let Some(at) = self.holding(segment, block) {
            let end = self.ends[at];
            if (self.read_hits_on_writes || !self.written[at]) && best.is_none_or(|hit| hit.end < end) {
                best = Some(Hit { segment: at, end });
            }
            segment = at + 1;
        }
        best
    }

    /// Returns the first segment at or after `from` that holds `block`.
    #[inline]
    fn holding(&self, from: usize, block: u64) -> Option<usize> {
        let bounds = self.starts[from..].iter().zip(&self.ends[from..]);
        bounds.map(|(&start, &end)| start <= block && block < end).position(|holds| holds).map(|at| from + at)
    }

    /// Returns the block after the last block of a segment.
    pub fn end_of(&self, segment: usize) -> u64 {
        self.ends[segment]
    }

    /// Returns the first block of a segment.
    pub fn start_of(&self, segment: usize) -> u64 {
        self.starts[segment]
    }

    /// Marks a segment as just used.
    #[inline]
    pub fn touch(&mut self, segment: usize) {
        self.recency.touch(segment);
    }

    /// Assigns the least recently used segment to a read and empties it to `[start, start)`; `None` if there are no
    /// segments.
    #[inline]
    pub fn take_for_read(&mut self, start: u64) -> Option<usize> {
        let oldest = self.recency.oldest()?;
        (self.starts[oldest], self.ends[oldest], self.written[oldest]) = (start, start, false);
        self.touch(oldest);
        Some(oldest)
    }

    /// Extends a segment to `end` and drops blocks from its front if the segment is full.
    #[inline]
    pub fn fill_to(&mut self, segment: usize, end: u64) {
        self.ends[segment] = end;
        self.starts[segment] = self.starts[segment].max(end.saturating_sub(self.size));
    }

    /// Empties every segment.
    pub fn clear(&mut self) {
        self.starts.fill(0);
        self.ends.fill(0);
        self.written.fill(false);
    }

    /// Prepends the blocks from `start` to a segment, as far as they fit.
    pub fn extend_front(&mut self, segment: usize, start: u64) {
        self.starts[segment] = start.max(self.ends[segment].saturating_sub(self.size));
    }

    /// Drops every segment that overlaps `[start, end)`: a partly stale segment no longer helps its stream.
    pub fn forget(&mut self, start: u64, end: u64) {
        for segment in 0..self.starts.len() {
            if self.starts[segment] < end && start < self.ends[segment] {
                self.ends[segment] = self.starts[segment];
                self.recency.forget(segment);
            }
        }
    }

    /// Adds the data of a write and drops older copies of these blocks.
    pub fn write(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        let appended = (0..self.starts.len())
            .find(|&segment| self.written[segment] && self.ends[segment] == start && self.starts[segment] < start);
        let segment = match (appended, self.write_segment) {
            (Some(segment), _) => Some(segment),
            (None, Some(own)) => {
                self.starts[own] = start;
                Some(own)
            }
            (None, None) => self.take_for_read(start),
        };
        if let Some(segment) = segment {
            self.fill_to(segment, end);
            self.written[segment] = true;
            self.touch(segment);
        }
    }
}

/// Dirty extent: a run of blocks that is in the buffer but not yet on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// First block.
    pub start: u64,
    /// Block after the last one.
    pub end: u64,
    /// Time at which the last of its data arrived from the host.
    pub data_ns: u64,
    /// Sequence number of the extent's first write. A flush after that write waits for the extent.
    pub oldest: u64,
    /// Whether the arm is writing the extent; if so, no other write can join it.
    pub in_service: bool,
    /// Whether the extent starts or ends inside a physical sector, so that the drive must read before it writes.
    pub partial: bool,
}

/// Dirty extents in slots that do not move.
#[derive(Clone, Debug)]
pub struct WriteCache {
    slots: Vec<Option<Dirty>>,
    /// Occupied slots, unordered; usually few of the slots are occupied.
    occupied: Vec<u32>,
    free: Vec<u32>,
    sectors: u64,
    sectors_max: u64,
    extent_max: u64,
    sequence: u64,
    /// Number of writes that joined a waiting extent.
    pub coalesced: u64,
}

/// How a write was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// As a new extent in this slot, which needs the arm.
    New(u32),
    /// As part of the waiting extent in this slot.
    Joined(u32),
}

impl WriteCache {
    /// Creates an empty write cache for `buffer`.
    pub fn new(buffer: &Buffer) -> Self {
        let slots = buffer.dirty_extents_max.max(1);
        WriteCache {
            slots: vec![None; slots as usize],
            occupied: Vec::with_capacity(slots as usize),
            free: (0..slots).rev().collect(),
            sectors: 0,
            sectors_max: u64::from(buffer.dirty_sectors_max.max(1)),
            extent_max: u64::from(buffer.segment_sectors.max(1)),
            sequence: 0,
            coalesced: 0,
        }
    }

    /// Discards all dirty extents, as a power loss does.
    pub fn lose(&mut self) {
        while let Some(&slot) = self.occupied.last() {
            self.finish(slot);
        }
    }

    /// Returns the number of dirty sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether the cache holds no dirty extent.
    pub fn is_empty(&self) -> bool {
        self.occupied.is_empty()
    }

    /// Returns the sequence number of the last accepted write.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether all writes up to `sequence` are on the media.
    pub fn is_clean_up_to(&self, sequence: u64) -> bool {
        self.occupied.iter().all(|&slot| self.get(slot).oldest > sequence)
    }

    /// Returns the dirty runs of blocks, unordered.
    pub fn dirty(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.occupied.iter().map(|&slot| (self.get(slot).start, self.get(slot).end))
    }

    /// Returns the waiting extent that touches or overlaps the write `[start, end)`, which can therefore join it.
    fn joinable(&self, start: u64, end: u64) -> Option<usize> {
        let joins = |slot: &u32| {
            let dirty = self.get(*slot);
            !dirty.in_service
                && start <= dirty.end
                && dirty.start <= end
                && end.max(dirty.end) - start.min(dirty.start) <= self.extent_max
        };
        self.occupied.iter().copied().filter(joins).min().map(|slot| slot as usize)
    }

    /// Whether the cache has room for a write `[start, end)` now.
    pub fn has_room(&self, start: u64, end: u64) -> bool {
        self.joinable(start, end).is_some() || (!self.free.is_empty() && self.fits(end - start))
    }

    fn fits(&self, sectors: u64) -> bool {
        // A write larger than the cache is accepted when the cache is empty; otherwise it would wait forever.
        self.sectors == 0 || self.sectors + sectors <= self.sectors_max
    }

    /// Accepts a write `[start, end)` whose data are in the buffer at `data_ns`. Requires [`Self::has_room`].
    pub fn accept(&mut self, start: u64, end: u64, data_ns: u64, partial: bool) -> Accepted {
        if let Some(slot) = self.joinable(start, end) {
            self.sequence += 1;
            let dirty = self.slots[slot].as_mut().expect("joinable returns occupied slots");
            let before = dirty.end - dirty.start;
            dirty.start = dirty.start.min(start);
            dirty.end = dirty.end.max(end);
            dirty.data_ns = dirty.data_ns.max(data_ns);
            dirty.partial |= partial;
            self.sectors += dirty.end - dirty.start - before;
            self.coalesced += 1;
            return Accepted::Joined(slot as u32);
        }
        debug_assert!(self.fits(end - start), "the write fits in the cache");
        self.sequence += 1;
        let slot = self.free.pop().expect("the caller checked for room");
        self.slots[slot as usize] =
            Some(Dirty { start, end, data_ns, oldest: self.sequence, in_service: false, partial });
        self.occupied.push(slot);
        self.sectors += end - start;
        Accepted::New(slot)
    }

    /// Returns the extent in an occupied slot.
    pub fn get(&self, slot: u32) -> Dirty {
        self.slots[slot as usize].expect("the slot is occupied")
    }

    /// Marks an extent as being written by the arm; returns the extent.
    pub fn begin(&mut self, slot: u32) -> Dirty {
        let dirty = self.slots[slot as usize].as_mut().expect("the slot is occupied");
        dirty.in_service = true;
        *dirty
    }

    /// Removes an extent that is now on the media.
    pub fn finish(&mut self, slot: u32) {
        let dirty = self.slots[slot as usize].take().expect("the slot is occupied");
        self.sectors -= dirty.end - dirty.start;
        let at = self.occupied.iter().position(|&other| other == slot).expect("the slot is listed as occupied");
        self.occupied.swap_remove(at);
        self.free.push(slot);
        debug_assert!(!self.occupied.is_empty() || self.sectors == 0, "every dirty sector belongs to an extent");
    }
}
