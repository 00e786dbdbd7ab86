//! [`FaultRecord`]: faults that were injected into a simulated system, as results record them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fault that occurred during a run, and its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FaultRecord {
    /// Its number, from 0, in the order in which they struck.
    pub number: u32,
    /// When it struck, from the start of the run, whose warm-up is part of it.
    pub at_ns: u64,
    /// When it ended; null where the run ended first, or where it happened in a moment.
    pub until_ns: Option<u64>,
    /// The fault as a schedule states it: `what` and its keys.
    pub fault: Value,
    /// Why the system could not have it.
    pub refused: Option<String>,
    /// Requests that met it, including the warm-up; not counted for faults of an array's members.
    pub met: u64,
    /// Those of them that failed by it.
    pub failed: u64,
    /// Passes that the device repeated meanwhile, for a fault of its media.
    pub retried_passes: Option<u64>,
    /// Accesses that failed meanwhile, likewise.
    pub uncorrectable_errors: Option<u64>,
    /// Data lost in a power cut.
    pub loss: Option<LossRecord>,
}

/// Written data that a power cut lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LossRecord {
    /// Acknowledged writes and trims of which something is missing.
    pub lost_writes: u64,
    /// Bytes whose newest acknowledged data are not there any more.
    pub lost_bytes: u64,
    /// Stretches in which these lie.
    pub lost_extents: u64,
    /// Writes and trims that were under way.
    pub under_way: u64,
    /// How many of these are lost as a whole.
    pub absent: u64,
    /// How many of these are complete.
    pub whole: u64,
    /// Writes of which the first part is there and the rest is not.
    pub torn: u64,
}
