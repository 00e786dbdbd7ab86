//! The buffer: read segments, and dirty extents.

use super::recency::Recency;
use crate::description::drive::Buffer;

/// Cached runs of blocks. A segment holds `[start, end)`; the least recently used one gives way.
#[derive(Clone, Debug)]
pub struct Segments {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// Recency of the segments that reads may take.
    recency: Recency,
    written: Vec<bool>,
    size: u64,
    /// Index of the segment that writes must use, if they have their own.
    write_segment: Option<usize>,
    read_hits_on_writes: bool,
}

/// Blocks of a read that the buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Segment.
    pub segment: usize,
    /// Exclusive end of its blocks.
    pub end: u64,
}

impl Segments {
    /// Empty segments as `buffer` describes them.
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

    /// The segment that holds `block` and the most following blocks.
    #[inline]
    pub fn find(&self, block: u64) -> Option<Hit> {
        let mut best: Option<Hit> = None;
        let mut segment = 0;
        // Few segments hold it, usually none: further checks of these do not burden the search.
        while let Some(at) = self.holding(segment, block) {
            let end = self.ends[at];
            if (self.read_hits_on_writes || !self.written[at]) && best.is_none_or(|hit| hit.end < end) {
                best = Some(Hit { segment: at, end });
            }
            segment = at + 1;
        }
        best
    }

    /// The first segment from `from` on that holds `block`.
    #[inline]
    fn holding(&self, from: usize, block: u64) -> Option<usize> {
        let bounds = self.starts[from..].iter().zip(&self.ends[from..]);
        bounds.map(|(&start, &end)| start <= block && block < end).position(|holds| holds).map(|at| from + at)
    }

    /// Exclusive end of a segment.
    pub fn end_of(&self, segment: usize) -> u64 {
        self.ends[segment]
    }

    /// First block of a segment.
    pub fn start_of(&self, segment: usize) -> u64 {
        self.starts[segment]
    }

    /// Marks a segment as just used.
    #[inline]
    pub fn touch(&mut self, segment: usize) {
        self.recency.touch(segment);
    }

    /// Assigns the least recently used segment to a read, emptied to `[start, start)`; `None` if there is none.
    #[inline]
    pub fn take_for_read(&mut self, start: u64) -> Option<usize> {
        let oldest = self.recency.oldest()?;
        (self.starts[oldest], self.ends[oldest], self.written[oldest]) = (start, start, false);
        self.touch(oldest);
        Some(oldest)
    }

    /// Extends a segment to `end`; excess data are dropped at its front.
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

    /// Adds the blocks before a segment's start, as far as they fit.
    pub fn extend_front(&mut self, segment: usize, start: u64) {
        self.starts[segment] = start.max(self.ends[segment].saturating_sub(self.size));
    }

    /// Drops every segment that overlaps `[start, end)`: a partly stale one is of no more use to its stream.
    pub fn forget(&mut self, start: u64, end: u64) {
        for segment in 0..self.starts.len() {
            if self.starts[segment] < end && start < self.ends[segment] {
                self.ends[segment] = self.starts[segment];
                self.recency.forget(segment);
            }
        }
    }

    /// Data of a write: forgets older copies and keeps the new one.
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

/// A run of blocks that is in the buffer and not yet on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// First block.
    pub start: u64,
    /// Exclusive end.
    pub end: u64,
    /// When its last data arrived from the host.
    pub data_ns: u64,
    /// Number of the first write that went into it: a flush after that write waits for the extent.
    pub oldest: u64,
    /// The arm is writing it: nothing may be joined any more.
    pub in_service: bool,
    /// Starts or ends inside a physical sector: the drive reads before it writes.
    pub partial: bool,
}

/// All dirty extents, in slots that stay put.
#[derive(Clone, Debug)]
pub struct WriteCache {
    slots: Vec<Option<Dirty>>,
    /// Slots in use, in no order: few of many, as a rule.
    occupied: Vec<u32>,
    free: Vec<u32>,
    sectors: u64,
    sectors_max: u64,
    extent_max: u64,
    sequence: u64,
    /// Writes that were joined to a waiting extent.
    pub coalesced: u64,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// A new extent in this slot: it needs the arm.
    New(u32),
    /// Joined to one that waits already (its slot).
    Joined(u32),
}

impl WriteCache {
    /// An empty write cache as `buffer` describes it.
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

    /// Power is cut.
    pub fn lose(&mut self) {
        while let Some(&slot) = self.occupied.last() {
            self.finish(slot);
        }
    }

    /// Sectors that are dirty.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Nothing is dirty.
    pub fn is_empty(&self) -> bool {
        self.occupied.is_empty()
    }

    /// Number of the last accepted write.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// All writes up to `sequence` are on the media.
    pub fn is_clean_up_to(&self, sequence: u64) -> bool {
        self.occupied.iter().all(|&slot| self.get(slot).oldest > sequence)
    }

    /// Dirty runs of blocks, in no order.
    pub fn dirty(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.occupied.iter().map(|&slot| (self.get(slot).start, self.get(slot).end))
    }

    /// Extent that a write `[start, end)` may join: one that still waits, and touches or overlaps it.
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

    /// Whether a write `[start, end)` would find room now.
    pub fn has_room(&self, start: u64, end: u64) -> bool {
        self.joinable(start, end).is_some() || (!self.free.is_empty() && self.fits(end - start))
    }

    fn fits(&self, sectors: u64) -> bool {
        // A write larger than the cache is accepted when there is no other; otherwise it would wait forever.
        self.sectors == 0 || self.sectors + sectors <= self.sectors_max
    }

    /// Takes a write `[start, end)`, for which [`Self::has_room`], and whose data are in the buffer at `data_ns`.
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
        debug_assert!(self.fits(end - start), "a write cache takes what it has room for");
        self.sequence += 1;
        let slot = self.free.pop().expect("the caller asked whether there is room");
        self.slots[slot as usize] =
            Some(Dirty { start, end, data_ns, oldest: self.sequence, in_service: false, partial });
        self.occupied.push(slot);
        self.sectors += end - start;
        Accepted::New(slot)
    }

    /// The extent in an occupied slot.
    pub fn get(&self, slot: u32) -> Dirty {
        self.slots[slot as usize].expect("an occupied slot")
    }

    /// The arm begins to write a slot.
    pub fn begin(&mut self, slot: u32) -> Dirty {
        let dirty = self.slots[slot as usize].as_mut().expect("an occupied slot");
        dirty.in_service = true;
        *dirty
    }

    /// A slot is on the media.
    pub fn finish(&mut self, slot: u32) {
        let dirty = self.slots[slot as usize].take().expect("an occupied slot");
        self.sectors -= dirty.end - dirty.start;
        let at = self.occupied.iter().position(|&other| other == slot).expect("an occupied slot");
        self.occupied.swap_remove(at);
        self.free.push(slot);
        debug_assert!(!self.occupied.is_empty() || self.sectors == 0, "dirty sectors belong to an extent");
    }
}
