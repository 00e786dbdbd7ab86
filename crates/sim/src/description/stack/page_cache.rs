//! [`PageCacheDescription`]: Linux's cache of file pages.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// The page cache of a host. Memory pressure and other files are not modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCacheDescription {
    /// Memory for file pages.
    pub memory_bytes: u64,
    /// Dirty share of the memory above which pages are written back: `vm.dirty_background_ratio`.
    pub background_percent: u32,
    /// Dirty share above which writers wait: `vm.dirty_ratio`. They are slowed from the middle of both shares on
    /// (`mm/page-writeback.c`), where the dirty pages settle.
    pub dirty_percent: u32,
    /// Age at which dirty pages are written back: `vm.dirty_expire_centisecs`.
    pub expire_ns: u64,
    /// How often the ages are looked at: `vm.dirty_writeback_centisecs`.
    pub writeback_interval_ns: u64,
    /// Longest request of writeback: `queue/max_sectors_kb`.
    pub write_bytes_max: u32,
    /// Most requests of writeback at the device: `queue/nr_requests`.
    pub writes_max: u32,
    /// Longest read-ahead of a sequential stream: `queue/read_ahead_kb`.
    pub read_ahead_bytes: u32,
    /// Time of a system call that finds its pages in memory, without the copy.
    pub call_ns: u64,
    /// Time to copy a byte between the cache and the application.
    pub ns_per_byte: f64,
}

impl PageCacheDescription {
    /// Size of a page.
    pub const PAGE_BYTES: u64 = 4096;

    /// Returns the number of pages in memory.
    pub fn pages(&self) -> u64 {
        self.memory_bytes / Self::PAGE_BYTES
    }

    /// Returns the number of dirty pages above which writeback starts.
    pub fn background_pages(&self) -> u64 {
        self.pages() * u64::from(self.background_percent) / 100
    }

    /// Returns the number of dirty pages at which writers wait: halfway between both limits.
    pub fn throttle_pages(&self) -> u64 {
        self.pages() * u64::from(self.background_percent + self.dirty_percent) / 200
    }
}

pub(super) fn check(cache: &PageCacheDescription) -> Result<(), InvalidDescription> {
    require(cache.memory_bytes >= 1 << 20, "page_cache.memory", || {
        format!("{} bytes are not allowed; must be 1 MiB or more", cache.memory_bytes)
    })?;
    let (background, dirty) = (cache.background_percent, cache.dirty_percent);
    require((1..=100).contains(&dirty) && background < dirty, "page_cache.dirty_ratio", || {
        format!("{background} and {dirty} % are not allowed; the first must be below the second, up to 100 %")
    })?;
    require(cache.read_ahead_bytes == 0 || cache.read_ahead_bytes >= 16 << 10, "page_cache.read_ahead", || {
        format!("{} bytes are not allowed; must be 0, or 16 KiB or more", cache.read_ahead_bytes)
    })?;
    require((0.0..=1000.0).contains(&cache.ns_per_byte), "page_cache.copy", || {
        format!("{} ns per byte are not allowed; must be 0 to 1,000", cache.ns_per_byte)
    })?;
    for (value, key) in [
        (cache.expire_ns, "page_cache.expire"),
        (cache.writeback_interval_ns, "page_cache.writeback_interval"),
        (u64::from(cache.writes_max), "page_cache.writes"),
        (u64::from(cache.write_bytes_max) / PageCacheDescription::PAGE_BYTES, "page_cache.write_size"),
    ] {
        require(value >= 1, key, || "0 is out of range; must be above 0".to_owned())?;
    }
    Ok(())
}
