//! Parts of writes: into the log, then to the members (write-through) or to memory (write-back).
//!
//! md computes the parity of a stripe before it writes the log. Here the array below reads and computes after that: the
//! sum of the times is the same, and the log is as long.

use headstack_workload::Kind;

use super::log::{Payload, Waiter};
use super::under_way::{ARRAY, PAGE_BYTES, Sent, Write};
use super::{MdJournal, access};
use crate::description::stack::MdJournalMode;
use crate::stack::orders::{Answer, Orders};

/// Longest part of a write in write-through, in rows above it: bounds what a write takes of the log at a time.
const PART_BYTES_MAX: u64 = 4 << 20;

impl MdJournal {
    /// Splits a write into parts and begins them: whole rows in write-through, so that rows are written at once; runs of
    /// one chunk in write-back, each a quarter of the stripes in memory at most.
    pub(super) fn write(&mut self, now_ns: u64, request: u32, orders: &mut Orders) {
        let host = self.requests.get(request).request;
        let (mut at, end) = (host.offset_bytes, host.offset_bytes + u64::from(host.length_bytes));
        let unit_bytes = match self.description.mode {
            MdJournalMode::WriteThrough => {
                let row_bytes = self.geometry.row_bytes();
                (PART_BYTES_MAX / row_bytes).max(1) * row_bytes
            }
            MdJournalMode::WriteBack => self.run_bytes(),
        };
        while at < end {
            let to = end.min((at / unit_bytes + 1) * unit_bytes);
            let forced = host.force_unit_access;
            let write = Write { request, start: at, end: to, forced, units: Vec::new(), unlogged: 0 };
            let number = self.writes.insert(write);
            self.requests.get_mut(request).parts += 1;
            if self.blocked.is_empty() && self.start_write(now_ns, number, orders) {
                at = to;
                continue;
            }
            self.counters.waits += 1;
            self.blocked.push_back(number);
            at = to;
        }
        self.reclaim(now_ns, orders);
    }

    /// Returns the longest run of a chunk that a part of a write covers in write-back. It divides the chunk.
    fn run_bytes(&self) -> u64 {
        let most = u64::from(self.description.stripe_cache) / 4 * PAGE_BYTES;
        let mut bytes = self.geometry.chunk_bytes;
        while bytes > most && bytes.is_multiple_of(2 * PAGE_BYTES) {
            bytes /= 2;
        }
        bytes
    }

    /// Begins a part of a write; returns false if it must wait for space or stripes.
    pub(super) fn start_write(&mut self, now_ns: u64, number: u32, orders: &mut Orders) -> bool {
        let write = self.writes.get(number);
        let pages = write.pages();
        match self.description.mode {
            MdJournalMode::WriteThrough => self.log_through(now_ns, number, orders),
            MdJournalMode::WriteBack => {
                let is_whole = (write.start, write.end) == pages;
                if let Some(stripe) = self.conflict(now_ns, pages, is_whole, orders) {
                    self.parked.entry(stripe).or_default().push(number);
                    return true;
                }
                // Parts of pages are not kept in memory (`r5c_try_caching_write`).
                if is_whole { self.cache(now_ns, number, orders) } else { self.log_through(now_ns, number, orders) }
            }
        }
    }

    /// Returns a stripe that a write must wait for: one that is written out, or, for parts of pages, any in memory, which
    /// is then written out.
    fn conflict(&mut self, now_ns: u64, pages: (u64, u64), is_whole: bool, orders: &mut Orders) -> Option<u64> {
        let mut touched = self.geometry.places(pages.0, pages.1).map(|(stripe, _)| stripe);
        if is_whole {
            return touched.find(|&stripe| self.stripes.is_leaving(stripe));
        }
        let stripe = touched.find(|&stripe| self.stripes.contains(stripe))?;
        if self.stripes.is_idle(stripe) {
            self.write_out(now_ns, vec![stripe], orders);
        }
        Some(stripe)
    }

    /// Logs data and parities; returns false if there is no space.
    fn log_through(&mut self, now_ns: u64, number: u32, orders: &mut Orders) -> bool {
        let write = self.writes.get(number);
        let stripes = self.geometry.stripes(write.start, write.end);
        let payload = Payload { data: write.pages(), stripes, parities: self.geometry.parities };
        if !self.has_space(payload.bytes(), false) {
            return false;
        }
        self.log_write(now_ns, number, Waiter::Write(number), payload, orders);
        true
    }

    /// Logs data that stay in memory; returns false if there is no space or no stripe.
    fn cache(&mut self, now_ns: u64, number: u32, orders: &mut Orders) -> bool {
        let pages = self.writes.get(number).pages();
        let places: Vec<(u64, u64)> = self.geometry.places(pages.0, pages.1).collect();
        let new = places.iter().filter(|(stripe, _)| !self.stripes.contains(*stripe)).count();
        let payload = Payload { data: pages, stripes: 0, parities: self.geometry.parities };
        if self.stripes.len() + new > self.description.stripe_cache as usize {
            self.lacks_space = false;
            return false;
        }
        if !self.has_space(payload.bytes(), new > 0) {
            return false;
        }
        self.log_write(now_ns, number, Waiter::Cached(number), payload, orders);
        let first = self.writes.get(number).units[0];
        let position = self.log.unit(first).start;
        for (stripe, _) in places {
            self.stripes.begin_logging(stripe, position);
        }
        true
    }

    /// Whether the log has space, besides what is reserved to write out the stripes in memory.
    fn has_space(&mut self, bytes: u64, new_stripes: bool) -> bool {
        let reserve = self.reserve_bytes();
        // Below twice the reserve, stripes that are not in the log yet wait (`R5C_LOG_CRITICAL`).
        let needed = bytes + if new_stripes { 2 * reserve } else { reserve };
        self.lacks_space = self.log.free_bytes() < needed;
        !self.lacks_space
    }

    fn log_write(&mut self, now_ns: u64, number: u32, waiter: Waiter, payload: Payload, orders: &mut Orders) {
        let forced = self.writes.get(number).forced && self.description.mode == MdJournalMode::WriteBack;
        let units = self.append(now_ns, waiter, payload, forced, orders);
        let write = self.writes.get_mut(number);
        (write.unlogged, write.units) = (units.len(), units);
    }

    /// Counts a log unit of a write that is durable; the members are written after the last one.
    pub(super) fn write_logged(&mut self, number: u32, orders: &mut Orders) {
        let write = self.writes.get_mut(number);
        write.unlogged -= 1;
        if write.unlogged == 0 {
            let request = access(Kind::Write, write.start, write.end, write.forced);
            self.send(ARRAY, Sent::Write { write: number }, request, orders);
        }
    }

    /// Ends a part of a write that is on the members.
    pub(super) fn write_answered(&mut self, now_ns: u64, number: u32, answer: &Answer, orders: &mut Orders) {
        let Write { request, units, .. } = self.writes.remove(number);
        units.iter().for_each(|&unit| self.log.finish_part(unit));
        self.part_done(request, answer.failed, orders);
        self.reclaim(now_ns, orders);
    }

    /// Counts a log unit of a write that stays in memory; it is acknowledged after the last one.
    pub(super) fn write_cached(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let write = self.writes.get_mut(number);
        write.unlogged -= 1;
        if write.unlogged > 0 {
            return;
        }
        let Write { request, start, end, .. } = self.writes.remove(number);
        let all = self.geometry.all_units();
        let places: Vec<(u64, u64)> = self.geometry.places(start, end).collect();
        for &(stripe, unit) in &places {
            self.stripes.end_logging(stripe, unit, all);
        }
        self.part_done(request, None, orders);
        for (stripe, _) in places {
            self.unpark(now_ns, stripe, orders);
        }
    }

    /// Begins the writes again that waited for a stripe.
    pub(super) fn unpark(&mut self, now_ns: u64, stripe: u64, orders: &mut Orders) {
        for number in self.parked.remove(&stripe).unwrap_or_default() {
            if !self.start_write(now_ns, number, orders) {
                self.counters.waits += 1;
                self.blocked.push_back(number);
            }
        }
    }

    /// Begins writes that waited for space or stripes, in order of arrival.
    pub(super) fn retry_blocked(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&number) = self.blocked.front() {
            if !self.start_write(now_ns, number, orders) {
                return;
            }
            self.blocked.pop_front();
        }
        self.lacks_space = false;
    }
}
