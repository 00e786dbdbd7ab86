//! [`Scanner`]: judges the reads of a later pass.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::Layout;
use super::judge::{self, Bounds, describe};
use super::ledger::{Ledger, TRIMMED};
use super::report::{Class, Finding, IntegrityReport, Severity};
use super::stamp::{Generation, SectorContents, Stamp, examine};
use crate::error::LoadError;

/// Maximum number of recent stretches kept, each with the data of one request, to find requests that began before them.
const STRETCHES: usize = 4096;
/// Maximum number of requests kept because they extend beyond the data read so far.
const REACHING: usize = 256;

const NO_LEDGER: &str = "without a ledger: whether a newer write was lost (stale data look valid), and whether a unit of \
                         several requests was torn or written by requests that overlapped";
const LAGGING: &str = "the ledger's host went down: its last writes may be missing from the ledger, and zeros \
                       may be a lost trim";

/// Judges the reads of a pass over a target, in order of offset, while no request is in flight. If several threads
/// scan, each has its own scanner for a part of the target; their reports are [merged](IntegrityReport::merge).
#[derive(Debug)]
pub struct Scanner<'a> {
    ledger: Option<&'a Ledger>,
    layout: Layout,
    run: Option<u64>,
    report: IntegrityReport,
    requests: Requests,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner that judges by the generations that the ledger allows.
    pub fn new(ledger: &'a Ledger) -> Scanner<'a> {
        let mut report = IntegrityReport::default();
        if ledger.is_lagging() {
            report.note(LAGGING);
        }
        let (layout, run) = (ledger.layout(), Some(ledger.run()));
        Scanner { ledger: Some(ledger), layout, run, report, requests: Requests::default() }
    }

    /// Creates a scanner that judges only by stamps: those of the given run, or of the run whose stamp is read first.
    pub fn without_ledger(layout: Layout, run: Option<u64>) -> Scanner<'static> {
        let mut report = IntegrityReport::default();
        report.note(NO_LEDGER);
        Scanner { ledger: None, layout, run, report, requests: Requests::default() }
    }

    /// Judges the data read at `offset`.
    ///
    /// # Errors
    /// Returns an error if the offset or length is not a multiple of the unit, or not within the span.
    pub fn read(&mut self, offset: u64, buffer: &[u8]) -> Result<(), LoadError> {
        let units = self.layout.units_of(offset, buffer.len() as u64)?;
        let unit_bytes = self.layout.unit_bytes();
        for (unit, sectors) in units.zip(buffer.chunks_exact(unit_bytes as usize)) {
            let at = unit * u64::from(unit_bytes);
            match self.ledger {
                Some(ledger) => self.judge(ledger, unit, at, sectors),
                None => self.judge_alone(at, sectors),
            }
        }
        Ok(())
    }

    /// Counts a failed read.
    ///
    /// # Errors
    /// Returns an error if the offset or length is not a multiple of the unit, or not within the span.
    pub fn unreadable(&mut self, offset: u64, length: u64) -> Result<(), LoadError> {
        let bytes = u64::from(self.layout.unit_bytes());
        for unit in self.layout.units_of(offset, length)? {
            let at = unit * bytes;
            self.report.find(describe(at, bytes, Class::Unreadable, Severity::Damage, at, &SectorContents::Foreign));
        }
        Ok(())
    }

    /// Adds a note about a case that this pass could not decide, unless it is already there.
    pub(crate) fn note(&mut self, text: &str) {
        self.report.note(text);
    }

    /// Returns the report.
    pub fn finish(self) -> IntegrityReport {
        self.report
    }

    fn judge(&mut self, ledger: &Ledger, unit: u64, at: u64, sectors: &[u8]) {
        let entry = ledger.entry(unit);
        let flushed = ledger.counters().flushed.load(Ordering::Acquire);
        let bounds = Bounds {
            floor: Generation(entry.floor.load(Ordering::Acquire)),
            issued: Generation(entry.issued.load(Ordering::Acquire)),
            kept: entry.oldest_durable(flushed),
            zeros: entry.state.load(Ordering::Acquire) & TRIMMED != 0 || ledger.is_lagging(),
            zeros_kept: entry.may_lose_to_trim(flushed),
            in_flight: false,
            ahead: ledger.is_lagging(),
        };
        let (run, requests) = (ledger.run(), &mut self.requests);
        judge::unit(&bounds, run, self.layout.sector_bytes(), at, sectors, &mut self.report, |stamp| {
            requests.see(stamp)
        });
        self.report_torn_requests(Severity::Permitted);
    }

    fn judge_alone(&mut self, at: u64, sectors: &[u8]) {
        let bytes = sectors.len() as u64;
        let sector_bytes = self.layout.sector_bytes() as usize;
        let mut verdict = (Class::Unwritten, Severity::Permitted, at, SectorContents::Foreign);
        let mut request = None;
        for (sector, offset) in sectors.chunks_exact(sector_bytes).zip((at..).step_by(sector_bytes)) {
            let contents = examine(sector, offset, self.run);
            let stamp = if let SectorContents::Own(stamp) = contents { Some(stamp) } else { None };
            if let Some(stamp) = stamp {
                self.run.get_or_insert(stamp.run);
                self.requests.see(&stamp);
            }
            let differs = *request.get_or_insert(stamp.map(|stamp| stamp.request)) != stamp.map(|stamp| stamp.request);
            let (class, severity) = match contents {
                SectorContents::Corrupt { .. } => (Class::Corrupt, Severity::Damage),
                SectorContents::Misplaced(_) => (Class::Misplaced, Severity::Damage),
                SectorContents::OtherRun(_) => (Class::Foreign, Severity::Unknown),
                SectorContents::Own(_) | SectorContents::Zeros | SectorContents::Foreign if differs => {
                    (Class::Torn, Severity::Unknown)
                }
                SectorContents::Own(_) => (Class::Intact, Severity::Permitted),
                SectorContents::Zeros | SectorContents::Foreign => (Class::Unwritten, Severity::Permitted),
            };
            if severity > verdict.1 || (severity == Severity::Permitted && verdict.1 == severity) {
                verdict = (class, severity, offset, contents);
            }
        }
        match verdict {
            (class, Severity::Permitted, ..) => self.report.count(class, bytes),
            (class, severity, offset, contents) => {
                self.report.find(describe(at, bytes, class, severity, offset, &contents));
            }
        }
        self.report_torn_requests(Severity::Unknown);
    }

    fn report_torn_requests(&mut self, severity: Severity) {
        for (stamp, at) in self.requests.torn.drain(..) {
            let whole = u64::from(stamp.request_bytes);
            let contents = SectorContents::Own(stamp);
            let finding = describe(stamp.request_offset, whole, Class::TornRequest, severity, at, &contents);
            self.report.find(Finding { found_offset: None, ..finding });
        }
    }
}

/// Returns the layout and the run of the first valid stamp in data read at `offset` (a multiple of 512) of a target of
/// `span_bytes`. Use it to scan the data of an earlier run.
pub fn recognise(span_bytes: u64, offset: u64, buffer: &[u8]) -> Option<(Layout, u64)> {
    (0..buffer.len()).step_by(512).zip((offset..).step_by(512)).find_map(|(begin, at)| {
        let rest = buffer.get(begin..)?;
        let SectorContents::Own(stamp) = examine(rest.get(..512)?, at, None) else { return None };
        let layout = Layout::new(span_bytes, stamp.unit_bytes, stamp.sector_bytes).ok()?;
        let whole = examine(rest.get(..stamp.sector_bytes as usize)?, at, None);
        matches!(whole, SectorContents::Own(_)).then_some((layout, stamp.run))
    })
}

/// Finds incomplete requests: within a request's extent there is a sector that an earlier request wrote.
#[derive(Debug, Default)]
struct Requests {
    /// The last stretches read, each with the data of one request, in order.
    stretches: VecDeque<Stretch>,
    /// Requests that extend beyond the data read so far.
    reaching: Vec<OverlappingRequest>,
    /// Requests found torn since the last query, with their offsets.
    torn: Vec<(Stamp, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    request: u64,
    start: u64,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct OverlappingRequest {
    stamp: Stamp,
    torn: bool,
}

impl Stamp {
    fn request_end(&self) -> u64 {
        self.request_offset.saturating_add(u64::from(self.request_bytes))
    }
}

impl Requests {
    /// Processes a valid sector that is in its right place.
    fn see(&mut self, stamp: &Stamp) {
        let (at, end) = (stamp.offset, stamp.offset.saturating_add(u64::from(stamp.sector_bytes)));
        if let Some(last) = self.stretches.back_mut()
            && last.request == stamp.request
            && last.end == at
        {
            last.end = end;
            return;
        }
        if self.stretches.back().is_some_and(|last| last.end > at) {
            // The offset is below the previous one, so another pass has started.
            self.stretches.clear();
            self.reaching.clear();
        }
        self.reaching.retain(|known| known.stamp.request_end() > at);
        for known in &mut self.reaching {
            if known.stamp.request > stamp.request && !known.torn {
                known.torn = true;
                self.torn.push((known.stamp, at));
            }
        }
        if !self.reaching.iter().any(|known| known.stamp.request == stamp.request) {
            let begin = stamp.request_offset;
            let older = |stretch: &&Stretch| stretch.end > begin && stretch.request < stamp.request;
            let torn = self.stretches.iter().rev().take_while(|stretch| stretch.end > begin).find(older);
            self.torn.extend(torn.map(|stretch| (*stamp, stretch.start.max(begin))));
            if self.reaching.len() < REACHING {
                self.reaching.push(OverlappingRequest { stamp: *stamp, torn: torn.is_some() });
            }
        }
        if self.stretches.len() == STRETCHES {
            self.stretches.pop_front();
        }
        self.stretches.push_back(Stretch { request: stamp.request, start: at, end });
    }
}
