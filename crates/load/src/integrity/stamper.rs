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

/// Units per lock.
const GROUP: u64 = 64;
/// Number of locks.
const SHARDS: usize = 64;

/// Stamps writes, records them in the ledger, checks reads. Shared by all workers of a run.
#[derive(Debug)]
pub struct Stamper {
    ledger: Ledger,
    shards: Vec<Mutex<Histories>>,
}

/// A write or trim under way, to be returned when it has ended.
#[must_use = "a request that never ends stays in flight"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    request: u64,
    offset: u64,
    bytes: u64,
}

/// Contents that a read may return, as of its submission. It keeps its capacity, so each slot of a queue has one.
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
    /// As for [`Ledger::create`]; when there is no room for the file's first page.
    pub fn new(layout: Layout, ledger: Option<&Path>) -> Result<Stamper, LoadError> {
        Stamper::resume(Ledger::create(layout, ledger)?)
    }

    /// Continues a run whose ledger was [opened](Ledger::open) or just created.
    ///
    /// # Errors
    /// When there is no room for the ledger's first page.
    pub fn resume(ledger: Ledger) -> Result<Stamper, LoadError> {
        ledger.begin()?;
        let shards = (0..SHARDS).map(|_| Mutex::new(Histories::new())).collect();
        Ok(Stamper { ledger, shards })
    }

    /// The ledger, for a scan while nothing is under way.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Fills the buffer of a write at `offset` that is about to be submitted.
    ///
    /// # Errors
    /// When the offset or length is not of whole units within the span, or the ledger has no room. Then nothing is
    /// recorded.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<Ticket, LoadError> {
        let layout = self.ledger.layout();
        let request_bytes = u32::try_from(buffer.len())
            .map_err(|_| invalid(format!("a write of {} bytes; up to 4294967295 can carry one stamp", buffer.len())))?;
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
    /// As for [`Stamper::fill`].
    pub fn trim(&self, offset: u64, length: u64) -> Result<Ticket, LoadError> {
        let (ticket, units) = self.begin(offset, length)?;
        self.ledger.counters().trims.fetch_add(1, Ordering::AcqRel);
        for group in groups(units) {
            self.issue(&group, &ticket, Kind::Trim, &mut [Generation::NONE; GROUP as usize]);
        }
        Ok(ticket)
    }

    /// Records the end of a write or trim, before any request that depends on it is filled. A request that was cut
    /// short ends when its rest has been written, or as [`Outcome::Failed`].
    pub fn ended(&self, ticket: Ticket, outcome: Outcome) {
        let unit = u64::from(self.ledger.layout().unit_bytes());
        for group in groups(ticket.offset / unit..(ticket.offset + ticket.bytes) / unit) {
            let mut histories = self.shard(&group);
            for unit in group {
                histories.end(unit, self.ledger.entry(unit), ticket.request, outcome, self.ledger.counters());
            }
        }
    }

    /// Notes that a flush is about to be submitted, which covers all requests recorded as ended; returns the epoch to
    /// pass to [`Stamper::flushed`].
    pub fn flush(&self) -> u32 {
        self.ledger.counters().next_epoch()
    }

    /// Notes that the flush of that epoch has completed without an error. Do not call it for a failed flush.
    pub fn flushed(&self, epoch: u32) {
        self.ledger.counters().flushed(epoch);
    }

    /// Stores in `expectation` what a read that is about to be submitted may return.
    ///
    /// # Errors
    /// When the offset or length is not of whole units within the span.
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
                // A process that was killed leaves its units busy.
                busy: state & BUSY != 0 && self.shard(&(unit..unit + 1)).is_under_way(unit),
            }
        }));
        Ok(())
    }

    /// Checks the data of a read, or of its first units if it was cut short, against the expectation at its submission
    /// and the requests issued since.
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
                // Reads under load lose nothing to a cache: acknowledged data must be read.
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

    /// Makes the current state of the ledger survive a power loss of its host. It costs a write of the pages that have
    /// changed.
    ///
    /// # Errors
    /// As for [`Ledger::sync`].
    pub fn sync(&self) -> Result<(), LoadError> {
        self.ledger.sync()
    }

    /// Ends a run with nothing under way.
    ///
    /// # Errors
    /// As for [`Ledger::sync`].
    pub fn finish(self) -> Result<Ledger, LoadError> {
        self.ledger.end()?;
        Ok(self.ledger)
    }

    fn begin(&self, offset: u64, bytes: u64) -> Result<(Ticket, Range<u64>), LoadError> {
        let units = self.ledger.layout().units_of(offset, bytes)?;
        self.ledger.give_room_to(&units)?;
        // Counts from 1: 0 is not a request.
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
        // No thread panics while holding it; and the state that one would leave is milder, not wrong.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits units into groups that share a lock.
fn groups(units: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = units.start;
    std::iter::from_fn(move || {
        let end = (start / GROUP + 1).saturating_mul(GROUP).min(units.end);
        let group = start..end;
        start = end;
        (!group.is_empty()).then_some(group)
    })
}
