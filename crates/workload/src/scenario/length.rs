//! [`ScenarioLength`]: the end of a scenario.

use serde::{Deserialize, Serialize};

use crate::quantity::duration_u64;

/// How long a scenario runs after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioLength {
    /// This many completed requests of all streams.
    Requests(u64),
    /// This many nanoseconds.
    #[serde(rename = "time")]
    TimeNs(#[serde(with = "duration_u64")] u64),
    /// When its finite streams are done: boots, prefills, and video with a number of frames.
    AllDone,
}
