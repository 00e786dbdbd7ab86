//! Properties of each [`Fault`], for callers that apply schedules and keep contents. A new fault is added to every list
//! here.

use std::path::PathBuf;

use super::contents::{Stage, Unflushed};
use super::{Fault, RequestKind, Stretch};
use crate::pending_requests::Outcome;

impl Fault {
    /// Whether it happens at one moment, and does not end.
    pub fn is_momentary(&self) -> bool {
        match self {
            Fault::Corrupt { on, .. } => *on == Stage::Rest,
            Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::PowerOn
            | Fault::SetState { .. } => true,
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::Errno { .. } => false,
        }
    }

    /// Whether it changes stored data, or needs the previous data: kept contents must then be able to undo changes.
    pub fn changes_contents(&self) -> bool {
        match self {
            Fault::Corrupt { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::Errno { .. } => true,
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::SetState { .. } => false,
        }
    }

    /// Whether reads return data that are not stored there.
    pub fn spoils_reads(&self) -> bool {
        match self {
            Fault::Corrupt { on, .. } => *on == Stage::Read,
            Fault::Misdirect { kinds, .. } => kinds.contains(&RequestKind::Read),
            Fault::StaleRead { .. } => true,
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::LoseWrite { .. }
            | Fault::ShornWrite { .. }
            | Fault::Errno { .. }
            | Fault::SetState { .. } => false,
        }
    }

    /// Whether writes in volatile caches are lost.
    pub(crate) fn loses_cached_writes(&self) -> bool {
        match self {
            Fault::PowerCut { .. } => true,
            Fault::Errno { unflushed, .. } => *unflushed == Some(Unflushed::Drop),
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerOn
            | Fault::Corrupt { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::SetState { .. } => false,
        }
    }

    /// Whether a request with this outcome can have failed only because of it.
    pub(super) fn fails_requests_by(&self, outcome: Outcome) -> bool {
        match self {
            Fault::LinkErrors { .. } => outcome == Outcome::Failed(None),
            Fault::Errno { .. } => matches!(outcome, Outcome::Refused(_)),
            Fault::MediaError { .. }
            | Fault::WeakSectors { .. }
            | Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::Corrupt { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::SetState { .. } => false,
        }
    }

    /// Returns the map file that is still to be read, and the ranges to which it adds.
    pub fn map_mut(&mut self) -> Option<(&mut Option<PathBuf>, &mut Vec<Stretch>)> {
        match self {
            Fault::MediaError { map, ranges, .. } | Fault::WeakSectors { map, ranges, .. } => Some((map, ranges)),
            Fault::FailSlow { .. }
            | Fault::LatencySpike { .. }
            | Fault::Hang { .. }
            | Fault::DropOut
            | Fault::MemberFails { .. }
            | Fault::MemberReturns { .. }
            | Fault::SpareAdded { .. }
            | Fault::Scrub { .. }
            | Fault::BatteryFails
            | Fault::BatteryReturns
            | Fault::LinkErrors { .. }
            | Fault::LinkResets { .. }
            | Fault::LyingCache
            | Fault::PowerCut { .. }
            | Fault::PowerOn
            | Fault::Corrupt { .. }
            | Fault::Misdirect { .. }
            | Fault::LoseWrite { .. }
            | Fault::StaleRead { .. }
            | Fault::ShornWrite { .. }
            | Fault::Errno { .. }
            | Fault::SetState { .. } => None,
        }
    }
}
