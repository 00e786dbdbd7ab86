//! [`Geometry`]: the stripes of an array as md handles them: one page of each chunk of a row, at the same height.

use super::under_way::PAGE_BYTES;
use crate::description::array::ArrayDescription;

/// Places of pages in stripes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub chunk_bytes: u64,
    pub data_units: u64,
    pub parities: u64,
}

impl Geometry {
    /// Returns the geometry of a checked array.
    pub fn of(array: &ArrayDescription) -> Geometry {
        let group = &array.groups[0];
        let members = group.members.len() as u64;
        let parities = group.level.stripe(members).map_or(0, |stripe| stripe.parity);
        Geometry { chunk_bytes: group.chunk_bytes, data_units: members - parities, parities }
    }

    /// Returns the data bytes of a row of chunks.
    pub fn row_bytes(&self) -> u64 {
        self.data_units * self.chunk_bytes
    }

    /// Returns the stripes of a row.
    fn stripes_of_row(&self) -> u64 {
        self.chunk_bytes / PAGE_BYTES
    }

    /// Returns the stripe of a byte, and the number of its data unit.
    pub fn place(&self, at_bytes: u64) -> (u64, u64) {
        let (row, within) = (at_bytes / self.row_bytes(), at_bytes % self.row_bytes());
        (row * self.stripes_of_row() + within % self.chunk_bytes / PAGE_BYTES, within / self.chunk_bytes)
    }

    /// Returns the row of a stripe, and the stripe's first byte within each chunk.
    pub fn row_of(&self, stripe: u64) -> (u64, u64) {
        (stripe / self.stripes_of_row(), stripe % self.stripes_of_row() * PAGE_BYTES)
    }

    /// Returns the places of the pages of `[start, end)`: stripe, and data unit.
    pub fn places(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let geometry = *self;
        (start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| geometry.place(page * PAGE_BYTES))
    }

    /// Returns the number of stripes that `[start, end)` touches.
    pub fn stripes(&self, start: u64, end: u64) -> u64 {
        let (mut at, mut count) = (start, 0);
        while at < end {
            let to = end.min((at / self.row_bytes() + 1) * self.row_bytes());
            count += self.stripes_in_row(at % self.row_bytes(), (to - 1) % self.row_bytes());
            at = to;
        }
        count
    }

    /// Returns the stripes between two bytes of a row, both included.
    fn stripes_in_row(&self, first: u64, last: u64) -> u64 {
        let units = last / self.chunk_bytes - first / self.chunk_bytes;
        let (from, to) = (first % self.chunk_bytes / PAGE_BYTES, last % self.chunk_bytes / PAGE_BYTES);
        match units {
            0 => to - from + 1,
            // The end of one chunk and the beginning of the next.
            1 if to + 1 < from => self.stripes_of_row() - from + to + 1,
            _ => self.stripes_of_row(),
        }
    }

    /// Returns the mask of all data units.
    pub fn all_units(&self) -> u128 {
        u128::MAX >> (u128::BITS - self.data_units as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stripes_are_counted_as_their_pages_are_placed() {
        let geometry = Geometry { chunk_bytes: 4 * PAGE_BYTES, data_units: 3, parities: 1 };
        for start in 0..30 {
            for end in start + 1..40 {
                let (start, end) = (start * 2048, end * 2048);
                let places: BTreeSet<u64> = geometry.places(start, end).map(|(stripe, _)| stripe).collect();
                assert_eq!(geometry.stripes(start, end), places.len() as u64, "{start} to {end}");
            }
        }
        assert_eq!([0, 4, 11, 12].map(|page| geometry.place(page * PAGE_BYTES)), [(0, 0), (0, 1), (3, 2), (4, 0)]);
        assert_eq!((geometry.row_of(6), geometry.all_units()), ((1, 2 * PAGE_BYTES), 0b111));
    }
}
