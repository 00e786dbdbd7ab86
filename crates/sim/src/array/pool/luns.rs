//! The logical side of the map: which slot holds a segment of a LUN.

use super::layout::Slot;

/// Segments of a page; a page exists once one of them was written.
const PAGE: usize = 1024;

/// All LUNs. Each segment has an *owner* number too, unique among all LUNs, by which the physical side knows it.
#[derive(Clone, Debug)]
pub(super) struct Luns {
    luns: Vec<Lun>,
}

#[derive(Clone, Debug)]
struct Lun {
    /// Of its first segment.
    owner: u32,
    segments: u32,
    written: u32,
    pages: Vec<Option<Box<[Slot; PAGE]>>>,
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

    /// Segments written, of one LUN.
    pub fn written(&self, lun: u32) -> u32 {
        self.luns[lun as usize].written
    }

    #[inline]
    pub fn get(&self, lun: u32, segment: u32) -> Slot {
        let lun = &self.luns[lun as usize];
        assert!(segment < lun.segments, "segment {segment} of a LUN of {}", lun.segments);
        match &lun.pages[segment as usize / PAGE] {
            Some(page) => page[segment as usize % PAGE],
            None => Slot::NONE,
        }
    }

    pub fn get_owned(&self, owner: u32) -> Slot {
        let (lun, segment) = self.locate(owner);
        self.get(lun, segment)
    }

    /// Stores where a segment is, or is now.
    pub fn set(&mut self, owner: u32, slot: Slot) {
        let (lun, segment) = self.locate(owner);
        let lun = &mut self.luns[lun as usize];
        let page = lun.pages[segment as usize / PAGE].get_or_insert_with(|| Box::new([Slot::NONE; PAGE]));
        let entry = &mut page[segment as usize % PAGE];
        lun.written += u32::from(*entry == Slot::NONE);
        *entry = slot;
    }

    /// Forgets a LUN's segments; hands over the slots that they had.
    pub fn clear(&mut self, lun: u32, mut freed: impl FnMut(Slot)) {
        let lun = &mut self.luns[lun as usize];
        lun.written = 0;
        for page in lun.pages.iter_mut().filter_map(Option::take) {
            page.iter().filter(|&&slot| slot != Slot::NONE).for_each(|&slot| freed(slot));
        }
    }

    /// Every written segment: its owner number and slot.
    pub fn all(&self) -> impl Iterator<Item = (u32, Slot)> {
        self.luns.iter().flat_map(|lun| {
            let pages = lun.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
            pages.flat_map(move |(number, page)| {
                let first = lun.owner + (number * PAGE) as u32;
                let slots = page.iter().enumerate().filter(|&(_, &slot)| slot != Slot::NONE);
                slots.map(move |(at, &slot)| (first + at as u32, slot))
            })
        })
    }

    fn locate(&self, owner: u32) -> (u32, u32) {
        let lun = self.luns.partition_point(|lun| lun.owner <= owner) - 1;
        (lun as u32, owner - self.luns[lun].owner)
    }
}
