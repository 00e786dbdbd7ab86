//! [`TwinTable`]: provenance of a calibrated model (twin); stored, but not used by the model.

use std::collections::BTreeMap;

use headstack_workload::quantity::DurationNs;
use serde::{Deserialize, Serialize};

/// Table `[twin]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinTable {
    /// The measured device.
    pub of: String,
    /// Class of the device; prediction intervals are learned from other devices of the class.
    pub class: TwinClass,
    /// Date of the measurement.
    pub made: Option<String>,
    /// Version of headstack that made the model.
    pub version: Option<String>,
    /// Seed of the random choices.
    pub seed: Option<u64>,
    /// Number of requests measured.
    pub requests: Option<u64>,
    /// Time that the measurement took on the device.
    pub device_time: Option<DurationNs>,
    /// Whether the measurement wrote to the device.
    pub wrote: Option<bool>,
    /// Names of the probes that were run.
    pub probes: Option<Vec<String>>,
    /// File in the same folder with other descriptions that fit the measurements equally well.
    pub sample: Option<String>,
    /// Confidence of each value, by key path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, TwinValue>,
    /// Error of the description, by kind of request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub residuals: BTreeMap<String, TwinResidual>,
}

/// Class of a device.
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

/// Confidence of a value and how it was derived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinValue {
    /// Lower bound, with its unit.
    pub low: Option<String>,
    /// Upper bound, with its unit.
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
    /// Error of the median latency.
    pub p50: f64,
    /// Error of the 99th percentile of the latency.
    pub p99: f64,
    /// Number of requests from which the errors were determined.
    pub requests: u64,
}
