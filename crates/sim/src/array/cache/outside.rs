//! What the world outside does to a cache, and sees of it; what it cannot have, or get rid of.

use super::CacheState;
use super::Transfer;
use super::directory::{Directory, PARTS, parts_of};
use crate::array::Array;
use crate::array::description::CacheWrites;
use crate::gauges::CacheGauge;

impl CacheState {
    /// It answers writes before the members have them, as long as its battery is up.
    pub fn writes_back(&self) -> bool {
        self.settings.writes == CacheWrites::Back && self.settings.battery
    }

    /// Calls `each` with the runs of the address space that are lost with the power.
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

    /// Power was cut and is back: what the battery has kept goes to the members again, all else is empty.
    pub fn power_cycle(&mut self) {
        if self.battery {
            self.directory.power_cut();
        } else {
            self.directory = Directory::new((self.settings.data_bytes / self.page_bytes) as u32);
        }
        self.waiting_writes.clear();
        self.waiting_reads.clear();
        self.transfers = super::Slab::new();
        self.destages = 0;
    }

    /// Bytes that the members do not have yet, and others.
    pub fn held_bytes(&self) -> (u64, u64) {
        let dirty = u64::from(self.directory.dirty_pages);
        (dirty * self.page_bytes, (u64::from(self.directory.pages_held()) - dirty) * self.page_bytes)
    }

    /// How it is, for people.
    pub fn gauge(&self) -> CacheGauge {
        CacheGauge {
            bytes: self.settings.data_bytes,
            dirty_bytes: u64::from(self.directory.dirty_pages) * self.page_bytes,
            hits: self.counters.read_hits,
            battery_ok: self.battery,
        }
    }
}

impl Array {
    /// The run of addresses that a transfer moves.
    pub(in crate::array) fn transfer_run(&self, number: u32) -> (u64, u64) {
        let cache = self.cache.as_ref().expect("only arrays with a cache come here");
        let transfer = cache.transfers.get(number);
        (transfer.offset_bytes, transfer.length_bytes)
    }

    /// Something of a transfer cannot be had, or given.
    pub(in crate::array) fn fail_transfer(&mut self, number: u32) {
        self.cache().transfers.get_mut(number).failed = true;
    }

    /// Something that was to be brought into the cache cannot be read: nothing of it stays, and whoever waits reads what
    /// it wants from the members.
    pub(super) fn fill_failed(&mut self, now_ns: u64, transfer: &Transfer) {
        let (offset, length) = (transfer.offset_bytes, transfer.length_bytes);
        let cache = self.cache();
        let mut waiting = Vec::new();
        for key in cache.keys(offset, length) {
            if let Some(slot) = cache.directory.find(key) {
                cache.directory.unfill(slot, parts_of(key, cache.page_bytes, offset, length));
            }
            waiting.extend(cache.waiting_reads.remove(&key).unwrap_or_default());
        }
        for number in transfer.request.into_iter().chain(waiting) {
            self.request_members(now_ns, number);
        }
        self.admit_waiting(now_ns);
    }
}
