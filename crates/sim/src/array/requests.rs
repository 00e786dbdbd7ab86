//! Host requests: from their arrival at the controller to the answer.

use headstack_workload::{Kind, Request};

use super::state::{Array, Event};
use super::under_way::{HostRequest, Origin};
use crate::drive::Completion;
use crate::link::Direction;
use crate::pending_requests::Failed;

impl Array {
    /// Takes a host request that has arrived.
    pub(super) fn take(&mut self, now_ns: u64, id: u32, request: &Request) {
        self.host_requests += 1;
        let host = HostRequest { id, request: *request, submitted_ns: now_ns, pending: 0, failed: None };
        let number = self.requests.insert(host);
        let links = &mut self.links;
        let host_links = self.description.host_links.iter();
        let waited_ns = host_links.map(|&link| links[link as usize].deliver_command(now_ns)).max().unwrap_or(0);
        let mut begin_ns = self.processors.work(now_ns + waited_ns, self.description.controller.request_ns);
        if request.kind == Kind::Write {
            begin_ns = self.carry_to_host(begin_ns, u64::from(request.length_bytes), Direction::Write);
        }
        if begin_ns > now_ns { self.at(begin_ns, Event::Begin(number)) } else { self.begin(now_ns, number) }
    }

    /// Moves data across the links between host and controller; returns when they have arrived.
    fn carry_to_host(&mut self, now_ns: u64, bytes: u64, direction: Direction) -> u64 {
        let mut end_ns = now_ns;
        for &link in &self.description.host_links {
            end_ns = end_ns.max(self.links[link as usize].carry(now_ns, now_ns, bytes, 0.0, direction));
        }
        end_ns
    }

    /// Begins a request that the controller has decoded and whose write data are there.
    pub(super) fn begin(&mut self, now_ns: u64, number: u32) {
        let request = self.requests.get(number).request;
        match request.kind {
            Kind::Read if self.cache.is_some() => self.cached_read(now_ns, number),
            Kind::Write if self.cache.is_some() => self.cached_write(now_ns, number),
            Kind::Read | Kind::Write => self.request_members(now_ns, number),
            // Data in the cache survive: it acknowledges writes only while its battery is charged.
            Kind::Flush => self.flush_members(now_ns, number),
            // No layout here does anything with it that costs the members time.
            Kind::Trim => self.answer(now_ns, number),
        }
    }

    /// Serves a request without a cache.
    pub(super) fn request_members(&mut self, now_ns: u64, number: u32) {
        let request = self.requests.get(number).request;
        let length_bytes = u64::from(request.length_bytes);
        // One more than there are, so that the request ends only after all have begun.
        self.requests.get_mut(number).pending = 1;
        let write = request.kind == Kind::Write;
        self.operate(now_ns, Origin::Request(number), write, request.offset_bytes, length_bytes);
        self.part_done(now_ns, number);
    }

    /// Counts one less thing that a request waits for.
    pub(super) fn part_done(&mut self, now_ns: u64, number: u32) {
        let host = self.requests.get_mut(number);
        host.pending -= 1;
        if host.pending == 0 {
            self.answer(now_ns, number);
        }
    }

    /// Completes a request at the controller: data of a read go to the host.
    pub(super) fn answer(&mut self, now_ns: u64, number: u32) {
        let request = self.requests.get(number).request;
        let end_ns = match request.kind {
            Kind::Read => self.carry_to_host(now_ns, u64::from(request.length_bytes), Direction::Read),
            Kind::Write | Kind::Trim | Kind::Flush => now_ns,
        };
        if end_ns > now_ns { self.at(end_ns, Event::Respond(number)) } else { self.respond(now_ns, number) }
    }

    /// Completes a request at the host.
    pub(super) fn respond(&mut self, now_ns: u64, number: u32) {
        let host = self.requests.remove(number);
        debug_assert!(host.pending == 0 && host.submitted_ns <= now_ns, "answered when nothing is left, after it came");
        debug_assert!(self.done.last().is_none_or(|last| last.at_ns <= now_ns), "completions are in order of time");
        self.host_requests -= 1;
        let deferred = if host.request.kind == Kind::Flush { self.deferred.take() } else { None };
        if let Some(at_bytes) = host.failed.or(deferred) {
            self.failed.push(Failed { id: host.id, at_bytes, write: host.request.kind != Kind::Read });
        }
        let completion = Completion { at_ns: now_ns, id: host.id, started_ns: host.submitted_ns };
        match &mut self.adapter {
            Some(adapter) => adapter.complete(completion),
            None => self.done.push(completion),
        }
        if self.host_requests == 0 {
            self.destage(now_ns);
            (0..self.pools.len() as u32).for_each(|group| self.migrate(now_ns, group));
        }
    }
}
