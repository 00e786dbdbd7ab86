//! [`Unstable`]: acknowledged data that are only in memory: neither in a synced transaction group nor in a committed log
//! record.

use headstack_workload::Span;
use rustc_hash::FxHashMap;

use crate::spans::common;

/// A part of a record whose newest write has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: u32,
    to: u32,
    number: u64,
}

/// Parts of records that are only in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Unstable {
    records: FxHashMap<u64, Vec<Piece>>,
}

impl Unstable {
    /// Adds the bytes `[from, to)` of a record, written by write `number`.
    pub fn add(&mut self, record: u64, from: u32, to: u32, number: u64) {
        let pieces = self.records.entry(record).or_default();
        cut(pieces, from, to, u64::MAX);
        pieces.push(Piece { from, to, number });
    }

    /// Removes the bytes `[from, to)` of a record as far as writes up to `number` wrote them.
    pub fn settle(&mut self, record: u64, from: u32, to: u32, number: u64) {
        if let Some(pieces) = self.records.get_mut(&record) {
            cut(pieces, from, to, number);
            if pieces.is_empty() {
                self.records.remove(&record);
            }
        }
    }

    /// Appends the parts of a span.
    pub fn within(&self, span: Span, record_bytes: u64, into: &mut Vec<Span>) {
        if self.records.is_empty() || span.length_bytes == 0 {
            return;
        }
        let end = span.start_bytes + span.length_bytes;
        let mut add = |record: u64, pieces: &[Piece]| {
            for piece in pieces {
                let (from, to) =
                    (record * record_bytes + u64::from(piece.from), record * record_bytes + u64::from(piece.to));
                into.extend(common(span, from, to));
            }
        };
        let (first, last) = (span.start_bytes / record_bytes, (end - 1) / record_bytes);
        if last - first < self.records.len() as u64 {
            (first..=last).for_each(|record| add(record, self.records.get(&record).map_or(&[], Vec::as_slice)));
        } else {
            let inside = self.records.iter().filter(|(record, _)| (first..=last).contains(record));
            inside.for_each(|(&record, pieces)| add(record, pieces));
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.records.clear();
    }
}

/// Removes the bytes `[from, to)` from the pieces of writes up to `number`.
fn cut(pieces: &mut Vec<Piece>, from: u32, to: u32, number: u64) {
    let mut rest = Vec::new();
    pieces.retain_mut(|piece| {
        if piece.number > number || piece.to <= from || to <= piece.from {
            return true;
        }
        if piece.to > to {
            rest.push(Piece { from: to, ..*piece });
        }
        piece.to = from;
        piece.from < from
    });
    pieces.append(&mut rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(unstable: &Unstable) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        unstable.within(Span { start_bytes: 0, length_bytes: 10_000 }, 1000, &mut spans);
        crate::spans::put_in_order(&mut spans, 0);
        spans.iter().map(|span| (span.start_bytes, span.start_bytes + span.length_bytes)).collect()
    }

    #[test]
    fn a_newer_write_stays_when_an_older_write_is_stable() {
        let mut unstable = Unstable::default();
        unstable.add(1, 0, 800, 1);
        unstable.add(1, 200, 400, 2);
        unstable.settle(1, 0, 1000, 1);
        assert_eq!(parts(&unstable), [(1200, 1400)]);
        unstable.add(1, 0, 1000, 3);
        unstable.settle(1, 300, 500, 3);
        assert_eq!(parts(&unstable), [(1000, 1300), (1500, 2000)]);
        unstable.settle(1, 0, 1000, 3);
        assert_eq!((parts(&unstable), unstable.records.len()), (vec![], 0));
    }
}
