//! [`Queues`]: the queue of ZFS in front of each system below (vdev_queue.c). It holds I/O by class, limits what is in
//! flight, and merges neighbours.
//!
//! The limits of ZFS hold for each leaf device. Here they hold for a system below, multiplied by its number of leaves;
//! an access counts once for each leaf that it uses. Scrub, resilver, removal, TRIM and initialize are not modelled.

use std::collections::{BTreeSet, VecDeque};

use headstack_workload::{Kind, Request};

use super::leaves::Leaves;
use crate::slab::Slab;
use crate::stack::orders::{Order, Orders};

/// Class of an I/O, by descending priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Reads that a request waits for.
    SyncRead,
    /// Log blocks.
    SyncWrite,
    /// Prefetch.
    AsyncRead,
    /// Data and metadata of a transaction group.
    AsyncWrite,
}

impl Class {
    const ALL: [Class; 4] = [Class::SyncRead, Class::SyncWrite, Class::AsyncRead, Class::AsyncWrite];

    /// Minimum in flight for each leaf (`zfs_vdev_*_min_active`).
    fn min_active(self) -> u32 {
        match self {
            Class::SyncRead | Class::SyncWrite => 10,
            Class::AsyncRead => 1,
            Class::AsyncWrite => ASYNC_WRITE_MIN,
        }
    }

    /// Whether I/O is sorted by address; the others are first in, first out (`vdev_queue_class_fifo`).
    fn is_sorted(self) -> bool {
        matches!(self, Class::AsyncRead | Class::AsyncWrite)
    }
}

/// `zfs_vdev_async_write_min_active` and `zfs_vdev_async_write_max_active`.
const ASYNC_WRITE_MIN: u32 = 2;
const ASYNC_WRITE_MAX: u32 = 10;
/// `zfs_vdev_sync_read_max_active`, and the same for synchronous writes.
const SYNC_MAX: u32 = 10;
/// `zfs_vdev_async_read_max_active`.
const ASYNC_READ_MAX: u32 = 3;
/// Dirty data in percent of the maximum between which the limit of asynchronous writes rises
/// (`zfs_vdev_async_write_active_min_dirty_percent` and `_max_`).
const RISE_PERCENT: [u64; 2] = [30, 60];
/// Maximum in flight for each leaf (`zfs_vdev_max_active`).
const MAX_ACTIVE: u32 = 1000;
/// Bits of a time in ns by which I/O of a sorted class is grouped: 0.54 s (`vdev_queue_timestamp_compare`).
const SLOT_BITS: u32 = 29;
/// Largest merged I/O: `zfs_vdev_aggregation_limit`, and `_non_rotating`.
const MERGED_MAX_BYTES: u32 = 1 << 20;
const MERGED_MAX_BYTES_NON_ROTATING: u32 = 128 << 10;

/// An I/O of ZFS. `P` is its purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io<P> {
    pub port: u32,
    pub request: Request,
    pub purpose: P,
    class: Option<Class>,
    /// Leaves that it and the merged I/O use.
    used: u32,
    /// Next I/O that was merged into this one.
    merged: Option<u32>,
}

/// Returns a request without options.
pub(super) fn plain(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// Queue in front of a system.
#[derive(Clone, Debug)]
struct Queue {
    leaves: Leaves,
    waiting: [VecDeque<u32>; 4],
    /// Sorted classes: slot of time, address, I/O.
    sorted: [BTreeSet<(u64, u64, u32)>; 4],
    /// End of the last I/O of a class.
    last_bytes: [u64; 4],
    /// Leaf accesses in flight by class.
    active: [u32; 4],
}

/// Queues of all systems below.
#[derive(Clone, Debug)]
pub(super) struct Queues<P> {
    queues: Vec<Queue>,
    ios: Slab<Io<P>>,
    async_write_max: u32,
    /// I/O that was merged into another.
    pub merged: u64,
}

impl<P: Copy> Queues<P> {
    /// Creates idle queues.
    pub fn new(leaves: impl Iterator<Item = Leaves>) -> Queues<P> {
        let queue = |leaves| Queue {
            leaves,
            waiting: Default::default(),
            sorted: Default::default(),
            last_bytes: [0; 4],
            active: [0; 4],
        };
        Queues {
            queues: leaves.map(queue).collect(),
            ios: Slab::default(),
            async_write_max: ASYNC_WRITE_MIN,
            merged: 0,
        }
    }

    /// Sets the limit of asynchronous writes by the dirty data.
    pub fn set_dirty(&mut self, dirty_bytes: u64, max_bytes: u64) {
        let [low, high] = RISE_PERCENT.map(|percent| max_bytes * percent / 100);
        let rise = u64::from(ASYNC_WRITE_MAX - ASYNC_WRITE_MIN);
        let above = dirty_bytes.clamp(low, high) - low;
        self.async_write_max = ASYNC_WRITE_MIN + (above * rise / (high - low).max(1)) as u32;
    }

    /// Sends an I/O, or queues it.
    pub fn send(&mut self, now_ns: u64, port: u32, class: Class, request: Request, purpose: P, orders: &mut Orders) {
        self.add(now_ns, port, class, request, purpose);
        self.issue(port, orders);
    }

    /// Queues an I/O; [`Queues::issue`] sends it.
    pub fn add(&mut self, now_ns: u64, port: u32, class: Class, request: Request, purpose: P) {
        let queue = &mut self.queues[port as usize];
        let used = queue.leaves.used_by(request.kind, request.length_bytes);
        let number = self.ios.insert(Io { port, request, purpose, class: Some(class), used, merged: None });
        if class.is_sorted() {
            queue.sorted[class as usize].insert((now_ns >> SLOT_BITS, request.offset_bytes, number));
        } else {
            queue.waiting[class as usize].push_back(number);
        }
    }

    /// Sends a flush, which no queue holds.
    pub fn flush(&mut self, port: u32, purpose: P, orders: &mut Orders) {
        let request = plain(Kind::Flush, 0, 0);
        let id = self.ios.insert(Io { port, request, purpose, class: None, used: 0, merged: None });
        orders.push_back(Order::Send { port, id, request });
    }

    /// Takes an answered I/O out; appends it and those merged into it.
    pub fn finish(&mut self, id: u32, orders: &mut Orders, finished: &mut Vec<Io<P>>) {
        let io = self.ios.remove(id);
        finished.push(io);
        let mut next = io.merged;
        while let Some(number) = next {
            let merged = self.ios.remove(number);
            finished.push(merged);
            next = merged.merged;
        }
        if let Some(class) = io.class {
            self.queues[io.port as usize].active[class as usize] -= io.used;
            self.issue(io.port, orders);
        }
    }

    /// Drops everything.
    pub fn power_cycle(&mut self) {
        self.ios = Slab::default();
        for queue in &mut self.queues {
            queue.waiting.iter_mut().for_each(VecDeque::clear);
            queue.sorted.iter_mut().for_each(BTreeSet::clear);
            queue.active = [0; 4];
        }
    }

    /// Sends what the limits allow: the first class below its minimum, then the first class below its maximum.
    pub fn issue(&mut self, port: u32, orders: &mut Orders) {
        while let Some(class) = self.next_class(port) {
            let number = self.take_next(port, class);
            let io = self.ios.get(number);
            self.queues[port as usize].active[class as usize] += io.used;
            orders.push_back(Order::Send { port, id: number, request: io.request });
        }
    }

    fn next_class(&self, port: u32) -> Option<Class> {
        let queue = &self.queues[port as usize];
        let leaves = queue.leaves.count;
        if queue.active.iter().sum::<u32>() >= MAX_ACTIVE * leaves {
            return None;
        }
        let waits =
            |class: &Class| !queue.waiting[*class as usize].is_empty() || !queue.sorted[*class as usize].is_empty();
        // A wide access may exceed the rest of the limit, so that a limit below its width is none.
        let below = |class: Class, limit: u32| queue.active[class as usize] < limit * leaves;
        let mut waiting = Class::ALL.into_iter().filter(waits);
        let lacking = waiting.clone().find(|&class| below(class, class.min_active()));
        lacking.or_else(|| waiting.find(|&class| below(class, self.max_active(class))))
    }

    fn max_active(&self, class: Class) -> u32 {
        match class {
            Class::SyncRead | Class::SyncWrite => SYNC_MAX,
            Class::AsyncRead => ASYNC_READ_MAX,
            Class::AsyncWrite => self.async_write_max,
        }
    }

    /// Takes the next I/O of a class: the oldest, or the next by address in the oldest slot of time, with its neighbours.
    fn take_next(&mut self, port: u32, class: Class) -> u32 {
        let (queues, ios) = (&mut self.queues, &mut self.ios);
        let queue = &mut queues[port as usize];
        if !class.is_sorted() {
            return queue.waiting[class as usize].pop_front().expect("the class waits");
        }
        let sorted = &mut queue.sorted[class as usize];
        let &first = sorted.first().expect("the class waits");
        let from = (first.0, queue.last_bytes[class as usize], 0);
        let next = sorted.range(from..).next().filter(|next| next.0 == first.0).copied().unwrap_or(first);
        sorted.remove(&next);
        let (slot, number) = (next.0, next.2);
        let Io { request, .. } = *ios.get(number);
        let limit = match queue.leaves.rotating {
            true => MERGED_MAX_BYTES,
            false => MERGED_MAX_BYTES_NON_ROTATING,
        };
        let limit = limit.saturating_mul(queue.leaves.data_disks());
        let (mut length, mut last) = (request.length_bytes, number);
        loop {
            let end = request.offset_bytes + u64::from(length);
            let neighbour =
                sorted.range((slot, end, 0)..).next().filter(|next| (next.0, next.1) == (slot, end)).copied();
            let Some(neighbour) = neighbour else { break };
            let other = ios.get(neighbour.2).request;
            if other.kind != request.kind || length + other.length_bytes > limit {
                break;
            }
            sorted.remove(&neighbour);
            ios.get_mut(last).merged = Some(neighbour.2);
            (length, last) = (length + other.length_bytes, neighbour.2);
            self.merged += 1;
        }
        queue.last_bytes[class as usize] = request.offset_bytes + u64::from(length);
        let used = queue.leaves.used_by(request.kind, length);
        let io = ios.get_mut(number);
        (io.request.length_bytes, io.used) = (length, used);
        number
    }
}
