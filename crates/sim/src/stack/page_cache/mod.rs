//! [`PageCache`]: Linux's cache of file pages: buffered writes, writeback, read-ahead and syncs (docs/design/stacks.md).
//!
//! A write ends once its pages are in memory, unless too many pages are dirty. Writeback sends dirty pages in ascending
//! order when they are too many or too old. A sync sends all pages of its file that are dirty at its arrival, waits for
//! them, and then passes down.

pub(super) mod dirty_file;
pub(super) mod pages;
mod read_ahead;
mod writeback;
mod writing_back;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};
use rustc_hash::FxHashMap;

use super::files::Files;
use super::orders::{Answer, LayerModel, Order, Orders};
use crate::description::stack::PageCacheDescription;
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use pages::{PageState, Pages};
use read_ahead::Streams;
use writeback::Writeback;

const PAGE_BYTES: u64 = PageCacheDescription::PAGE_BYTES;

/// A page cache in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    description: PageCacheDescription,
    capacity_bytes: u64,
    pages: Pages,
    streams: Streams,
    writeback: Writeback,
    /// Requests from above that wait for pages or for a sync below.
    requests: Slab<Waiting>,
    /// Requests to the system below.
    sent: Slab<Sent>,
    /// Pages that are being read, and the requests that wait for each.
    reading: FxHashMap<u64, Vec<u32>>,
    /// Writes that wait until fewer pages are dirty.
    throttled: VecDeque<u32>,
    /// System calls that end: time, order, request.
    ending: BinaryHeap<Reverse<(u64, u64, u32)>>,
    endings: u64,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    hit_pages: u64,
    read_pages: u64,
    read_ahead_pages: u64,
    written_pages: u64,
    overwritten_pages: u64,
    throttled_writes: u64,
}

/// A request from above.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    request: Request,
    started_ns: u64,
    /// Pages that have to arrive, or files that have to be written back, before it goes on.
    pages: u32,
    failed: Option<(u64, bool)>,
}

/// Purpose of a request to the system below.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// Reads pages.
    Read { first: u64, end: u64 },
    /// Writes dirty pages back.
    Write { first: u64, end: u64 },
    /// Flush of a sync, or a trim.
    Passed { request: u32 },
}

impl PageCache {
    /// Creates an empty page cache over a system of `capacity_bytes`.
    pub fn new(description: &PageCacheDescription, files: Files, capacity_bytes: u64) -> PageCache {
        PageCache {
            capacity_bytes,
            pages: Pages::new(description.pages()),
            streams: Streams::new(u64::from(description.read_ahead_bytes) / PAGE_BYTES),
            writeback: Writeback::new(files),
            requests: Slab::default(),
            sent: Slab::default(),
            reading: FxHashMap::default(),
            throttled: VecDeque::new(),
            ending: BinaryHeap::new(),
            endings: 0,
            counters: Counters::default(),
            description: description.clone(),
        }
    }

    fn send(&mut self, purpose: Sent, request: Request, orders: &mut Orders) {
        let id = self.sent.insert(purpose);
        orders.push_back(Order::Send { port: 0, id, request });
    }

    /// Returns the request for pages, up to the end of the device.
    fn request_for(&self, kind: Kind, first: u64, end: u64) -> Request {
        let offset_bytes = first * PAGE_BYTES;
        let length_bytes = ((end * PAGE_BYTES).min(self.capacity_bytes) - offset_bytes) as u32;
        Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
    }

    /// Ends a system call after the copy of its bytes.
    fn end_call(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let Waiting { request, .. } = *self.requests.get(number);
        let copied_ns = f64::from(request.length_bytes) * self.description.ns_per_byte + 0.5;
        let at_ns = now_ns + self.description.call_ns + copied_ns as u64;
        if at_ns <= now_ns {
            return self.answer(number, orders);
        }
        self.endings += 1;
        self.ending.push(Reverse((at_ns, self.endings, number)));
    }

    fn answer(&mut self, number: u32, orders: &mut Orders) {
        let Waiting { id, started_ns, failed, .. } = self.requests.remove(number);
        orders.push_back(Order::Answer(Answer { id, started_ns, failed }));
    }

    /// Reads pages that are not in memory, and those ahead of a sequential stream.
    fn read(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let (first, end) = pages_of(&request);
        let last = self.capacity_bytes.div_ceil(PAGE_BYTES);
        let ahead = self.streams.read(first, end).min(last);
        let mut missing = 0;
        let mut run: Option<u64> = None;
        for page in first..ahead {
            let is_here = self.pages.hit(page);
            if page < end {
                self.counters.hit_pages += u64::from(is_here);
            }
            let waiters = if is_here { None } else { self.reading.get_mut(&page) };
            let is_coming = waiters.is_some();
            if let Some(waiters) = waiters.filter(|_| page < end) {
                waiters.push(number);
                missing += 1;
            }
            if is_here || is_coming {
                self.read_pages(run.take(), page, orders);
                continue;
            }
            let waiters = if page < end { vec![number] } else { Vec::new() };
            missing += u32::from(page < end);
            self.counters.read_ahead_pages += u64::from(page >= end);
            self.reading.insert(page, waiters);
            // A demand read and the read-ahead behind it are separate requests only if the device limits their length.
            run = run.or(Some(page));
        }
        self.read_pages(run, ahead, orders);
        self.requests.get_mut(number).pages = missing;
        if missing == 0 {
            self.end_call(now_ns, number, orders);
        }
    }

    fn read_pages(&mut self, first: Option<u64>, end: u64, orders: &mut Orders) {
        let Some(mut first) = first else { return };
        let pages_max = u64::from(self.description.write_bytes_max) / PAGE_BYTES;
        while first < end {
            let until = end.min(first + pages_max);
            self.counters.read_pages += until - first;
            let request = self.request_for(Kind::Read, first, until);
            self.send(Sent::Read { first, end: until }, request, orders);
            first = until;
        }
    }

    fn pages_arrived(&mut self, now_ns: u64, (first, end): (u64, u64), answer: &Answer, orders: &mut Orders) {
        for page in first..end {
            let failed = answer.failed.filter(|(byte, _)| *byte < (page + 1) * PAGE_BYTES);
            if failed.is_none() {
                self.pages.add_clean(page);
            }
            for number in self.reading.remove(&page).expect("the page was being read") {
                let waiting = self.requests.get_mut(number);
                waiting.pages -= 1;
                waiting.failed = waiting.failed.or(failed);
                if waiting.pages == 0 {
                    match waiting.request.kind {
                        Kind::Read => self.end_call(now_ns, number, orders),
                        Kind::Write => self.absorb(now_ns, number, orders),
                        Kind::Flush | Kind::Trim => unreachable!("only reads and writes wait for pages"),
                    }
                }
            }
        }
    }

    /// Takes a write, after its incomplete pages were read.
    fn write(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let (first, end) = pages_of(&request);
        let mut missing = 0;
        for page in partial_pages(&request, first, end) {
            if self.pages.state(page).is_some() {
                continue;
            }
            missing += 1;
            match self.reading.get_mut(&page) {
                Some(waiters) => waiters.push(number),
                None => {
                    self.reading.insert(page, vec![number]);
                    self.read_pages(Some(page), page + 1, orders);
                }
            }
        }
        self.requests.get_mut(number).pages = missing;
        if missing == 0 {
            self.absorb(now_ns, number, orders);
        }
    }

    /// Makes the pages of a write dirty, unless too many are.
    fn absorb(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let limit = self.description.throttle_pages();
        if self.pages.dirty_pages >= limit || !self.throttled.is_empty() {
            self.counters.throttled_writes += 1;
            self.throttled.push_back(number);
            return;
        }
        self.absorb_now(now_ns, number, orders);
    }

    fn absorb_now(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let (first, end) = pages_of(&request);
        for page in first..end {
            if self.pages.make_dirty(page) {
                self.writeback.add_dirty(now_ns, page);
            } else {
                self.counters.overwritten_pages += 1;
            }
        }
        if request.force_unit_access {
            self.sync(now_ns, number, orders);
        } else {
            self.end_call(now_ns, number, orders);
        }
        self.maybe_write_back(now_ns, orders);
    }

    /// Lets waiting writes in while few enough pages are dirty.
    fn release_throttled(&mut self, now_ns: u64, orders: &mut Orders) {
        while self.pages.dirty_pages < self.description.throttle_pages() {
            let Some(number) = self.throttled.pop_front() else { return };
            self.absorb_now(now_ns, number, orders);
        }
    }

    /// Passes a sync or trim to the system below.
    fn pass(&mut self, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let files = self.writeback.places().touched(&request);
        let below = match request.kind {
            Kind::Write => Request {
                kind: Kind::Flush,
                // A write across files needs a sync of all.
                offset_bytes: if files.start() == files.end() { request.offset_bytes } else { 0 },
                length_bytes: 0,
                force_unit_access: false,
                ordered: false,
            },
            Kind::Read | Kind::Flush | Kind::Trim => request,
        };
        self.send(Sent::Passed { request: number }, below, orders);
    }

    /// Drops trimmed pages, and lets syncs go on that waited only for them.
    fn trim(&mut self, request: &Request, orders: &mut Orders) {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        for page in request.offset_bytes.div_ceil(PAGE_BYTES)..end / PAGE_BYTES {
            if self.pages.drop_page(page) {
                self.writeback.forget(page);
            }
        }
        for file in self.writeback.places().touched(request) {
            self.release_syncs(file, orders);
        }
    }
}

/// Returns the pages that a request touches, from the first to the one after the last.
fn pages_of(request: &Request) -> (u64, u64) {
    let end = request.offset_bytes + u64::from(request.length_bytes);
    (request.offset_bytes / PAGE_BYTES, end.div_ceil(PAGE_BYTES))
}

/// Returns the pages of a write that it does not cover.
fn partial_pages(request: &Request, first: u64, end: u64) -> impl Iterator<Item = u64> + use<> {
    let is_partial = |byte: u64| !byte.is_multiple_of(PAGE_BYTES);
    let at_start = is_partial(request.offset_bytes).then_some(first);
    let at_end = is_partial(request.offset_bytes + u64::from(request.length_bytes)).then_some(end - 1);
    at_start.into_iter().chain(at_end.filter(|&page| at_start != Some(page)))
}

impl LayerModel for PageCache {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let waiting = Waiting { id, request: *request, started_ns: now_ns, pages: 0, failed: None };
        let number = self.requests.insert(waiting);
        match request.kind {
            Kind::Read => self.read(now_ns, number, orders),
            Kind::Write => self.write(now_ns, number, orders),
            Kind::Flush => self.sync(now_ns, number, orders),
            Kind::Trim => {
                self.trim(request, orders);
                self.pass(number, orders);
            }
        }
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        match self.sent.remove(answer.id) {
            Sent::Read { first, end } => self.pages_arrived(now_ns, (first, end), answer, orders),
            Sent::Write { first, end } => self.pages_written(now_ns, (first, end), answer.failed, orders),
            Sent::Passed { request } => {
                let waiting = self.requests.get_mut(request);
                waiting.failed = waiting.failed.or(answer.failed);
                self.answer(request, orders);
            }
        }
    }

    fn next_event_ns(&self) -> u64 {
        let ending_ns = self.ending.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        ending_ns.min(self.writeback.due_ns(&self.description))
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&Reverse((at_ns, _, number))) = self.ending.peek() {
            if at_ns > now_ns {
                break;
            }
            self.ending.pop();
            self.answer(number, orders);
        }
        if self.writeback.due_ns(&self.description) <= now_ns {
            self.write_back_old(now_ns, orders);
        }
    }

    fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        let is_dirty = |page: u64| match self.pages.state(page) {
            Some(PageState::Dirty | PageState::Writing | PageState::WritingDirty) => true,
            Some(PageState::Clean) | None => false,
        };
        self.writeback.not_on_device(spans, is_dirty, into);
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn power_cycle(&mut self, _now_ns: u64) {
        self.pages = Pages::new(self.description.pages());
        self.streams.reset();
        self.writeback.reset();
        self.requests = Slab::default();
        self.sent = Slab::default();
        self.reading.clear();
        self.throttled.clear();
        self.ending.clear();
    }

    fn snapshot(&self, into: &mut Snapshot) {
        for (name, value) in [
            ("page_cache_hits", self.counters.hit_pages),
            ("page_cache_reads", self.counters.read_pages),
            ("read_ahead_pages", self.counters.read_ahead_pages),
            ("written_back_pages", self.counters.written_pages),
            ("overwritten_pages", self.counters.overwritten_pages),
            ("throttled_writes", self.counters.throttled_writes),
        ] {
            into.count(name, value);
        }
    }

    fn add_levels(&self, into: &mut Levels) {
        into[0] += self.pages.dirty_pages * PAGE_BYTES;
        into[1] += (self.pages.len() - self.pages.dirty_pages) * PAGE_BYTES;
    }

    fn warm_with(&mut self, request: &Request) -> bool {
        let (first, end) = pages_of(request);
        match request.kind {
            Kind::Read | Kind::Write => (first..end).for_each(|page| {
                if !self.pages.hit(page) {
                    self.pages.add_clean(page);
                }
            }),
            Kind::Flush => {}
            Kind::Trim => self.trim(request, &mut Orders::new()),
        }
        true
    }
}
