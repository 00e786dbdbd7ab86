//! [`Pass`]: a pass over the stripes of a group (`passes.rs`), and [`GroupStatus`]: the state of a group.

use std::ops::Range;

use serde::Serialize;

use super::sync_speed::SyncSpeed;

/// Purpose of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassKind {
    /// Counts inconsistent stripes.
    Check,
    /// Rewrites redundant data that do not match the data.
    Repair,
    /// Like [`Self::Repair`], after a power loss.
    Resync,
}

impl PassKind {
    /// Whether the pass is a scrub, which a user starts.
    pub(super) fn is_scrub(self) -> bool {
        match self {
            PassKind::Check | PassKind::Repair => true,
            PassKind::Resync => false,
        }
    }
}

/// Progress of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassState {
    /// In progress.
    Running,
    /// Complete.
    Done,
    /// Stopped, because a member failed.
    Stopped,
}

/// A pass over a group: the pass in progress, or the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Purpose of the pass.
    pub kind: PassKind,
    /// Number of the pass, among all passes of the array.
    pub number: u32,
    /// Ranges of each slot that the pass covers, ascending.
    pub runs: Vec<Range<u64>>,
    /// Position: all bytes below are done.
    pub at_bytes: u64,
    /// Progress of the pass.
    pub state: PassState,
    pub(super) to_bytes: u64,
    pub(super) pending: u32,
    /// Start time of the step.
    pub(super) begun_ns: u64,
    pub(super) allowed_ns: u64,
    /// Start time of the pass.
    pub(super) started_ns: u64,
    /// Pacing of Linux md.
    pub(super) speed: Option<SyncSpeed>,
}

impl Pass {
    /// Returns the number of bytes done on each slot.
    pub fn done_bytes(&self) -> u64 {
        self.runs.iter().map(|run| self.at_bytes.clamp(run.start, run.end) - run.start).sum()
    }

    /// Returns the number of bytes that the pass covers on each slot.
    pub fn of_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns the remaining ranges.
    pub(super) fn rest(&self) -> Vec<Range<u64>> {
        let rest = self.runs.iter().map(|run| run.start.max(self.at_bytes)..run.end);
        rest.filter(|run| !run.is_empty()).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == PassState::Running
    }
}

/// State of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// For each slot: its member, the number of data losses, and the end of the valid range.
    pub served: Vec<(u32, u32, u64)>,
    /// The last pass over the stripes of the group since power-on.
    pub pass: Option<Pass>,
}
