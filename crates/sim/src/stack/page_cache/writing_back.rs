//! Writeback: when dirty pages go to the device, and the syncs that wait for them.

use headstack_workload::Kind;

use super::{PAGE_BYTES, PageCache, Sent};
use crate::stack::orders::Orders;

impl PageCache {
    /// Sends everything that is dirty now to the device; the sync goes on when it is there.
    pub(super) fn sync(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        match self.writeback.tag_all() {
            None => self.pass(number, orders),
            Some(round) => {
                self.writeback.syncs.push_back((round, number));
                self.maybe_write_back(now_ns, orders);
            }
        }
    }

    /// Writes pages back that are too old.
    pub(super) fn write_back_old(&mut self, now_ns: u64, orders: &mut Orders) {
        self.writeback.tag_all();
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
        for page in first..end {
            let round = self.writeback.writing.remove(&page).expect("the page was on its way");
            self.pages.end_writing(page);
            self.writeback.count_off(round);
        }
        if failed.is_some() {
            for &(_, number) in &self.writeback.syncs {
                self.requests.get_mut(number).failed = failed;
            }
        }
        let first_round = self.writeback.rounds.front().map_or(u64::MAX, |&(round, _)| round);
        while let Some(&(round, number)) = self.writeback.syncs.front() {
            if round >= first_round {
                break;
            }
            self.writeback.syncs.pop_front();
            self.pass(number, orders);
        }
        self.release_throttled(now_ns, orders);
        self.maybe_write_back(now_ns, orders);
    }
}
