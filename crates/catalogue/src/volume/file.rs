//! The TOML form of a volume: its type, its size and what was provisioned; or its limits one by one.

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
    /// What a reader should know.
    pub notes: Option<String>,
    /// How much it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: VolumeCapacityTable,
    /// What it promises.
    #[serde(default, skip_serializing_if = "is_default")]
    pub volume: VolumeTable,
    /// As of [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// How it was learnt from a device, where it was; carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeCapacityTable {
    /// What it exports.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; 512 where left out.
    pub logical_block: Option<Bytes>,
}

/// `[volume]`: a `type`, or `limits`, `read` and `write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeTable {
    /// What is sold, which gives what is left out.
    #[serde(rename = "type")]
    pub kind: Option<VolumeType>,
    /// Requests a second that were provisioned, where its type has that.
    pub iops: Option<u64>,
    /// Bytes a second that were provisioned, where its type has that.
    pub throughput: Option<Rate>,
    /// A longer request counts as several of this length.
    pub unit: Option<Bytes>,
    /// Requests in a row count together, up to a unit.
    pub merges: Option<bool>,
    /// A request that continues nothing pays a whole unit of bytes.
    pub whole_units: Option<bool>,
    /// Requests that its driver keeps in it.
    pub queue_depth: Option<u32>,
    /// Limits, in place of those of the type.
    pub limits: Option<Vec<LimitTable>>,
    /// How long a read takes that no limit holds back.
    pub read: Option<LatencyTable>,
    /// The same of a write.
    pub write: Option<LatencyTable>,
}

/// `[[volume.limits]]`: so many requests or bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitTable {
    /// `requests` or `bytes`.
    pub counts: Counts,
    /// `reads`, `writes`, or `both` where left out.
    #[serde(default)]
    pub of: Of,
    /// So many a second, always.
    pub per_s: u64,
    /// So many a second while there are credits.
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
    /// One in a hundred is longer.
    pub p99: DurationNs,
}
