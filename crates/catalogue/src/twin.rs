//! What a description that was learnt from a device says of how it was: carried, not used by the model.

use std::collections::BTreeMap;

use headstack_workload::quantity::DurationNs;
use serde::{Deserialize, Serialize};

/// `[twin]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinTable {
    /// What was measured.
    pub of: String,
    /// What kind of device it was taken to be: intervals are learnt from others of its class.
    pub class: TwinClass,
    /// When.
    pub made: Option<String>,
    /// By which version of the software.
    pub version: Option<String>,
    /// What its random choices began with.
    pub seed: Option<u64>,
    /// Requests that it took.
    pub requests: Option<u64>,
    /// Time of the device that it took.
    pub device_time: Option<DurationNs>,
    /// Whether it wrote.
    pub wrote: Option<bool>,
    /// The probes that were carried out.
    pub probes: Option<Vec<String>>,
    /// The file beside this one with other descriptions that what was measured does not tell from this.
    pub sample: Option<String>,
    /// Key path to how sure its value is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, TwinValue>,
    /// Kind of request to how far the description is off what was measured.
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
    /// Where it lies at least, with its unit.
    pub low: Option<String>,
    /// Where it lies at most.
    pub high: Option<String>,
    /// From what.
    pub how: String,
}

/// The natural logarithm of what was measured over what the description says.
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
