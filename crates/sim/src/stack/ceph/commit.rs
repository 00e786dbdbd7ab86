//! The path of a write in BlueStore of an OSD: data, the batch of transactions, and deferred writes.

use headstack_workload::Kind;

use super::store::Commit;
use super::{Ceph, Event, Io, plain};
use crate::description::stack::BLOCK_BYTES;
use crate::stack::orders::{Order, Orders};

impl Ceph {
    /// Begins the transaction of a write. Blocks of which only a part changes are read first.
    pub(super) fn begin_transaction(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let task = self.tasks.get(number);
        let (from, to, port) = (task.place, task.place + u64::from(task.length), task.osd);
        let (first, last) = (from / BLOCK_BYTES, to.saturating_sub(1) / BLOCK_BYTES);
        let head = (task.length > 0 && !from.is_multiple_of(BLOCK_BYTES)).then_some(first);
        let tail = (task.length > 0 && !to.is_multiple_of(BLOCK_BYTES)).then_some(last);
        let tail = tail.filter(|_| head != tail);
        let reads = u32::from(head.is_some()) + u32::from(tail.is_some());
        if reads == 0 {
            return self.write_data(now_ns, number, orders);
        }
        self.tasks.get_mut(number).reads_left = reads;
        self.counters.checksum_reads += u64::from(reads);
        for block in head.into_iter().chain(tail) {
            let request = plain(Kind::Read, block * BLOCK_BYTES, BLOCK_BYTES as u32);
            self.send(port, Io::Block(number), request, orders);
        }
    }

    /// Processes a block that was read because a write changes a part of it.
    pub(super) fn block_read(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let task = self.tasks.get_mut(number);
        task.reads_left -= 1;
        if task.reads_left == 0 {
            self.write_data(now_ns, number, orders);
        }
    }

    /// Writes data to their place, or defers them.
    fn write_data(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let task = self.tasks.get(number);
        let (from, to) = (task.place / BLOCK_BYTES * BLOCK_BYTES, task.place + u64::from(task.length));
        let (length, osd) = ((to.next_multiple_of(BLOCK_BYTES) - from) as u32, task.osd);
        if task.length == 0 {
            return self.queue_transaction(now_ns, number, 0, false, orders);
        }
        let task = self.tasks.get_mut(number);
        (task.place, task.length) = (from, length);
        if length >= self.ceph.prefer_deferred_bytes {
            self.counters.data_writes += 1;
            return self.send(osd, Io::Data(number), plain(Kind::Write, from, length), orders);
        }
        task.is_deferred = true;
        if self.osds[osd as usize].store.admit(number, self.ceph.deferred_max) {
            self.queue_transaction(now_ns, number, u64::from(length), false, orders);
        } else {
            self.counters.throttled += 1;
            self.write_deferred(now_ns, osd, false, orders);
        }
    }

    /// Queues a transaction for the next commit.
    pub(super) fn queue_transaction(
        &mut self,
        now_ns: u64,
        number: u32,
        deferred_bytes: u64,
        wrote_data: bool,
        orders: &mut Orders,
    ) {
        let osd = self.tasks.get(number).osd;
        let bytes = u64::from(self.ceph.record_bytes) + deferred_bytes;
        self.osds[osd as usize].store.queue(number, bytes, wrote_data);
        self.begin_commit(now_ns, osd, orders);
    }

    fn begin_commit(&mut self, now_ns: u64, osd: u32, orders: &mut Orders) {
        if let Some(step) = self.osds[osd as usize].store.begin(now_ns) {
            self.counters.commits += 1;
            self.counters.transactions += self.osds[osd as usize].store.committing.len() as u64;
            self.commit_step(now_ns, osd, step, orders);
        }
    }

    /// Begins a step of the commit of an OSD.
    fn commit_step(&mut self, now_ns: u64, osd: u32, step: Commit, orders: &mut Orders) {
        let store = &mut self.osds[osd as usize].store;
        store.commit = step;
        match step {
            Commit::FlushingData => {
                let port = store.data_port;
                self.send(port, Io::Commit(osd), plain(Kind::Flush, 0, 0), orders);
            }
            Commit::Appending => {
                let port = store.log_port;
                let (at, bytes) = store.append();
                if bytes == 0 {
                    return self.committed(now_ns, osd, orders);
                }
                self.counters.log_bytes += u64::from(bytes);
                self.send(port, Io::Commit(osd), plain(Kind::Write, at, bytes), orders);
            }
            Commit::FlushingLog => {
                let port = store.log_port;
                self.send(port, Io::Commit(osd), plain(Kind::Flush, 0, 0), orders);
            }
            Commit::Idle => {}
        }
    }

    /// Processes the answer to a step of a commit.
    pub(super) fn commit_answered(&mut self, now_ns: u64, osd: u32, orders: &mut Orders) {
        match self.osds[osd as usize].store.commit {
            Commit::FlushingData => self.commit_step(now_ns, osd, Commit::Appending, orders),
            Commit::Appending => self.commit_step(now_ns, osd, Commit::FlushingLog, orders),
            Commit::FlushingLog => self.committed(now_ns, osd, orders),
            Commit::Idle => debug_assert!(false, "no commit runs on OSD {osd}"),
        }
    }

    /// Ends a commit: its transactions are durable, and the next one begins.
    fn committed(&mut self, now_ns: u64, osd: u32, orders: &mut Orders) {
        let mut tasks = std::mem::take(&mut self.osds[osd as usize].store.committing);
        for number in tasks.drain(..) {
            let task = *self.tasks.get(number);
            if task.is_deferred {
                self.counters.deferred_writes += 1;
                self.osds[osd as usize].store.defer((task.place, task.place + u64::from(task.length)));
            }
            self.task_done(now_ns, number, orders);
        }
        self.osds[osd as usize].store.committing = tasks;
        if self.osds[osd as usize].store.end(now_ns) > 0 {
            while let Some(number) = self.osds[osd as usize].store.admit_waiting(self.ceph.deferred_max) {
                let bytes = u64::from(self.tasks.get(number).length) + u64::from(self.ceph.record_bytes);
                self.osds[osd as usize].store.queue(number, bytes, false);
            }
        }
        self.write_deferred(now_ns, osd, false, orders);
        self.begin_commit(now_ns, osd, orders);
    }

    /// Writes a batch of deferred writes to their places, if one may begin. Adjacent writes are merged.
    pub(super) fn write_deferred(&mut self, now_ns: u64, osd: u32, is_due: bool, orders: &mut Orders) {
        let store = &mut self.osds[osd as usize].store;
        let port = store.data_port;
        let mut extents = store.begin_batch(self.ceph.deferred_batch, is_due).iter().copied().peekable();
        let mut writes = 0;
        while let Some((from, mut to)) = extents.next() {
            while let Some(next) = extents.next_if(|next| next.0 <= to) {
                to = to.max(next.1);
            }
            let id = self.io.insert(Io::Deferred(osd));
            let request = plain(Kind::Write, from, (to - from) as u32);
            orders.push_back(Order::Send { port, id, request });
            writes += 1;
        }
        if writes > 0 {
            store.batch_sent(writes);
            self.counters.deferred_commands += u64::from(writes);
        }
        if store.needs_timer() {
            self.schedule(now_ns + self.ceph.defer_interval_ns, Event::Defer(osd));
        }
    }

    /// Processes the end of the interval after which deferred writes do not wait for a batch.
    pub(super) fn defer_interval_ended(&mut self, now_ns: u64, osd: u32, orders: &mut Orders) {
        self.osds[osd as usize].store.timer_ended();
        self.write_deferred(now_ns, osd, true, orders);
    }

    /// Processes the answer to a deferred write.
    pub(super) fn deferred_answered(&mut self, now_ns: u64, osd: u32, orders: &mut Orders) {
        if self.osds[osd as usize].store.batch_answered() {
            self.begin_commit(now_ns, osd, orders);
            self.write_deferred(now_ns, osd, false, orders);
        }
    }
}
