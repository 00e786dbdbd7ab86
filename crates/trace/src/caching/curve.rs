//! LRU at all sizes at once, if every reference is admitted: a reference hits in each cache that is larger than its
//! stack distance (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9(2), 1970).

use super::options::Unit;
use super::references::Reference;
use super::report::{Counts, Traffic};
use crate::analyze::stack::Stack;

/// Last use of an id that was not used yet.
const COLD: u32 = u32::MAX;
/// References between two checks of the stack's room.
const PIECE: usize = 1_024;

/// Number of references by distance.
#[derive(Clone, Default)]
struct Distances {
    /// By distance; for reads, and for writes.
    counts: [Vec<u64>; 2],
    cold: [u64; 2],
    /// Bytes of reads by distance, and of those that always miss, if references differ in length.
    read_bytes: Vec<u64>,
    cold_bytes: u64,
    /// Reads from the back end, as differences between consecutive cache sizes. Neighbours that miss together count as
    /// one.
    more_reads: Vec<i64>,
}

/// Consecutive references that were also consecutive the last time: all have the same distance.
#[derive(Clone, Copy)]
struct Run {
    old: u32,
    uses: u32,
    is_write: bool,
    is_first: bool,
    /// Length of the first request.
    length_bytes: u32,
}

pub(super) struct Curve {
    unit: Unit,
    stack: Stack,
    last_use: Vec<u32>,
    distances: Distances,
    /// Distance of the previous reference of the same request; 0 if there is none.
    before: u64,
    write_operations: u64,
    write_bytes: u64,
}

impl Curve {
    pub fn new(unit: Unit) -> Curve {
        let (stack, distances) = (Stack::new(), Distances::default());
        Curve { unit, stack, last_use: Vec::new(), distances, before: 0, write_operations: 0, write_bytes: 0 }
    }

    /// Counts references to ids below `ids_end`.
    pub fn add(&mut self, references: &[Reference], ids_end: usize) {
        self.last_use.resize(ids_end, COLD);
        for piece in references.chunks(PIECE) {
            if !self.stack.has_room(piece.len()) {
                let moves = self.stack.compact(piece.len());
                let positions = self.last_use.iter_mut().filter(|position| **position != COLD);
                positions.for_each(|position| *position = moves.to(*position));
            }
            let mut run = Run { old: COLD, uses: 0, is_write: false, is_first: true, length_bytes: 0 };
            for reference in piece {
                let last = &mut self.last_use[reference.id as usize];
                let old = std::mem::replace(last, self.stack.next() + run.uses);
                let Reference { is_write, is_first, length_bytes, .. } = *reference;
                if is_write {
                    self.write_operations += u64::from(is_first);
                    self.write_bytes += u64::from(self.unit.bytes_of(length_bytes));
                }
                let goes_on = run.uses > 0 && !is_first && old == run.old.saturating_add(run.uses);
                if goes_on {
                    run.uses += 1;
                } else {
                    self.book(run);
                    run = Run { old, uses: 1, is_write, is_first, length_bytes };
                }
            }
            self.book(run);
        }
    }

    #[inline]
    fn book(&mut self, run: Run) {
        if run.uses == 0 {
            return;
        }
        let kind = usize::from(run.is_write);
        if run.is_first {
            self.before = 0;
        }
        if run.old == COLD {
            self.distances.cold[kind] += u64::from(run.uses);
            self.distances.cold_bytes += u64::from(run.length_bytes) * u64::from(!run.is_write);
            self.begin_to_miss(run, u64::MAX);
        } else {
            // A hit in each cache of more blocks than were used since.
            let needs = self.stack.behind(run.old) + 1;
            let counts = &mut self.distances.counts[kind];
            if counts.len() <= needs as usize {
                counts.resize(needs as usize + 1, 0);
            }
            counts[needs as usize] += u64::from(run.uses);
            if self.unit == Unit::Objects && !run.is_write {
                let bytes = &mut self.distances.read_bytes;
                if bytes.len() <= needs as usize {
                    bytes.resize(needs as usize + 1, 0);
                }
                bytes[needs as usize] += u64::from(run.length_bytes);
            }
            self.stack.clear(run.old, run.uses as usize);
            self.begin_to_miss(run, needs);
        }
        self.stack.push(run.uses as usize);
    }

    /// Counts a read that misses in caches smaller than `needs`, where the previous reference missed below `before`.
    #[inline]
    fn begin_to_miss(&mut self, run: Run, needs: u64) {
        let before = std::mem::replace(&mut self.before, needs);
        if run.is_write || needs <= before {
            return;
        }
        self.change_reads(before, 1);
        if needs != u64::MAX {
            self.change_reads(needs, -1);
        }
    }

    #[inline]
    fn change_reads(&mut self, size: u64, by: i64) {
        let more = &mut self.distances.more_reads;
        if more.len() <= size as usize {
            more.resize(size as usize + 1, 0);
        }
        more[size as usize] += by;
    }

    /// Counts of caches of these sizes, in blocks or objects.
    pub fn counts(&self, sizes: &[u64]) -> Vec<Counts> {
        let Distances { counts, cold, read_bytes, cold_bytes, more_reads } = &self.distances;
        let counts = counts.each_ref().map(|counts| sums(counts));
        let bytes = sums(read_bytes);
        let mut reads = 0;
        let add = |more: &i64| {
            reads += more;
            reads as u64
        };
        let reads: Vec<u64> = more_reads.iter().map(add).collect();
        let of_size = |&size: &u64| {
            let hits = counts.each_ref().map(|counts| at(counts, size));
            let all = [0, 1].map(|kind| at(&counts[kind], u64::MAX) + cold[kind]);
            let read_bytes = match self.unit {
                Unit::Blocks { bytes } => (all[0] - hits[0]) * u64::from(bytes),
                Unit::Objects | Unit::ObjectBytes => at(&bytes, u64::MAX) + cold_bytes - at(&bytes, size),
            };
            let traffic = Traffic {
                read_operations: at(&reads, size),
                read_bytes,
                write_operations: self.write_operations,
                write_bytes: self.write_bytes,
            };
            Counts { references: all, hits, traffic, dirty_bytes: 0 }
        };
        sizes.iter().map(of_size).collect()
    }
}

/// Cumulative sums.
fn sums(counts: &[u64]) -> Vec<u64> {
    let mut sum = 0;
    let add = |count: &u64| {
        sum += count;
        sum
    };
    counts.iter().map(add).collect()
}

/// The sum at a size; the last one beyond.
fn at(sums: &[u64], size: u64) -> u64 {
    usize::try_from(size).ok().and_then(|size| sums.get(size)).or(sums.last()).copied().unwrap_or(0)
}
