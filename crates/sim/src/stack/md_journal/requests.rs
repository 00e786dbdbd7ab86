//! Requests from above: their begin, their parts and their end.

use headstack_workload::{Kind, Request};

use super::log::Waiter;
use super::under_way::{ARRAY, HostRequest, PAGE_BYTES, Sent};
use super::{MdJournal, access};
use crate::description::stack::MdJournalMode;
use crate::stack::orders::{Answer, Order, Orders};

impl MdJournal {
    /// Takes a request.
    pub(super) fn take(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        // Start at one, so that the request ends only after all parts have begun.
        let host = HostRequest { id, request: *request, started_ns: now_ns, parts: 1, failed: None };
        let number = self.requests.insert(host);
        let (start, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        let failed = match request.kind {
            Kind::Read => {
                self.read(number, (start, end), orders);
                None
            }
            Kind::Trim => {
                self.forward(number, *request, orders);
                None
            }
            // Without its journal device, md refuses writes (`r5l_log_disk_error`).
            Kind::Write | Kind::Flush if self.has_failed => Some((start, true)),
            Kind::Write => {
                self.write(now_ns, number, orders);
                None
            }
            Kind::Flush => {
                self.flush(now_ns, number, orders);
                None
            }
        };
        self.part_done(number, failed, orders);
    }

    /// Sends a part of a request to the array.
    fn forward(&mut self, number: u32, request: Request, orders: &mut Orders) {
        self.requests.get_mut(number).parts += 1;
        self.send(ARRAY, Sent::Forward { request: number }, request, orders);
    }

    /// Reads from the array what is not in memory.
    fn read(&mut self, number: u32, (start, end): (u64, u64), orders: &mut Orders) {
        let request = self.requests.get(number).request;
        if self.stripes.is_empty() {
            return self.forward(number, request, orders);
        }
        let (mut at, mut missing_from) = (start, None);
        while at < end {
            let to = end.min((at / PAGE_BYTES + 1) * PAGE_BYTES);
            let (stripe, unit) = self.geometry.place(at);
            if self.stripes.holds(stripe, unit) {
                if let Some(from) = missing_from.take() {
                    self.forward(number, access(Kind::Read, from, at, false), orders);
                }
            } else {
                missing_from.get_or_insert(at);
            }
            at = to;
        }
        if let Some(from) = missing_from {
            self.forward(number, access(Kind::Read, from, end, false), orders);
        }
    }

    /// Ends a flush at once in write-through, where every acknowledged write is durable in the log. In write-back, writes
    /// a log unit with a flush before it (`r5l_handle_flush_request`).
    fn flush(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        match self.description.mode {
            MdJournalMode::WriteThrough => {}
            MdJournalMode::WriteBack => {
                let unit = self.append_metadata(now_ns, 0, orders);
                let unit = self.log.unit(unit);
                unit.waiters.push(Waiter::Flush(number));
                (unit.preflush, unit.unfinished) = (true, unit.unfinished + 1);
                self.requests.get_mut(number).parts += 1;
                self.submit_unit(orders);
            }
        }
    }

    /// Counts an ended part of a request; answers after the last one.
    pub(super) fn part_done(&mut self, number: u32, failed: Option<(u64, bool)>, orders: &mut Orders) {
        let host = self.requests.get_mut(number);
        host.parts -= 1;
        host.failed = host.failed.or(failed);
        if host.parts == 0 {
            let HostRequest { id, started_ns, failed, .. } = self.requests.remove(number);
            orders.push_back(Order::Answer(Answer { id, started_ns, failed }));
        }
    }
}
