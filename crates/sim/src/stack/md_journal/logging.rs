//! Writes of log units: their order, and the flushes of the journal device.
//!
//! A unit is submitted at the end of the moment in which it was begun, or when its metadata block is full. Units are on
//! their way at the same time, and take effect in order. If the journal device has a volatile cache, one flush follows
//! the units that ended, and only then their stripes continue (`r5l_flush_stripe_to_raid`), so that every acknowledged
//! write is durable in the log, in both modes.

use headstack_workload::Kind;

use super::log::{Payload, UnitState, Waiter};
use super::under_way::{JOURNAL, Sent};
use super::{FLUSH, MdJournal, access};
use crate::stack::orders::{Answer, Orders};

impl MdJournal {
    /// Adds pages to the log, for a waiter; returns the units that hold them.
    pub(super) fn append(
        &mut self,
        now_ns: u64,
        waiter: Waiter,
        mut payload: Payload,
        forced: bool,
        orders: &mut Orders,
    ) -> Vec<u64> {
        let mut units = Vec::new();
        while payload.data.0 < payload.data.1 || payload.stripes > 0 {
            let Some(number) = self.log.add(&mut payload) else {
                self.submit_unit(orders);
                continue;
            };
            self.due_ns = now_ns;
            let unit = self.log.unit(number);
            unit.waiters.push(waiter);
            unit.unfinished += 1;
            // A forced write flushes the log before it, so that recovery reaches it (`r5l_log_stripe`).
            (unit.forced, unit.preflush) = (unit.forced || forced, unit.preflush || forced);
            units.push(number);
        }
        units
    }

    /// Adds metadata without pages to the log.
    pub(super) fn append_metadata(&mut self, now_ns: u64, meta_bytes: u64, orders: &mut Orders) -> u64 {
        self.due_ns = now_ns;
        loop {
            match self.log.add_metadata(meta_bytes) {
                Some(number) => return number,
                None => self.submit_unit(orders),
            }
        }
    }

    /// Ends the unit that gathers pages, and writes it unless it must wait for those before it.
    pub(super) fn submit_unit(&mut self, orders: &mut Orders) {
        self.due_ns = u64::MAX;
        let Some(number) = self.log.gathering.take() else { return };
        let is_first = self.log.unended == number;
        let flushes = self.description.flushes;
        let unit = self.log.unit(number);
        // The block layer drops flushes and FUA to a device without a volatile cache.
        (unit.preflush, unit.forced) = (unit.preflush && flushes, unit.forced && flushes);
        if unit.preflush && !is_first {
            unit.state = UnitState::Deferred;
        } else {
            self.start_unit(number, orders);
        }
    }

    /// Flushes the journal device before a unit that needs it; otherwise writes the unit.
    fn start_unit(&mut self, number: u64, orders: &mut Orders) {
        let unit = self.log.unit(number);
        unit.state = UnitState::Writing;
        if unit.preflush {
            self.counters.flushes += 1;
            self.send(JOURNAL, Sent::Preflush { unit: number }, FLUSH, orders);
        } else {
            self.write_unit(number, orders);
        }
    }

    pub(super) fn write_unit(&mut self, number: u64, orders: &mut Orders) {
        let unit = self.log.unit(number);
        let (start, end, forced) = (unit.start, unit.end(), unit.forced);
        self.counters.units += 1;
        self.counters.bytes += end - start;
        let runs: Vec<(u64, u64)> = self.log.runs(start, end).collect();
        self.log.unit(number).writes = runs.len() as u32;
        for (from, to) in runs {
            self.send(JOURNAL, Sent::Unit { unit: number }, access(Kind::Write, from, to, forced), orders);
        }
    }

    /// Counts a part of a unit that is on the journal device.
    pub(super) fn unit_answered(&mut self, now_ns: u64, number: u64, answer: &Answer, orders: &mut Orders) {
        self.has_failed |= answer.failed.is_some();
        let unit = self.log.unit(number);
        unit.writes -= 1;
        if unit.writes > 0 {
            return;
        }
        unit.state = UnitState::Ended;
        // In order: a unit takes effect after those before it.
        while let Some(unit) = self.log.unit_at(self.log.unended).filter(|unit| unit.state == UnitState::Ended) {
            let (number, waits) = (self.log.unended, self.description.flushes && unit.has_stripes());
            self.log.unended += 1;
            if waits {
                self.log.to_flush.push(number);
            } else {
                self.settle(now_ns, number, orders);
            }
        }
        let next = self.log.unended;
        if self.log.unit_at(next).is_some_and(|unit| unit.state == UnitState::Deferred) {
            self.start_unit(next, orders);
        }
        self.flush_log(orders);
    }

    /// Flushes the journal device for the units that ended, unless a flush is under way.
    fn flush_log(&mut self, orders: &mut Orders) {
        if self.log.flushing.is_empty() && !self.log.to_flush.is_empty() {
            self.log.flushing = std::mem::take(&mut self.log.to_flush);
            self.counters.flushes += 1;
            self.send(JOURNAL, Sent::LogFlush, FLUSH, orders);
        }
    }

    pub(super) fn log_flushed(&mut self, now_ns: u64, answer: &Answer, orders: &mut Orders) {
        self.has_failed |= answer.failed.is_some();
        for number in std::mem::take(&mut self.log.flushing) {
            self.settle(now_ns, number, orders);
        }
        self.flush_log(orders);
    }

    /// Notifies the waiters of a unit: its pages are durable.
    fn settle(&mut self, now_ns: u64, number: u64, orders: &mut Orders) {
        self.log.map(number);
        let unit = self.log.unit(number);
        unit.state = UnitState::Settled;
        let waiters = std::mem::take(&mut unit.waiters);
        for waiter in waiters {
            match waiter {
                Waiter::Write(write) => self.write_logged(write, orders),
                Waiter::Batch(batch) => self.batch_logged(batch, orders),
                Waiter::Cached(write) => {
                    self.log.finish_part(number);
                    self.write_cached(now_ns, write, orders);
                }
                Waiter::Flush(request) => {
                    self.log.finish_part(number);
                    self.part_done(request, None, orders);
                }
            }
        }
        self.log.advance_checkpoint();
        self.reclaim(now_ns, orders);
    }
}
