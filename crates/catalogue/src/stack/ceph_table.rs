//! [`CephTable`]: table `[ceph]` of a stack file.

use headstack_sim::stack::description::{ErasureAccess, FailureDomain, Share};
use headstack_workload::quantity::{Bytes, DurationNs, Rate};
use serde::{Deserialize, Serialize};

/// Table `[ceph]`; missing values are the defaults of the version and of the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CephTable {
    /// Version of Ceph.
    pub version: Option<CephVersion>,
    /// OSDs of the cluster.
    pub osds: Option<u32>,
    /// Hosts with OSDs.
    pub hosts: Option<u32>,
    /// Copies of each object.
    pub copies: Option<u32>,
    /// Data and parity shards, such as `4+2`.
    pub erasure: Option<String>,
    /// `stripe_unit` of the erasure code profile.
    pub stripe_unit: Option<Bytes>,
    /// Units on which copies differ.
    pub failure_domain: Option<FailureDomain>,
    /// Size of the image.
    pub size: Option<Bytes>,
    /// DB device (RocksDB and its log), named as `stack.over`.
    pub db: Option<String>,
    /// OSDs that share a DB device.
    pub osds_per_db: Option<u32>,
    /// `bluestore_prefer_deferred_size`.
    pub prefer_deferred: Option<Bytes>,
    /// Rate of the network interfaces, for example 25Gb/s.
    pub speed: Option<Rate>,
    /// Time of a message without payload to another host and back.
    pub round_trip: Option<DurationNs>,
    /// Client hosts.
    pub clients: Option<u32>,
    /// Processor cores for each OSD.
    pub cores: Option<u32>,
    /// Processor time of a read.
    pub read_cpu: Option<DurationNs>,
    /// Processor time of a write, for each copy.
    pub write_cpu: Option<DurationNs>,
    /// Time of a read in software, besides processor time.
    pub read_delay: Option<DurationNs>,
    /// Time of a write in software, besides processor time.
    pub write_delay: Option<DurationNs>,
    /// `osd_mclock_profile`.
    pub profile: Option<Profile>,
    /// `osd_mclock_max_capacity_iops_ssd` or `_hdd`.
    pub capacity_iops: Option<u64>,
    /// `osd_mclock_max_sequential_bandwidth_ssd` or `_hdd`.
    pub bandwidth: Option<Rate>,
    /// Whether the cluster recovers the data of a lost OSD beside the clients.
    pub recovery: Option<bool>,
    /// `osd_recovery_max_active`.
    pub recovery_active: Option<u32>,
}

/// A version of Ceph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CephVersion {
    /// 16.
    Pacific,
    /// 17.
    Quincy,
    /// 18.
    Reef,
    /// 19.
    Squid,
    /// 20, with `allow_ec_optimizations`.
    Tentacle,
}

impl CephVersion {
    /// Returns which shards a small request uses with erasure coding, and the stripe unit (blog of Ceph on fast erasure
    /// coding, 2025-11-20; `osd_pool_erasure_code_stripe_unit`).
    pub fn erasure(self) -> (ErasureAccess, u64) {
        match self {
            CephVersion::Pacific | CephVersion::Quincy | CephVersion::Reef | CephVersion::Squid => {
                (ErasureAccess::WholeStripes, 4 << 10)
            }
            CephVersion::Tentacle => (ErasureAccess::ChangedShards, 16 << 10),
        }
    }
}

impl CephVersion {
    /// Whether the profiles of mclock limit recovery, and count operations of 4 KiB instead of bandwidth.
    pub fn limits_recovery(self) -> bool {
        match self {
            CephVersion::Pacific | CephVersion::Quincy => true,
            CephVersion::Reef | CephVersion::Squid | CephVersion::Tentacle => false,
        }
    }
}

/// A profile of mclock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Half for clients, half for recovery.
    Balanced,
    /// 60 % for clients.
    HighClientOps,
    /// 70 % for recovery.
    HighRecoveryOps,
}

impl Profile {
    /// Returns the shares of clients and recovery (mclock-config-ref.rst, of Reef and of Pacific).
    pub fn shares(self, version: CephVersion) -> (Share, Share) {
        let share = |reservation_percent, weight, limit_percent| Share { reservation_percent, weight, limit_percent };
        match (self, version.limits_recovery()) {
            (Profile::Balanced, false) => (share(50, 1, None), share(50, 1, None)),
            (Profile::HighClientOps, false) => (share(60, 2, None), share(40, 1, None)),
            (Profile::HighRecoveryOps, false) => (share(30, 1, None), share(70, 2, None)),
            (Profile::Balanced, true) => (share(40, 1, Some(100)), share(40, 1, Some(150))),
            (Profile::HighClientOps, true) => (share(50, 2, None), share(25, 1, Some(100))),
            (Profile::HighRecoveryOps, true) => (share(30, 1, Some(80)), share(60, 2, Some(200))),
        }
    }

    /// Returns the profile that is the default of a version.
    pub fn of(version: CephVersion) -> Profile {
        if version.limits_recovery() { Profile::HighClientOps } else { Profile::Balanced }
    }
}

impl CephTable {
    /// Returns the systems besides the drive of an OSD.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.db.as_deref().into_iter()
    }
}
