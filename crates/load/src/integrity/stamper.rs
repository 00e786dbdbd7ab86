//! [`Stamper`]: stamps and records writes, and checks reads.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::history::{Histories, Kind, Outcome};
use super::judge::{self, Bounds};
use super::ledger::{BUSY, Ledger, TRIMMED};
use super::report::IntegrityReport;
use super::stamp::{Generation, Stamp};
use super::{Layout, invalid};
use crate::error::LoadError;

/// Number of units per lock group.
const GROUP: u64 = 64;
/// Number of locks.
const SHARDS: usize = 64;

/// Stamps writes, records them in the ledger, and checks reads. All workers of a run share it.
#[derive(Debug)]
pub struct Stamper {
    ledger: Ledger,
    shards: Vec<Mutex<Histories>>,
}

/// A write or trim in flight. Return it with [`Stamper::ended`] when the request has ended.
#[must_use = "pass it to `ended`, or the request stays in flight"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    request: u64,
    offset: u64,
    bytes: u64,
}

/// Contents that a read may return, as of its submission. Keeps its capacity, so use one per queue slot.
#[derive(Debug, Default)]
pub struct Expectation {
    offset: u64,
    units: Vec<UnitBefore>,
    trims: u64,
}

#[derive(Clone, Copy, Debug)]
struct UnitBefore {
    floor: Generation,
    issued: Generation,
    trimmed: bool,
    busy: bool,
}

impl Stamper {
    /// Creates a stamper for a new run, with its ledger in a new file at `ledger`, or in memory.
    ///
    /// # Errors
    /// Returns the errors of [`Ledger::create`], and an error if there is no room for the file's first page.
    pub fn new(layout: Layout, ledger: Option<&Path>) -> Result<Stamper, LoadError> {
        Stamper::resume(Ledger::create(layout, ledger)?)
    }

    /// Continues a run whose ledger was [opened](Ledger::open) or just created.
    ///
    /// # Errors
    /// Returns an error if there is no room for the ledger's first page.
    pub fn resume(ledger: Ledger) -> Result<Stamper, LoadError> {
        ledger.begin()?;
        let shards = (0..SHARDS).map(|_| Mutex::new(Histories::new())).collect();
        Ok(Stamper { ledger, shards })
    }

    /// Returns the ledger, for a scan while no request is in flight.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Stamps the buffer of a write at `offset` that is about to be submitted, and records the write.
    ///
    /// # Errors
    /// Returns an error if the offset or length is not a multiple of the unit or not within the span, or if the ledger
    /// has no room. Nothing is recorded then.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<Ticket, LoadError> {
        let layout = self.ledger.layout();
        let request_bytes = u32::try_from(buffer.len())
            .map_err(|_| invalid(format!("a write of {} bytes; the maximum is 4294967295", buffer.len())))?;
        let (ticket, units) = self.begin(offset, u64::from(request_bytes))?;
        let mut stamp = Stamp {
            run: self.ledger.run(),
            offset,
            request: ticket.request,
            request_offset: offset,
            request_bytes,
            generation: Generation::NONE,
            unit_bytes: layout.unit_bytes(),
            sector_bytes: layout.sector_bytes(),
        };
        let mut bytes = buffer.chunks_exact_mut(layout.unit_bytes() as usize);
        for group in groups(units) {
            let mut generations = [Generation::NONE; GROUP as usize];
            self.issue(&group, &ticket, Kind::Write, &mut generations);
            for (unit, generation) in bytes.by_ref().take((group.end - group.start) as usize).zip(generations) {
                stamp.generation = generation;
                for sector in unit.chunks_exact_mut(layout.sector_bytes() as usize) {
                    stamp.write(sector);
                    stamp.offset += u64::from(layout.sector_bytes());
                }
            }
        }
        Ok(ticket)
    }

    /// Records a trim that is about to be submitted.
    ///
    /// # Errors
    /// Returns the errors of [`Stamper::fill`].
    pub fn trim(&self, offset: u64, length: u64) -> Result<Ticket, LoadError> {
        let (ticket, units) = self.begin(offset, length)?;
        self.ledger.counters().trims.fetch_add(1, Ordering::AcqRel);
        for group in groups(units) {
            self.issue(&group, &ticket, Kind::Trim, &mut [Generation::NONE; GROUP as usize]);
        }
        Ok(ticket)
    }

    /// Records the end of a write or trim. Call this before filling any request that depends on it. A request that was
    /// cut short ends when its remainder has been written, or with [`Outcome::Failed`].
    pub fn ended(&self, ticket: Ticket, outcome: Outcome) {
        let unit = u64::from(self.ledger.layout().unit_bytes());
        for group in groups(ticket.offset / unit..(ticket.offset + ticket.bytes) / unit) {
            let mut histories = self.shard(&group);
            for unit in group {
                histories.end(unit, self.ledger.entry(unit), ticket.request, outcome, self.ledger.counters());
            }
        }
    }

    /// Records a flush that is about to be submitted and that covers all requests recorded as ended. Returns the epoch
    /// to pass to [`Stamper::flushed`].
    pub fn flush(&self) -> u32 {
        self.ledger.counters().next_epoch()
    }

    /// Records that the flush of `epoch` has succeeded. Do not call it for a failed flush.
    pub fn flushed(&self, epoch: u32) {
        self.ledger.counters().flushed(epoch);
    }

    /// Stores in `expectation` the contents that a read about to be submitted may return.
    ///
    /// # Errors
    /// Returns an error if the offset or length is not a multiple of the unit, or not within the span.
    pub fn expect(&self, offset: u64, length: u64, expectation: &mut Expectation) -> Result<(), LoadError> {
        let units = self.ledger.layout().units_of(offset, length)?;
        expectation.offset = offset;
        expectation.trims = self.ledger.counters().trims.load(Ordering::Acquire);
        expectation.units.clear();
        expectation.units.extend(units.map(|unit| {
            let entry = self.ledger.entry(unit);
            let (floor, issued) = (entry.floor.load(Ordering::Acquire), entry.issued.load(Ordering::Acquire));
            let state = entry.state.load(Ordering::Acquire);
            UnitBefore {
                floor: Generation(floor),
                issued: Generation(issued),
                trimmed: state & TRIMMED != 0,
                // A killed process leaves its units marked as busy.
                busy: state & BUSY != 0 && self.shard(&(unit..unit + 1)).is_under_way(unit),
            }
        }));
        Ok(())
    }

    /// Checks the data of a read (only its first units if it was cut short) against the expectation at its submission
    /// and the requests issued since then.
    pub fn check(&self, expectation: &Expectation, buffer: &[u8], report: &mut IntegrityReport) {
        let layout = self.ledger.layout();
        let trims = self.ledger.counters().trims.load(Ordering::Acquire);
        let mut offset = expectation.offset;
        for (before, sectors) in expectation.units.iter().zip(buffer.chunks_exact(layout.unit_bytes() as usize)) {
            let entry = self.ledger.entry(offset / u64::from(layout.unit_bytes()));
            let trimmed = before.trimmed || entry.state.load(Ordering::Acquire) & TRIMMED != 0;
            let issued = Generation(entry.issued.load(Ordering::Acquire));
            let bounds = Bounds {
                floor: before.floor,
                issued,
                // Reads under load must return acknowledged data: without a power loss, a cache loses nothing.
                kept: before.floor,
                zeros: trimmed || trims != expectation.trims || self.ledger.is_lagging(),
                zeros_kept: false,
                in_flight: before.busy || issued != before.issued,
                ahead: self.ledger.is_lagging(),
            };
            judge::unit(&bounds, self.ledger.run(), layout.sector_bytes(), offset, sectors, report, |_| {});
            offset += u64::from(layout.unit_bytes());
        }
    }

    /// Writes the current state of the ledger to stable storage, so that it survives a power loss of its host. Only
    /// changed pages are written.
    ///
    /// # Errors
    /// Returns the errors of [`Ledger::sync`].
    pub fn sync(&self) -> Result<(), LoadError> {
        self.ledger.sync()
    }

    /// Ends a run with no request in flight, and returns its ledger.
    ///
    /// # Errors
    /// Returns the errors of [`Ledger::sync`].
    pub fn finish(self) -> Result<Ledger, LoadError> {
        self.ledger.end()?;
        Ok(self.ledger)
    }

    fn begin(&self, offset: u64, bytes: u64) -> Result<(Ticket, Range<u64>), LoadError> {
        let units = self.ledger.layout().units_of(offset, bytes)?;
        self.ledger.give_room_to(&units)?;
        // Numbers start at 1: 0 means no request.
        let request = self.ledger.counters().requests.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        Ok((Ticket { request, offset, bytes }, units))
    }

    fn issue(&self, group: &Range<u64>, ticket: &Ticket, kind: Kind, generations: &mut [Generation]) {
        let mut histories = self.shard(group);
        for (unit, generation) in group.clone().zip(generations) {
            *generation = histories.issue(unit, self.ledger.entry(unit), ticket.request, kind);
        }
    }

    fn shard(&self, group: &Range<u64>) -> MutexGuard<'_, Histories> {
        let shard = &self.shards[(group.start / GROUP) as usize % SHARDS];
        // No thread panics while it holds the lock, and the state that a panic would leave is more lenient, but not
        // wrong.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits units into groups; each group has one lock.
fn groups(units: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = units.start;
    std::iter::from_fn(move || {
        let end = (start / GROUP + 1).saturating_mul(GROUP).min(units.end);
        let group = start..end;
        start = end;
        (!group.is_empty()).then_some(group)
    })
}
