//! [`MdJournal`] as a layer: requests and answers, places, power, counters.

use headstack_result::Levels;
use headstack_workload::{Request, Span};

use super::MdJournal;
use super::under_way::{ARRAY, JOURNAL, PAGE_BYTES, Sent};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use crate::stack::orders::{Answer, LayerModel, Orders};

/// Indexes of fill levels in [`headstack_result::LEVEL_NAMES`].
const IN_WRITE_CACHES: usize = 0;
const IN_FLASH_CACHES: usize = 2;

impl LayerModel for MdJournal {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        self.take(now_ns, id, request, orders);
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        match self.sent.remove(answer.id) {
            Sent::Forward { request } => self.part_done(request, answer.failed, orders),
            Sent::Write { write } => self.write_answered(now_ns, write, answer, orders),
            Sent::Batch { batch } => self.batch_answered(now_ns, batch, answer, orders),
            Sent::Preflush { unit } => {
                self.has_failed |= answer.failed.is_some();
                self.write_unit(unit, orders);
            }
            Sent::Unit { unit } => self.unit_answered(now_ns, unit, answer, orders),
            Sent::LogFlush => self.log_flushed(now_ns, answer, orders),
            Sent::MemberFlush => self.members_flushed(now_ns, answer, orders),
            Sent::Discard => self.discarded(now_ns, orders),
        }
    }

    fn next_event_ns(&self) -> u64 {
        self.due_ns
    }

    fn wake(&mut self, _now_ns: u64, orders: &mut Orders) {
        self.submit_unit(orders);
    }

    /// The newest durable data are in the log until its tail passes them, and on the members otherwise.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        let (mut at, end) = (span.start_bytes, span.start_bytes.saturating_add(span.length_bytes));
        for extent in self.log.mapped.overlapping(at, end) {
            if at < extent.start {
                each(ARRAY, at, Span { start_bytes: at, length_bytes: extent.start - at });
            }
            let part = Span { start_bytes: extent.start, length_bytes: u64::from(extent.length) };
            each(JOURNAL, self.log.place(extent.place), part);
            at = extent.end();
        }
        if at < end {
            each(ARRAY, at, Span { start_bytes: at, length_bytes: end - at });
        }
    }

    /// Recovery replays a page of the log as a whole or not at all.
    fn atomic_bytes(&self) -> Option<u64> {
        Some(PAGE_BYTES)
    }

    /// Recovery replays the log, in no time here: parity goes to the members, and stripes without it back to memory.
    fn power_cycle(&mut self, _now_ns: u64) {
        self.log.power_cycle();
        self.stripes.power_cycle(self.geometry.all_units());
        self.requests = Slab::default();
        self.writes = Slab::default();
        self.batches = Slab::default();
        self.sent = Slab::default();
        self.blocked.clear();
        self.parked.clear();
        (self.lacks_space, self.due_ns) = (false, u64::MAX);
        (self.moving_to, self.discards) = (None, 0);
    }

    fn snapshot(&self, into: &mut Snapshot) {
        let counters = &self.counters;
        for (name, value) in [
            ("md_journal_units", counters.units),
            ("md_journal_bytes", counters.bytes),
            ("md_journal_flushes", counters.flushes),
            ("md_journal_reclaims", counters.reclaims),
            ("md_journal_stripes", counters.stripes),
            ("md_journal_full_stripes", counters.full_stripes),
            ("md_journal_waiting_writes", counters.waits),
            ("md_journal_failed_writes", counters.failed_writes),
        ] {
            into.count(name, value);
        }
    }

    fn add_levels(&self, into: &mut Levels) {
        into[IN_WRITE_CACHES] += self.stripes.pages() * PAGE_BYTES;
        into[IN_FLASH_CACHES] += self.log.used_bytes();
    }
}
