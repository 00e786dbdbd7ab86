//! [`Fidelity`]: how faithfully a trace was replayed.

use serde::{Deserialize, Serialize};

/// How faithfully a trace was replayed. Times are relative to the first request, in the trace and in the replay. Rates
/// are the number of requests after the first divided by the time from the first to the last; null if that time is 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fidelity {
    /// Requests in the part of the trace to be replayed.
    pub recorded_requests: u64,
    /// Requests issued.
    pub replayed_requests: u64,
    /// Time from the first to the last recorded arrival, in ns on the trace's clock.
    pub recorded_duration_ns: u64,
    /// Time from the first to the last request issued, in ns.
    pub replayed_duration_ns: u64,
    /// Recorded arrivals per second.
    pub recorded_per_s: Option<f64>,
    /// Requests issued per second.
    pub achieved_per_s: Option<f64>,
    /// Achieved rate divided by the recorded rate, the latter adjusted to the requested time scale.
    pub rate_ratio: Option<f64>,
    /// Median lateness, in ns: the delay from the recorded arrival (at the requested time scale) to the issue of a
    /// request; 0 if it was issued early.
    pub lateness_p50_ns: u64,
    /// 90th percentile of the lateness, in ns.
    pub lateness_p90_ns: u64,
    /// 99th percentile of the lateness, in ns.
    pub lateness_p99_ns: u64,
    /// Maximum lateness, in ns.
    pub lateness_max_ns: u64,
    /// Requests issued before their recorded arrival.
    pub early: u64,
    /// Requests issued before the completion of an earlier request that, in the trace, had completed before they
    /// arrived.
    pub causality_violations: u64,
    /// Requests issued after a request that arrived later in the trace.
    pub reordered: u64,
    /// Requests outside the system's address range that were mapped into it.
    pub folded: u64,
    /// Requests outside the system's address range that were skipped.
    pub dropped: u64,
    /// Requests widened to whole blocks.
    pub rounded: u64,
    /// Requests without a recorded completion.
    pub without_completion: u64,
    /// Mean queue depth in the trace, from the first arrival to the last completion, over requests with a recorded
    /// completion; null if the trace has no completions. The queue depth of the replay is in the result's `depth`.
    #[serde(default)]
    pub recorded_depth_mean: Option<f64>,
    /// Maximum queue depth in the trace, over requests with a recorded completion; null if the trace has no completions.
    #[serde(default)]
    pub recorded_depth_max: Option<u64>,
}
