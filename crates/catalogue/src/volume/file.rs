//! [`VolumeFile`]: the TOML form of a volume: its type, size and provisioned performance; or its individual limits.

use std::collections::BTreeMap;

use headstack_sim::volume::description::{Counts, Of};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

use super::types::VolumeType;
use crate::file::is_default;
use crate::twin::TwinTable;

/// A volume's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFile {
    /// Product name, for people.
    pub name: String,
    /// Provider.
    pub vendor: Option<String>,
    /// Year whose rules these are.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// How much it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: VolumeCapacityTable,
    /// Its guarantees.
    #[serde(default, skip_serializing_if = "is_default")]
    pub volume: VolumeTable,
    /// As in [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// How it was learnt from a device, if it was; stored, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeCapacityTable {
    /// Exported size.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; by default 512.
    pub logical_block: Option<Bytes>,
}

/// `[volume]`: a `type`, or `limits`, `read` and `write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeTable {
    /// Type, which gives the default values.
    #[serde(rename = "type")]
    pub kind: Option<VolumeType>,
    /// Provisioned IOPS, if its type has them.
    pub iops: Option<u64>,
    /// Provisioned bytes per second, if its type has them.
    pub throughput: Option<Rate>,
    /// A longer request counts as several of this length.
    pub unit: Option<Bytes>,
    /// Requests in a row count together, up to a unit.
    pub merges: Option<bool>,
    /// A request that continues nothing pays a whole unit of bytes.
    pub whole_units: Option<bool>,
    /// Requests that its driver keeps in it.
    pub queue_depth: Option<u32>,
    /// Limits in place of those of the type.
    pub limits: Option<Vec<LimitTable>>,
    /// How long a read takes that no limit holds back.
    pub read: Option<LatencyTable>,
    /// Latency of a write.
    pub write: Option<LatencyTable>,
}

/// `[[volume.limits]]`: a limit of requests or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitTable {
    /// `requests` or `bytes`.
    pub counts: Counts,
    /// `reads`, `writes`, or by default `both`.
    #[serde(default)]
    pub of: Of,
    /// Sustained rate per second.
    pub per_s: u64,
    /// Rate per second while there are credits.
    pub burst_per_s: Option<u64>,
    /// Credits that the bucket holds, and has at the start.
    pub credits: Option<u64>,
}

/// A latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTable {
    /// The shortest.
    pub floor: DurationNs,
    /// Half are shorter.
    pub median: DurationNs,
    /// 99 % quantile.
    pub p99: DurationNs,
}
