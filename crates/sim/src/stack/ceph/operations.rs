//! The way of a request: from the client to the primary OSD of each object, to the other OSDs, and back.

use headstack_workload::{Kind, Request};

use super::operation::{HostRequest, Operation, Owner, Phase, Task};
use super::scheduler::{Class, Work};
use super::shards::{Part, Range, range_before_write, read_range, write_range};
use super::{Ceph, Event, Io, Item, plain};
use crate::description::stack::{BLOCK_BYTES, OBJECT_BYTES, Redundancy};
use crate::stack::orders::{Answer, Order, Orders};

impl Ceph {
    /// Splits a request into operations on objects, and sends each to its primary.
    pub(super) fn begin_request(&mut self, now_ns: u64, id: u32, request: &Request) {
        if self.requests.len() <= id as usize {
            self.requests.resize(id as usize + 1, HostRequest::default());
        }
        let client = self.ceph.hosts + id % self.ceph.network.clients;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let mut at = request.offset_bytes;
        let mut left = 0;
        while at < end {
            let object = at / OBJECT_BYTES;
            let to = end.min((object + 1) * OBJECT_BYTES);
            let part = Part { from: at - object * OBJECT_BYTES, to: to - object * OBJECT_BYTES };
            let primary = self.placement.osd(object, 0);
            let (phase, bytes, delay_ns) = match request.kind {
                Kind::Write => (Phase::ReadingFirst, part.to - part.from, self.ceph.write_delay_ns),
                Kind::Trim | Kind::Flush => (Phase::Writing, 0, self.ceph.write_delay_ns),
                Kind::Read => (Phase::Reading, 0, self.ceph.read_delay_ns),
            };
            let operation = Operation { host: id, kind: request.kind, object, part, primary, phase, left: 0, client };
            let number = self.operations.insert(operation);
            let arrives_ns = self.wires.carry(now_ns, client, self.interface(primary), bytes);
            self.schedule(arrives_ns + delay_ns, Event::Enter(number));
            left += 1;
            at = to;
        }
        self.requests[id as usize] = HostRequest { left, began_ns: None, failed: None };
    }

    /// Lets an operation wait for a thread of its primary.
    pub(super) fn enter(&mut self, now_ns: u64, number: u32) {
        let operation = self.operations.get(number);
        let (osd, part, cpu) = (operation.primary, operation.part, &self.ceph.cpu);
        let (base_ns, bytes) = match operation.kind {
            Kind::Read => (cpu.read_ns, part.to - part.from),
            Kind::Write => (cpu.write_ns, part.to - part.from),
            Kind::Trim | Kind::Flush => (cpu.write_ns, 0),
        };
        let work = Work {
            item: Item::Operation(number),
            cpu_ns: base_ns + cpu.payload_ns(bytes),
            cost_bytes: self.ceph.scheduler.cost_bytes(bytes),
        };
        self.osds[osd as usize].scheduler.push(now_ns, Class::Client, work);
        self.start_work(now_ns, osd);
    }

    /// Lets a task wait for a thread of its OSD.
    pub(super) fn arrive(&mut self, now_ns: u64, number: u32) {
        let task = self.tasks.get(number);
        let (osd, cpu) = (task.osd, &self.ceph.cpu);
        let base_ns = if task.writes { cpu.write_ns } else { cpu.shard_read_ns };
        // Recovery is scheduled once for each object, at the OSD that recovers it.
        let class = match (task.owner, task.writes) {
            (Owner::Recovery(_), true) => Class::Recovery,
            (Owner::Recovery(_), false) | (Owner::Operation(_), _) => Class::Immediate,
        };
        let work = Work {
            item: Item::Task(number),
            cpu_ns: base_ns + cpu.payload_ns(u64::from(task.length)),
            cost_bytes: self.ceph.scheduler.cost_bytes(u64::from(task.length)),
        };
        self.osds[osd as usize].scheduler.push(now_ns, class, work);
        self.start_work(now_ns, osd);
    }

    /// Gives work to the free threads of an OSD.
    pub(super) fn start_work(&mut self, now_ns: u64, osd: u32) {
        while let Some(work) = self.osds[osd as usize].scheduler.start(now_ns, &self.ceph.scheduler) {
            if let Item::Operation(number) = work.item {
                let host = self.operations.get(number).host as usize;
                self.requests[host].began_ns.get_or_insert(now_ns);
            }
            self.schedule(now_ns + work.cpu_ns, Event::Processed(osd, work.item));
        }
        if let Some(at_ns) = self.osds[osd as usize].scheduler.retry_ns(now_ns, &self.ceph.scheduler) {
            self.schedule(at_ns, Event::Retry(osd));
        }
    }

    /// Begins the I/O of an item that a thread has processed.
    pub(super) fn processed(&mut self, now_ns: u64, osd: u32, item: Item, orders: &mut Orders) {
        self.osds[osd as usize].scheduler.finish();
        self.start_work(now_ns, osd);
        match item {
            Item::Operation(number) => self.begin_phase(now_ns, number, orders),
            Item::Task(number) => self.begin_task(now_ns, number, orders),
        }
    }

    /// Begins the tasks of the current phase of an operation.
    fn begin_phase(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let operation = *self.operations.get(number);
        let range_of: fn(&Redundancy, Part, u32) -> Option<Range> = match operation.phase {
            Phase::Reading => read_range,
            Phase::ReadingFirst => range_before_write,
            Phase::Writing => write_range,
        };
        let redundancy = self.ceph.redundancy;
        let ranges = |shard| range_of(&redundancy, operation.part, shard);
        let left = (0..redundancy.width()).filter(|&shard| ranges(shard).is_some()).count() as u32;
        self.operations.get_mut(number).left = left;
        if left == 0 {
            return self.phase_done(now_ns, number, orders);
        }
        for shard in 0..redundancy.width() {
            if let Some(range) = ranges(shard) {
                self.add_task(now_ns, number, shard, range, orders);
            }
        }
    }

    /// Begins a task of an operation: on the primary at once, else on its way to another OSD.
    fn add_task(&mut self, now_ns: u64, number: u32, shard: u32, range: Range, orders: &mut Orders) {
        let operation = *self.operations.get(number);
        let (mut from, mut to) = range;
        let writes = operation.phase == Phase::Writing;
        if !writes {
            // Checksums cover blocks; a read verifies them.
            (from, to) = (from / BLOCK_BYTES * BLOCK_BYTES, to.next_multiple_of(BLOCK_BYTES));
            self.counters.shard_reads += 1;
        } else if operation.kind != Kind::Write {
            to = from;
        }
        let osd = self.placement.osd(operation.object, shard);
        let task = self.tasks.insert(Task {
            owner: Owner::Operation(number),
            osd,
            coordinator: operation.primary,
            shard,
            writes,
            place: self.placement.start(operation.object, shard) + from,
            length: (to - from) as u32,
            reads_left: 0,
            is_deferred: false,
        });
        if osd == operation.primary {
            return self.begin_task(now_ns, task, orders);
        }
        let bytes = if writes { to - from } else { 0 };
        let arrives_ns = self.wires.carry(now_ns, self.interface(operation.primary), self.interface(osd), bytes);
        self.schedule(arrives_ns, Event::Arrive(task));
    }

    fn begin_task(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let task = *self.tasks.get(number);
        match task.writes {
            true => self.begin_transaction(now_ns, number, orders),
            false => self.send(task.osd, Io::Read(number), plain(Kind::Read, task.place, task.length), orders),
        }
    }

    /// Sends the answer to a task back.
    pub(super) fn task_done(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let task = *self.tasks.get(number);
        if task.osd == task.coordinator {
            return self.task_returned(now_ns, number, orders);
        }
        let bytes = if task.writes { 0 } else { u64::from(task.length) };
        let (from, to) = (self.interface(task.osd), self.interface(task.coordinator));
        let arrives_ns = self.wires.carry(now_ns, from, to, bytes);
        self.schedule(arrives_ns, Event::Return(number));
    }

    /// Processes the answer to a task at the OSD that awaits it.
    pub(super) fn task_returned(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        match self.tasks.remove(number).owner {
            Owner::Recovery(recovery) => self.recovery_step(now_ns, recovery),
            Owner::Operation(number) => {
                let operation = self.operations.get_mut(number);
                operation.left -= 1;
                if operation.left == 0 {
                    self.phase_done(now_ns, number, orders);
                }
            }
        }
    }

    /// Begins the next phase of an operation, or sends its answer to the client.
    fn phase_done(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let operation = self.operations.get_mut(number);
        let bytes = match operation.phase {
            Phase::ReadingFirst => {
                operation.phase = Phase::Writing;
                return self.begin_phase(now_ns, number, orders);
            }
            Phase::Reading => operation.part.to - operation.part.from,
            Phase::Writing => 0,
        };
        let (primary, client) = (operation.primary, operation.client);
        let arrives_ns = self.wires.carry(now_ns, self.interface(primary), client, bytes);
        self.schedule(arrives_ns, Event::Reply(number));
    }

    /// Processes the answer to an operation at the client.
    pub(super) fn reply(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let id = self.operations.remove(number).host;
        let host = &mut self.requests[id as usize];
        host.left -= 1;
        if host.left == 0 {
            let started_ns = host.began_ns.unwrap_or(now_ns);
            orders.push_back(Order::Answer(Answer { id, started_ns, failed: host.failed }));
        }
    }

    /// Processes a failed read. It is repeated on the next copy, if there is one.
    pub(super) fn read_failed(&mut self, now_ns: u64, number: u32, at_bytes: u64, orders: &mut Orders) {
        let task = *self.tasks.get(number);
        if let (Owner::Operation(owner), Redundancy::Copies(copies)) = (task.owner, self.ceph.redundancy)
            && task.shard + 1 < copies
        {
            self.counters.retried_reads += 1;
            let from = task.place - self.placement.start(self.operations.get(owner).object, task.shard);
            self.tasks.remove(number);
            return self.add_task(now_ns, owner, task.shard + 1, (from, from + u64::from(task.length)), orders);
        }
        self.note_failure(number, at_bytes);
        self.task_done(now_ns, number, orders);
    }

    /// Notes a failure on a device, which fails the request of the host. Recovery ignores failures.
    pub(super) fn note_failure(&mut self, number: u32, at_bytes: u64) {
        let task = self.tasks.get(number);
        let Owner::Operation(owner) = task.owner else { return };
        let operation = self.operations.get(owner);
        let at = match self.ceph.redundancy {
            Redundancy::Copies(_) => at_bytes.saturating_sub(self.placement.start(operation.object, task.shard)),
            Redundancy::Erasure(_) => operation.part.from,
        };
        let at = at.clamp(operation.part.from, operation.part.to - 1);
        let failed = (operation.object * OBJECT_BYTES + at, operation.kind == Kind::Write);
        let host = &mut self.requests[operation.host as usize];
        host.failed = Some(host.failed.map_or(failed, |first| first.min(failed)));
    }
}
