//! Writeback: when dirty pages go to the device, and the syncs that wait for them.

use headstack_workload::Kind;

use super::{PAGE_BYTES, PageCache, Sent};
use crate::description::stack::PageCacheDescription;
use crate::stack::orders::Orders;

impl PageCache {
    /// Sends the pages of a sync's files that are dirty now to the device; the sync goes on when they are there.
    pub(super) fn sync(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let waiting = self.requests.get_mut(number);
        debug_assert_eq!(waiting.pages, 0, "a sync waits for no page to arrive");
        for file in self.writeback.places().synced(&waiting.request) {
            if let Some(round) = self.writeback.files[file].tag_all() {
                self.writeback.files[file].await_round(round, number);
                waiting.pages += 1;
            }
        }
        match waiting.pages {
            0 => self.pass(number, orders),
            _ => self.maybe_write_back(now_ns, orders),
        }
    }

    /// Writes pages of files back that are too old.
    pub(super) fn write_back_old(&mut self, now_ns: u64, orders: &mut Orders) {
        let PageCacheDescription { expire_ns, writeback_interval_ns, .. } = self.description;
        for file in &mut self.writeback.files {
            if file.due_ns(expire_ns, writeback_interval_ns) <= now_ns {
                file.tag_all();
            }
        }
        self.maybe_write_back(now_ns, orders);
    }

    /// Sends pages to the device while there are tagged ones, or too many dirty ones.
    pub(super) fn maybe_write_back(&mut self, _now_ns: u64, orders: &mut Orders) {
        let pages_max = u64::from(self.description.write_bytes_max) / PAGE_BYTES;
        while self.writeback.writes_under_way < self.description.writes_max {
            let background = self.pages.dirty_pages > self.description.background_pages();
            let Some((first, end)) = self.writeback.take_run(pages_max, background) else { return };
            self.writeback.writes_under_way += 1;
            self.counters.written_pages += end - first;
            (first..end).for_each(|page| self.pages.begin_writing(page));
            let request = self.request_for(Kind::Write, first, end);
            self.send(Sent::Write { first, end }, request, orders);
        }
    }

    /// Notes that pages are on the device; syncs that waited for them go on.
    pub(super) fn pages_written(
        &mut self,
        now_ns: u64,
        (first, end): (u64, u64),
        failed: Option<(u64, bool)>,
        orders: &mut Orders,
    ) {
        self.writeback.writes_under_way -= 1;
        let number = self.writeback.file_of(first);
        let file = &mut self.writeback.files[number];
        for page in first..end {
            self.pages.end_writing(page);
            file.page_written(page);
        }
        if failed.is_some() {
            for number in file.waiting_syncs() {
                self.requests.get_mut(number).failed = failed;
            }
        }
        self.release_syncs(number, orders);
        self.release_throttled(now_ns, orders);
        self.maybe_write_back(now_ns, orders);
    }

    /// Lets the syncs of a file go on whose pages are all on the device.
    pub(super) fn release_syncs(&mut self, file: usize, orders: &mut Orders) {
        while let Some(number) = self.writeback.files[file].take_sync() {
            let waiting = self.requests.get_mut(number);
            waiting.pages -= 1;
            if waiting.pages == 0 {
                self.pass(number, orders);
            }
        }
    }
}
