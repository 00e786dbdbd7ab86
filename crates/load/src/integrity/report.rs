//! [`IntegrityReport`]: the results of a check.

use std::fmt;

use headstack_result::Integrity;
use serde::{Deserialize, Serialize};

/// Maximum number of findings that a report lists; further findings are only counted.
pub const FINDINGS: usize = 100;

/// Verdict on a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The unit is whole and has allowed contents.
    Intact,
    /// The unit has sectors of different writes, each of which is allowed, because writes overlapped or were never
    /// acknowledged.
    Mixed,
    /// This run never wrote the unit, or the write was never acknowledged, so any contents are allowed.
    Unwritten,
    /// The unit has zeros after a trim.
    Trimmed,
    /// No verdict, because the read overlapped a write in flight.
    Unsettled,
    /// The contents are newer than the ledger's entry, because the ledger lost its newest entries when its host went
    /// down.
    Ahead,
    /// The contents are of a generation that a later, acknowledged write had superseded.
    Stale,
    /// The unit has sectors of different generations, some of which are superseded.
    Torn,
    /// The data were written to another place.
    Misplaced,
    /// The stamp or the data have changed bits.
    Corrupt,
    /// The unit has zeros, although it was written and not trimmed since.
    Zeros,
    /// The data have no stamp or one of another run, although the unit was written.
    Foreign,
    /// The read failed.
    Unreadable,
    /// Only a part of the request is there, while another part of its extent has data of an earlier request.
    TornRequest,
}

impl Class {
    /// Returns the name of the class.
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

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No fault: explained by writes that overlapped or were never acknowledged.
    Permitted,
    /// Undecided without a ledger.
    Unknown,
    /// Acknowledged, but lost before a flush: allowed for a volatile cache after a power loss.
    Acknowledged,
    /// Lost although flushed, written with FUA, or never at risk: the system broke its guarantee.
    Flushed,
    /// Changed, misplaced or unreadable: always a fault.
    Damage,
}

/// Number of units and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of units; for [`Class::TornRequest`], of requests.
    pub count: u64,
    /// Total bytes of these units.
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

/// A unit that fails the check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Offset of the unit, or of the request for [`Class::TornRequest`], in bytes from the start of the target.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Class of the finding.
    pub class: Class,
    /// Severity of the finding.
    pub severity: Severity,
    /// Offset of the first faulty sector, in bytes from the start of the target.
    pub sector_offset: u64,
    /// Oldest allowed generation, if there is a ledger; 0 means the contents from before the run.
    pub expected_from: Option<u32>,
    /// Newest issued generation, if there is a ledger.
    pub expected_to: Option<u32>,
    /// Generation of the faulty sector.
    pub found: Option<u32>,
    /// Number of the request that wrote the data, as found in the stamp.
    pub found_request: Option<u64>,
    /// Offset at which the data belong, in bytes from the start of the target.
    pub found_offset: Option<u64>,
    /// Run that wrote the data, as 16 hexadecimal digits.
    pub found_run: Option<String>,
    /// Offset of the first changed byte in the sector.
    pub changed_byte: Option<u32>,
    /// Number of changed bits in the sector.
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
            Severity::Unknown => "; undecided",
            Severity::Acknowledged => "; acknowledged, not flushed",
            Severity::Flushed | Severity::Damage => "",
        })
    }
}

/// Results of the checks during a run, or of a pass over its data. Every unit read is in exactly one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrityReport {
    /// All units read.
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
    /// [`Class::TornRequest`], in requests. They count in addition to their units, each of which is judged separately.
    pub torn_requests: Tally,
    /// Units of [`Severity::Unknown`].
    pub unknown: Tally,
    /// Units of [`Severity::Acknowledged`].
    pub lost_acknowledged: Tally,
    /// Units of [`Severity::Flushed`].
    pub lost_flushed: Tally,
    /// Units of [`Severity::Damage`].
    pub damaged: Tally,
    /// The first [`FINDINGS`] findings, in the order of the reads.
    pub findings: Vec<Finding>,
    /// Cases that this check could not decide, as text.
    pub cannot_tell: Vec<String>,
}

impl IntegrityReport {
    /// Returns the number of faulty units: damaged or lost, flushed or not.
    pub fn faults(&self) -> u64 {
        let counts = [self.damaged.count, self.lost_flushed.count, self.lost_acknowledged.count];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the report in the form of results, for blocks of `block_bytes`.
    pub fn to_integrity(&self, block_bytes: u32) -> Integrity {
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

    /// Appends the findings of another worker.
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

    /// Adds a note about an undecided case, unless it is already there.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.cannot_tell.iter().any(|known| known == text) {
            self.cannot_tell.push(text.to_owned());
        }
    }

    /// Counts a unit without a fault.
    pub(super) fn count(&mut self, class: Class, bytes: u64) {
        self.checked.add(bytes);
        self.tally_mut(class).add(bytes);
    }

    /// Counts a fault, and adds it to the list unless the list is full.
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
