//! Dirty pages on their way to the members.

use headstack_workload::Kind;

use super::directory::{PARTS, parts_of};
use super::{CacheState, Transfer};
use crate::array::Array;
use crate::array::description::Destage;
use crate::array::members::Owner;
use crate::array::operations::{Origin, request};

impl CacheState {
    /// Destages that may be under way now.
    fn destages_allowed(&self, idle: bool) -> u32 {
        let most = self.settings.destages_max;
        if !self.waiting_writes.is_empty() || !self.battery || idle {
            return most;
        }
        let share = f64::from(self.directory.dirty_pages) / f64::from(self.dirty_pages_max.max(1));
        let (low, high) = (self.settings.low_water, self.settings.high_water);
        if share >= high {
            most
        } else if share > low {
            1 + (f64::from(most - 1) * (share - low) / (high - low)) as u32
        } else {
            0
        }
    }

    /// The next run of dirty bytes by the cache's policy; it ends at `bound`, which a page's row gives.
    fn choose(&mut self, row_bytes: u64) -> Option<(u64, u64)> {
        // While writes wait, the oldest page is freed first, and by itself.
        if !self.waiting_writes.is_empty() || matches!(self.settings.destage, Destage::Fifo | Destage::Lru) {
            let key = self.directory.oldest_dirty()?;
            return Some(self.dirty_run(key, self.page_bytes));
        }
        if self.settings.destage == Destage::StripeAware
            && let Some(run) = self.full_row(row_bytes)
        {
            return Some(run);
        }
        let key = self.directory.next_dirty(self.sweep)?;
        let run = self.dirty_run(key, row_bytes.max(self.page_bytes));
        self.sweep = (run.0 + run.1) / self.page_bytes;
        Some(run)
    }

    /// A row that is dirty as a whole, looked for from the oldest page and from the sweep.
    fn full_row(&mut self, row_bytes: u64) -> Option<(u64, u64)> {
        let oldest = self.directory.oldest_dirty()?;
        let next = self.directory.next_dirty(self.sweep)?;
        [oldest, next].into_iter().find_map(|key| {
            let from = key * self.page_bytes / row_bytes * row_bytes;
            let whole = (from / self.page_bytes..(from + row_bytes).div_ceil(self.page_bytes)).all(|key| {
                let wanted = parts_of(key, self.page_bytes, from, row_bytes);
                self.directory.find(key).is_some_and(|slot| self.directory.page(slot).ready_parts() & wanted == wanted)
            });
            whole.then_some((from, row_bytes))
        })
    }

    /// The run of dirty bytes that begins with the first dirty part of page `key`, not beyond the next multiple of
    /// `bound_bytes`.
    fn dirty_run(&self, key: u64, bound_bytes: u64) -> (u64, u64) {
        let part = self.page_bytes / u64::from(PARTS);
        let dirty = |key: u64| self.directory.find(key).map_or(0, |slot| self.directory.page(slot).ready_parts());
        let first = dirty(key).trailing_zeros();
        let from = key * self.page_bytes + u64::from(first) * part;
        let bound = (from / bound_bytes + 1) * bound_bytes;
        let mut length = u64::from((dirty(key) >> first).trailing_ones()) * part;
        let mut next = key + 1;
        while from + length == next * self.page_bytes && from + length < bound {
            let more = u64::from(dirty(next).trailing_ones()) * part;
            if more == 0 {
                break;
            }
            length += more;
            next += 1;
        }
        (from, length.min(bound - from))
    }
}

impl Array {
    /// Sends dirty pages to the members, as many at once as the state of the cache asks for.
    pub(in crate::array) fn destage(&mut self, now_ns: u64) {
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
            let sample = cache.directory.next_dirty(cache.sweep).unwrap_or(0) * cache.page_bytes;
            let row_bytes = self.row_bytes_at(sample);
            let cache = self.cache.as_mut().expect("just seen");
            let Some((from, length)) = cache.choose(row_bytes) else {
                return;
            };
            for key in cache.keys(from, length) {
                let slot = cache.directory.find(key).expect("a dirty page stays");
                let parts = parts_of(key, cache.page_bytes, from, length);
                cache.directory.leave(slot, parts);
            }
            cache.destages += 1;
            cache.counters.destages += 1;
            cache.counters.destaged_bytes += length;
            self.send_out(now_ns, from, length);
        }
    }

    /// Bytes of a row of the group that holds an address: what a destage may join.
    fn row_bytes_at(&self, offset: u64) -> u64 {
        let lun = self.lun_bases.partition_point(|&base| base <= offset) - 1;
        let lun = &self.description.luns[lun.min(self.description.luns.len() - 1)];
        let layout = &self.groups[lun.group as usize].layout;
        if layout.has_parity() { layout.row_bytes() } else { layout.unit_bytes }
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

    /// The data of a destage are at hand: they go to the members.
    pub(super) fn write_out(&mut self, now_ns: u64, number: u32) {
        let transfer = self.cache().transfers.get_mut(number);
        transfer.pending = 1;
        let (from, length) = (transfer.offset_bytes, transfer.length_bytes);
        let end = (from + length).min(self.lun_bases[self.lun_bases.len() - 1]);
        self.operate(now_ns, Origin::Transfer(number), true, from, end - from);
        self.transfer_part_done(now_ns, number);
    }

    /// Pages have arrived at the members: writes that wait may have their place.
    pub(super) fn destaged(&mut self, now_ns: u64, transfer: &Transfer) {
        let cache = self.cache();
        let (offset, length) = (transfer.offset_bytes, transfer.length_bytes);
        for key in cache.keys(offset, length) {
            let slot = cache.directory.find(key).expect("a page that leaves stays until it has left");
            cache.directory.left(slot, parts_of(key, cache.page_bytes, offset, length));
        }
        cache.destages -= 1;
        if transfer.failed {
            self.deferred.get_or_insert(offset);
        }
        self.admit_waiting(now_ns);
        self.destage(now_ns);
    }
}
