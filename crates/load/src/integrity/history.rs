//! [`Histories`]: the generations of a unit that may be read while writes overlap.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::ledger::{BUSY, EPOCH_SHIFT, TRIM_LOST, TRIMMED};
use super::mapping::{Counters, Entry};
use super::stamp::Generation;

/// Kind of a request that changes a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Trim,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request was acknowledged: reads must return its data, but a crash before a flush may lose them.
    Acknowledged,
    /// The request was acknowledged and is on the medium, because it was written with FUA or `O_DSYNC`.
    Durable,
    /// The request failed: until a later write is acknowledged, reads may return all, part or none of it.
    Failed,
}

/// A write or trim that is in flight, or that cannot be settled yet because of another write in flight.
#[derive(Clone, Copy, Debug)]
struct PendingWrite {
    request: u64,
    generation: Generation,
    kind: Kind,
    /// Whether nothing else was in flight when the request was issued.
    alone: bool,
    /// Latest generation of the unit when the request ended.
    ended_at: Option<Generation>,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct History {
    first: u32,
    /// Whether a trim was issued since the history began.
    trimmed: bool,
}

const END: u32 = u32::MAX;

/// Histories of units with writes in flight, for one share of the target. The history of a unit is a list in a slab
/// that keeps its capacity, so a steady state allocates nothing.
#[derive(Debug)]
pub(super) struct Histories {
    units: FxHashMap<u64, History>,
    flights: Vec<PendingWrite>,
    free: u32,
}

impl Histories {
    pub(super) fn new() -> Histories {
        Histories { units: FxHashMap::default(), flights: Vec::new(), free: END }
    }

    /// Records a write or trim that is about to be submitted, and returns its generation.
    pub(super) fn issue(&mut self, unit: u64, entry: &Entry, request: u64, kind: Kind) -> Generation {
        let generation = Generation(entry.issued.load(Ordering::Acquire)).next();
        let before = self.units.get(&unit).copied();
        let next = before.map_or(END, |history| history.first);
        let first =
            self.push(PendingWrite { request, generation, kind, alone: before.is_none(), ended_at: None, next });
        let trimmed = kind == Kind::Trim || before.is_some_and(|history| history.trimmed);
        self.units.insert(unit, History { first, trimmed });
        let flags = if kind == Kind::Trim { BUSY | TRIMMED } else { BUSY };
        entry.state.fetch_or(flags, Ordering::AcqRel);
        entry.issued.store(generation.0, Ordering::Release);
        generation
    }

    /// Returns whether any request to a unit is in flight.
    pub(super) fn is_under_way(&self, unit: u64) -> bool {
        self.units.contains_key(&unit)
    }

    /// Records the end of a request's part in this unit. Does nothing if no such request is in flight.
    pub(super) fn end(&mut self, unit: u64, entry: &Entry, request: u64, outcome: Outcome, counters: &Counters) {
        let Some(mut history) = self.units.get(&unit).copied() else { return };
        let Some(index) = self.find(history.first, request) else { return };
        let latest = Generation(entry.issued.load(Ordering::Acquire));
        let flight = PendingWrite { ended_at: Some(latest), ..self.flights[index as usize] };
        self.flights[index as usize] = flight;
        if outcome != Outcome::Failed {
            history.first = self.without_superseded(history.first, flight);
            if flight.kind == Kind::Write {
                // The contents from before this history are older than every write in it, so they are superseded too.
                let floor = self.oldest_write(history.first).unwrap_or(flight.generation);
                let zeros = self.has_trim(history.first);
                raise(entry, floor, zeros, counters);
                // If nothing else was in flight when a durable write was issued, it supersedes everything before it for
                // good.
                if outcome == Outcome::Durable && flight.alone {
                    entry.durable.store(floor.0, Ordering::Release);
                    if !history.trimmed {
                        entry.state.fetch_and(!TRIM_LOST, Ordering::AcqRel);
                    }
                }
            }
        }
        if self.any_under_way(history.first) {
            self.units.insert(unit, history);
        } else {
            self.free_all(history.first);
            self.units.remove(&unit);
            entry.state.fetch_and(!BUSY, Ordering::AcqRel);
        }
    }

    /// Removes requests that ended before `newer` was issued: writes and trims if `newer` is a write, but only trims if
    /// it is a trim, which need not change the contents.
    fn without_superseded(&mut self, first: u32, newer: PendingWrite) -> u32 {
        let (mut kept, mut at) = (END, first);
        while at != END {
            let flight = self.flights[at as usize];
            let superseded = flight.ended_at.is_some_and(|latest| latest.is_before(newer.generation))
                && (newer.kind == Kind::Write || flight.kind == Kind::Trim);
            let next = flight.next;
            if superseded {
                self.release(at);
            } else {
                self.flights[at as usize].next = kept;
                kept = at;
            }
            at = next;
        }
        kept
    }

    /// Returns the capacity, in pending writes.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.flights.len()
    }

    fn list(&self, first: u32) -> impl Iterator<Item = (u32, &PendingWrite)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let flight = self.flights.get(at as usize)?;
            let index = at;
            at = flight.next;
            Some((index, flight))
        })
    }

    fn find(&self, first: u32, request: u64) -> Option<u32> {
        self.list(first).find(|(_, flight)| flight.request == request && flight.ended_at.is_none()).map(|(at, _)| at)
    }

    fn any_under_way(&self, first: u32) -> bool {
        self.list(first).any(|(_, flight)| flight.ended_at.is_none())
    }

    fn has_trim(&self, first: u32) -> bool {
        self.list(first).any(|(_, flight)| flight.kind == Kind::Trim)
    }

    fn oldest_write(&self, first: u32) -> Option<Generation> {
        let writes = self.list(first).filter(|(_, flight)| flight.kind == Kind::Write);
        writes.map(|(_, flight)| flight.generation).reduce(|a, b| if b.is_before(a) { b } else { a })
    }

    fn push(&mut self, flight: PendingWrite) -> u32 {
        let at = self.free;
        if let Some(place) = self.flights.get_mut(at as usize) {
            self.free = place.next;
            *place = flight;
            return at;
        }
        self.flights.push(flight);
        // A u32 suffices: more requests in flight would not fit into memory.
        (self.flights.len() - 1) as u32
    }

    fn release(&mut self, at: u32) {
        self.flights[at as usize].next = self.free;
        self.free = at;
    }

    fn free_all(&mut self, first: u32) {
        let mut at = first;
        while at != END {
            let next = self.flights[at as usize].next;
            self.release(at);
            at = next;
        }
    }
}

/// Raises the floor, and excludes zeros if no trim may have left them. The entry is correct after every store, though
/// it may be out of date: the durable generation is stored before the epoch changes, and the epoch is stored before the
/// floor that it belongs to.
fn raise(entry: &Entry, floor: Generation, zeros: bool, counters: &Counters) {
    let old = Generation(entry.floor.load(Ordering::Acquire));
    let state = entry.state.load(Ordering::Acquire);
    let zeros_end = state & TRIMMED != 0 && !zeros;
    if old != floor || zeros_end {
        let flushed = counters.flushed.load(Ordering::Acquire);
        entry.durable.store(entry.oldest_durable(flushed).0, Ordering::Release);
        let trim_lost = zeros_end || entry.may_lose_to_trim(flushed);
        let flags = state & (BUSY | TRIMMED) | if trim_lost { TRIM_LOST } else { 0 };
        let epoch = counters.epoch.load(Ordering::Acquire);
        entry.state.store(epoch << EPOCH_SHIFT | flags, Ordering::Release);
        entry.floor.store(floor.0, Ordering::Release);
    }
    if zeros_end {
        entry.state.fetch_and(!TRIMMED, Ordering::AcqRel);
    }
}
