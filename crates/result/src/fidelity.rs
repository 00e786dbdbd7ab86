//! [`Fidelity`]: how faithfully a trace was replayed.

use serde::{Deserialize, Serialize};

/// How faithfully a recording was replayed. Times count from the first request on both sides; rates are requests after
/// the first over the time from the first to the last, and absent where that is no time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fidelity {
    /// Requests of the recording, as far as it was to be replayed.
    pub recorded_requests: u64,
    /// Requests issued.
    pub replayed_requests: u64,
    /// From the first recorded arrival to the last, on the recording's clock.
    pub recorded_duration_ns: u64,
    /// From the first issue to the last.
    pub replayed_duration_ns: u64,
    /// Recorded arrivals a second.
    pub recorded_per_s: Option<f64>,
    /// Issues a second.
    pub achieved_per_s: Option<f64>,
    /// Achieved rate divided by the recorded rate, at the requested time scale.
    pub rate_ratio: Option<f64>,
    /// Delay of the issue after the recorded arrival at the requested time scale; 0 for early issues. Half of the
    /// requests were issued no later than this.
    pub lateness_p50_ns: u64,
    /// 90 % were issued no later than this.
    pub lateness_p90_ns: u64,
    /// 99 % were issued no later than this.
    pub lateness_p99_ns: u64,
    /// The latest.
    pub lateness_max_ns: u64,
    /// Requests issued before their recorded arrival.
    pub early: u64,
    /// Requests issued before the completion of one that, in the recording, was complete before they arrived.
    pub causality_violations: u64,
    /// Requests issued after one that had arrived later.
    pub reordered: u64,
    /// Requests moved onto the system because they lay outside.
    pub folded: u64,
    /// Requests left out because they lay outside.
    pub dropped: u64,
    /// Requests widened to whole blocks.
    pub rounded: u64,
    /// Requests whose completion was not recorded.
    pub without_completion: u64,
    /// Requests in flight as recorded, over the time from the first arrival to the last completion, as far as completions
    /// are recorded; null where none is. What the replay had in flight is the result's depth.
    #[serde(default)]
    pub recorded_depth_mean: Option<f64>,
    /// The most that were in flight as recorded, likewise.
    #[serde(default)]
    pub recorded_depth_max: Option<u64>,
}
