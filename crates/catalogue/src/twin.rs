//! Provenance of a description that was learnt from a device: stored, not used by the model.

use std::collections::BTreeMap;

use headstack_workload::quantity::DurationNs;
use serde::{Deserialize, Serialize};

/// `[twin]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinTable {
    /// The measured device.
    pub of: String,
    /// Assumed class of the device: intervals are learnt from others of its class.
    pub class: TwinClass,
    /// When.
    pub made: Option<String>,
    /// By which version of the software.
    pub version: Option<String>,
    /// Seed of its random choices.
    pub seed: Option<u64>,
    /// Requests that it took.
    pub requests: Option<u64>,
    /// Time of the device that it took.
    pub device_time: Option<DurationNs>,
    /// Whether it wrote.
    pub wrote: Option<bool>,
    /// The probes.
    pub probes: Option<Vec<String>>,
    /// A file in the same folder with other descriptions that fit the measurements equally well.
    pub sample: Option<String>,
    /// Key path to how sure its value is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, TwinValue>,
    /// Relative deviation of the description from the measurements by kind of request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub residuals: BTreeMap<String, TwinResidual>,
}

/// Kinds of devices.
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

/// How sure a value is, and how it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinValue {
    /// Lower end of its interval, with its unit.
    pub low: Option<String>,
    /// Upper end of its interval.
    pub high: Option<String>,
    /// Source of the value.
    pub how: String,
}

/// Natural logarithm of the measured value divided by the description's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinResidual {
    /// Error of the mean response time.
    pub mean: f64,
    /// Error of the median.
    pub p50: f64,
    /// Error of the 99th percentile.
    pub p99: f64,
    /// Requests that it was learnt from.
    pub requests: u64,
}
