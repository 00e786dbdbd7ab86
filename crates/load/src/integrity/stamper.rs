//! What the engine calls: writes are stamped and booked, reads are checked.

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

/// Units under one lock at a time.
const GROUP: u64 = 64;
/// Locks.
const SHARDS: usize = 64;

/// Stamps writes, books them in the ledger, checks reads. Shared by all workers of a run.
#[derive(Debug)]
pub struct Stamper {
    ledger: Ledger,
    shards: Vec<Mutex<Histories>>,
}

/// A write or trim under way, to be handed back when it has ended.
#[must_use = "a request that is never ended stays under way"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    request: u64,
    offset: u64,
    bytes: u64,
}

/// What a read may find, as of its submission. It keeps its room, so that each slot of a queue has one.
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
    /// A stamper for a new run, with its ledger in a new file at `ledger`, or in memory.
    ///
    /// # Errors
    /// As for [`Ledger::create`]; no room for the file's first page.
    pub fn new(layout: Layout, ledger: Option<&Path>) -> Result<Stamper, LoadError> {
        Stamper::resume(Ledger::create(layout, ledger)?)
    }

    /// Goes on with a run whose ledger was [opened](Ledger::open), or that was just made.
    ///
    /// # Errors
    /// No room for the ledger's first page.
    pub fn resume(ledger: Ledger) -> Result<Stamper, LoadError> {
        ledger.begin()?;
        let shards = (0..SHARDS).map(|_| Mutex::new(Histories::new())).collect();
        Ok(Stamper { ledger, shards })
    }

    /// Its ledger, to scan with when nothing is under way.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Fills the buffer of a write at `offset` that is about to be submitted.
    ///
    /// # Errors
    /// A place or length that is not of whole units within the span; no room for the ledger. Nothing is booked then.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<Ticket, LoadError> {
        let layout = self.ledger.layout();
        let request_bytes = u32::try_from(buffer.len())
            .map_err(|_| invalid(format!("a write of {} bytes: at most 4294967295 carry one stamp", buffer.len())))?;
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

    /// Books a trim that is about to be submitted.
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

    /// Books the end of a write or trim, before anything that is to come after it is filled. A request that was cut
    /// short has ended when its rest has been written, or as [`Outcome::Failed`].
    pub fn ended(&self, ticket: Ticket, outcome: Outcome) {
        let unit = u64::from(self.ledger.layout().unit_bytes());
        for group in groups(ticket.offset / unit..(ticket.offset + ticket.bytes) / unit) {
            let mut histories = self.shard(&group);
            for unit in group {
                histories.end(unit, self.ledger.entry(unit), ticket.request, outcome, self.ledger.counters());
            }
        }
    }

    /// A flush is about to be submitted. What was booked as ended up to now is covered by it; the epoch to hand to
    /// [`Stamper::flushed`].
    pub fn flush(&self) -> u32 {
        self.ledger.counters().next_epoch()
    }

    /// The flush of that epoch has completed without an error. One that failed is not told of.
    pub fn flushed(&self, epoch: u32) {
        self.ledger.counters().flushed(epoch);
    }

    /// Takes what a read that is about to be submitted may find.
    ///
    /// # Errors
    /// A place or length that is not of whole units within the span.
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

    /// Checks what a read has found, of its first units if it was cut short, against what was expected when it was
    /// submitted and what was issued since.
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
                // Reads under load lose nothing to a cache: what was acknowledged is what must be read.
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

    /// Makes what the ledger knows survive a power cut of its host. It costs a write of the pages that have changed.
    ///
    /// # Errors
    /// As for [`Ledger::sync`].
    pub fn sync(&self) -> Result<(), LoadError> {
        self.ledger.sync()
    }

    /// Ends a run of which nothing is under way.
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
        // From 1 on: 0 is not a request.
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
        // Nobody panics while holding it; and what a thread that did would leave is milder, not wrong.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units in groups that have a lock in common.
fn groups(units: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = units.start;
    std::iter::from_fn(move || {
        let end = (start / GROUP + 1).saturating_mul(GROUP).min(units.end);
        let group = start..end;
        start = end;
        (!group.is_empty()).then_some(group)
    })
}
