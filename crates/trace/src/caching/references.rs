//! Maps requests to references: blocks or objects as small integer ids, in order.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::options::Unit;
use crate::analyze::sample::Sample;
use crate::analyze::table::place;
use crate::record::{Operation, Record};

/// Objects are sampled by sector, since their offsets are multiples of the sector size.
const SECTOR_SHIFT: u32 = 9;

/// One use of a block or object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub id: u32,
    /// Length of the request, in bytes.
    pub length_bytes: u32,
    pub is_write: bool,
    /// Whether this is the first reference of its request.
    pub is_first: bool,
}

/// Ids of all blocks or objects used so far; in a sample, only of those sampled.
pub(super) struct Ids {
    unit: Unit,
    sample: Sample,
    by_place: HashMap<(u32, u64), u32, FxBuildHasher>,
    places: Vec<(u32, u64)>,
}

/// Memory per id, in bytes: its address and an entry of a half-full table.
pub(super) const ID_BYTES: u64 = 16 + 2 * 25;

impl Ids {
    pub fn new(unit: Unit, sample: Sample) -> Ids {
        Ids { unit, sample, by_place: HashMap::default(), places: Vec::new() }
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn rate(&self) -> f64 {
        self.sample.rate()
    }

    /// Returns the device, and the block number or first byte of the object.
    pub fn place(&self, id: u32) -> (u32, u64) {
        self.places[id as usize]
    }

    /// Returns the id of an address, if it has one.
    #[inline]
    pub fn find(&self, device: u32, value: u64) -> Option<u32> {
        self.by_place.get(&(device, value)).copied()
    }

    #[inline]
    fn id(&mut self, device: u32, value: u64, last: u32) -> u32 {
        // Neighboring blocks that were new together have consecutive ids and are mostly used together again.
        if let Some(&after) = self.places.get(last as usize + 1)
            && after == (device, value)
        {
            return last + 1;
        }
        let next = self.places.len() as u32;
        let id = *self.by_place.entry((device, value)).or_insert(next);
        if id == next {
            self.places.push((device, value));
        }
        id
    }

    /// Adds the references of requests that transfer data. Returns the number of references of reads and of writes,
    /// sampled or not. An unknown operation counts as a read.
    pub fn refer(&mut self, records: &[Record], references: &mut Vec<Reference>) -> [u64; 2] {
        let (mut counts, mut last) = ([0; 2], 0);
        for record in records {
            let is_write = match record.operation {
                Operation::Read | Operation::Unknown => false,
                Operation::Write => true,
                Operation::Trim | Operation::Flush | Operation::Other => continue,
            };
            let (first, end) = match self.unit {
                Unit::Blocks { .. } if record.length_bytes == 0 => continue,
                Unit::Blocks { bytes } => {
                    let shift = bytes.trailing_zeros();
                    (record.offset_bytes >> shift, ((record.end_bytes() - 1) >> shift) + 1)
                }
                Unit::Objects | Unit::ObjectBytes => (record.offset_bytes, record.offset_bytes + 1),
            };
            counts[usize::from(is_write)] += end - first;
            let (device, length_bytes) = (record.device, record.length_bytes);
            let mut is_first = true;
            for value in first..end {
                let sampled_by = if self.unit.is_object() { value >> SECTOR_SHIFT } else { value };
                if self.sample.is_all() || self.sample.takes(place(device, sampled_by)) {
                    last = self.id(device, value, last);
                    references.push(Reference { id: last, length_bytes, is_write, is_first });
                    is_first = false;
                }
            }
        }
        counts
    }
}
