//! [`Raidz`]: RAIDZ 1, 2 and 3 of OpenZFS. A record takes as many rows as it needs, each with its parities, and is
//! padded to a multiple of parities + 1 sectors, so that no gap is too small to use. The space overhead depends on the
//! sizes of record and sector: with records of 8 KiB and sectors of 4 KiB, half the space is data on any RAIDZ1
//! (psize_to_asize and vdev_raidz_map_alloc of vdev_raidz.c).
//!
//! A read reads all data columns of a record and no parity; a write writes all columns and reads none. As many members
//! as there are parities may fail; a rebuild reads the remaining columns of each record.

use super::placing::{Choice, Extent, Redundancy, Rules, Shape, USUAL_WIDTH, Usual};
use super::records::{Columns, Records};
use crate::description::level::SmallWrites;

pub const fn rules(parity: u32) -> Rules {
    Rules {
        members_min: parity + 1,
        members_max: 255,
        members_step: 1,
        is_striped: true,
        has_spans: false,
        has_records: true,
        is_declustered: false,
        usual: Usual { members_max: USUAL_WIDTH, members_step: 1 },
        choice: Choice::Default,
    }
}

pub fn capacity_bytes(shape: &Shape, parity: u32) -> u64 {
    if shape.members <= u64::from(parity) || shape.unit_bytes == 0 || shape.record_bytes == 0 {
        return 0;
    }
    let layout = Raidz::new(shape, parity);
    layout.records.saturating_mul(layout.record_bytes)
}

pub fn redundancy(members: u64, parity: u32) -> Redundancy {
    Redundancy::whole(members, u64::from(parity))
}

/// Returns the data capacity in units of a member's capacity, as numerator and denominator, for records of 128 KiB in
/// sectors of 4 KiB.
pub fn data_share(members: u64, parity: u32) -> (u64, u64) {
    const SECTORS: u64 = 32;
    (members * SECTORS, allocated_sectors(SECTORS, members, u64::from(parity)))
}

/// Returns the number of sectors that a record of `data` sectors takes, including parities and padding.
pub fn allocated_sectors(data: u64, members: u64, parities: u64) -> u64 {
    (data + parities * data.div_ceil(members - parities)).next_multiple_of(parities + 1)
}

#[derive(Clone, Debug)]
pub struct Raidz {
    members: u64,
    parities: u64,
    sector_bytes: u64,
    record_bytes: u64,
    /// Number of sectors that a record takes.
    allocated: u64,
    /// Number of records that fit.
    records: u64,
    has_new_blocks: bool,
}

impl Raidz {
    pub fn new(shape: &Shape, parity: u32) -> Raidz {
        let Shape { members, unit_bytes: sector_bytes, record_bytes, .. } = *shape;
        let parities = u64::from(parity);
        let allocated = allocated_sectors(record_bytes.div_ceil(sector_bytes), members, parities);
        let records = members.saturating_mul(shape.units()) / allocated;
        let has_new_blocks = shape.small_writes == SmallWrites::NewBlocks;
        Raidz { members, parities, sector_bytes, record_bytes, allocated, records, has_new_blocks }
    }
}

impl Records for Raidz {
    fn slots(&self) -> u32 {
        self.members as u32
    }

    fn parities(&self) -> u32 {
        self.parities as u32
    }

    fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    fn has_new_blocks(&self) -> bool {
        self.has_new_blocks
    }

    /// Returns the columns of a block. The sectors of the block are distributed over the members. Each column is one
    /// run of sectors on a member; if the last row is partial, the columns in it are one sector longer.
    fn columns_of_block(&self, record: u64, bytes: u64) -> Columns {
        let first = record * self.allocated;
        let (slot, row) = (first % self.members, first / self.members);
        let data = bytes.div_ceil(self.sector_bytes);
        let (rows, rest) = (data / (self.members - self.parities), data % (self.members - self.parities));
        let longer = if rest == 0 { 0 } else { rest + self.parities };
        let count = if rows == 0 { longer } else { self.members };
        let column = |number: u64| Extent {
            slot: ((slot + number) % self.members) as u32,
            at_bytes: (row + (slot + number) / self.members) * self.sector_bytes,
            length_bytes: (rows + u64::from(number < longer)) * self.sector_bytes,
        };
        let mut columns: Vec<Extent> = (0..count).map(column).collect();
        // With aligned records, a single parity would be on few members only, so every other MiB swaps the parity with
        // the first data column.
        if self.parities == 1 && count > 1 && (first * self.sector_bytes) & (1 << 20) != 0 {
            columns.swap(0, 1);
        }
        Columns { parities: self.parities as usize, columns }
    }

    fn records_on(&self, extent: &Extent, each: impl FnMut(u64)) {
        let first_row = extent.at_bytes / self.sector_bytes;
        let end_row = extent.end_bytes().div_ceil(self.sector_bytes);
        let first = first_row * self.members / self.allocated;
        let end = (end_row * self.members).div_ceil(self.allocated).min(self.records);
        (first..end).for_each(each);
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        (0..self.members as u32).filter(|&slot| !whole(slot, 0)).count() as u64 <= self.parities
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::placing::tests::shape;
    use super::super::placing::{Coding, Placing, RowPart};
    use super::*;

    const KIB: u64 = 1 << 10;

    fn raidz(members: u64, parity: u32, record_bytes: u64) -> Raidz {
        Raidz::new(&Shape { members, record_bytes, unit_bytes: 4 * KIB, member_bytes: 4 << 20, ..shape() }, parity)
    }

    /// Data as a percentage of the allocated space, by OpenZFS's formula for sectors of 4 KiB.
    #[test]
    fn a_record_takes_the_allocation_of_openzfs() {
        let share = |parities: u64, members: u64, kib: u64| {
            let data = (kib / 4).max(1);
            (data as f64 / allocated_sectors(data, members, parities) as f64 * 1000.0).round() / 10.0
        };
        let sizes = [4, 8, 16, 32, 64, 128, 1024];
        for (parities, members, expected) in [
            (1, 3, [50.0, 50.0, 66.7, 66.7, 66.7, 66.7, 66.7]),
            (1, 4, [50.0, 50.0, 66.7, 66.7, 72.7, 72.7, 74.9]),
            (1, 9, [50.0, 50.0, 66.7, 80.0, 88.9, 88.9, 88.9]),
            (2, 4, [33.3, 33.3, 44.4, 44.4, 48.5, 48.5, 49.9]),
            (2, 6, [33.3, 33.3, 66.7, 66.7, 66.7, 66.7, 66.7]),
            (2, 10, [33.3, 33.3, 66.7, 66.7, 76.2, 76.2, 79.8]),
            (3, 7, [25.0, 25.0, 50.0, 50.0, 57.1, 57.1, 57.1]),
            (3, 15, [25.0, 25.0, 50.0, 66.7, 66.7, 72.7, 79.0]),
        ] {
            assert_eq!(sizes.map(|kib| share(parities, members, kib)), expected, "Z{parities} x {members}");
        }
        // openzfs/zfs issue 8163: eleven drives, sectors of 64 KiB, records of 128 KiB: two of six sectors are data.
        assert_eq!(allocated_sectors(2, 11, 2), 6);
    }

    #[test]
    fn columns_are_those_of_the_map_and_share_no_place() {
        for (members, parity, kib) in
            [(3, 1, 128), (4, 1, 16), (5, 1, 8), (6, 2, 128), (9, 2, 20), (7, 3, 4), (11, 3, 128), (2, 1, 64)]
        {
            let layout = raidz(members, parity, kib * KIB);
            let (data, mut places) = (kib / 4, HashSet::new());
            for record in 0..layout.records {
                let columns = layout.columns(record);
                let of_data: u64 = columns.data().iter().map(|column| column.length_bytes).sum();
                assert_eq!(of_data, data * 4 * KIB);
                assert_eq!(columns.data().len() as u64, data.min(members - u64::from(parity)));
                let longest = data.div_ceil(members - u64::from(parity));
                assert!(columns.parity().iter().all(|column| column.length_bytes == longest * 4 * KIB));
                for column in &columns.columns {
                    assert!(column.end_bytes() <= 4 << 20);
                    let rows = column.at_bytes / (4 * KIB)..column.end_bytes() / (4 * KIB);
                    assert!(rows.clone().all(|row| places.insert((column.slot, row))), "{members} {parity} {kib}");
                    let mut found = false;
                    layout.records_on(column, |other| found |= other == record);
                    assert!(found);
                }
                let slots: HashSet<u32> = columns.columns.iter().map(|column| column.slot).collect();
                assert_eq!(slots.len(), columns.columns.len(), "a member holds one column of a record");
            }
            let taken = layout.records * (data + u64::from(parity) * data.div_ceil(members - u64::from(parity)));
            assert_eq!(places.len() as u64, taken);
        }
    }

    /// 128 KiB on RAIDZ1 of 4: rows of 3 data sectors, that is 10 full rows and 2 more sectors; the expected columns
    /// are those of OpenZFS's map for the first record.
    #[test]
    fn the_last_row_makes_columns_longer() {
        let columns = raidz(4, 1, 128 * KIB).columns(0);
        let drawn =
            columns.columns.iter().map(|column| (column.slot, column.at_bytes / 4096, column.length_bytes / 4096));
        assert_eq!(drawn.collect::<Vec<_>>(), [(0, 0, 11), (1, 0, 11), (2, 0, 11), (3, 0, 10)]);
    }

    #[test]
    fn reads_take_the_data_of_a_record_and_writes_all_of_it() {
        let layout = raidz(6, 2, 128 * KIB);
        let all = |_: &Extent| true;
        let part = RowPart { row: 3, from_bytes: 4096, to_bytes: 8192, chunks: None };
        let plan = layout.plan(&part, &all, &all);
        assert_eq!((plan.reads.len(), plan.data.len(), plan.parity.len()), (4, 4, 2));
        let whole = RowPart { row: 3, from_bytes: 0, to_bytes: 128 * KIB, chunks: None };
        assert!(layout.plan(&whole, &all, &all).reads.is_empty());
        let mut reads = vec![];
        assert_eq!(layout.read(&part, &all, &mut reads), 0);
        assert_eq!(reads, layout.columns(3).data());
        // If one of its data columns is missing, the read uses a parity instead.
        let missing = layout.columns(3).data()[1].slot;
        reads.clear();
        assert_eq!(layout.read(&part, &|extent| extent.slot != missing, &mut reads), 1);
        assert_eq!((reads.len(), reads[3]), (4, layout.columns(3).parity()[0]));
        // A record of two sectors touches two of six members, or four with its parities.
        let small = raidz(6, 2, 8 * KIB);
        assert_eq!((small.columns(0).data().len(), small.columns(0).columns.len()), (2, 4));
    }

    #[test]
    fn addresses_follow_the_columns() {
        let layout = raidz(5, 1, 24 * KIB);
        let mut places = vec![];
        layout.places(0, 24 * KIB, &mut places);
        assert_eq!(places, layout.columns(0).data());
        places.clear();
        layout.places(20 * KIB, 8 * KIB, &mut places);
        assert_eq!(places.iter().map(|place| place.length_bytes).sum::<u64>(), 8 * KIB);
        assert_eq!(places[0].end_bytes(), layout.columns(0).data()[3].end_bytes());
        assert_eq!(places[1].at_bytes, layout.columns(1).data()[0].at_bytes);
    }
}
