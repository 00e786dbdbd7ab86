//! [`FaultRecord`]: a fault injected into a simulated system, as recorded in results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fault that occurred during a run, with its effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FaultRecord {
    /// Number of the fault, from 0, in order of occurrence.
    pub number: u32,
    /// Time of the fault since the start of the run (including the warm-up), in ns.
    pub at_ns: u64,
    /// Time at which the fault ended, in ns; null if the run ended first or if the fault was momentary.
    pub until_ns: Option<u64>,
    /// The fault as written in the schedule: `what` and its keys.
    pub fault: Value,
    /// Reason why the fault could not be applied to this system.
    pub refused: Option<String>,
    /// Requests affected by the fault, including the warm-up; not counted for faults of array members.
    pub met: u64,
    /// Affected requests that failed because of the fault.
    pub failed: u64,
    /// Passes that the device repeated during a media fault.
    pub retried_passes: Option<u64>,
    /// Accesses that failed during a media fault.
    pub uncorrectable_errors: Option<u64>,
    /// Data lost in a power loss.
    pub loss: Option<LossRecord>,
}

/// Written data that were lost in a power loss.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LossRecord {
    /// Acknowledged writes and trims that lost at least some data.
    pub lost_writes: u64,
    /// Bytes whose newest acknowledged data were lost.
    pub lost_bytes: u64,
    /// Number of contiguous extents that these bytes form.
    pub lost_extents: u64,
    /// Writes and trims in flight at the power loss.
    pub under_way: u64,
    /// In-flight writes and trims of which nothing reached the medium.
    pub absent: u64,
    /// In-flight writes and trims that reached the medium completely.
    pub whole: u64,
    /// In-flight writes of which only the first part reached the medium.
    pub torn: u64,
}
