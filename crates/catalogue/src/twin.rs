//! [`TwinTable`]: provenance of a calibrated model (twin): carried, not used by the model.

use std::collections::BTreeMap;

use headstack_workload::quantity::DurationNs;
use serde::{Deserialize, Serialize};

/// `[twin]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinTable {
    /// The measured device.
    pub of: String,
    /// Class of the device: intervals are learned from others of its class.
    pub class: TwinClass,
    /// Date of the measurement.
    pub made: Option<String>,
    /// Version of the software.
    pub version: Option<String>,
    /// Seed of its random choices.
    pub seed: Option<u64>,
    /// Number of requests.
    pub requests: Option<u64>,
    /// Measurement time on the device.
    pub device_time: Option<DurationNs>,
    /// Whether it wrote.
    pub wrote: Option<bool>,
    /// Probes that were run.
    pub probes: Option<Vec<String>>,
    /// The file in the same folder with other descriptions that fit the measurements as well.
    pub sample: Option<String>,
    /// Key path to the confidence of its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, TwinValue>,
    /// Kind of request to the error of the description.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub residuals: BTreeMap<String, TwinResidual>,
}

/// Classes of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TwinClass {
    /// A disk.
    #[default]
    Disk,
    /// A solid-state drive.
    Flash,
    /// Several drives behind a controller.
    Array,
    /// A volume with stated limits.
    Volume,
}

/// Confidence of a value, and its derivation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinValue {
    /// Lower bound, with its unit.
    pub low: Option<String>,
    /// Upper bound.
    pub high: Option<String>,
    /// How it was derived.
    pub how: String,
}

/// Errors as natural logarithms of the ratio of measured to modelled values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinResidual {
    /// Error of the mean latency.
    pub mean: f64,
    /// Error of the median.
    pub p50: f64,
    /// Error of the 99th percentile.
    pub p99: f64,
    /// Number of requests that it was learned from.
    pub requests: u64,
}
