//! [`Places`]: places that were written while stale reads are possible, with the change that replaced the previous
//! data.

use std::collections::{BTreeMap, VecDeque};

use headstack_workload::Span;

use super::contents::{Damage, PLACES_MAX, ReadCorruption};

/// Most bytes of older data that one fault keeps; it forgets the oldest of more.
const KEPT_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Copy, Debug)]
struct Place {
    end_bytes: u64,
    change: u64,
    /// Whether a read has returned the older data here, and later ones shall too.
    sticks: bool,
}

/// Places with older data, by their first byte; they do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    places: BTreeMap<u64, Place>,
    /// Changes with their bytes in order, oldest first.
    kept: VecDeque<(u64, u64)>,
    kept_bytes: u64,
}

impl Places {
    /// Records a change; if `is_write`, its previous data are kept.
    pub fn written(&mut self, span: Span, change: u64, is_write: bool, damages: &mut Vec<Damage>) {
        self.clear(span);
        if is_write && span.length_bytes <= KEPT_BYTES_MAX {
            let end_bytes = span.start_bytes + span.length_bytes;
            self.places.insert(span.start_bytes, Place { end_bytes, change, sticks: false });
            self.kept.push_back((change, span.length_bytes));
            self.kept_bytes += span.length_bytes;
            damages.push(Damage::Kept { change, span });
        }
        self.forget_excess(damages);
    }

    /// Returns the older data that a read of a span finds.
    pub fn within(&self, span: Span) -> Vec<ReadCorruption> {
        let end_bytes = span.start_bytes + span.length_bytes;
        let overlapping = self.places.range(..end_bytes).filter(|(_, place)| place.end_bytes > span.start_bytes);
        let spoil = |(&start, place): (&u64, &Place)| {
            let start_bytes = start.max(span.start_bytes);
            let length_bytes = place.end_bytes.min(end_bytes) - start_bytes;
            ReadCorruption::Before { span: Span { start_bytes, length_bytes }, change: place.change }
        };
        overlapping.map(spoil).collect()
    }

    /// Whether every place that a read touches has returned older data before.
    pub fn sticks(&self, span: Span) -> bool {
        let end_bytes = span.start_bytes + span.length_bytes;
        let mut overlapping = self.places.range(..end_bytes).filter(|(_, place)| place.end_bytes > span.start_bytes);
        overlapping.any(|(_, place)| place.sticks)
    }

    /// Records that a read has returned older data: the next one finds none, or the same.
    pub fn read(&mut self, span: Span, is_once: bool, damages: &mut Vec<Damage>) {
        if is_once {
            self.clear(span);
            return self.forget_excess(damages);
        }
        let end_bytes = span.start_bytes + span.length_bytes;
        for place in self.places.range_mut(..end_bytes).map(|(_, place)| place) {
            place.sticks |= place.end_bytes > span.start_bytes;
        }
    }

    /// Ends the fault.
    pub fn end(&mut self, damages: &mut Vec<Damage>) {
        self.places.clear();
        self.forget_excess(damages);
    }

    fn clear(&mut self, span: Span) {
        let end_bytes = span.start_bytes + span.length_bytes;
        let overlapping = self.places.range(..end_bytes).filter(|(_, place)| place.end_bytes > span.start_bytes);
        for start in overlapping.map(|(&start, _)| start).collect::<Vec<_>>() {
            let place = self.places.remove(&start).expect("it was seen");
            if start < span.start_bytes {
                self.places.insert(start, Place { end_bytes: span.start_bytes, ..place });
            }
            if place.end_bytes > end_bytes {
                self.places.insert(end_bytes, place);
            }
        }
    }

    /// Forgets the oldest data above the limit, and data that no place needs any more.
    fn forget_excess(&mut self, damages: &mut Vec<Damage>) {
        while self.kept.len() > PLACES_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let &(oldest, _) = self.kept.front().expect("there is too much");
            self.places.retain(|_, place| place.change != oldest);
            self.drop_unneeded(damages);
        }
        self.drop_unneeded(damages);
    }

    fn drop_unneeded(&mut self, damages: &mut Vec<Damage>) {
        while let Some(&(change, length_bytes)) = self.kept.front()
            && self.places.values().all(|place| place.change != change)
        {
            self.kept.pop_front();
            self.kept_bytes -= length_bytes;
            if self.kept.iter().all(|(other, _)| *other != change) {
                damages.push(Damage::Forgotten { change });
            }
        }
    }
}
