//! The requests that a journal sends below, one after the other.

use headstack_workload::Kind;

use super::geometry::Geometry;
use super::under_way::PAGE_BYTES;
use super::{MdJournal, access};
use crate::description::stack::{MdJournalDescription, MdJournalMode};
use crate::stack::orders::{Answer, LayerModel, Order, Orders};

/// A journal of 1 GiB over chunks of four pages, three of data and one of parity, and its neighbours.
struct Host {
    journal: MdJournal,
    orders: Orders,
    now_ns: u64,
}

impl Host {
    fn new(mode: MdJournalMode, flushes: bool) -> Host {
        let geometry = Geometry { chunk_bytes: 4 * PAGE_BYTES, data_units: 3, parities: 1 };
        let description = MdJournalDescription { mode, stripe_cache: 32, reclaim_bytes: 1 << 28, flushes };
        let journal = MdJournal::with_geometry(&description, geometry, 1 << 30);
        Host { journal, orders: Orders::new(), now_ns: 0 }
    }

    /// Submits a request of pages.
    fn submit(&mut self, id: u32, kind: Kind, (from, to): (u64, u64), forced: bool) {
        let request = access(kind, from * PAGE_BYTES, to * PAGE_BYTES, forced);
        self.journal.submit(self.now_ns, id, &request, &mut self.orders);
    }

    /// Ends the moment; returns the orders as text, and the numbers of the requests below.
    fn moment(&mut self) -> (Vec<String>, Vec<(u32, u32)>) {
        if self.journal.next_event_ns() <= self.now_ns {
            self.journal.wake(self.now_ns, &mut self.orders);
        }
        self.now_ns += 1;
        let (mut texts, mut sent) = (Vec::new(), Vec::new());
        for order in self.orders.drain(..) {
            texts.push(match order {
                Order::Send { port, id, request } => {
                    sent.push((port, id));
                    let name = ["array", "log"][port as usize];
                    let (at, pages) = (request.offset_bytes / PAGE_BYTES, u64::from(request.length_bytes) / PAGE_BYTES);
                    let forced = if request.force_unit_access { " FUA" } else { "" };
                    match request.kind {
                        Kind::Flush => format!("{name} flush"),
                        Kind::Write => format!("{name} write {pages} at {at}{forced}"),
                        Kind::Read => format!("{name} read {pages} at {at}"),
                        Kind::Trim => format!("{name} trim {pages} at {at}"),
                    }
                }
                Order::WriteStripes { port, id, stripes } => {
                    sent.push((port, id));
                    let chunks = stripes.chunks;
                    let (from, to) = (chunks.from_bytes / PAGE_BYTES, chunks.to_bytes / PAGE_BYTES);
                    let row = stripes.offset_bytes / PAGE_BYTES;
                    format!("array stripes {from}..{to} of row at {row}, units {:03b}", chunks.units)
                }
                Order::Answer(answer) => format!("answer {}", answer.id),
                Order::Repair { .. } | Order::EndFilling { .. } => unreachable!("a journal repairs nothing"),
            });
        }
        (texts, sent)
    }

    /// Answers requests below, and returns what follows.
    fn answer(&mut self, sent: &[(u32, u32)]) -> (Vec<String>, Vec<(u32, u32)>) {
        for &(port, id) in sent {
            let answer = Answer { id, started_ns: self.now_ns, failed: None };
            self.journal.answered(self.now_ns, port, &answer, &mut self.orders);
        }
        self.moment()
    }

    /// Returns what a request and all that follows it send, step by step.
    fn steps(&mut self, id: u32, kind: Kind, pages: (u64, u64), forced: bool) -> Vec<String> {
        self.submit(id, kind, pages, forced);
        let (mut texts, mut sent) = self.moment();
        while !sent.is_empty() {
            let (more, next) = self.answer(&sent);
            texts.extend(more);
            sent = next;
        }
        texts
    }
}

/// A metadata block, a page of data and one of parity; a flush; the members; the answer.
#[test]
fn a_write_through_is_logged_flushed_and_then_written() {
    let mut host = Host::new(MdJournalMode::WriteThrough, true);
    let steps = host.steps(1, Kind::Write, (5, 6), false);
    assert_eq!(steps, ["log write 3 at 0", "log flush", "array write 1 at 5", "answer 1"]);
    // A row: twelve pages of data, four of parity. A flush costs nothing: the log is durable.
    let steps = host.steps(2, Kind::Write, (12, 24), true);
    assert_eq!(steps, ["log write 17 at 3", "log flush", "array write 12 at 12 FUA", "answer 2"]);
    assert_eq!(host.steps(3, Kind::Flush, (0, 0), false), ["answer 3"]);
    let mut host = Host::new(MdJournalMode::WriteThrough, false);
    assert_eq!(host.steps(1, Kind::Write, (5, 6), false), ["log write 3 at 0", "array write 1 at 5", "answer 1"]);
}

/// Data alone are logged and acknowledged. A flush and a forced write flush the log before their unit.
#[test]
fn a_write_back_is_acknowledged_when_it_is_logged() {
    let mut host = Host::new(MdJournalMode::WriteBack, true);
    assert_eq!(host.steps(1, Kind::Write, (5, 6), false), ["log write 2 at 0", "log flush", "answer 1"]);
    assert_eq!(host.steps(2, Kind::Flush, (0, 0), false), ["log flush", "log write 1 at 2", "answer 2"]);
    let forced = host.steps(3, Kind::Write, (6, 7), true);
    assert_eq!(forced, ["log flush", "log write 2 at 3 FUA", "log flush", "answer 3"]);
    // The page is in memory; its neighbours are not.
    assert_eq!(host.steps(4, Kind::Read, (5, 6), false), ["answer 4"]);
    assert_eq!(host.steps(5, Kind::Read, (4, 8), false), ["array read 1 at 4", "array read 1 at 7", "answer 5"]);
}

/// With more than a quarter of the stripes in memory full, they are written out: parity to the log, a flush, data and
/// parity to the members as whole stripes, and a mark in the log.
#[test]
fn full_stripes_are_written_out_together() {
    let mut host = Host::new(MdJournalMode::WriteBack, true);
    for row in 0..2 {
        let steps = host.steps(row, Kind::Write, (u64::from(row) * 12, u64::from(row) * 12 + 12), false);
        assert_eq!(steps.len(), 3, "8 of 32 stripes stay: {steps:?}");
    }
    // Three writes of 13 pages; twelve parities in one unit.
    assert_eq!(
        host.steps(2, Kind::Write, (24, 36), false),
        [
            "log write 13 at 26",
            "log flush",
            "answer 2",
            "log write 13 at 39",
            "log flush",
            "array stripes 0..4 of row at 0, units 111",
            "array stripes 0..4 of row at 12, units 111",
            "array stripes 0..4 of row at 24, units 111",
            "log write 1 at 52",
        ]
    );
}

/// Units take effect in order: the second write waits for the first, whose unit ends later.
#[test]
fn units_take_effect_in_order() {
    let mut host = Host::new(MdJournalMode::WriteThrough, true);
    host.submit(1, Kind::Write, (0, 1), false);
    let (_, first) = host.moment();
    host.submit(2, Kind::Write, (12, 13), false);
    let (texts, second) = host.moment();
    assert_eq!(texts, ["log write 3 at 3"]);
    assert_eq!(host.answer(&second).0, [""; 0]);
    // One flush serves both.
    let (texts, flush) = host.answer(&first);
    assert_eq!(texts, ["log flush"]);
    assert_eq!(host.answer(&flush).0, ["array write 1 at 0", "array write 1 at 12"]);
}

/// Writes of one moment share a unit; a unit has one metadata block, which holds 203 data pages.
#[test]
fn writes_of_a_moment_share_a_unit() {
    let mut host = Host::new(MdJournalMode::WriteBack, false);
    (0..3).for_each(|id| host.submit(id, Kind::Write, (u64::from(id) * 2, u64::from(id) * 2 + 1), false));
    assert_eq!(host.moment().0, ["log write 4 at 0"]);
    let mut host = Host::new(MdJournalMode::WriteThrough, false);
    host.submit(0, Kind::Write, (0, 240), false);
    // (4,096 - 32) / 20 data pages; the rest with 80 parities.
    assert_eq!(host.moment().0, ["log write 204 at 0", "log write 118 at 204"]);
}

/// The tail moves after a flush of the members, and the space behind it is discarded. Writes wait for space.
#[test]
fn the_tail_moves_after_a_flush_of_the_members() {
    let mut host = Host::new(MdJournalMode::WriteThrough, false);
    host.journal.description.reclaim_bytes = 8 * PAGE_BYTES;
    for id in 0..3 {
        let steps = host.steps(id, Kind::Write, (0, 1), false);
        assert_eq!(steps.len(), 3, "{steps:?}");
    }
    // The fourth unit begins at page 9, which is more than eight pages after the tail.
    let steps = host.steps(3, Kind::Write, (0, 1), false);
    assert_eq!(steps, ["log write 3 at 9", "array write 1 at 0", "answer 3", "array flush", "log trim 9 at 0"]);
    assert_eq!(host.journal.log.used_bytes(), 3 * PAGE_BYTES);
}

/// A write of part of a page sends its stripe to the members first, and then goes there itself.
#[test]
fn parts_of_pages_are_not_kept_in_memory() {
    let mut host = Host::new(MdJournalMode::WriteBack, false);
    host.steps(1, Kind::Write, (0, 1), false);
    let request = access(Kind::Write, 512, 1024, false);
    host.journal.submit(host.now_ns, 2, &request, &mut host.orders);
    let (mut texts, mut sent) = host.moment();
    while !sent.is_empty() {
        let (more, next) = host.answer(&sent);
        texts.extend(more);
        sent = next;
    }
    assert_eq!(
        texts,
        [
            "log write 2 at 2",
            "array stripes 0..1 of row at 0, units 001",
            "log write 3 at 4",
            "array write 0 at 0",
            "answer 2",
        ]
    );
}
