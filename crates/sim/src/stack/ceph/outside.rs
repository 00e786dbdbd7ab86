//! [`LayerModel`] of the cluster: requests and answers, contents at risk, counters.

use std::cmp::Reverse;

use headstack_workload::{Kind, Request, Span};

use super::operation::Owner;
use super::recovered::Recovering;
use super::{Ceph, Event, Io};
use crate::description::stack::{BLOCK_BYTES, OBJECT_BYTES, Redundancy};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use crate::stack::orders::{Answer, LayerModel, Order, Orders};

impl LayerModel for Ceph {
    /// A flush has nothing to do: there is no cache at the client, and acknowledged writes are durable on all OSDs.
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        self.begin_recovery(now_ns);
        if request.kind == Kind::Flush || request.length_bytes == 0 {
            return orders.push_back(Order::Answer(Answer { id, started_ns: now_ns, failed: None }));
        }
        self.begin_request(now_ns, id, request);
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        match (self.io.remove(answer.id), answer.failed) {
            (Io::Read(task), Some((at_bytes, _))) => self.read_failed(now_ns, task, at_bytes, orders),
            (Io::Read(task), None) => self.task_done(now_ns, task, orders),
            (Io::Block(task), failed) => {
                if let Some((at_bytes, _)) = failed {
                    self.note_failure(task, at_bytes);
                }
                self.block_read(now_ns, task, orders);
            }
            (Io::Data(task), Some((at_bytes, _))) => {
                self.note_failure(task, at_bytes);
                self.task_done(now_ns, task, orders);
            }
            (Io::Data(task), None) => self.queue_transaction(now_ns, task, 0, true, orders),
            // A log that cannot be written stops a real OSD; here its transactions count as committed.
            (Io::Commit(osd), _) => self.commit_answered(now_ns, osd, orders),
            (Io::Deferred(osd), _) => self.deferred_answered(now_ns, osd, orders),
        }
    }

    fn next_event_ns(&self) -> u64 {
        self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&Reverse((at_ns, _, event))) = self.events.peek() {
            if at_ns > now_ns {
                return;
            }
            self.events.pop();
            match event {
                Event::Enter(number) => self.enter(now_ns, number),
                Event::Arrive(number) => self.arrive(now_ns, number),
                Event::Processed(osd, item) => self.processed(now_ns, osd, item, orders),
                Event::Return(number) => self.task_returned(now_ns, number, orders),
                Event::Reply(number) => self.reply(now_ns, number, orders),
                Event::Defer(osd) => self.defer_interval_ended(now_ns, osd, orders),
                Event::Retry(osd) => self.start_work(now_ns, osd),
            }
        }
    }

    /// Passes the places on the primary copy or on the data shards. Blocks that a transaction changes, or that are safe
    /// in the log, are left out: BlueStore writes to new places and keeps the old data until the commit.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        let changing = self.changing();
        let end = self.ceph.capacity_bytes.min(span.start_bytes + span.length_bytes);
        let mut at = span.start_bytes;
        while at < end {
            let (shard, from, to) = self.place(at);
            let length_bytes = to.min(end) - at;
            let osd = self.placement.osd(at / OBJECT_BYTES, shard);
            let place = self.placement.start(at / OBJECT_BYTES, shard) + from;
            let part = Span { start_bytes: at, length_bytes };
            stable_pieces(&changing, osd, place, part, each);
            at += length_bytes;
        }
    }

    fn power_cycle(&mut self, _now_ns: u64) {
        self.wires.reset();
        self.osds = Ceph::idle_osds(&self.ceph, &self.placement);
        self.requests.clear();
        self.operations = Slab::default();
        self.tasks = Slab::default();
        self.io = Slab::default();
        self.events.clear();
        match self.ceph.recovery {
            Some(_) => self.recovering.reset(),
            None => self.recovering = Recovering::new(&self.ceph),
        }
    }

    fn snapshot(&self, into: &mut Snapshot) {
        let total = |of: fn(&super::Osd) -> u64| self.osds.iter().map(of).sum();
        let osds = self.osds.len() as u32;
        let busy_ns = total(|osd| osd.scheduler.busy_ns);
        into.component(
            "osd CPU".to_owned(),
            osds * self.ceph.cpu.threads,
            busy_ns,
            total(|osd| osd.scheduler.waited_ns),
        );
        into.component("osd commit".to_owned(), osds, total(|osd| osd.store.busy_ns), 0);
        into.component("network".to_owned(), self.wires.directions(), self.wires.carried_ns, self.wires.waited_ns);
        let counters = &self.counters;
        for (name, value) in [
            ("osd_reads", counters.shard_reads),
            ("osd_checksum_reads", counters.checksum_reads),
            ("osd_data_writes", counters.data_writes),
            ("osd_deferred_writes", counters.deferred_writes),
            ("osd_deferred_commands", counters.deferred_commands),
            ("osd_throttled_writes", counters.throttled),
            ("osd_commits", counters.commits),
            ("osd_transactions", counters.transactions),
            ("osd_log_bytes", counters.log_bytes),
            ("osd_retried_reads", counters.retried_reads),
            ("osd_recovered_bytes", counters.recovered_bytes),
        ] {
            into.count(name, value);
        }
    }
}

/// Changing bytes of a data device: OSD, first byte and end.
type Changing = (u32, u64, u64);

impl Ceph {
    /// Returns the shard that holds a byte of the image, the byte's offset there, and the end in the image of what
    /// follows it there.
    fn place(&self, at: u64) -> (u32, u64, u64) {
        let from = at % OBJECT_BYTES;
        let object_end = at - from + OBJECT_BYTES;
        match self.ceph.redundancy {
            Redundancy::Copies(_) => (0, from, object_end),
            Redundancy::Erasure(code) => {
                let unit = u64::from(code.stripe_unit_bytes);
                let shard = from / unit % u64::from(code.data);
                let stripe = from / (unit * u64::from(code.data));
                (shard as u32, stripe * unit + from % unit, object_end.min(at - from % unit + unit))
            }
        }
    }

    /// Returns the changing blocks of all OSDs, in order and disjoint.
    fn changing(&self) -> Vec<Changing> {
        let of_task = |task: &super::Task| {
            let block = |at: u64| at / BLOCK_BYTES * BLOCK_BYTES;
            let end = (task.place + u64::from(task.length)).next_multiple_of(BLOCK_BYTES);
            let is_write = task.writes && matches!(task.owner, Owner::Operation(_));
            is_write.then_some((task.osd, block(task.place), end))
        };
        let mut changing: Vec<Changing> = self.tasks.iter().filter_map(|(_, task)| of_task(task)).collect();
        for (number, osd) in self.osds.iter().enumerate() {
            changing.extend(osd.store.deferred_extents().map(|(from, to)| (number as u32, from, to)));
        }
        changing.sort_unstable();
        changing.dedup_by(|next, kept| {
            let joins = next.0 == kept.0 && next.1 <= kept.2;
            if joins {
                kept.2 = kept.2.max(next.2);
            }
            joins
        });
        changing
    }
}

/// Passes the parts of a piece on an OSD that are not changing.
fn stable_pieces(changing: &[Changing], osd: u32, place: u64, part: Span, each: &mut dyn FnMut(u32, u64, Span)) {
    let end = place + part.length_bytes;
    let mut at = place;
    let mut pass = |from: u64, to: u64| {
        if from < to {
            each(osd, from, Span { start_bytes: part.start_bytes + (from - place), length_bytes: to - from });
        }
    };
    let first = changing.partition_point(|&(other, _, to)| (other, to) <= (osd, place));
    for &(other, from, to) in &changing[first..] {
        if other != osd || from >= end {
            break;
        }
        pass(at, from);
        at = to.max(at);
    }
    pass(at, end);
}
