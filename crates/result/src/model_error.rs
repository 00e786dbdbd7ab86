//! [`ModelError`]: prediction intervals of a model's error, learned from measured devices.

use serde::{Deserialize, Serialize};

/// Prediction intervals for the results of a device, at the confidence `level`. They cover the error of the model; the sampling error
/// of the run is separate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelError {
    /// The share of devices for which an interval holds, 0 to 1.
    pub level: f64,
    /// Source of the intervals, and why a figure without one has none.
    pub learnt_from: String,
    /// Requests completed a second.
    pub throughput_per_s: Option<Range>,
    /// Mean response time.
    pub mean_response_ns: Option<Range>,
    /// Median of the response times.
    pub p50_response_ns: Option<Range>,
    /// 99th percentile of the response times.
    pub p99_response_ns: Option<Range>,
}

/// From where to where a figure may lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl ModelError {
    /// Returns all its numbers.
    pub(crate) fn figures(&self) -> impl Iterator<Item = f64> {
        let ranges = [self.throughput_per_s, self.mean_response_ns, self.p50_response_ns, self.p99_response_ns];
        ranges.into_iter().flatten().flat_map(|range| [range.low, range.high]).chain([self.level])
    }
}
