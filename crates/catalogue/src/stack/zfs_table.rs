//! [`ZfsTable`]: table `[zfs]` of a stack file.

use headstack_sim::stack::description::{LogBias, PrimaryCache, Sync, ZfsParameters};
use headstack_workload::quantity::{Bytes, DurationNs};
use serde::{Deserialize, Serialize};

/// Table `[zfs]`; missing values are the defaults of the version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZfsTable {
    /// Version of OpenZFS.
    pub version: Option<Version>,
    /// Memory of the host, of which the ARC and dirty data take their parts.
    pub memory: Option<Bytes>,
    /// Size of the file or volume; half of the pool by default.
    pub size: Option<Bytes>,
    /// `recordsize` of a file system.
    pub recordsize: Option<Bytes>,
    /// `volblocksize`; makes it a volume (zvol).
    pub volblocksize: Option<Bytes>,
    /// `ashift`: the power of two of the smallest allocation.
    pub ashift: Option<u32>,
    /// Uncompressed size divided by compressed size.
    pub compression_ratio: Option<f64>,
    /// Property `sync`.
    pub sync: Option<Sync>,
    /// Property `logbias`.
    pub logbias: Option<LogBias>,
    /// Property `primarycache`.
    pub primarycache: Option<PrimaryCache>,
    /// Property `special_small_blocks`.
    pub special_small_blocks: Option<Bytes>,
    /// `zfs_dirty_data_max`.
    pub dirty_data_max: Option<Bytes>,
    /// `zfs_arc_max`.
    pub arc_max: Option<Bytes>,
    /// Separate log device (SLOG), named as `stack.over`.
    pub log: Option<String>,
    /// Cache device (L2ARC).
    pub cache: Option<String>,
    /// Special device.
    pub special: Option<String>,
    /// `zfs_scan_vdev_limit`: bytes that a scrub or resilver has in flight for each disk.
    pub scan_vdev_limit: Option<Bytes>,
    /// Whether a replaced mirror is rebuilt in order of addresses (`zpool replace -s`).
    pub sequential_resilver: Option<bool>,
    /// Time of a commit besides its I/O.
    pub commit: Option<DurationNs>,
    /// Time in which the thread that syncs the file prepares one record.
    pub sync_record: Option<DurationNs>,
    /// Processor cores.
    pub cores: Option<u32>,
}

/// A version of OpenZFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// 2.1.16.
    #[serde(rename = "2.1")]
    V2_1,
    /// 2.2.9.
    #[serde(rename = "2.2")]
    V2_2,
    /// 2.3.9.
    #[serde(rename = "2.3")]
    V2_3,
    /// 2.4.0.
    #[serde(rename = "2.4")]
    V2_4,
}

impl Version {
    /// Returns its parameters.
    pub fn parameters(self) -> ZfsParameters {
        match self {
            Version::V2_1 => ZfsParameters::v2_1(),
            Version::V2_2 => ZfsParameters::v2_2(),
            Version::V2_3 => ZfsParameters::v2_3(),
            Version::V2_4 => ZfsParameters::v2_4(),
        }
    }
}

impl ZfsTable {
    /// Returns the systems besides the pool, in the order of their numbers below the layer.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        [&self.log, &self.cache, &self.special].into_iter().flatten().map(String::as_str)
    }
}
