//! [`ModelError`]: prediction intervals for the error of a model, learned from measured devices.

use serde::{Deserialize, Serialize};

/// Prediction intervals for the results of a device, at the confidence level `level`. They cover the error of the
/// model; the sampling error of the run is separate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelError {
    /// Share of devices for which an interval holds, 0 to 1.
    pub level: f64,
    /// Data that the intervals were learned from, and why a figure has no interval.
    pub learnt_from: String,
    /// Completed requests per second.
    pub throughput_per_s: Option<Range>,
    /// Mean response time, in ns.
    pub mean_latency_ns: Option<Range>,
    /// Median response time, in ns.
    pub p50_latency_ns: Option<Range>,
    /// 99th percentile of the response times, in ns.
    pub p99_latency_ns: Option<Range>,
}

/// The range of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl ModelError {
    fn ranges(&self) -> impl Iterator<Item = Range> {
        [self.throughput_per_s, self.mean_latency_ns, self.p50_latency_ns, self.p99_latency_ns].into_iter().flatten()
    }

    /// Whether a figure has an interval.
    pub(crate) fn has_ranges(&self) -> bool {
        self.ranges().next().is_some()
    }

    /// Returns all numbers of the intervals.
    pub(crate) fn figures(&self) -> impl Iterator<Item = f64> {
        self.ranges().flat_map(|range| [range.low, range.high]).chain([self.level])
    }
}
