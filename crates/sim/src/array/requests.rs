//! Host requests: from arrival at the controller to completion.

use headstack_workload::{Kind, Request};

use super::health::GroupState;
use super::state::{Array, Event};
use super::under_way::{HostRequest, Origin};
use crate::drive::Completion;
use crate::link::Direction;
use crate::pending_requests::Failed;

impl Array {
    /// Takes a host request that has arrived.
    pub(super) fn take(&mut self, now_ns: u64, id: u32, request: &Request) {
        self.take_host_request(now_ns, HostRequest::new(id, request, now_ns));
    }

    pub(super) fn take_host_request(&mut self, now_ns: u64, host: HostRequest) {
        self.host_requests += 1;
        self.host_arrivals += 1;
        self.counters.degraded_requests +=
            u64::from(host.repair.is_none() && !self.groups.iter().all(GroupState::is_whole));
        let request = host.request;
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

    /// Moves data across the links between host and controller; returns the time of arrival.
    fn carry_to_host(&mut self, now_ns: u64, bytes: u64, direction: Direction) -> u64 {
        let mut end_ns = now_ns;
        for &link in &self.description.host_links {
            end_ns = end_ns.max(self.links[link as usize].carry(now_ns, now_ns, bytes, 0.0, direction));
        }
        end_ns
    }

    /// Begins a request after the controller has decoded it and received any write data.
    pub(super) fn begin(&mut self, now_ns: u64, number: u32) {
        let HostRequest { request, repair, stripes, .. } = *self.requests.get(number);
        if let Some(repair) = repair {
            return self.begin_repair(now_ns, number, &repair);
        }
        if let Some(chunks) = stripes {
            return self.begin_stripes(now_ns, number, chunks);
        }
        match request.kind {
            Kind::Read if self.cache.is_some() => self.cached_read(now_ns, number),
            Kind::Write if self.cache.is_some() => self.cached_write(now_ns, number),
            Kind::Read | Kind::Write => self.request_members(now_ns, number),
            // The cache needs no flush: it acknowledges writes only while its battery is charged.
            Kind::Flush => self.flush_members(now_ns, number),
            // No layout does anything for a trim that would take the members time.
            Kind::Trim => self.answer(now_ns, number),
        }
    }

    /// Serves a request without a cache.
    pub(super) fn request_members(&mut self, now_ns: u64, number: u32) {
        let request = self.requests.get(number).request;
        let length_bytes = u64::from(request.length_bytes);
        // Start at one, so that the request ends only after all commands have been issued.
        self.requests.get_mut(number).pending = 1;
        let write = request.kind == Kind::Write;
        self.operate(now_ns, Origin::Request(number), write, request.offset_bytes, length_bytes);
        self.part_done(now_ns, number);
    }

    /// Counts one completed part of a request; completes the request after the last part.
    pub(super) fn part_done(&mut self, now_ns: u64, number: u32) {
        let host = self.requests.get_mut(number);
        host.pending -= 1;
        if host.pending == 0 {
            self.answer(now_ns, number);
        }
    }

    /// Completes a request at the controller: sends the data of a read to the host.
    pub(super) fn answer(&mut self, now_ns: u64, number: u32) {
        let request = self.requests.get(number).request;
        let end_ns = match request.kind {
            Kind::Read => self.carry_to_host(now_ns, u64::from(request.length_bytes), Direction::Read),
            Kind::Write | Kind::Trim | Kind::Flush => now_ns,
        };
        if end_ns > now_ns { self.at(end_ns, Event::Respond(number)) } else { self.respond(now_ns, number) }
    }

    /// Reports the completion of a request to the host.
    pub(super) fn respond(&mut self, now_ns: u64, number: u32) {
        let host = self.requests.remove(number);
        debug_assert!(
            host.pending == 0 && host.submitted_ns <= now_ns,
            "a request completes after its parts and after its arrival"
        );
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
