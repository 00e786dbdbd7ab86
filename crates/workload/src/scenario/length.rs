//! [`ScenarioLength`]: the length of a scenario's run.

use serde::{Deserialize, Serialize};

use crate::quantity::duration_u64;

/// Length of a scenario's run after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioLength {
    /// Number of completed requests of all streams.
    Requests(u64),
    /// Time in ns.
    #[serde(rename = "time")]
    TimeNs(#[serde(with = "duration_u64")] u64),
    /// Until all finite streams are done: boots, prefills, and video with a number of frames.
    AllDone,
}
