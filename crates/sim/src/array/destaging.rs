//! Destages: dirty pages that the cache writes to the members.

use headstack_workload::Kind;

use super::cache::{Transfer, parts_of};
use super::levels::Placing;
use super::state::Array;
use super::under_way::{Origin, Owner, request};

impl Array {
    /// Starts destages, as many at once as the fill level of the cache requires.
    pub(super) fn destage(&mut self, now_ns: u64) {
        let idle = self.host_requests == 0;
        let Some(cache) = &mut self.cache else {
            return;
        };
        if cache.directory.dirty_pages == 0 {
            return;
        }
        while let Some(cache) = &mut self.cache
            && cache.destages < cache.destages_allowed(idle)
        {
            let Some((from, length)) = self.begin_destage() else {
                return;
            };
            let cache = self.cache();
            cache.destages += 1;
            cache.counters.destages += 1;
            cache.counters.destaged_bytes += length;
            self.send_out(now_ns, from, length);
        }
    }

    /// Returns the next run of dirty bytes by the cache's policy, and marks the run as being destaged.
    pub(super) fn begin_destage(&mut self) -> Option<(u64, u64)> {
        let cache = self.cache();
        let sample = cache.directory.next_dirty(cache.sweep).unwrap_or(0) * cache.page_bytes;
        let row_bytes = self.row_bytes_at(sample);
        let cache = self.cache();
        let (from, length) = cache.choose(row_bytes)?;
        for key in cache.keys(from, length) {
            let slot = cache.directory.find(key).expect("dirty pages are not evicted");
            let parts = parts_of(key, cache.page_bytes, from, length);
            cache.directory.leave(slot, parts);
        }
        Some((from, length))
    }

    /// Returns the size of a row of the group at an address, in bytes: the maximum length of a destage.
    fn row_bytes_at(&self, offset: u64) -> u64 {
        let lun = self.lun_bases.partition_point(|&base| base <= offset) - 1;
        let lun = &self.description.luns[lun.min(self.description.luns.len() - 1)];
        self.groups[lun.group as usize].layout.joint_bytes()
    }

    fn send_out(&mut self, now_ns: u64, from: u64, length: u64) {
        let in_flash = !self.cache().settings.flash_members.is_empty();
        let transfer = Transfer {
            offset_bytes: from,
            length_bytes: length,
            request: None,
            pending: 1,
            leaves: true,
            in_flash,
            failed: false,
        };
        let number = self.cache().transfers.insert(transfer);
        if !in_flash {
            self.cache().transfers.get_mut(number).pending = 0;
            return self.write_out(now_ns, number);
        }
        for (member, extent) in self.flash_places(from, length, Kind::Read) {
            self.cache().transfers.get_mut(number).pending += 1;
            self.issue(now_ns, member, Owner::Transfer(number), request(Kind::Read, &extent));
        }
        self.transfer_part_done(now_ns, number);
    }

    /// Writes the data of a destage to the members, once the data are available.
    pub(super) fn write_out(&mut self, now_ns: u64, number: u32) {
        let transfer = self.cache().transfers.get_mut(number);
        transfer.pending = 1;
        let (from, length) = (transfer.offset_bytes, transfer.length_bytes);
        let end = (from + length).min(self.lun_bases[self.lun_bases.len() - 1]);
        self.operate(now_ns, Origin::Transfer(number), true, from, end - from);
        self.transfer_part_done(now_ns, number);
    }

    /// Handles pages that have been written to the members; waiting writes may use the freed pages.
    pub(super) fn destaged(&mut self, now_ns: u64, transfer: &Transfer) {
        let cache = self.cache();
        cache.finish_destage(transfer.offset_bytes, transfer.length_bytes);
        cache.destages -= 1;
        if transfer.failed {
            self.deferred.get_or_insert(transfer.offset_bytes);
        }
        self.admit_waiting(now_ns);
        self.destage(now_ns);
    }
}
