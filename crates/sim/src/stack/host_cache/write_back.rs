//! Read-write caching: writes that end in the cache, and their way to the volume.

use headstack_workload::{Kind, Request, Span};

use super::{HostCache, PAGE_BYTES, Sent, pages_of};
use crate::stack::orders::{Order, Orders};
use crate::stack::page_cache::dirty_file::DirtyFile;
use crate::stack::ranges::Ranges;

/// Dirty pages, and the bytes that are not on the volume.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBack {
    pages: DirtyFile,
    under_way: u32,
    /// Bytes written since the last write of their page to the volume began.
    newer: Ranges,
    /// Bytes on the way to the volume.
    leaving: Ranges,
}

impl WriteBack {
    /// Returns when the next flush begins: at a multiple of the interval, if a page is dirty.
    pub fn due_ns(&self, interval_ns: u64) -> u64 {
        self.pages.due_ns(0, interval_ns)
    }

    /// Lets all dirty pages go to the volume; returns the round with the last of them.
    pub fn tag_all(&mut self) -> Option<u64> {
        self.pages.tag_all()
    }

    /// Forgets a dirty page that was dropped.
    pub fn forget(&mut self, page: u64) {
        self.pages.forget(page);
        self.newer.remove(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
    }

    /// Appends the parts of `spans` that are not on the volume.
    pub fn not_on_volume(&self, spans: &[Span], into: &mut Vec<Span>) {
        let mut parts = Vec::new();
        for &span in spans {
            self.newer.within(span, &mut parts);
            self.leaving.within(span, &mut parts);
        }
        let mut ranges = Ranges::default();
        for Span { start_bytes, length_bytes } in parts {
            ranges.insert(start_bytes, start_bytes + length_bytes);
        }
        into.extend(ranges.iter().map(|(begin, end)| Span { start_bytes: begin, length_bytes: end - begin }));
    }

    fn begin(&mut self, first: u64, end: u64) {
        let span = Span { start_bytes: first * PAGE_BYTES, length_bytes: (end - first) * PAGE_BYTES };
        let mut parts = Vec::new();
        self.newer.within(span, &mut parts);
        for Span { start_bytes, length_bytes } in parts {
            self.leaving.insert(start_bytes, start_bytes + length_bytes);
        }
        self.newer.remove(first * PAGE_BYTES, end * PAGE_BYTES);
        self.under_way += 1;
    }

    fn end(&mut self, first: u64, end: u64) {
        self.leaving.remove(first * PAGE_BYTES, end * PAGE_BYTES);
        self.under_way -= 1;
        (first..end).for_each(|page| self.pages.page_written(page));
    }
}

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
