//! Read-write caching: writes that end in the cache, and their way to the volume.

use headstack_workload::{Kind, Request};

use super::dirty_pages::PAGE_BYTES;
use super::{HostCache, Sent, pages_of};
use crate::stack::orders::{Order, Orders};

impl HostCache {
    /// Takes a write into the cache, unless every page is dirty.
    pub(super) fn absorb(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        if self.is_full() || !self.throttled.is_empty() {
            self.counters.throttled_writes += 1;
            self.throttled.push_back(number);
            self.write_back.tag_all();
            return self.flush_tagged(orders);
        }
        self.absorb_now(now_ns, number, orders);
    }

    /// Whether no page can become dirty.
    fn is_full(&self) -> bool {
        self.pages.dirty_pages >= self.description.pages()
    }

    fn absorb_now(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request: Request = self.requests.get(number).request;
        let (first, end) = pages_of(&request);
        for page in first..end {
            if self.pages.make_dirty(page) {
                self.write_back.pages.add_dirty(now_ns, page);
            }
        }
        let at = request.offset_bytes;
        self.write_back.newer.insert(at, at + u64::from(request.length_bytes));
        if request.force_unit_access {
            let round = self.write_back.pages.tag(first, end);
            return self.await_round(now_ns, number, round, orders);
        }
        self.end_later(now_ns, number, orders);
    }

    /// Ends a sync or forced write once the pages of a round are on the volume, or like a hit if nothing is dirty.
    pub(super) fn await_round(&mut self, now_ns: u64, number: u32, round: Option<u64>, orders: &mut Orders) {
        match round {
            Some(round) => {
                self.write_back.pages.await_round(round, number);
                self.flush_tagged(orders);
            }
            None => self.end_later(now_ns, number, orders),
        }
    }

    /// Sends tagged pages to the volume. Writes of a flush are forced (FUA), so that no flush of the volume is needed.
    pub(super) fn flush_tagged(&mut self, orders: &mut Orders) {
        let pages_max = u64::from(self.description.write_bytes_max) / PAGE_BYTES;
        while self.write_back.under_way < self.description.writes_max {
            let Some((first, end)) = self.write_back.pages.take_tagged(pages_max) else { return };
            self.write_back.begin(first, end);
            self.counters.flushed_pages += end - first;
            (first..end).for_each(|page| self.pages.begin_writing(page));
            let offset_bytes = first * PAGE_BYTES;
            let length_bytes = ((end * PAGE_BYTES).min(self.capacity_bytes) - offset_bytes) as u32;
            let id = self.sent.insert(Sent::Flush { first, end });
            let request =
                Request { kind: Kind::Write, offset_bytes, length_bytes, force_unit_access: true, ordered: false };
            orders.push_back(Order::Send { port: 0, id, request });
        }
    }

    /// Notes that pages are on the volume: syncs and writes that waited for them continue.
    pub(super) fn flushed(
        &mut self,
        now_ns: u64,
        first: u64,
        end: u64,
        failed: Option<(u64, bool)>,
        orders: &mut Orders,
    ) {
        self.write_back.end(first, end);
        (first..end).for_each(|page| self.pages.end_writing(page));
        if failed.is_some() {
            for number in self.write_back.pages.waiting_syncs() {
                self.requests.get_mut(number).failed = failed;
            }
        }
        self.release_syncs(orders);
        while !self.is_full() {
            let Some(number) = self.throttled.pop_front() else { break };
            self.absorb_now(now_ns, number, orders);
        }
        if !self.throttled.is_empty() {
            self.write_back.tag_all();
        }
        self.flush_tagged(orders);
    }

    /// Ends the syncs whose pages are all on the volume.
    pub(super) fn release_syncs(&mut self, orders: &mut Orders) {
        while let Some(number) = self.write_back.pages.take_sync() {
            self.answer(number, orders);
        }
    }
}
