//! [`Pass`] over the stripes of a group (`passes.rs`), and the [`Standing`] of the group.

use std::ops::Range;

use serde::Serialize;

/// Purpose of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassKind {
    /// Counts differences.
    Check,
    /// Recomputes redundancy from the data.
    Repair,
    /// Likewise, after a power cut.
    Resync,
}

/// How far a pass has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassState {
    /// Running.
    Running,
    /// It has seen everything.
    Done,
    /// A member failed meanwhile.
    Stopped,
}

/// A pass: the last of its group, under way or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Purpose.
    pub kind: PassKind,
    /// Number among the passes of the array.
    pub number: u32,
    /// The bytes of each slot that it sees, ascending.
    pub runs: Vec<Range<u64>>,
    /// End of the processed part.
    pub at_bytes: u64,
    /// How far it has come.
    pub state: PassState,
    pub(super) to_bytes: u64,
    pub(super) pending: u32,
    pub(super) begun_ns: u64,
    pub(super) allowed_ns: u64,
}

impl Pass {
    /// Bytes of each slot that it has seen.
    pub fn done_bytes(&self) -> u64 {
        self.runs.iter().map(|run| self.at_bytes.clamp(run.start, run.end) - run.start).sum()
    }

    /// All that it sees.
    pub fn of_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Ranges still to be processed.
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
pub struct Standing {
    /// For each slot: its member, the number of data losses, and the end of the valid range.
    pub served: Vec<(u32, u32, u64)>,
    /// The last pass over its stripes since power-on.
    pub pass: Option<Pass>,
}
