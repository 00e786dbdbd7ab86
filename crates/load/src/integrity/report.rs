//! What a check found.

use std::fmt;

use headstack_result::Integrity;
use serde::{Deserialize, Serialize};

/// Findings that a report lists; beyond, they are counted only.
pub const FINDINGS: usize = 100;

/// Verdict on a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Whole, and what must or may be there.
    Intact,
    /// Sectors of different writes, each of which may be there: writes that overlapped, or one never acknowledged.
    Mixed,
    /// Never written and acknowledged in this run, so that anything may be there.
    Unwritten,
    /// Zeros after a trim.
    Trimmed,
    /// A read that met a write in flight half done: nothing can be said.
    Unsettled,
    /// Newer than the ledger knows: the ledger lost its end when its host went down.
    Ahead,
    /// A generation that an acknowledged later one had replaced.
    Stale,
    /// Sectors of different generations, of which some had been replaced.
    Torn,
    /// Data that were written to another place.
    Misplaced,
    /// A stamp or data with other bits than were written.
    Corrupt,
    /// Zeros, although the unit was written and not trimmed since.
    Zeros,
    /// Data without a stamp or of another run, although the unit was written.
    Foreign,
    /// A read that failed.
    Unreadable,
    /// A request of which a part is there and, in another part of its extent, data of an earlier request.
    TornRequest,
}

impl Class {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Class::Intact => "intact",
            Class::Mixed => "mixed",
            Class::Unwritten => "unwritten",
            Class::Trimmed => "trimmed",
            Class::Unsettled => "unsettled",
            Class::Ahead => "ahead of the ledger",
            Class::Stale => "stale",
            Class::Torn => "torn",
            Class::Misplaced => "misplaced",
            Class::Corrupt => "corrupt",
            Class::Zeros => "zeros",
            Class::Foreign => "foreign",
            Class::Unreadable => "unreadable",
            Class::TornRequest => "torn request",
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No fault: a write that was never acknowledged, or writes that overlapped, explain it.
    Permitted,
    /// A fault or none: without a ledger it cannot be told.
    Unknown,
    /// Acknowledged and lost, before a flush: a volatile cache may, after power was lost.
    Acknowledged,
    /// Lost although flushed, or written with FUA, or never in danger: the system broke its word.
    Flushed,
    /// Changed, misplaced or unreadable: nothing excuses it.
    Damage,
}

/// How many, and how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many units; of [`Class::TornRequest`], requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: u64) {
        self.merge(Tally { count: 1, bytes });
    }

    fn merge(&mut self, other: Tally) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One unit that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Where, bytes from the target's begin: the unit, or the request for [`Class::TornRequest`].
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it is.
    pub class: Class,
    /// How bad that is.
    pub severity: Severity,
    /// First sector at fault, bytes from the target's begin.
    pub sector_offset: u64,
    /// Oldest generation that may be there, with a ledger; 0 is what was there before the run.
    pub expected_from: Option<u32>,
    /// Newest generation that was issued, with a ledger.
    pub expected_to: Option<u32>,
    /// Generation that was found at the sector at fault.
    pub found: Option<u32>,
    /// Number of the request that wrote what was found.
    pub found_request: Option<u64>,
    /// Where the data found belong, bytes from the target's begin.
    pub found_offset: Option<u64>,
    /// Run that wrote what was found, as 16 hexadecimal digits.
    pub found_run: Option<String>,
    /// First byte of the sector that has changed.
    pub changed_byte: Option<u32>,
    /// Bits of the sector that have changed.
    pub changed_bits: Option<u32>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} at byte {}, {} bytes", self.class.name(), self.offset, self.bytes)?;
        if self.sector_offset != self.offset {
            write!(f, ", from byte {}", self.sector_offset)?;
        }
        match (self.expected_from, self.expected_to) {
            (Some(from), Some(to)) if from == to => write!(f, ": expected write {from} of the block")?,
            (Some(from), Some(to)) => write!(f, ": expected write {from} to {to} of the block")?,
            _ => {}
        }
        if let Some(found) = self.found {
            write!(f, ", found write {found}")?;
        }
        if let Some(request) = self.found_request {
            write!(f, " of request {request}")?;
        }
        if let Some(offset) = self.found_offset.filter(|_| self.class == Class::Misplaced) {
            write!(f, " that belongs at byte {offset}")?;
        }
        if let Some(run) = self.found_run.as_ref().filter(|_| self.class == Class::Foreign) {
            write!(f, " of run {run}")?;
        }
        if let (Some(byte), Some(bits)) = (self.changed_byte, self.changed_bits) {
            let bits = if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") };
            write!(f, ", {bits} changed from byte {byte} of the sector")?;
        }
        f.write_str(match self.severity {
            Severity::Permitted => "; permitted",
            Severity::Unknown => "; a fault or not",
            Severity::Acknowledged => "; acknowledged, not flushed",
            Severity::Flushed | Severity::Damage => "",
        })
    }
}

/// What the checks of a run, or a pass over what a run wrote, found: every unit read is in exactly one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrityReport {
    /// Every unit read.
    pub checked: Tally,
    /// [`Class::Intact`].
    pub intact: Tally,
    /// [`Class::Mixed`].
    pub mixed: Tally,
    /// [`Class::Unwritten`].
    pub unwritten: Tally,
    /// [`Class::Trimmed`].
    pub trimmed: Tally,
    /// [`Class::Unsettled`].
    pub unsettled: Tally,
    /// [`Class::Ahead`].
    pub ahead: Tally,
    /// [`Class::Stale`].
    pub stale: Tally,
    /// [`Class::Torn`].
    pub torn: Tally,
    /// [`Class::Misplaced`].
    pub misplaced: Tally,
    /// [`Class::Corrupt`].
    pub corrupt: Tally,
    /// [`Class::Zeros`].
    pub zeros: Tally,
    /// [`Class::Foreign`].
    pub foreign: Tally,
    /// [`Class::Unreadable`].
    pub unreadable: Tally,
    /// [`Class::TornRequest`]: requests, beside the classes of their units, each of which is judged for itself.
    pub torn_requests: Tally,
    /// Units of [`Severity::Unknown`].
    pub unknown: Tally,
    /// Units of [`Severity::Acknowledged`].
    pub lost_acknowledged: Tally,
    /// Units of [`Severity::Flushed`].
    pub lost_flushed: Tally,
    /// Units of [`Severity::Damage`].
    pub damaged: Tally,
    /// The first [`FINDINGS`] units at fault, in the order in which they were read.
    pub findings: Vec<Finding>,
    /// Cases that this check could not decide, in words.
    pub cannot_tell: Vec<String>,
}

impl IntegrityReport {
    /// Units at fault: damaged or lost, flushed or not.
    pub fn faults(&self) -> u64 {
        let counts = [self.damaged.count, self.lost_flushed.count, self.lost_acknowledged.count];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// As results tell it, of blocks of `block_bytes`.
    pub fn told(&self, block_bytes: u32) -> Integrity {
        Integrity {
            block_bytes,
            checked: self.checked.count,
            intact: self.intact.count,
            mixed: self.mixed.count,
            trimmed: self.trimmed.count,
            unwritten: self.unwritten.count,
            unsettled: self.unsettled.count,
            ahead: self.ahead.count,
            stale: self.stale.count,
            torn: self.torn.count,
            misplaced: self.misplaced.count,
            corrupt: self.corrupt.count,
            zeros: self.zeros.count,
            foreign: self.foreign.count,
            unreadable: self.unreadable.count,
            torn_requests: self.torn_requests.count,
            damaged: self.damaged.count,
            lost: self.lost_flushed.count,
            unflushed: self.lost_acknowledged.count,
            undecided: self.unknown.count,
            findings: self.findings.iter().map(Finding::to_string).collect(),
            cannot_tell: self.cannot_tell.clone(),
        }
    }

    /// Adds what another worker found, its findings after these.
    pub fn merge(&mut self, other: &IntegrityReport) {
        let mut theirs = other.clone();
        for (tally, other) in self.tallies_mut().into_iter().zip(theirs.tallies_mut()) {
            tally.merge(*other);
        }
        let room = FINDINGS.saturating_sub(self.findings.len());
        self.findings.extend(theirs.findings.into_iter().take(room));
        for text in theirs.cannot_tell {
            self.note(&text);
        }
    }

    /// Says what cannot be told, once.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.cannot_tell.iter().any(|known| known == text) {
            self.cannot_tell.push(text.to_owned());
        }
    }

    /// Counts a unit in which nothing is wrong.
    pub(super) fn count(&mut self, class: Class, bytes: u64) {
        self.checked.add(bytes);
        self.tally_mut(class).add(bytes);
    }

    /// Counts what is wrong and lists it as long as there is room.
    pub(super) fn find(&mut self, finding: Finding) {
        match finding.class {
            Class::TornRequest => self.torn_requests.add(finding.bytes),
            class => {
                self.count(class, finding.bytes);
                match finding.severity {
                    Severity::Permitted => {}
                    Severity::Unknown => self.unknown.add(finding.bytes),
                    Severity::Acknowledged => self.lost_acknowledged.add(finding.bytes),
                    Severity::Flushed => self.lost_flushed.add(finding.bytes),
                    Severity::Damage => self.damaged.add(finding.bytes),
                }
            }
        }
        if self.findings.len() < FINDINGS {
            self.findings.push(finding);
        }
    }

    fn tally_mut(&mut self, class: Class) -> &mut Tally {
        match class {
            Class::Intact => &mut self.intact,
            Class::Mixed => &mut self.mixed,
            Class::Unwritten => &mut self.unwritten,
            Class::Trimmed => &mut self.trimmed,
            Class::Unsettled => &mut self.unsettled,
            Class::Ahead => &mut self.ahead,
            Class::Stale => &mut self.stale,
            Class::Torn => &mut self.torn,
            Class::Misplaced => &mut self.misplaced,
            Class::Corrupt => &mut self.corrupt,
            Class::Zeros => &mut self.zeros,
            Class::Foreign => &mut self.foreign,
            Class::Unreadable => &mut self.unreadable,
            Class::TornRequest => &mut self.torn_requests,
        }
    }

    fn tallies_mut(&mut self) -> [&mut Tally; 19] {
        [
            &mut self.checked,
            &mut self.intact,
            &mut self.mixed,
            &mut self.unwritten,
            &mut self.trimmed,
            &mut self.unsettled,
            &mut self.ahead,
            &mut self.stale,
            &mut self.torn,
            &mut self.misplaced,
            &mut self.corrupt,
            &mut self.zeros,
            &mut self.foreign,
            &mut self.unreadable,
            &mut self.torn_requests,
            &mut self.unknown,
            &mut self.lost_acknowledged,
            &mut self.lost_flushed,
            &mut self.damaged,
        ]
    }
}
