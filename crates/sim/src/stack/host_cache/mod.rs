//! [`HostCache`]: the cache of a cloud host in front of a volume, with the instance's limits on cached requests
//! (docs/design/stacks.md).
//!
//! Every read and write first passes the cached limits. Reads of cached pages end here; others go to the volume as they
//! are, and their pages are cached. Writes go through, or with read-write caching stay here until the next flush.

mod dirty_pages;
mod write_back;

use std::collections::VecDeque;

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use super::instance_limit::InstanceLimit;
use super::orders::{Answer, LayerModel, Order, Orders};
use super::page_cache::pages::Pages;
use crate::description::stack::{HostCacheDescription, HostCacheMode};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use dirty_pages::{PAGE_BYTES, WriteBack};

/// A host cache in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct HostCache {
    description: HostCacheDescription,
    capacity_bytes: u64,
    /// Limits of the instance on cached requests.
    cached: InstanceLimit,
    /// Requests that the limits admitted just now.
    admitted: Orders,
    pages: Pages,
    write_back: WriteBack,
    requests: Slab<Waiting>,
    sent: Slab<Sent>,
    /// Writes that wait until the cache has a page that is not dirty.
    throttled: VecDeque<u32>,
    /// Requests that the cache answers: time, request; in order of time.
    ending: VecDeque<(u64, u32)>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    hits: u64,
    misses: u64,
    flushed_pages: u64,
    throttled_writes: u64,
}

/// A request from above.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    request: Request,
    started_ns: u64,
    failed: Option<(u64, bool)>,
}

/// Purpose of a request to the volume.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// Serves a request from above.
    Through { number: u32 },
    /// Writes dirty pages.
    Flush { first: u64, end: u64 },
}

impl HostCache {
    /// Creates an empty cache over a volume of `capacity_bytes`.
    pub fn new(description: &HostCacheDescription, capacity_bytes: u64) -> HostCache {
        HostCache {
            capacity_bytes,
            cached: InstanceLimit::new(&description.cached),
            admitted: Orders::new(),
            pages: Pages::new(description.pages()),
            write_back: WriteBack::default(),
            requests: Slab::default(),
            sent: Slab::default(),
            throttled: VecDeque::new(),
            ending: VecDeque::new(),
            counters: Counters::default(),
            description: description.clone(),
        }
    }

    /// Serves the requests that the limits have just admitted.
    fn serve_admitted(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(order) = self.admitted.pop_front() {
            match order {
                Order::Send { id, .. } => self.serve(now_ns, id, orders),
                Order::Repair { .. } | Order::WriteStripes { .. } | Order::EndFilling { .. } | Order::Answer(_) => {
                    unreachable!("limits pass requests on")
                }
            }
        }
    }

    fn serve(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        self.requests.get_mut(number).started_ns = now_ns;
        let request = self.requests.get(number).request;
        match (request.kind, self.description.mode) {
            (Kind::Read, HostCacheMode::ReadOnly | HostCacheMode::ReadWrite) => {
                self.read(now_ns, number, &request, orders);
            }
            (Kind::Write, HostCacheMode::ReadWrite) => self.absorb(now_ns, number, orders),
            (Kind::Flush, HostCacheMode::ReadWrite) => {
                let round = self.write_back.tag_all();
                self.await_round(now_ns, number, round, orders);
            }
            (Kind::Write | Kind::Flush, HostCacheMode::ReadOnly) => self.pass(number, orders),
            (Kind::Trim, HostCacheMode::ReadOnly | HostCacheMode::ReadWrite) => {
                self.drop_trimmed(&request, orders);
                self.pass(number, orders);
            }
        }
    }

    /// Answers a read if all its pages are cached, and relays it to the volume otherwise.
    fn read(&mut self, now_ns: u64, number: u32, request: &Request, orders: &mut Orders) {
        let (first, end) = pages_of(request);
        let mut is_hit = true;
        for page in first..end {
            is_hit &= self.pages.hit(page);
        }
        if is_hit {
            self.counters.hits += 1;
            return self.end_later(now_ns, number, orders);
        }
        self.counters.misses += 1;
        self.pass(number, orders);
    }

    /// Relays a request to the volume as it is.
    fn pass(&mut self, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let id = self.sent.insert(Sent::Through { number });
        orders.push_back(Order::Send { port: 0, id, request });
    }

    /// Ends a request that the volume served; its pages are cached now.
    fn passed(&mut self, number: u32, answer: &Answer, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let (first, end) = pages_of(&request);
        match request.kind {
            Kind::Read | Kind::Write if answer.failed.is_none() => {
                (first..end).for_each(|page| self.pages.add_clean(page));
            }
            Kind::Read | Kind::Write | Kind::Flush | Kind::Trim => {}
        }
        let waiting = self.requests.get_mut(number);
        (waiting.started_ns, waiting.failed) = (answer.started_ns, answer.failed);
        self.answer(number, orders);
    }

    /// Ends a request after the time of a hit.
    fn end_later(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        match self.description.hit_ns {
            0 => self.answer(number, orders),
            hit_ns => self.ending.push_back((now_ns + hit_ns, number)),
        }
    }

    fn answer(&mut self, number: u32, orders: &mut Orders) {
        let Waiting { id, started_ns, failed, .. } = self.requests.remove(number);
        orders.push_back(Order::Answer(Answer { id, started_ns, failed }));
    }

    fn drop_trimmed(&mut self, request: &Request, orders: &mut Orders) {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        for page in request.offset_bytes.div_ceil(PAGE_BYTES)..end / PAGE_BYTES {
            if self.pages.drop_page(page) {
                self.write_back.forget(page);
            }
        }
        self.release_syncs(orders);
    }
}

/// Returns the pages that a request touches, from the first to the one after the last.
fn pages_of(request: &Request) -> (u64, u64) {
    let end = request.offset_bytes + u64::from(request.length_bytes);
    (request.offset_bytes / PAGE_BYTES, end.div_ceil(PAGE_BYTES))
}

impl LayerModel for HostCache {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let number = self.requests.insert(Waiting { id, request: *request, started_ns: now_ns, failed: None });
        self.cached.submit(now_ns, number, request, &mut self.admitted);
        self.serve_admitted(now_ns, orders);
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        match self.sent.remove(answer.id) {
            Sent::Through { number } => self.passed(number, answer, orders),
            Sent::Flush { first, end } => self.flushed(now_ns, first, end, answer.failed, orders),
        }
    }

    fn next_event_ns(&self) -> u64 {
        let ending_ns = self.ending.front().map_or(u64::MAX, |&(at_ns, _)| at_ns);
        ending_ns.min(self.cached.next_event_ns()).min(self.write_back.due_ns(self.description.flush_interval_ns))
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&(at_ns, number)) = self.ending.front() {
            if at_ns > now_ns {
                break;
            }
            self.ending.pop_front();
            self.answer(number, orders);
        }
        self.cached.wake(now_ns, &mut self.admitted);
        self.serve_admitted(now_ns, orders);
        if self.write_back.due_ns(self.description.flush_interval_ns) <= now_ns {
            self.write_back.tag_all();
            self.flush_tagged(orders);
        }
    }

    fn volatile(&self, spans: &[Span], into: &mut Vec<Span>) {
        self.write_back.not_on_volume(spans, into);
    }

    fn holds_data(&self) -> bool {
        match self.description.mode {
            HostCacheMode::ReadOnly => false,
            HostCacheMode::ReadWrite => true,
        }
    }

    fn power_cycle(&mut self, now_ns: u64) {
        self.cached.power_cycle(now_ns);
        self.pages = Pages::new(self.description.pages());
        self.write_back = WriteBack::default();
        self.requests = Slab::default();
        self.sent = Slab::default();
        self.throttled.clear();
        self.ending.clear();
    }

    fn snapshot(&self, into: &mut Snapshot) {
        let (delayed, limited_ns) = self.cached.delays();
        for (name, value) in [
            ("host_cache_hits", self.counters.hits),
            ("host_cache_misses", self.counters.misses),
            ("host_cache_flushed_pages", self.counters.flushed_pages),
            ("host_cache_throttled_writes", self.counters.throttled_writes),
            ("host_cache_limited_requests", delayed),
            ("host_cache_limited_ns", limited_ns),
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
            Kind::Read | Kind::Write => {
                let mut is_cached = true;
                for page in first..end {
                    if !self.pages.hit(page) {
                        self.pages.add_clean(page);
                        is_cached = false;
                    }
                }
                request.kind == Kind::Write || !is_cached
            }
            Kind::Flush => true,
            Kind::Trim => {
                self.drop_trimmed(request, &mut Orders::new());
                true
            }
        }
    }
}
