//! [`VolumeFile`]: the TOML form of a volume: its type, its size and what was provisioned; or its limits one by one.

use std::collections::BTreeMap;

use headstack_sim::volume::description::{Counts, LimitScope};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

use super::types::VolumeType;
use crate::file::is_default;
use crate::twin::TwinTable;

/// A volume's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFile {
    /// Product name, for display.
    pub name: String,
    /// Provider.
    pub vendor: Option<String>,
    /// Year of the provider's rules.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Capacity.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: VolumeCapacityTable,
    /// Type or limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub volume: VolumeTable,
    /// Sources, as [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeCapacityTable {
    /// Exported size.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; default 512.
    pub logical_block: Option<Bytes>,
}

/// `[volume]`: a `type`, or `limits`, `read` and `write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeTable {
    /// Type, which determines missing values.
    #[serde(rename = "type")]
    pub kind: Option<VolumeType>,
    /// Provisioned IOPS, if its type has that.
    pub iops: Option<u64>,
    /// Provisioned throughput, if its type has that.
    pub throughput: Option<Rate>,
    /// A longer request counts as several of this length.
    pub unit: Option<Bytes>,
    /// Whether consecutive requests count together, up to a unit.
    pub merges: Option<bool>,
    /// Whether a request that continues no other pays for a whole unit of bytes.
    pub whole_units: Option<bool>,
    /// Queue depth of its driver.
    pub queue_depth: Option<u32>,
    /// Limits in place of those of the type.
    pub limits: Option<Vec<LimitTable>>,
    /// Latency of a read that no limit delays.
    pub read: Option<LatencyTable>,
    /// Latency of a write that no limit delays.
    pub write: Option<LatencyTable>,
}

/// `[[volume.limits]]`: a rate of requests or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitTable {
    /// `requests` or `bytes`.
    pub counts: Counts,
    /// `reads`, `writes`, or `both`, the default.
    #[serde(default)]
    pub of: LimitScope,
    /// Sustained rate, per second.
    pub per_s: u64,
    /// Rate while there are credits, per second.
    pub burst_per_s: Option<u64>,
    /// Capacity of the bucket in credits; it starts full.
    pub credits: Option<u64>,
}

/// A latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTable {
    /// Minimum.
    pub floor: DurationNs,
    /// Median.
    pub median: DurationNs,
    /// 99th percentile.
    pub p99: DurationNs,
}
