//! Classifies a unit by its sectors and the generations that the ledger allows.

use super::report::{Class, Finding, IntegrityReport, Severity};
use super::stamp::{Generation, SectorContents, Stamp, examine};

/// The contents that a unit may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Oldest generation that may be read.
    pub floor: Generation,
    /// Latest generation issued.
    pub issued: Generation,
    /// Oldest generation that may be read after a power loss.
    pub kept: Generation,
    /// Whether a trim may have left zeros.
    pub zeros: bool,
    /// Whether zeros may be read after a power loss.
    pub zeros_kept: bool,
    /// Whether a write was in flight during the read.
    pub in_flight: bool,
    /// Whether the newest entries of the ledger may be missing.
    pub ahead: bool,
}

/// Kind of fault of a sector. The greatest fault of all sectors determines the verdict on the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Ahead,
    Unsettled,
    Stale,
    Foreign,
    Misplaced,
    Corrupt,
}

/// Classifies one unit read at `offset`, and counts it. `see` receives every valid stamp that is in its right place.
pub(super) fn unit(
    bounds: &Bounds,
    run: u64,
    sector_bytes: u32,
    offset: u64,
    sectors: &[u8],
    report: &mut IntegrityReport,
    mut see: impl FnMut(&Stamp),
) {
    let bytes = sectors.len() as u64;
    let mut worst: Option<(Fault, u64, SectorContents)> = None;
    // Generation of each sector, or 0 without a stamp of this run; used to detect torn units.
    let mut contents: Option<u32> = None;
    let (mut mixed, mut stamped) = (false, false);
    for (sector, at) in sectors.chunks_exact(sector_bytes as usize).zip((offset..).step_by(sector_bytes as usize)) {
        let sector_contents = examine(sector, at, Some(run));
        let content = match &sector_contents {
            SectorContents::Own(stamp) => {
                see(stamp);
                stamp.generation.0
            }
            _ => 0,
        };
        mixed |= *contents.get_or_insert(content) != content;
        stamped |= content != 0;
        if let Some(fault) = fault(bounds, &sector_contents)
            && worst.is_none_or(|(worse, ..)| fault > worse)
        {
            worst = Some((fault, at, sector_contents));
        }
    }
    let class = match worst {
        None if mixed => Class::Mixed,
        None if bounds.floor == Generation::NONE && !stamped => Class::Unwritten,
        None if !stamped => Class::Trimmed,
        None => Class::Intact,
        Some((Fault::Ahead, ..)) => Class::Ahead,
        Some((Fault::Unsettled, ..)) => Class::Unsettled,
        Some((Fault::Stale, ..)) if mixed => Class::Torn,
        Some((Fault::Stale, _, SectorContents::Zeros)) => Class::Zeros,
        Some((Fault::Stale, ..)) => Class::Stale,
        Some((Fault::Foreign, ..)) => Class::Foreign,
        Some((Fault::Misplaced, ..)) => Class::Misplaced,
        Some((Fault::Corrupt, ..)) => Class::Corrupt,
    };
    match worst {
        Some((fault, at, contents)) if fault >= Fault::Stale => {
            let severity = severity(bounds, &contents);
            let mut finding = describe(offset, bytes, class, severity, at, &contents);
            finding.expected_from = Some(bounds.floor.0);
            finding.expected_to = Some(bounds.issued.0);
            report.find(finding);
        }
        _ => report.count(class, bytes),
    }
}

/// Returns the fault of a sector; `None` if its contents are allowed.
fn fault(bounds: &Bounds, contents: &SectorContents) -> Option<Fault> {
    let written = bounds.floor != Generation::NONE;
    match contents {
        SectorContents::Own(stamp) if bounds.issued.is_before(stamp.generation) => {
            Some(if bounds.ahead { Fault::Ahead } else { Fault::Foreign })
        }
        SectorContents::Own(stamp) => stamp.generation.is_before(bounds.floor).then_some(Fault::Stale),
        SectorContents::Zeros => (written && !bounds.zeros).then_some(Fault::Stale),
        SectorContents::Foreign | SectorContents::OtherRun(_) if bounds.in_flight && written => Some(Fault::Unsettled),
        SectorContents::Foreign | SectorContents::OtherRun(_) => written.then_some(Fault::Foreign),
        SectorContents::Corrupt { .. } if bounds.in_flight => Some(Fault::Unsettled),
        SectorContents::Corrupt { .. } => Some(Fault::Corrupt),
        SectorContents::Misplaced(_) => Some(Fault::Misplaced),
    }
}

/// Returns the severity of a fault. A volatile cache may lose data that no flush has covered.
fn severity(bounds: &Bounds, contents: &SectorContents) -> Severity {
    let generation = match contents {
        SectorContents::Own(stamp) if bounds.issued.is_before(stamp.generation) => return Severity::Damage,
        SectorContents::Own(stamp) => stamp.generation,
        SectorContents::Zeros if bounds.zeros_kept => return Severity::Acknowledged,
        SectorContents::Zeros | SectorContents::Foreign | SectorContents::OtherRun(_) => Generation::NONE,
        SectorContents::Corrupt { .. } | SectorContents::Misplaced(_) => return Severity::Damage,
    };
    if generation.is_before(bounds.kept) { Severity::Flushed } else { Severity::Acknowledged }
}

/// Describes the sector at fault as a finding.
pub(super) fn describe(
    offset: u64,
    bytes: u64,
    class: Class,
    severity: Severity,
    sector_offset: u64,
    contents: &SectorContents,
) -> Finding {
    let stamp: Option<&Stamp> = match contents {
        SectorContents::Own(stamp) | SectorContents::Misplaced(stamp) | SectorContents::OtherRun(stamp) => Some(stamp),
        SectorContents::Corrupt { .. } | SectorContents::Zeros | SectorContents::Foreign => None,
    };
    let (generation, changed_byte, changed_bits) = match contents {
        SectorContents::Corrupt { generation, first_byte, bits } => (*generation, *first_byte, *bits),
        _ => (stamp.map(|stamp| stamp.generation), None, None),
    };
    Finding {
        offset,
        bytes,
        class,
        severity,
        sector_offset,
        expected_from: None,
        expected_to: None,
        found: generation.map(|generation| generation.0),
        found_request: stamp.map(|stamp| stamp.request),
        found_offset: stamp.map(|stamp| stamp.offset),
        found_run: stamp.map(|stamp| format!("{:016x}", stamp.run)),
        changed_byte,
        changed_bits,
    }
}
