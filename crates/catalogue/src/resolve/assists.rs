//! Flash, media cache and shingles.

use headstack_sim::drive::description::{FlashCache, MediaCache, Shingles};
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, Rate};

use super::{Derived, Resolver, ns};
use crate::constants::{
    FLASH_BLOCK_BYTES, FLASH_BYTES_PER_S, FLASH_FILL_BYTES_PER_S, FLASH_LATENCY, MEDIA_CACHE_BUSY_SHARE,
    MEDIA_CACHE_EXTENT_BYTES, MEDIA_CACHE_IDLE, MEDIA_CACHE_SWEEP_BYTES, MEDIA_CACHE_SWEEP_WINDOW, SEQUENTIAL_BYTES,
    SHINGLED_MEDIA_CACHE,
};
use crate::file::{DriveFile, MediaCacheTable};

/// Adds the known media cache of its kind to a shingled drive whose file states none; without a media cache, the drive
/// could not accept random writes.
pub(super) fn add_media_cache(file: &mut DriveFile) -> Option<Derived> {
    if file.shingles.is_none() || file.media_cache.is_some() {
        return None;
    }
    file.media_cache = Some(MediaCacheTable { size: Some(SHINGLED_MEDIA_CACHE), ..MediaCacheTable::default() });
    Some(Derived::new("media_cache.size", &SHINGLED_MEDIA_CACHE, "as reported for the Archive 8 TB (low confidence)"))
}

impl Resolver<'_> {
    /// Returns the flash cache. Missing parameters, except its size, have the usual values for such flash.
    pub(super) fn flash_cache(&mut self) -> Result<Option<FlashCache>, InputError> {
        let Some(table) = &self.file.flash_cache else {
            return Ok(None);
        };
        let Some(size) = table.size else {
            return self.missing("flash_cache.size", "set its capacity, such as \"16GB\"");
        };
        let rule = "as measured for flash of this kind (constants.rs)";
        let block = self.given_or(table.block, "flash_cache.block", rule, |_| Ok(Bytes(FLASH_BLOCK_BYTES)))?;
        let ns_per_byte = match (table.rate, table.ns_per_byte) {
            (Some(_), Some(_)) => {
                return Err(self.document.error("flash_cache.ns_per_byte", "not allowed with flash_cache.rate"));
            }
            (None, Some(ns_per_byte)) => ns_per_byte,
            (rate, None) => 1e9 / self.given_or(rate, "flash_cache.rate", rule, |_| Ok(Rate(FLASH_BYTES_PER_S)))?.0,
        };
        let history_rule = "as many blocks as the flash holds (low confidence)";
        Ok(Some(FlashCache {
            size_bytes: size.0,
            block_bytes: u32::try_from(block.0).unwrap_or(u32::MAX),
            latency_ns: ns(self.given_or(table.latency, "flash_cache.latency", rule, |_| Ok(FLASH_LATENCY))?),
            ns_per_byte,
            fill_bytes_per_s: self
                .given_or(table.fill_rate, "flash_cache.fill_rate", rule, |_| Ok(Rate(FLASH_FILL_BYTES_PER_S)))?
                .0,
            history_blocks: self.given_or(table.history_blocks, "flash_cache.history_blocks", history_rule, |_| {
                Ok(size.0 / block.0.max(1))
            })?,
            on_first_read: table.on_first_read.unwrap_or(false),
            keeps_written: table.keeps_written.unwrap_or(false),
            sequential_bytes: self.sequential(table.sequential, "flash_cache.sequential")?,
        }))
    }

    /// Returns the media cache. By default, a write is complete once it is in this cache.
    pub(super) fn media_cache(&mut self, sector_bytes: u32) -> Result<Option<MediaCache>, InputError> {
        let Some(table) = &self.file.media_cache else {
            return Ok(None);
        };
        let Some(size) = table.size else {
            return self.missing("media_cache.size", "set its capacity, such as \"4GiB\"");
        };
        let rule = "usual (low confidence)";
        let sector = u64::from(sector_bytes);
        let whole = Bytes(size.0 / sector * sector);
        if whole != size {
            self.record("media_cache.size", whole, &format!("{size} in the file, rounded down to whole sectors"));
        }
        let size = whole;
        let extents_rule = "one for each 4 KiB of the cache (low confidence)";
        Ok(Some(MediaCache {
            size_bytes: size.0,
            extents_max: self.given_or(table.extents_max, "media_cache.extents_max", extents_rule, |_| {
                Ok(u32::try_from(size.0 / MEDIA_CACHE_EXTENT_BYTES).unwrap_or(u32::MAX))
            })?,
            dram_bytes: self.given_or(table.dram, "media_cache.dram", rule, |_| Ok(Bytes(0)))?.0,
            dram_is_protected: self
                .given_or(table.dram_is_protected, "media_cache.dram_is_protected", rule, |_| Ok(false))?,
            sequential_bytes: self.sequential(table.sequential, "media_cache.sequential")?,
            idle_ns: ns(self.given_or(table.idle, "media_cache.idle", rule, |_| Ok(MEDIA_CACHE_IDLE))?),
            busy_share: self
                .given_or(table.busy_share, "media_cache.busy_share", rule, |_| Ok(MEDIA_CACHE_BUSY_SHARE))?,
            sweep_bytes: self
                .given_or(table.sweep, "media_cache.sweep", rule, |_| Ok(Bytes(MEDIA_CACHE_SWEEP_BYTES.min(size.0))))?
                .0,
            sweep_window: self
                .given_or(table.sweep_window, "media_cache.sweep_window", rule, |_| Ok(MEDIA_CACHE_SWEEP_WINDOW))?,
        }))
    }

    fn sequential(&mut self, stated_bytes: Option<Bytes>, key: &str) -> Result<u64, InputError> {
        let rule = "sequential runs that bypass the cache (low confidence)";
        Ok(self.given_or(stated_bytes, key, rule, |_| Ok(Bytes(SEQUENTIAL_BYTES)))?.0)
    }

    /// Returns the bands of a shingled drive.
    pub(super) fn shingles(&self) -> Option<Shingles> {
        self.file.shingles.as_ref().map(|table| Shingles { band_bytes: table.band.0 })
    }
}
