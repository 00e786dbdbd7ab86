//! [`VolumeFile`]: the TOML form of a volume, with its type, size and provisioned performance, or with individual
//! limits.

use std::collections::BTreeMap;

use headstack_sim::volume::description::{Counts, LimitScope};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

use super::types::VolumeType;
use crate::file::is_default;
use crate::twin::TwinTable;

/// A volume file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFile {
    /// Product name, for display.
    pub name: String,
    /// Provider.
    pub vendor: Option<String>,
    /// Year of the provider's rules that apply.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Size and block size.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: VolumeCapacityTable,
    /// Type or limits of the volume.
    #[serde(default, skip_serializing_if = "is_default")]
    pub volume: VolumeTable,
    /// Cloud instance whose local disks this file describes; not used by the model.
    pub instance: Option<InstanceTable>,
    /// Sources, as in [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); stored, but not used by the model.
    pub twin: Option<TwinTable>,
}

/// Table `[capacity]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeCapacityTable {
    /// Exported size.
    pub size: Option<Bytes>,
    /// Size of a logical block; default 512 bytes.
    pub logical_block: Option<Bytes>,
}

/// Table `[instance]`: the cloud instance of local disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceTable {
    /// Instance type, as the provider writes it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Instances with the same kind of disk.
    pub family: String,
    /// Number of local disks.
    pub disks: u32,
    /// Size of one disk.
    pub disk: Bytes,
    /// Origin of the rates: `measured`, or `stated` by the provider.
    pub rates: RatesOrigin,
}

/// Origin of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatesOrigin {
    /// Measured by someone other than the provider.
    #[default]
    Measured,
    /// Stated by the provider.
    Stated,
}

/// Table `[volume]`, with a `type`, or with rates or `limits`, and with `read` and `write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeTable {
    /// Volume type, which determines missing values.
    #[serde(rename = "type")]
    pub kind: Option<VolumeType>,
    /// Provisioned IOPS, if the type supports it.
    pub iops: Option<u64>,
    /// Provisioned throughput, if the type supports it.
    pub throughput: Option<Rate>,
    /// Limit of reads per second, without a type.
    pub read_iops: Option<u64>,
    /// Limit of writes per second, without a type.
    pub write_iops: Option<u64>,
    /// Limit of bytes read per second, without a type.
    pub read_throughput: Option<Rate>,
    /// Limit of bytes written per second, without a type.
    pub write_throughput: Option<Rate>,
    /// Accounting unit: a longer request counts as several requests of this size.
    pub unit: Option<Bytes>,
    /// Whether consecutive requests are counted together up to one unit.
    pub merges: Option<bool>,
    /// Whether a request that does not continue another counts as a whole unit of bytes.
    pub whole_units: Option<bool>,
    /// Queue depth of the volume's driver.
    pub queue_depth: Option<u32>,
    /// How long a limit keeps an unused allowance; by default that of the type, and 0 without a type.
    pub slack: Option<DurationNs>,
    /// How much each read in flight lengthens another, as a share of the time between reads at their limit.
    pub read_crowding: Option<f64>,
    /// Limits that replace those of the type.
    pub limits: Option<Vec<LimitTable>>,
    /// Latency of a read that is not delayed by a limit.
    pub read: Option<LatencyTable>,
    /// Latency of a write that is not delayed by a limit.
    pub write: Option<LatencyTable>,
}

/// Table `[[volume.limits]]`: a limit on the rate of requests or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitTable {
    /// Unit that the limit counts: `requests` or `bytes`.
    pub counts: Counts,
    /// Requests to which the limit applies: `reads`, `writes` or `both`; default `both`.
    #[serde(default)]
    pub of: LimitScope,
    /// Sustained rate, per second.
    pub per_s: u64,
    /// Burst rate while there are credits, per second.
    pub burst_per_s: Option<u64>,
    /// Capacity of the bucket in credits; it starts full.
    pub credits: Option<u64>,
}

/// A latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTable {
    /// Minimum latency.
    pub floor: DurationNs,
    /// Median latency.
    pub median: DurationNs,
    /// 99th percentile of the latency.
    pub p99: DurationNs,
}
