//! [`Draid`]: dRAID of OpenZFS. Groups of data and parity columns are distributed over the members in an order that
//! changes from slice to slice; the last columns of each order are spare space. A spare is thus spread over all
//! members, and a rebuild to it reads from all members and writes to all of them (vdev_draid.c:
//! vdev_draid_logical_to_physical, vdev_draid_permute_id, vdev_draid_spare_get_child).
//!
//! A record is padded to whole rows of its group. As many members as there are parities may fail at once; more may fail
//! if they share no group in any slice, which is rare in wide arrays. OpenZFS has a table of seeds that make its
//! permutations even; here the seed is the number of members, and records do not continue from one group to the next.

use std::sync::Arc;

use super::placing::{Choice, Extent, Redundancy, Rules, Shape, Sparing, Usual, unit_end, units};
use super::records::{Columns, Records};
use crate::description::level::{DRAID_MEMBERS_MAX, SmallWrites};

/// Height of a row: bytes on each member.
pub const ROW_BYTES: u64 = 16 << 20;
/// Number of base permutations. Each is rotated through all members before the next is used, as in OpenZFS's larger
/// maps.
const PERMUTATIONS: usize = 256;

pub const fn rules(parity: u32, data: u32, spares: u32) -> Rules {
    let members_min = parity + data + spares;
    Rules {
        members_min,
        members_max: DRAID_MEMBERS_MAX,
        members_step: 1,
        is_striped: true,
        has_spans: false,
        has_records: true,
        is_declustered: true,
        usual: Usual { members_max: u32::MAX, members_step: 1 },
        choice: Choice::Named,
    }
}

pub fn capacity_bytes(shape: &Shape, parity: u32, data: u32, spares: u32) -> u64 {
    let width = u64::from(parity + data);
    if shape.members < width + u64::from(spares) || shape.unit_bytes == 0 || shape.record_bytes == 0 {
        return 0;
    }
    let map = Map::new(shape, parity, data, spares, ROW_BYTES);
    (map.groups * map.records_each).saturating_mul(map.record_bytes)
}

pub fn redundancy(members: u64, parity: u32, data: u32, spares: u32) -> Redundancy {
    let (survives, width) = (u64::from(parity), u64::from(parity + data));
    Redundancy { groups: 1, members, survives, width, spares: u64::from(spares) }
}

/// Returns the data capacity in units of a member's capacity, as numerator and denominator.
pub fn data_share(members: u64, parity: u32, data: u32, spares: u32) -> (u64, u64) {
    ((members - u64::from(spares)) * u64::from(data), u64::from(parity + data))
}

/// Address arithmetic of dRAID.
#[derive(Clone, Debug)]
struct Map {
    members: u64,
    /// Number of members minus the number of spares.
    columns: u64,
    parities: u64,
    data: u64,
    sector_bytes: u64,
    record_bytes: u64,
    row_bytes: u64,
    /// Number of groups in a slice, and of rows in a slice.
    slice_groups: u64,
    slice_rows: u64,
    /// Total number of groups.
    groups: u64,
    /// Number of records of a group.
    records_each: u64,
}

impl Map {
    fn new(shape: &Shape, parity: u32, data: u32, spares: u32, row_bytes: u64) -> Map {
        let (columns, width) = (shape.members - u64::from(spares), u64::from(parity + data));
        let least_common = columns / greatest_common(columns, width) * width;
        let rows = shape.member_bytes / row_bytes;
        let sectors = shape.record_bytes.div_ceil(shape.unit_bytes);
        Map {
            members: shape.members,
            columns,
            parities: u64::from(parity),
            data: u64::from(data),
            sector_bytes: shape.unit_bytes,
            record_bytes: shape.record_bytes,
            row_bytes,
            slice_groups: least_common / width,
            slice_rows: least_common / columns,
            groups: rows * columns / width,
            records_each: row_bytes / (sectors.div_ceil(u64::from(data)) * shape.unit_bytes),
        }
    }

    fn width(&self) -> u64 {
        self.parities + self.data
    }

    /// Returns the bytes of a record on each member of its group, including padding.
    fn height_bytes(&self) -> u64 {
        self.record_bytes.div_ceil(self.sector_bytes).div_ceil(self.data) * self.sector_bytes
    }
}

/// The groups of a dRAID, and the order of the members in each slice.
#[derive(Clone, Debug)]
pub struct Draid {
    map: Map,
    orders: Arc<Orders>,
    has_new_blocks: bool,
}

/// The permutations of the members, and their inverses.
#[derive(Debug)]
struct Orders {
    forward: Vec<u8>,
    inverse: Vec<u8>,
}

impl Orders {
    fn new(members: usize) -> Orders {
        let mut random = Xoroshiro([0xd7a1d533d, members as u64]);
        let (mut forward, mut inverse) = (Vec::new(), vec![0; PERMUTATIONS * members]);
        for base in 0..PERMUTATIONS {
            let from = forward.len();
            forward.extend((0..members).map(|member| member as u8));
            for last in (1..members).rev() {
                let other = random.next() % (last as u64 + 1);
                forward.swap(from + last, from + other as usize);
            }
            for index in 0..members {
                inverse[base * members + usize::from(forward[from + index])] = index as u8;
            }
        }
        Orders { forward, inverse }
    }
}

/// Xoroshiro128++, the generator that OpenZFS uses for shuffling.
struct Xoroshiro([u64; 2]);

impl Xoroshiro {
    fn next(&mut self) -> u64 {
        let [first, mut second] = self.0;
        let result = first.wrapping_add(second).rotate_left(17).wrapping_add(first);
        second ^= first;
        self.0 = [first.rotate_left(49) ^ second ^ (second << 21), second.rotate_left(28)];
        result
    }
}

fn greatest_common(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common(other, one % other) }
}

impl Draid {
    /// Creates the layout of a validated shape.
    pub fn new(shape: &Shape, parity: u32, data: u32, spares: u32) -> Draid {
        Draid::with_rows(shape, parity, data, spares, ROW_BYTES)
    }

    fn with_rows(shape: &Shape, parity: u32, data: u32, spares: u32, row_bytes: u64) -> Draid {
        let map = Map::new(shape, parity, data, spares, row_bytes);
        let has_new_blocks = shape.small_writes == SmallWrites::NewBlocks;
        Draid { orders: Arc::new(Orders::new(map.members as usize)), map, has_new_blocks }
    }

    /// Returns the slice that contains a byte of a slot.
    fn slice(&self, at_bytes: u64) -> u64 {
        at_bytes / self.map.row_bytes / self.map.slice_rows
    }

    /// Returns the slot at a position in the order of a slice.
    fn slot(&self, slice: u64, index: u64) -> u32 {
        let members = self.map.members;
        let turn = slice % (PERMUTATIONS as u64 * members);
        let base = turn / members * members;
        ((u64::from(self.orders.forward[(base + index) as usize]) + turn % members) % members) as u32
    }

    /// Returns the position of a slot in the order of a slice.
    fn index(&self, slice: u64, slot: u32) -> u64 {
        let members = self.map.members;
        let turn = slice % (PERMUTATIONS as u64 * members);
        let base = turn / members * members;
        let turned_back = (u64::from(slot) + members - turn % members) % members;
        u64::from(self.orders.inverse[(base + turned_back) as usize])
    }

    /// Returns the slot and the first byte of a column of a group.
    fn column(&self, group: u64, column: u64) -> (u32, u64) {
        let map = &self.map;
        let slice = group / map.slice_groups;
        let place = group % map.slice_groups * map.width() + column;
        let row = slice * map.slice_rows + place / map.columns;
        (self.slot(slice, place % map.columns), row * map.row_bytes)
    }
}

impl Sparing for Draid {
    fn spares(&self) -> u32 {
        (self.map.members - self.map.columns) as u32
    }

    fn spare_slot(&self, spare: u32, at_bytes: u64) -> u32 {
        self.slot(self.slice(at_bytes), self.map.members - 1 - u64::from(spare))
    }

    fn spare_at(&self, slot: u32, at_bytes: u64) -> Option<u32> {
        let index = self.index(self.slice(at_bytes), slot);
        (index >= self.map.columns).then(|| (self.map.members - 1 - index) as u32)
    }

    fn row_end(&self, at_bytes: u64) -> u64 {
        unit_end(at_bytes, self.map.row_bytes)
    }
}

impl Records for Draid {
    fn slots(&self) -> u32 {
        self.map.members as u32
    }

    fn parities(&self) -> u32 {
        self.map.parities as u32
    }

    fn record_bytes(&self) -> u64 {
        self.map.record_bytes
    }

    fn has_new_blocks(&self) -> bool {
        self.has_new_blocks
    }

    /// Returns the columns of a block. A shorter block is padded to whole rows of its group, which are written.
    fn columns_of_block(&self, record: u64, bytes: u64) -> Columns {
        let map = &self.map;
        let (group, within) = (record / map.records_each, record % map.records_each * map.height_bytes());
        let sectors = bytes.div_ceil(map.sector_bytes);
        let (rows, rest) = (sectors / map.data, sectors % map.data);
        let is_padded = bytes < map.record_bytes;
        let height_bytes = sectors.div_ceil(map.data) * map.sector_bytes;
        let length_bytes = |column: u64| match column.checked_sub(map.parities) {
            Some(data) if !is_padded => (rows + u64::from(data < rest)) * map.sector_bytes,
            Some(_) | None => height_bytes,
        };
        let columns = (0..map.width()).map(|column| {
            let (slot, at_bytes) = self.column(group, column);
            Extent { slot, at_bytes: at_bytes + within, length_bytes: length_bytes(column) }
        });
        let columns = columns.filter(|column| column.length_bytes > 0).collect();
        Columns { parities: map.parities as usize, columns }
    }

    fn records_on(&self, extent: &Extent, mut each: impl FnMut(u64)) {
        let map = &self.map;
        units(map.row_bytes, extent.at_bytes, extent.length_bytes, |row, within, length_bytes| {
            let slice = row / map.slice_rows;
            let index = self.index(slice, extent.slot);
            let group = slice * map.slice_groups + (row % map.slice_rows * map.columns + index) / map.width();
            if index >= map.columns || group >= map.groups {
                return;
            }
            let first = within / map.height_bytes();
            let end = (within + length_bytes).div_ceil(map.height_bytes()).min(map.records_each);
            (first..end).for_each(|record| each(group * map.records_each + record));
        });
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        let map = &self.map;
        // The orders, and with them the assignment of spare space, repeat after this many slices.
        let slices = PERMUTATIONS as u64 * map.members;
        (0..map.groups.min(slices * map.slice_groups)).all(|group| {
            let columns = (0..map.width()).map(|column| self.column(group, column));
            columns.filter(|&(slot, at_bytes)| !whole(slot, at_bytes)).count() as u64 <= map.parities
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::placing::tests::shape;
    use super::super::placing::{Coding, Placing, RowPart};
    use super::*;

    const KIB: u64 = 1 << 10;
    const ROW: u64 = 64 * KIB;

    fn draid(members: u64, parity: u32, data: u32, spares: u32, record_bytes: u64, rows: u64) -> Draid {
        let shape = Shape { members, record_bytes, unit_bytes: 4 * KIB, member_bytes: rows * ROW, ..shape() };
        Draid::with_rows(&shape, parity, data, spares, ROW)
    }

    /// The example in vdev_draid.c: 14 members, 2 spares, 8+1: 4 groups in 3 rows, so a slice holds 4 x 9 x 16 MiB.
    #[test]
    fn slices_are_those_of_the_source() {
        let layout = draid(14, 1, 8, 2, 32 * KIB, 30);
        assert_eq!((layout.map.slice_groups, layout.map.slice_rows), (4, 3));
        assert_eq!(layout.map.slice_groups * layout.map.width() * ROW_BYTES, 576 << 20);
        assert_eq!(layout.map.groups, 40);
        // (C - S) x D / (D + P) of the members' capacity.
        let shape =
            Shape { members: 14, record_bytes: 128 * KIB, unit_bytes: 4096, member_bytes: 30 * ROW_BYTES, ..shape() };
        assert_eq!(capacity_bytes(&shape, 1, 8, 2), 12 * 30 * ROW_BYTES * 8 / 9);
        assert_eq!(layout.record_bytes(), 32 * KIB, "eight sectors is the smallest record without padding");
        // A record of one sector is padded to eight.
        let padded = Shape { record_bytes: 4 * KIB, ..shape };
        assert_eq!(capacity_bytes(&padded, 1, 8, 2), 12 * 30 * ROW_BYTES / 9);
    }

    #[test]
    fn columns_are_disjoint_and_avoid_spares() {
        for (members, parity, data, spares, kib, rows) in [
            (14, 1, 8, 2, 32, 30),
            (7, 2, 3, 1, 12, 20),
            (11, 3, 4, 0, 40, 22),
            (5, 1, 1, 2, 8, 9),
            (9, 2, 2, 1, 20, 40),
        ] {
            let layout = draid(members, parity, data, spares, kib * KIB, rows);
            let mut places = HashSet::new();
            for record in 0..layout.map.groups * layout.map.records_each {
                let columns = layout.columns(record);
                assert_eq!(columns.data().iter().map(|column| column.length_bytes).sum::<u64>(), kib * KIB);
                let slots: HashSet<u32> = columns.columns.iter().map(|column| column.slot).collect();
                assert_eq!(slots.len(), columns.columns.len(), "a member holds one column of a record");
                for column in &columns.columns {
                    assert!(column.end_bytes() <= rows * ROW, "{column:?}");
                    assert_eq!(layout.spare_at(column.slot, column.at_bytes), None);
                    let sectors = column.at_bytes / 4096..column.end_bytes() / 4096;
                    assert!(sectors.clone().all(|sector| places.insert((column.slot, sector))), "{members} {kib}");
                    let mut found = 0;
                    layout.records_on(column, |other| found += u32::from(other == record));
                    assert_eq!(found, 1);
                }
            }
        }
    }

    /// The spare space of a row is as wide as the number of spares, and each member has an equal share.
    #[test]
    fn spares_are_spread_over_all_members() {
        let layout = draid(14, 1, 8, 2, 32 * KIB, 3 * 14 * 20);
        let mut shares: HashMap<u32, u32> = HashMap::new();
        for row in 0..3 * 14 * 20 {
            let at_bytes = row * ROW;
            let slots = [0, 1].map(|spare| layout.spare_slot(spare, at_bytes));
            assert_ne!(slots[0], slots[1]);
            for (spare, slot) in (0..).zip(slots) {
                assert_eq!(layout.spare_at(slot, at_bytes), Some(spare));
                *shares.entry(slot).or_default() += 1;
            }
        }
        // Each base permutation is rotated through all members, so every member is a spare equally often.
        assert!((0..14).all(|slot| shares[&slot] == 2 * 3 * 20), "{shares:?}");
    }

    /// A rebuild of a member reads about equally from all other members.
    #[test]
    fn a_rebuild_reads_from_all_members() {
        let layout = draid(12, 1, 4, 1, 16 * KIB, 12 * 5 * 10);
        let mut reads: HashMap<u32, u64> = HashMap::new();
        for row in 0..12 * 5 * 10 {
            let extent = Extent { slot: 3, at_bytes: row * ROW, length_bytes: ROW };
            let mut sources = vec![];
            let enough = layout.sources(&extent, &|_| true, &mut sources);
            assert_eq!(
                (enough, sources.len()),
                if layout.spare_at(3, row * ROW).is_some() { (false, 0) } else { (true, 4) }
            );
            sources.iter().for_each(|source| *reads.entry(source.slot).or_default() += source.length_bytes);
        }
        let mean = reads.values().sum::<u64>() as f64 / 11.0;
        assert!(!reads.contains_key(&3) && reads.len() == 11);
        assert!(reads.values().all(|&bytes| (0.75..1.25).contains(&(bytes as f64 / mean))), "{reads:?}");
    }

    #[test]
    fn reads_and_writes_are_of_records() {
        let layout = draid(14, 2, 4, 1, 16 * KIB, 30);
        let all = |_: &Extent| true;
        let part = RowPart { row: 5, from_bytes: 0, to_bytes: 4096, chunks: None };
        let plan = layout.plan(&part, &all, &all);
        assert_eq!((plan.reads.len(), plan.data.len(), plan.parity.len()), (4, 4, 2));
        let mut reads = vec![];
        let gone = layout.columns(5).data()[2].slot;
        assert_eq!(layout.read(&part, &|extent| extent.slot != gone, &mut reads), 1);
        assert_eq!(reads.len(), 4);
    }
}
