//! LRU at all sizes at once, where every reference is taken in: a reference hits in each cache that is larger than its stack
//! distance (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970).

use super::references::Reference;
use super::report::{Counts, Traffic};
use crate::analyze::stack::Stack;

/// The last use of what was not used yet.
const COLD: u32 = u32::MAX;
/// References between two looks at the room of the stack.
const PIECE: usize = 1_024;

/// How many references had which distance.
#[derive(Clone, Default)]
struct Distances {
    /// By distance; of reads, and of writes.
    counts: [Vec<u64>; 2],
    cold: [u64; 2],
    /// Reads from the back end at caches from one size to the next: how many more there are than at the size before. Those of
    /// neighbours that miss together are one.
    more_reads: Vec<i64>,
}

/// References that follow each other now and did so the last time: all have the same distance.
#[derive(Clone, Copy)]
struct Run {
    old: u32,
    uses: u32,
    is_write: bool,
    is_first: bool,
}

pub(super) struct Curve {
    stack: Stack,
    last_use: Vec<u32>,
    distances: Distances,
    /// The distance of the reference before, of the same request; 0 where there is none: what is larger than it began to miss.
    before: u64,
    write_operations: u64,
}

impl Curve {
    pub fn new() -> Curve {
        let (stack, distances) = (Stack::new(), Distances::default());
        Curve { stack, last_use: Vec::new(), distances, before: 0, write_operations: 0 }
    }

    /// Counts references to ids below `ids_end`.
    pub fn add(&mut self, references: &[Reference], ids_end: usize) {
        self.last_use.resize(ids_end, COLD);
        for piece in references.chunks(PIECE) {
            if !self.stack.has_room(piece.len()) {
                let moves = self.stack.compact(piece.len());
                let known = self.last_use.iter_mut().filter(|position| **position != COLD);
                known.for_each(|position| *position = moves.to(*position));
            }
            let mut run = Run { old: COLD, uses: 0, is_write: false, is_first: true };
            for reference in piece {
                let last = &mut self.last_use[reference.id as usize];
                let old = std::mem::replace(last, self.stack.next() + run.uses);
                let Reference { is_write, is_first, .. } = *reference;
                self.write_operations += u64::from(is_write && is_first);
                let goes_on = run.uses > 0 && !is_first && old == run.old.saturating_add(run.uses);
                if goes_on {
                    run.uses += 1;
                } else {
                    self.book(run);
                    run = Run { old, uses: 1, is_write, is_first };
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
            self.begin_to_miss(run, u64::MAX);
        } else {
            // A hit in each cache of more blocks than were used since.
            let needs = self.stack.behind(run.old) + 1;
            let counts = &mut self.distances.counts[kind];
            if counts.len() <= needs as usize {
                counts.resize(needs as usize + 1, 0);
            }
            counts[needs as usize] += u64::from(run.uses);
            self.stack.clear(run.old, run.uses as usize);
            self.begin_to_miss(run, needs);
        }
        self.stack.push(run.uses as usize);
    }

    /// A read that misses in caches smaller than `needs`, where the reference before it did below `before`.
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

    /// What caches of these sizes do, each of so many blocks or objects.
    pub fn counts(&self, sizes: &[u64], block_bytes: Option<u32>) -> Vec<Counts> {
        let Distances { counts, cold, more_reads } = &self.distances;
        let sums = counts.each_ref().map(|counts| {
            let mut sum = 0;
            counts
                .iter()
                .map(|count| {
                    sum += count;
                    sum
                })
                .collect::<Vec<u64>>()
        });
        let mut reads = 0;
        let reads: Vec<i64> = more_reads
            .iter()
            .map(|more| {
                reads += more;
                reads
            })
            .collect();
        let at = |sums: &[u64], size: u64| sums.get(size as usize).or(sums.last()).copied().unwrap_or(0);
        let of_size = |&size: &u64| {
            let hits = sums.each_ref().map(|sums| at(sums, size));
            let all = [0, 1].map(|kind| at(&sums[kind], u64::MAX) + cold[kind]);
            let operations = reads.get(size as usize).or(reads.last()).copied().unwrap_or(0);
            let bytes = |count: u64| block_bytes.map_or(0, |bytes| count * u64::from(bytes));
            let traffic = Traffic {
                read_operations: operations as u64,
                read_bytes: bytes(all[0] - hits[0]),
                write_operations: self.write_operations,
                write_bytes: bytes(all[1]),
            };
            Counts { references: all, hits, traffic, dirty_bytes: 0 }
        };
        sizes.iter().map(of_size).collect()
    }
}
