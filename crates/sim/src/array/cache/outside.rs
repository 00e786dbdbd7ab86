//! The view of [`CacheState`] from outside the array: power, volatile data, gauges.

use super::CacheState;
use super::directory::Directory;
use super::page::PARTS;
use crate::description::array::CacheWrites;
use crate::gauges::CacheGauge;

impl CacheState {
    /// Whether the cache acknowledges writes before the members have them, as long as its battery is charged.
    pub fn writes_back(&self) -> bool {
        self.settings.writes == CacheWrites::Back && self.settings.battery
    }

    /// Whether the cache would still destage its dirty data after a power loss now.
    pub fn outlives_power(&self) -> bool {
        self.writes_back() && self.battery
    }

    /// Calls `each` with the runs of the address space that a power loss would lose.
    pub fn volatile(&self, mut each: impl FnMut(u64, u64)) {
        if self.battery {
            return;
        }
        let part = self.page_bytes / u64::from(PARTS);
        for page in self.directory.pages() {
            let dirty = page.dirty | page.leaving;
            for number in (0..PARTS).filter(|number| dirty >> number & 1 == 1) {
                let from = page.key * self.page_bytes + u64::from(number) * part;
                each(from, from + part);
            }
        }
    }

    /// Handles a power cycle: with a charged battery, dirty data are kept and destaged again; all other contents are
    /// lost.
    pub fn power_cycle(&mut self) {
        if self.battery {
            self.directory.power_cut();
        } else {
            self.directory = Directory::new((self.settings.data_bytes / self.page_bytes) as u32, self.settings.policy);
        }
        self.waiting_writes.clear();
        self.waiting_reads.clear();
        self.transfers = super::Slab::default();
        self.destages = 0;
    }

    /// Returns the number of dirty bytes, and the number of other bytes in the cache.
    pub fn held_bytes(&self) -> (u64, u64) {
        let dirty = u64::from(self.directory.dirty_pages);
        (dirty * self.page_bytes, (u64::from(self.directory.pages_held()) - dirty) * self.page_bytes)
    }

    /// Returns the state of the cache for display.
    pub fn gauge(&self) -> CacheGauge {
        CacheGauge {
            bytes: self.settings.data_bytes,
            dirty_bytes: u64::from(self.directory.dirty_pages) * self.page_bytes,
            hits: self.counters.read_hits,
            battery_ok: self.battery,
        }
    }
}
