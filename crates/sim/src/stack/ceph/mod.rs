//! [`Ceph`]: an RBD image in a pool of a Ceph cluster. See docs/design/stacks.md.
//!
//! - [`placement`]: which OSDs hold an object, and where;
//! - [`shards`]: what a request reads and writes on each copy or shard;
//! - [`operations`]: the way of a request through the primary and the other OSDs;
//! - [`scheduler`]: the processor of an OSD and mclock;
//! - [`commit`] and [`store`]: BlueStore of an OSD;
//! - [`wires`]: the network; [`recovery`]: objects that OSDs copy to each other.

mod commit;
mod operation;
mod operations;
mod outside;
mod placement;
mod recovered;
mod recovery;
mod scheduler;
mod shards;
mod store;
mod wires;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::{Kind, Request};

use self::operation::{HostRequest, Operation, Task};
use self::placement::Placement;
use self::recovered::Recovering;
use self::scheduler::Scheduler;
use self::store::Store;
use self::wires::Wires;
use crate::description::stack::{CephDescription, OBJECT_BYTES};
use crate::slab::Slab;
use crate::stack::orders::{Order, Orders};

/// A cluster with one image, in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Ceph {
    ceph: CephDescription,
    placement: Placement,
    /// Objects of the image.
    objects: u64,
    wires: Wires,
    osds: Vec<Osd>,
    /// Requests of the host, by id.
    requests: Vec<HostRequest>,
    /// Parts of requests, each within one object.
    operations: Slab<Operation>,
    /// Reads and writes of single OSDs.
    tasks: Slab<Task>,
    /// Requests to the systems below.
    io: Slab<Io>,
    /// Events by time and order of scheduling.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    recovering: Recovering,
    counters: Counters,
}

/// An OSD.
#[derive(Clone, Debug)]
struct Osd {
    scheduler: Scheduler<Item>,
    store: Store,
}

/// Work of a thread of an OSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Operation(u32),
    Task(u32),
}

/// An event of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An operation is ready for the processor of its primary.
    Enter(u32),
    /// A task arrives at its OSD.
    Arrive(u32),
    /// A thread of an OSD has processed an item.
    Processed(u32, Item),
    /// The answer to a task arrives at the primary.
    Return(u32),
    /// The answer to an operation arrives at the client.
    Reply(u32),
    /// Deferred writes of an OSD have waited long enough.
    Defer(u32),
    /// An operation of an OSD is no longer at a limit.
    Retry(u32),
}

/// Meaning of a request to a system below.
#[derive(Clone, Copy, Debug)]
enum Io {
    /// Read of a task.
    Read(u32),
    /// Read of a block of which a task changes a part.
    Block(u32),
    /// Write of data of a task.
    Data(u32),
    /// Step of the commit of an OSD.
    Commit(u32),
    /// Deferred write of an OSD.
    Deferred(u32),
}

/// Counts since the cluster was created.
#[derive(Clone, Debug, Default)]
struct Counters {
    shard_reads: u64,
    checksum_reads: u64,
    data_writes: u64,
    deferred_writes: u64,
    deferred_commands: u64,
    throttled: u64,
    commits: u64,
    transactions: u64,
    log_bytes: u64,
    retried_reads: u64,
    recovered_bytes: u64,
}

/// Returns a request without flags.
fn plain(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

impl Ceph {
    /// Creates an idle cluster over devices of these sizes: of an OSD, and the DB device if there is one.
    pub fn new(ceph: &CephDescription, below_bytes: &[u64]) -> Ceph {
        let placement = Placement::new(ceph, below_bytes);
        Ceph {
            osds: Ceph::idle_osds(ceph, &placement),
            objects: ceph.capacity_bytes.div_ceil(OBJECT_BYTES),
            wires: Wires::new(&ceph.network, ceph.hosts + ceph.network.clients),
            requests: Vec::new(),
            operations: Slab::default(),
            tasks: Slab::default(),
            io: Slab::default(),
            events: BinaryHeap::new(),
            scheduled: 0,
            recovering: Recovering::new(ceph),
            counters: Counters::default(),
            placement,
            ceph: ceph.clone(),
        }
    }

    fn idle_osds(ceph: &CephDescription, placement: &Placement) -> Vec<Osd> {
        let osd = |number| Osd {
            scheduler: Scheduler::new(&ceph.scheduler, ceph.cpu.threads),
            store: Store::new(ceph, &placement.layout, number),
        };
        (0..ceph.osds).map(osd).collect()
    }

    /// Returns the network interface of the host of an OSD.
    fn interface(&self, osd: u32) -> u32 {
        osd / (self.ceph.osds / self.ceph.hosts)
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at_ns, self.scheduled, event)));
    }

    /// Sends a request to a system below.
    fn send(&mut self, port: u32, io: Io, request: Request, orders: &mut Orders) {
        let id = self.io.insert(io);
        orders.push_back(Order::Send { port, id, request });
    }
}
