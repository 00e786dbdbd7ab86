//! [`Records`]: levels that read and write whole *records*, as in OpenZFS. A checksum covers the record, so a read of
//! any part reads all data of the record; a write of a part reads the record, and writes it completely with its
//! parities. A record consists of columns, each a run on one slot. Any subset of columns as large as the number of data
//! columns is enough to reconstruct the others.
//!
//! OpenZFS writes a record to a new place each time; here a record has a fixed place, as if the pool had been filled in
//! order of addresses. Below a layer that chooses the places, a shorter access at the start of a record's place is a
//! whole block, such as a log block or a compressed record, with its own parities
//! ([`crate::description::level::SmallWrites::NewBlocks`]).

use super::placing::{Coding, Extent, Placing, Plan, RowPart, Tear, unit_end, units};

/// The columns of a record, parities first.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub parities: usize,
    pub columns: Vec<Extent>,
}

impl Columns {
    pub fn parity(&self) -> &[Extent] {
        &self.columns[..self.parities]
    }

    pub fn data(&self) -> &[Extent] {
        &self.columns[self.parities..]
    }

    /// Returns the data columns, then the parities: the order in which columns are read.
    fn in_order(&self) -> impl Iterator<Item = &Extent> {
        self.data().iter().chain(self.parity())
    }
}

/// The records of a level.
pub trait Records {
    /// Returns the number of slots.
    fn slots(&self) -> u32;

    /// Returns the number of parities of a record.
    fn parities(&self) -> u32;

    /// Returns the size of a record, in bytes.
    fn record_bytes(&self) -> u64;

    /// Whether a shorter access at the start of a record's place is a block of its own.
    fn has_new_blocks(&self) -> bool;

    /// Returns the columns of a record.
    fn columns(&self, record: u64) -> Columns {
        self.columns_of_block(record, self.record_bytes())
    }

    /// Returns the columns of a block of `bytes` at the place of a record.
    fn columns_of_block(&self, record: u64, bytes: u64) -> Columns;

    /// Calls `each` with the records that may have bytes on an extent, in ascending order.
    fn records_on(&self, extent: &Extent, each: impl FnMut(u64));

    /// Whether no record lacks more columns than it has parities; `whole` states whether a byte of a slot is valid.
    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool;
}

/// Returns the columns of the block that a part reads or writes, and whether they are those of a whole record.
fn columns_of_part<R: Records>(level: &R, part: &RowPart) -> (Columns, bool) {
    if level.has_new_blocks() && part.from_bytes == 0 && part.to_bytes < level.record_bytes() {
        return (level.columns_of_block(part.row, part.to_bytes), false);
    }
    (level.columns(part.row), true)
}

fn overlaps(one: &Extent, other: &Extent) -> bool {
    one.slot == other.slot && one.at_bytes < other.end_bytes() && other.at_bytes < one.end_bytes()
}

/// Widens the extent on the same slot so that it includes `other`.
fn widen(extents: &mut Vec<Extent>, other: &Extent) {
    match extents.iter_mut().find(|extent| extent.slot == other.slot) {
        Some(extent) => {
            let end = extent.end_bytes().max(other.end_bytes());
            extent.at_bytes = extent.at_bytes.min(other.at_bytes);
            extent.length_bytes = end - extent.at_bytes;
        }
        None => extents.push(*other),
    }
}

impl<R: Records> Placing for R {
    fn slots(&self) -> u32 {
        Records::slots(self)
    }

    fn places(&self, offset_bytes: u64, length_bytes: u64, into: &mut Vec<Extent>) {
        units(self.record_bytes(), offset_bytes, length_bytes, |record, from, length| {
            let (mut begin, to) = (0, from + length);
            for column in self.columns(record).data() {
                let end = begin + column.length_bytes;
                let (first, last) = (from.max(begin), to.min(end));
                if first < last {
                    let at_bytes = column.at_bytes + (first - begin);
                    into.push(Extent { at_bytes, length_bytes: last - first, ..*column });
                }
                begin = end;
            }
        });
    }

    fn survives(&self, whole: &impl Fn(u32, u64) -> bool) -> bool {
        Records::survives(self, whole)
    }

    /// Appends one run for each slot: the extents of neighbouring records are adjacent, except for the columns of other
    /// records.
    fn sources(&self, extent: &Extent, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> bool {
        let mut enough = true;
        self.records_on(extent, |record| {
            let columns = self.columns(record);
            if !columns.columns.iter().any(|column| overlaps(column, extent)) {
                return;
            }
            let others = columns.in_order().filter(|column| column.slot != extent.slot && readable(column));
            let mut found = 0;
            for column in others.take(columns.data().len()) {
                widen(into, column);
                found += 1;
            }
            enough &= found == columns.data().len();
        });
        enough && !into.is_empty()
    }

    fn damaged(&self, bad: &Extent, slot: u32) -> Vec<Extent> {
        let mut damaged = Vec::new();
        self.records_on(bad, |record| {
            let columns = self.columns(record).columns;
            if columns.iter().any(|column| overlaps(column, bad)) {
                damaged.extend(columns.into_iter().filter(|column| column.slot == slot));
            }
        });
        damaged
    }

    fn tear(&self, offset_bytes: u64) -> Tear {
        Tear::At(unit_end(offset_bytes, self.record_bytes()))
    }

    fn joint_bytes(&self) -> u64 {
        self.record_bytes()
    }
}

impl<R: Records> Coding for R {
    fn row_bytes(&self) -> u64 {
        self.record_bytes()
    }

    fn reads_whole_rows(&self) -> bool {
        true
    }

    fn parity_bytes(&self, _part: &RowPart) -> u64 {
        u64::from(self.parities()) * self.record_bytes()
    }

    fn plan(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, writable: &impl Fn(&Extent) -> bool) -> Plan {
        let (columns, whole) = columns_of_part(self, part);
        let written = |columns: &[Extent]| columns.iter().filter(|column| writable(column)).copied().collect();
        let (data, parity) = (written(columns.data()), written(columns.parity()));
        let mut plan = Plan { reads: Vec::new(), data, parity, modifies: false };
        if whole && part.length_bytes() < self.record_bytes() {
            self.read(part, readable, &mut plan.reads);
        }
        plan
    }

    fn read(&self, part: &RowPart, readable: &impl Fn(&Extent) -> bool, into: &mut Vec<Extent>) -> u64 {
        let (columns, _) = columns_of_part(self, part);
        let needed = columns.data().len();
        let from = into.len();
        into.extend(columns.in_order().filter(|column| readable(column)).take(needed));
        let data = columns.data().iter().filter(|column| readable(column)).count();
        (into.len() - from - data) as u64
    }

    fn parities_of(&self, extent: &Extent, mut each: impl FnMut(Extent)) {
        self.records_on(extent, |record| {
            let columns = self.columns(record);
            if columns.data().iter().any(|column| overlaps(column, extent)) {
                columns.parity().iter().for_each(|parity| each(*parity));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::draid::Draid;
    use super::super::placing::tests::shape;
    use super::super::placing::{Coding, RowPart, Shape};
    use super::super::raidz::Raidz;
    use crate::description::level::SmallWrites;

    const KIB: u64 = 1 << 10;

    /// A block that is shorter than a record takes its own sectors and parities; on dRAID it is padded to a whole row of
    /// its group: 40 KiB for 4 KiB at 2:8d. Without new blocks, such a write reads the record.
    #[test]
    fn a_new_block_takes_its_own_columns() {
        let shape = |small_writes: SmallWrites| Shape {
            members: 12,
            record_bytes: 128 * KIB,
            unit_bytes: 4 * KIB,
            member_bytes: 1 << 30,
            small_writes,
            ..shape()
        };
        let (new, old) = (shape(SmallWrites::NewBlocks), shape(SmallWrites::Cheapest));
        let part = |kib: u64| RowPart { row: 5, from_bytes: 0, to_bytes: kib * KIB, chunks: None };
        let written = |level: &dyn Fn(&RowPart) -> super::super::placing::Plan, kib: u64| {
            let plan = level(&part(kib));
            let bytes = plan.data.iter().chain(&plan.parity).map(|extent| extent.length_bytes).sum::<u64>();
            (plan.reads.len(), plan.data.len(), plan.parity.len(), bytes / KIB)
        };
        let raidz = |shape: &Shape| {
            let level = Raidz::new(shape, 2);
            move |part: &RowPart| level.plan(part, &|_| true, &|_| true)
        };
        assert_eq!(written(&raidz(&new), 4), (0, 1, 2, 12));
        assert_eq!(written(&raidz(&new), 8), (0, 2, 2, 16));
        assert_eq!(written(&raidz(&new), 64), (0, 10, 2, 64 + 16));
        assert_eq!(written(&raidz(&new), 128).0, 0);
        assert_eq!(written(&raidz(&old), 4).0, 10);
        let draid = |shape: &Shape| {
            let level = Draid::new(shape, 2, 8, 1);
            move |part: &RowPart| level.plan(part, &|_| true, &|_| true)
        };
        assert_eq!(written(&draid(&new), 4), (0, 8, 2, 40));
        assert_eq!(written(&draid(&new), 36), (0, 8, 2, 80));
        assert_eq!(written(&draid(&old), 4).0, 8);
        let mut reads = Vec::new();
        Raidz::new(&new, 2).read(&part(8), &|_| true, &mut reads);
        assert_eq!(reads.len(), 2, "a read takes the data columns of the block");
    }
}
