//! [`Pass`]: a pass over the stripes of a group (`passes.rs`), and [`GroupStatus`]: the state of a group.

use std::ops::Range;

use serde::Serialize;

/// Purpose of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassKind {
    /// Counts inconsistent stripes.
    Check,
    /// Rewrites redundant data from the data where they differ.
    Repair,
    /// Like [`Self::Repair`], after a power loss.
    Resync,
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

/// A pass: the last one of its group, in progress or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Its purpose.
    pub kind: PassKind,
    /// Its number among the passes of the array.
    pub number: u32,
    /// The bytes of each slot that it covers, ascending.
    pub runs: Vec<Range<u64>>,
    /// Everything below this is done.
    pub at_bytes: u64,
    /// Its progress.
    pub state: PassState,
    pub(super) to_bytes: u64,
    pub(super) pending: u32,
    pub(super) begun_ns: u64,
    pub(super) allowed_ns: u64,
}

impl Pass {
    /// Returns the bytes of each slot that are done.
    pub fn done_bytes(&self) -> u64 {
        self.runs.iter().map(|run| self.at_bytes.clamp(run.start, run.end) - run.start).sum()
    }

    /// Returns the bytes of each slot that it covers.
    pub fn of_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns the runs that are still to do.
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
    /// The last pass over its stripes since power-on.
    pub pass: Option<Pass>,
}
