//! [`Extents`]: which bytes of the data device are where on a cache or journal device.

use std::collections::BTreeMap;

/// A run of bytes of the origin, and its place on the cache device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u64,
    pub length: u32,
    pub place: u64,
}

impl Extent {
    /// Returns the end of its bytes on the origin.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Returns the part within `[from, to)` of the origin.
    pub fn clip(&self, from: u64, to: u64) -> Option<Extent> {
        let (start, end) = (self.start.max(from), self.end().min(to));
        (start < end).then(|| Extent { start, length: (end - start) as u32, place: self.place + (start - self.start) })
    }

    /// Whether `other` continues this extent on both devices.
    pub fn continues_in(&self, other: &Extent) -> bool {
        self.end() == other.start && self.place + u64::from(self.length) == other.place
    }
}

/// Disjoint extents by their first byte on the origin: 24 bytes an extent.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    map: BTreeMap<u64, (u32, u64)>,
    bytes: u64,
}

fn extent((&start, &(length, place)): (&u64, &(u32, u64))) -> Extent {
    Extent { start, length, place }
}

impl Extents {
    /// Returns the sum of their lengths.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of extents.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Adds an extent that overlaps none. It merges with the one before it if `may_merge` allows their joint length.
    pub fn insert(&mut self, new: Extent, may_merge: impl Fn(&Extent) -> bool) {
        debug_assert!(self.overlapping(new.start, new.end()).next().is_none(), "extents are disjoint");
        self.bytes += u64::from(new.length);
        let before = self.map.range(..new.start).next_back().map(extent);
        if let Some(before) = before.filter(|before| before.continues_in(&new) && may_merge(before)) {
            self.map.insert(before.start, (before.length + new.length, before.place));
        } else {
            self.map.insert(new.start, (new.length, new.place));
        }
    }

    /// Removes the bytes `[from, to)`, and passes each removed part to `each`.
    pub fn remove(&mut self, from: u64, to: u64, mut each: impl FnMut(Extent)) {
        loop {
            let first = self.overlapping_whole(from, to).next();
            let Some(old) = first else { return };
            self.map.remove(&old.start);
            for rest in [old.clip(0, from), old.clip(to, u64::MAX)].into_iter().flatten() {
                self.map.insert(rest.start, (rest.length, rest.place));
            }
            let removed = old.clip(from, to).expect("the extent overlaps");
            self.bytes -= u64::from(removed.length);
            each(removed);
        }
    }

    /// Returns the extents that overlap `[from, to)`, ascending.
    fn overlapping_whole(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> {
        let before = self.map.range(..from).next_back().map(extent).filter(move |before| before.end() > from);
        before.into_iter().chain(self.map.range(from..to.max(from)).map(extent))
    }

    /// Returns the parts of extents in `[from, to)`, ascending.
    pub fn overlapping(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> {
        self.overlapping_whole(from, to).filter_map(move |extent| extent.clip(from, to))
    }

    /// Returns the first extent that begins at `from` or later.
    pub fn next_from(&self, from: u64) -> Option<Extent> {
        self.map.range(from..).next().map(extent)
    }

    /// Returns where the extents begin, ascending.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        self.map.keys().copied()
    }

    /// Returns the extent that begins at `start`.
    pub fn starting_at(&self, start: u64) -> Option<Extent> {
        self.map.get_key_value(&start).map(extent)
    }
}

/// Removes the bytes `[from, to)` from a list of extents.
pub(super) fn cut(extents: &mut Vec<Extent>, from: u64, to: u64) {
    if !extents.iter().any(|extent| extent.clip(from, to).is_some()) {
        return;
    }
    *extents = extents.iter().flat_map(|extent| [extent.clip(0, from), extent.clip(to, u64::MAX)]).flatten().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, length: u32, place: u64) -> Extent {
        Extent { start, length, place }
    }

    #[test]
    fn a_removed_part_leaves_both_ends() {
        let mut extents = Extents::default();
        extents.insert(at(100, 100, 5000), |_| true);
        extents.insert(at(200, 50, 5100), |_| true);
        extents.insert(at(250, 50, 9000), |_| true);
        assert_eq!((extents.len(), extents.bytes()), (2, 200));
        let mut removed = Vec::new();
        extents.remove(120, 260, |part| removed.push(part));
        assert_eq!(removed, [at(120, 130, 5020), at(250, 10, 9000)]);
        let left: Vec<Extent> = extents.overlapping(0, 1000).collect();
        assert_eq!((left, extents.bytes()), (vec![at(100, 20, 5000), at(260, 40, 9010)], 60));
        assert_eq!(extents.overlapping(110, 265).collect::<Vec<_>>(), [at(110, 10, 5010), at(260, 5, 9010)]);
        extents.insert(at(120, 10, 5020), |_| false);
        assert_eq!((extents.len(), extents.next_from(101)), (3, Some(at(120, 10, 5020))));
    }

    #[test]
    fn a_cut_list_keeps_what_is_outside() {
        let mut list = vec![at(0, 10, 100), at(10, 10, 300)];
        cut(&mut list, 5, 12);
        assert_eq!(list, [at(0, 5, 100), at(12, 8, 302)]);
    }
}
