//! [`LabOptions`]: options of the cache lab.

use headstack_cache::CachePolicy;
use serde::{Deserialize, Serialize};

use crate::error::{Place, TraceError};

/// A policy of the lab: an online policy, or Belady's, which knows the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PolicyName", into = "PolicyName")]
pub enum LabPolicy {
    /// A policy that can run in a real cache.
    Online(CachePolicy),
    /// Belady's policy: evicts the entry with the latest next use.
    Belady,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PolicyName {
    Belady(BeladyName),
    Online(CachePolicy),
}

#[derive(Serialize, Deserialize)]
enum BeladyName {
    #[serde(rename = "belady")]
    Belady,
}

impl From<PolicyName> for LabPolicy {
    fn from(name: PolicyName) -> LabPolicy {
        match name {
            PolicyName::Belady(BeladyName::Belady) => LabPolicy::Belady,
            PolicyName::Online(policy) => LabPolicy::Online(policy),
        }
    }
}

impl From<LabPolicy> for PolicyName {
    fn from(policy: LabPolicy) -> PolicyName {
        match policy {
            LabPolicy::Belady => PolicyName::Belady(BeladyName::Belady),
            LabPolicy::Online(policy) => PolicyName::Online(policy),
        }
    }
}

/// Contents of a cache, and the unit of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Unit {
    /// Blocks of `bytes`, a power of two. A request references its blocks in address order.
    Blocks {
        /// Block size, in bytes.
        bytes: u32,
    },
    /// Whole requests of any length, identified by device and first byte. The size is the number of objects.
    Objects,
    /// Whole requests; the size is in bytes. An object has the length of the request that admitted it.
    ObjectBytes,
}

impl Unit {
    /// Returns whether requests are objects.
    pub(super) fn is_object(self) -> bool {
        match self {
            Unit::Blocks { .. } => false,
            Unit::Objects | Unit::ObjectBytes => true,
        }
    }

    /// Returns the number of bytes that a reference moves, for a request of this length.
    #[inline]
    pub(super) fn bytes_of(self, length_bytes: u32) -> u32 {
        match self {
            Unit::Blocks { bytes } => bytes,
            Unit::Objects | Unit::ObjectBytes => length_bytes,
        }
    }

    /// Returns the space that a reference takes in the cache, in units of the cache size.
    #[inline]
    pub(super) fn weight(self, length_bytes: u32) -> u32 {
        match self {
            Unit::Blocks { .. } | Unit::Objects => 1,
            Unit::ObjectBytes => length_bytes.max(1),
        }
    }
}

/// Write policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// Write-through: admits writes and writes them to the system behind the cache at once.
    Through,
    /// Write-back: admits writes and writes them to the system behind the cache on eviction or if too much is dirty.
    Back,
    /// Write-around: writes to the system behind the cache. Updates and uses cached data, but admits nothing.
    Around,
    /// Read-only cache: writes to the system behind the cache and invalidates cached data.
    ReadOnly,
}

/// Admission policy for misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Admission {
    /// Admits every miss.
    All,
    /// Admits an entry on its second miss.
    Second,
    /// Admits requests up to a length.
    UpTo {
        /// Maximum length, in bytes.
        length_bytes: u32,
    },
    /// Admits a random share of entries.
    Share {
        /// Share to admit, from 0 to 1.
        share: f64,
    },
}

/// Options of the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabOptions {
    /// Cache policies.
    pub policies: Vec<LabPolicy>,
    /// Cache sizes in blocks, objects or bytes of objects; above 0.
    pub sizes: Vec<u64>,
    /// Unit of the caches.
    pub unit: Unit,
    /// Write policy.
    pub writes: Writes,
    /// Maximum dirty share of a write-back cache, from 0 to 1.
    pub dirty_share: f64,
    /// Maximum number of bytes destaged at once.
    pub destage_bytes: u32,
    /// Admission policy.
    pub admission: Admission,
    /// Minimum share of blocks or objects in a sample, above 0 and up to 1; rounded up to a power of 1/2.
    pub rate: f64,
    /// Number of independent samples, at least 2 if the rate is below 1.
    pub samples: u32,
    /// Seed of the samples.
    pub seed: u64,
    /// Memory limit for ids, policies and the references for Belady's policy, in bytes.
    pub memory_bytes: u64,
}

impl LabOptions {
    pub(super) fn check(&self) -> Result<(), TraceError> {
        let refuse =
            |field, message: String| Err(TraceError { file: "cache".to_owned(), place: Place::File, field, message });
        if self.policies.is_empty() {
            return refuse("policies", "name at least one".to_owned());
        }
        if self.sizes.is_empty() || self.sizes.contains(&0) {
            return refuse("sizes", "must be one or more values above 0".to_owned());
        }
        if let Unit::Blocks { bytes } = self.unit
            && (!bytes.is_power_of_two() || !(512..=1 << 30).contains(&bytes))
        {
            return refuse("block", format!("must be a power of two from 512 to 2^30, not {bytes}"));
        }
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return refuse("sample", format!("must be above 0 and up to 1, not {}", self.rate));
        }
        if self.rate < 1.0 && !(2..=64).contains(&self.samples) {
            return refuse("samples", format!("must be from 2 to 64, not {}", self.samples));
        }
        if !(0.0..=1.0).contains(&self.dirty_share) {
            return refuse("dirty", format!("must be from 0 to 1, not {}", self.dirty_share));
        }
        if let Admission::Share { share } = self.admission
            && !(0.0..=1.0).contains(&share)
        {
            return refuse("admit", format!("must be a share from 0 to 1, not {share}"));
        }
        let greatest = self.sizes.iter().copied().max().unwrap_or(0);
        if greatest > 1 << 50 {
            return refuse("sizes", format!("must be at most 2^50, not {greatest}"));
        }
        Ok(())
    }
}
