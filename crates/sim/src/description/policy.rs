//! [`Policy`]: in which order requests are served.

use serde::{Deserialize, Serialize};

/// Scheduling policy of a drive's queue or of the host's elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Shortest seek (distance in cylinders) first.
    Sstf,
    /// Sweep in both directions, reversing at the last request.
    Look,
    /// Sweep in ascending order, then jump back to the lowest.
    CLook,
    /// Shortest positioning time (seek and rotation) first.
    Sptf,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 5] = [Policy::Fcfs, Policy::Sstf, Policy::Look, Policy::CLook, Policy::Sptf];
}
