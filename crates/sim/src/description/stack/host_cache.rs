//! [`HostCacheDescription`]: the cache of a cloud host in front of a network volume.

use serde::{Deserialize, Serialize};

use super::limits::{InstanceLimitDescription, check_instance};
use crate::error::{InvalidDescription, require};

/// The cache of a host in front of a volume of an instance, such as Azure's host caching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCacheDescription {
    /// Which requests the cache answers.
    pub mode: HostCacheMode,
    /// Size of the cache.
    pub capacity_bytes: u64,
    /// Limits of the instance on all requests to volumes with a host cache. Limits on what reaches the volume are a
    /// layer below.
    pub cached: InstanceLimitDescription,
    /// Time of a request that the cache answers.
    pub hit_ns: u64,
    /// Time between two flushes of all dirty pages to the volume.
    pub flush_interval_ns: u64,
    /// Most writes of a flush at the volume.
    pub writes_max: u32,
    /// Longest write of a flush.
    pub write_bytes_max: u32,
}

/// Which requests a host cache answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostCacheMode {
    /// Reads of cached pages. Writes end when they are in the cache and on the volume.
    ReadOnly,
    /// Reads of cached pages, and writes, which reach the volume later. A failure of the host loses them until then.
    ReadWrite,
}

impl HostCacheDescription {
    /// Size of a page.
    pub const PAGE_BYTES: u64 = 4096;

    /// Returns the number of pages in the cache.
    pub fn pages(&self) -> u64 {
        self.capacity_bytes / Self::PAGE_BYTES
    }
}

pub(super) fn check(cache: &HostCacheDescription) -> Result<(), InvalidDescription> {
    require(cache.capacity_bytes >= 1 << 20, "instance.host_cache_size", || {
        format!("{} bytes are not allowed; must be 1 MiB or more", cache.capacity_bytes)
    })?;
    require(cache.flush_interval_ns >= 1, "instance.host_cache_flush", || {
        "0 ns is not allowed; must be more than 0 ns".to_owned()
    })?;
    require(cache.writes_max >= 1, "instance.host_cache_writes", || "0 is out of range; must be 1 or more".to_owned())?;
    let page_bytes = HostCacheDescription::PAGE_BYTES;
    require(u64::from(cache.write_bytes_max) >= page_bytes, "instance.host_cache_write_size", || {
        format!("{} bytes are not allowed; must be {page_bytes} or more", cache.write_bytes_max)
    })?;
    check_instance(&cache.cached)
}
