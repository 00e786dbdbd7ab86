//! Requests from above: their begin, their stages and their end.

use std::cmp::Reverse;

use headstack_workload::{Kind, Request};

use super::commit::Waiter;
use super::under_way::{CACHE, HostRequest, ORIGIN, Sent, Stage};
use super::{BlockCache, FLUSH};
use crate::description::stack::{CacheMode, CacheSoftware};
use crate::stack::orders::{Answer, Order, Orders};

impl BlockCache {
    /// Takes a request; it begins after its processor time.
    pub(super) fn take(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let number = self.requests.insert(HostRequest {
            id,
            request: *request,
            started_ns: now_ns,
            parts: 0,
            stage: Stage::Data,
            placed: Vec::new(),
            unmaps: false,
            failed: None,
        });
        let work_ns = match request.kind {
            Kind::Read | Kind::Write | Kind::Trim => self.description.request_ns,
            Kind::Flush => 0,
        };
        let at_ns = self.cores.work(now_ns, work_ns);
        if at_ns <= now_ns {
            return self.begin(now_ns, number, orders);
        }
        self.begun += 1;
        self.beginning.push(Reverse((at_ns, self.begun, number)));
    }

    /// Lets the requests begin whose processor time ends now.
    pub(super) fn begin_due(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&Reverse((at_ns, _, number))) = self.beginning.peek() {
            if at_ns > now_ns {
                return;
            }
            self.beginning.pop();
            self.begin(now_ns, number, orders);
        }
    }

    fn begin(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        self.used_ns = now_ns;
        if self.description.mode == CacheMode::Passthrough {
            self.requests.get_mut(number).stage = Stage::Last;
            return self.send_to_origin(number, orders);
        }
        let request = self.requests.get(number).request;
        match request.kind {
            Kind::Read => self.read(now_ns, number, orders),
            Kind::Write => {
                if !self.takes_in_order() {
                    let range = self.requests.get(number).range();
                    self.writing.insert(number, range);
                }
                self.write(now_ns, number, orders);
            }
            Kind::Trim => {
                let drops = match self.description.software {
                    CacheSoftware::Bcache(_) | CacheSoftware::DmWritecache(_) => true,
                    // dm-cache only remembers that the block needs no copy.
                    CacheSoftware::DmCache(_) => false,
                };
                self.requests.get_mut(number).unmaps = drops;
                self.send_to_origin(number, orders);
            }
            Kind::Flush => self.flush(number, orders),
        }
    }

    /// Sends a whole request to the origin.
    pub(super) fn send_to_origin(&mut self, number: u32, orders: &mut Orders) {
        let state = self.requests.get_mut(number);
        state.parts += 1;
        let request = state.request;
        self.send(ORIGIN, Sent::Origin { request: number }, request, orders);
    }

    /// Makes everything durable that was acknowledged before.
    fn flush(&mut self, number: u32, orders: &mut Orders) {
        let needs_commit = self.needs_commit();
        let state = self.requests.get_mut(number);
        match self.description.software {
            // The journal and the origin are flushed at the same time (`cached_dev_nodata`).
            CacheSoftware::Bcache(_) => {
                (state.stage, state.parts) = (Stage::Last, 1);
                self.send_to_origin(number, orders);
                self.wait_for_commit(Waiter::Request(number), orders);
            }
            CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) if needs_commit => {
                (state.stage, state.parts) = (Stage::Commit, 1);
                self.wait_for_commit(Waiter::Request(number), orders);
            }
            CacheSoftware::DmWritecache(_) if self.overwrites > self.flushed_overwrites => {
                (state.stage, state.parts) = (Stage::Commit, 1);
                let purpose = Sent::Flush { request: number, overwrites: self.overwrites };
                self.send(CACHE, purpose, FLUSH, orders);
            }
            CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) => self.flush_devices(number, orders),
        }
    }

    /// Flushes the devices after a commit: both for dm-cache, the origin for dm-writecache, whose commit has flushed the
    /// cache device.
    fn flush_devices(&mut self, number: u32, orders: &mut Orders) {
        self.requests.get_mut(number).stage = Stage::Last;
        self.send_to_origin(number, orders);
        match self.description.software {
            CacheSoftware::DmCache(_) => {
                self.requests.get_mut(number).parts += 1;
                let purpose = Sent::Flush { request: number, overwrites: self.overwrites };
                self.send(CACHE, purpose, FLUSH, orders);
            }
            CacheSoftware::Bcache(_) | CacheSoftware::DmWritecache(_) => {}
        }
    }

    /// Ends a flush of the cache device.
    pub(super) fn flush_answered(
        &mut self,
        now_ns: u64,
        (request, overwrites): (u32, u64),
        answer: &Answer,
        orders: &mut Orders,
    ) {
        if answer.failed.is_none() {
            self.flushed_overwrites = self.flushed_overwrites.max(overwrites);
        }
        self.part_done(now_ns, request, answer.failed, orders);
    }

    /// Counts an ended part of a request; the last one ends the stage.
    pub(super) fn part_done(&mut self, now_ns: u64, number: u32, failed: Option<(u64, bool)>, orders: &mut Orders) {
        let state = self.requests.get_mut(number);
        state.parts -= 1;
        state.failed = state.failed.or(failed);
        if state.parts > 0 {
            return;
        }
        match state.stage {
            Stage::Data => self.data_done(now_ns, number, orders),
            Stage::Commit if state.failed.is_none() => self.flush_devices(number, orders),
            Stage::Commit | Stage::Last => self.answer(now_ns, number, orders),
        }
    }

    /// Handles a request whose data were moved.
    fn data_done(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        match request.kind {
            Kind::Read => {}
            Kind::Write | Kind::Trim => self.apply(now_ns, number, orders),
            Kind::Flush => unreachable!("a flush moves no data"),
        }
        let is_durable = match self.description.software {
            CacheSoftware::Bcache(_) => false,
            CacheSoftware::DmCache(_) => !self.needs_commit(),
            CacheSoftware::DmWritecache(_) => !self.needs_commit() && self.overwrites == self.flushed_overwrites,
        };
        let state = self.requests.get_mut(number);
        let must_commit = request.kind == Kind::Write && request.force_unit_access && !is_durable;
        if must_commit && state.failed.is_none() {
            (state.stage, state.parts) = (Stage::Last, 1);
            self.wait_for_commit(Waiter::Request(number), orders);
        } else {
            self.answer(now_ns, number, orders);
        }
        if request.kind != Kind::Trim {
            self.consider_promotions(request.span(), orders);
        }
    }

    fn answer(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let HostRequest { id, started_ns, failed, .. } = self.requests.remove(number);
        self.used_ns = now_ns;
        orders.push_back(Order::Answer(Answer { id, started_ns, failed }));
    }
}
