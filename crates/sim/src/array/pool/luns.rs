//! The logical side of the map: the slot of each segment of a LUN, and the time of its last write.

use super::layout::Slot;

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Slot of the segment; `Slot::NONE` before the first write.
    pub slot: Slot,
    /// The pool's clock at the last write.
    pub stamp: u32,
}

const UNWRITTEN: Entry = Entry { slot: Slot::NONE, stamp: 0 };

/// Number of segments of a page. A page is created when one of its segments is first written.
const PAGE: usize = 1024;

/// All LUNs. Each segment also has an *owner* number, unique among all LUNs, which identifies it on the physical side.
#[derive(Clone, Debug)]
pub(super) struct Luns {
    luns: Vec<Lun>,
}

#[derive(Clone, Debug)]
struct Lun {
    /// Owner number of the first segment.
    owner: u32,
    segments: u32,
    written: u32,
    pages: Vec<Option<Box<[Entry; PAGE]>>>,
}

impl Luns {
    pub fn new(lengths: &[u64], segment_bytes: u64) -> Luns {
        let mut owner = 0;
        let luns = lengths.iter().map(|length| {
            let segments = length.div_ceil(segment_bytes) as u32;
            let pages = vec![None; (segments as usize).div_ceil(PAGE)];
            let lun = Lun { owner, segments, written: 0, pages };
            owner += segments;
            lun
        });
        Luns { luns: luns.collect() }
    }

    pub fn owner(&self, lun: u32, segment: u32) -> u32 {
        self.luns[lun as usize].owner + segment
    }

    /// Returns the number of segments of a LUN that have been written.
    pub fn written(&self, lun: u32) -> u32 {
        self.luns[lun as usize].written
    }

    #[inline]
    pub fn get(&self, lun: u32, segment: u32) -> Entry {
        let lun = &self.luns[lun as usize];
        assert!(segment < lun.segments, "segment {segment} of a LUN of {}", lun.segments);
        match &lun.pages[segment as usize / PAGE] {
            Some(page) => page[segment as usize % PAGE],
            None => UNWRITTEN,
        }
    }

    pub fn get_owned(&self, owner: u32) -> Entry {
        let (lun, segment) = self.locate(owner);
        self.get(lun, segment)
    }

    /// Returns the entry of a segment that has been written.
    #[inline]
    pub fn get_mut(&mut self, lun: u32, segment: u32) -> &mut Entry {
        let page = &mut self.luns[lun as usize].pages[segment as usize / PAGE];
        &mut page.as_mut().expect("the segment was written")[segment as usize % PAGE]
    }

    /// Stores the first slot of a segment.
    pub fn insert(&mut self, lun: u32, segment: u32, entry: Entry) {
        let lun = &mut self.luns[lun as usize];
        let page = lun.pages[segment as usize / PAGE].get_or_insert_with(|| Box::new([UNWRITTEN; PAGE]));
        page[segment as usize % PAGE] = entry;
        lun.written += 1;
    }

    /// Records that a segment has moved.
    pub fn move_to(&mut self, owner: u32, slot: Slot) {
        let (lun, segment) = self.locate(owner);
        self.get_mut(lun, segment).slot = slot;
    }

    /// Removes all segments of a LUN; calls `freed` with each of their slots.
    pub fn clear(&mut self, lun: u32, mut freed: impl FnMut(Slot)) {
        let lun = &mut self.luns[lun as usize];
        lun.written = 0;
        for page in lun.pages.iter_mut().filter_map(Option::take) {
            page.iter().filter(|entry| entry.slot != Slot::NONE).for_each(|entry| freed(entry.slot));
        }
    }

    /// Halves every stamp when the 32 bits of the clock run out; the order is kept, except between neighbours.
    pub fn halve_stamps(&mut self) {
        let pages = self.luns.iter_mut().flat_map(|lun| lun.pages.iter_mut().flatten());
        pages.flat_map(|page| page.iter_mut()).for_each(|entry| entry.stamp /= 2);
    }

    /// Returns every written segment with its owner number.
    pub fn all(&self) -> impl Iterator<Item = (u32, Entry)> {
        self.luns.iter().flat_map(|lun| {
            let pages = lun.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
            pages.flat_map(move |(number, page)| {
                let first = lun.owner + (number * PAGE) as u32;
                let written = page.iter().enumerate().filter(|(_, entry)| entry.slot != Slot::NONE);
                written.map(move |(at, &entry)| (first + at as u32, entry))
            })
        })
    }

    fn locate(&self, owner: u32) -> (u32, u32) {
        let lun = self.luns.partition_point(|lun| lun.owner <= owner) - 1;
        (lun as u32, owner - self.luns[lun].owner)
    }
}
