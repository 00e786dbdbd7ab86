//! [`Queues`]: the queue of ZFS in front of each system below (vdev_queue.c). It holds I/O by class, limits what is in
//! flight, and merges neighbours.
//!
//! The limits of ZFS hold for each leaf device. Here they hold for a system below, multiplied by its number of leaves;
//! an access counts once for each leaf that it uses. Removal, TRIM and initialize are not modelled.
//!
//! Scrub, resilver and rebuild keep to their minimum on leaves with interactive I/O, and for
//! [`NIA_DELAY`] of their own after it; while interactive I/O is in flight, at most [`NIA_CREDIT`] of theirs start
//! between two completions of it (`vdev_queue_class_max_active`).

use std::collections::{BTreeSet, VecDeque};

use headstack_workload::{Kind, Request};

use super::leaf_sets::LeafSet;
use super::leaves::Leaves;
use crate::repair::Repair;
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
    /// Scrub and resilver.
    Scrub,
    /// Sequential rebuild.
    Rebuild,
}

impl Class {
    const ALL: [Class; CLASSES] =
        [Class::SyncRead, Class::SyncWrite, Class::AsyncRead, Class::AsyncWrite, Class::Scrub, Class::Rebuild];

    /// Whether requests depend on it (`vdev_queue_is_interactive`).
    fn is_interactive(self) -> bool {
        match self {
            Class::SyncRead | Class::SyncWrite | Class::AsyncRead | Class::AsyncWrite => true,
            Class::Scrub | Class::Rebuild => false,
        }
    }

    /// Whether I/O is sorted by address; the others are first in, first out (`vdev_queue_class_fifo`).
    fn is_sorted(self) -> bool {
        match self {
            Class::SyncRead | Class::SyncWrite => false,
            Class::AsyncRead | Class::AsyncWrite | Class::Scrub | Class::Rebuild => true,
        }
    }
}

/// Number of classes.
const CLASSES: usize = 6;
/// `zfs_vdev_async_write_min_active` and `zfs_vdev_async_write_max_active`.
const ASYNC_WRITE_MIN: u32 = 2;
const ASYNC_WRITE_MAX: u32 = 10;
/// `zfs_vdev_sync_read_max_active`, and the same for synchronous writes.
const SYNC_MAX: u32 = 10;
/// `zfs_vdev_async_read_min_active` and `zfs_vdev_async_read_max_active`.
const ASYNC_READ_MIN: u32 = 1;
const ASYNC_READ_MAX: u32 = 3;
/// `zfs_vdev_scrub_min_active` and `_max_`, and the same for rebuild.
const SCAN_MIN: u32 = 1;
const SCAN_MAX: u32 = 3;
/// I/O of such classes that complete without interactive I/O until their maximum applies (`zfs_vdev_nia_delay`).
const NIA_DELAY: u32 = 5;
/// I/O of such classes that start between two completions of interactive I/O (`zfs_vdev_nia_credit`).
const NIA_CREDIT: u32 = 5;
/// Dirty data in percent of the maximum between which the limit of asynchronous writes rises
/// (`zfs_vdev_async_write_active_min_dirty_percent` and `_max_`).
const RISE_PERCENT: [u64; 2] = [30, 60];
/// Maximum in flight for each leaf (`zfs_vdev_max_active`).
const MAX_ACTIVE: u32 = 1000;
/// Bits of a time in ns by which I/O of a sorted class is grouped: 0.54 s (`vdev_queue_timestamp_compare`).
const SLOT_BITS: u32 = 29;
/// Largest merged I/O: `zfs_vdev_aggregation_limit`, and `_non_rotating`.
pub(super) const MERGED_MAX_BYTES: u32 = 1 << 20;
const MERGED_MAX_BYTES_NON_ROTATING: u32 = 128 << 10;

/// An I/O of ZFS. `P` is its purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io<P> {
    pub port: u32,
    pub request: Request,
    pub purpose: P,
    class: Option<Class>,
    /// Blocks to verify or restore, in place of a read.
    repair: Option<Repair>,
    /// Leaves of a repair, each of which has a limit of its own.
    leaves: LeafSet,
    /// Leaves that it and the merged I/O use.
    used: u32,
    /// Next I/O that was merged into this one.
    merged: Option<u32>,
}

impl<P> Io<P> {
    /// Creates an I/O that no queue holds.
    fn new(port: u32, request: Request, purpose: P) -> Io<P> {
        Io { port, request, purpose, class: None, repair: None, leaves: LeafSet::default(), used: 0, merged: None }
    }
}

/// Returns a request without options.
pub(super) fn plain(kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { kind, offset_bytes, length_bytes, force_unit_access: false, ordered: false }
}

/// Queue in front of a system.
#[derive(Clone, Debug)]
struct Queue {
    leaves: Leaves,
    waiting: [VecDeque<u32>; CLASSES],
    /// Sorted classes: slot of time, address, I/O.
    sorted: [BTreeSet<(u64, u64, u32)>; CLASSES],
    /// End of the last I/O of a class.
    last_bytes: [u64; CLASSES],
    /// Leaf accesses in flight by class.
    active: [u32; CLASSES],
    /// With interactive I/O in flight: what scans may still start; else: what they have completed since. In accesses of
    /// leaves.
    nia_credit: u32,
    /// Repairs in flight on each leaf.
    repairs: Vec<u32>,
}

impl Queue {
    /// Returns the accesses of interactive I/O in flight.
    fn interactive(&self) -> u32 {
        Class::ALL.iter().filter(|class| class.is_interactive()).map(|&class| self.active[class as usize]).sum()
    }

    /// Counts the start of an I/O (`vdev_queue_pending_add`).
    fn begin(&mut self, class: Class, used: u32) {
        match (class.is_interactive(), self.interactive()) {
            (true, 0) => self.nia_credit = self.leaves.count,
            (true, _) | (false, 0) => {}
            (false, _) => self.nia_credit = self.nia_credit.saturating_sub(used),
        }
        self.active[class as usize] += used;
    }

    /// Counts the end of an I/O (`vdev_queue_pending_remove`).
    fn end(&mut self, class: Class, used: u32) {
        self.active[class as usize] -= used;
        match (class.is_interactive(), self.interactive()) {
            (true, 0) => self.nia_credit = 0,
            (true, _) => self.nia_credit = NIA_CREDIT * self.leaves.count,
            (false, 0) => self.nia_credit = (self.nia_credit + used).min(NIA_DELAY * self.leaves.count),
            (false, _) => {}
        }
    }

    /// Whether each leaf of a repair is below its limit.
    fn has_room(&self, leaves: &LeafSet) -> bool {
        let limit = self.scan_limit(true).div_ceil(self.leaves.count);
        let mut is_below = true;
        leaves.each(|leaf| is_below &= self.repairs[leaf] < limit);
        is_below
    }

    /// Returns the accesses that a scan may have in flight, at its minimum or maximum. Only leaves with interactive I/O
    /// are held back by the credit; that I/O is taken to be on as many leaves as it has accesses.
    fn scan_limit(&self, is_max: bool) -> u32 {
        let leaves = self.leaves.count;
        let busy = self.interactive().min(leaves);
        if busy == 0 {
            let is_quiet = self.nia_credit >= NIA_DELAY * leaves;
            return if is_max && is_quiet { SCAN_MAX * leaves } else { SCAN_MIN * leaves };
        }
        let of_busy = if self.nia_credit > 0 { busy * SCAN_MIN } else { 0 };
        (leaves - busy) * SCAN_MIN + of_busy
    }
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
            last_bytes: [0; CLASSES],
            active: [0; CLASSES],
            nia_credit: 0,
            repairs: vec![0; LeafSet::places()],
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
        let used = self.queues[port as usize].leaves.used_by(request.kind, request.length_bytes);
        let io = Io { used, class: Some(class), ..Io::new(port, request, purpose) };
        self.insert(now_ns, port, class, io);
    }

    /// Queues a repair of blocks on these leaves, which uses all copies or columns; [`Queues::issue`] sends it.
    pub fn add_repair(
        &mut self,
        now_ns: u64,
        (port, class): (u32, Class),
        repair: Repair,
        leaves: LeafSet,
        purpose: P,
    ) {
        let request = plain(Kind::Read, repair.offset_bytes, repair.length_bytes);
        let of_port = &self.queues[port as usize].leaves;
        let used = of_port.used_by(Kind::Write, repair.length_bytes).min(of_port.count);
        let repair = Some(repair);
        let io = Io { used, class: Some(class), repair, leaves, ..Io::new(port, request, purpose) };
        self.insert(now_ns, port, class, io);
    }

    fn insert(&mut self, now_ns: u64, port: u32, class: Class, io: Io<P>) {
        let request = io.request;
        let number = self.ios.insert(io);
        let queue = &mut self.queues[port as usize];
        if class.is_sorted() {
            queue.sorted[class as usize].insert((now_ns >> SLOT_BITS, request.offset_bytes, number));
        } else {
            queue.waiting[class as usize].push_back(number);
        }
    }

    /// Sends a flush, which no queue holds.
    pub fn flush(&mut self, port: u32, purpose: P, orders: &mut Orders) {
        let request = plain(Kind::Flush, 0, 0);
        let id = self.ios.insert(Io::new(port, request, purpose));
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
            self.queues[io.port as usize].end(class, io.used);
            let repairs = &mut self.queues[io.port as usize].repairs;
            io.leaves.each(|leaf| repairs[leaf] -= 1);
            self.issue(io.port, orders);
        }
    }

    /// Drops everything.
    pub fn power_cycle(&mut self) {
        self.ios = Slab::default();
        for queue in &mut self.queues {
            queue.waiting.iter_mut().for_each(VecDeque::clear);
            queue.sorted.iter_mut().for_each(BTreeSet::clear);
            queue.active = [0; CLASSES];
            queue.nia_credit = 0;
            queue.repairs.fill(0);
        }
    }

    /// Sends what the limits allow: the first class below its minimum, then the first class below its maximum.
    pub fn issue(&mut self, port: u32, orders: &mut Orders) {
        while let Some(class) = self.next_class(port) {
            let number = self.take_next(port, class);
            let Io { request, repair, used, leaves, .. } = *self.ios.get(number);
            self.queues[port as usize].begin(class, used);
            let repairs = &mut self.queues[port as usize].repairs;
            leaves.each(|leaf| repairs[leaf] += 1);
            orders.push_back(match repair {
                Some(repair) => Order::Repair { port, id: number, repair },
                None => Order::Send { port, id: number, request },
            });
        }
    }

    fn next_class(&self, port: u32) -> Option<Class> {
        let queue = &self.queues[port as usize];
        let leaves = queue.leaves.count;
        if queue.active.iter().sum::<u32>() >= MAX_ACTIVE * leaves {
            return None;
        }
        let waits = |class: &Class| match class {
            Class::SyncRead | Class::SyncWrite => !queue.waiting[*class as usize].is_empty(),
            Class::AsyncRead | Class::AsyncWrite => !queue.sorted[*class as usize].is_empty(),
            Class::Scrub | Class::Rebuild => self.next_of_scan(queue, *class).is_some(),
        };
        // A wide access may exceed the rest of the limit, so that a limit below its width is none.
        let below = |class: Class, limit: u32| queue.active[class as usize] < limit;
        let mut waiting = Class::ALL.into_iter().filter(waits);
        let lacking = waiting.clone().find(|&class| below(class, Self::min_active(queue, class)));
        lacking.or_else(|| waiting.find(|&class| below(class, self.max_active(queue, class))))
    }

    /// Returns the next I/O of a scan by address whose leaves have room, in the oldest slot of time that has one. The
    /// scan has merged neighbours already.
    fn next_of_scan(&self, queue: &Queue, class: Class) -> Option<(u64, u64, u32)> {
        let sorted = &queue.sorted[class as usize];
        let (slot, ..) = *sorted.first()?;
        let from = (slot, queue.last_bytes[class as usize], 0);
        let has_room = |next: &&(u64, u64, u32)| queue.has_room(&self.ios.get(next.2).leaves);
        let ahead = sorted.range(from..).take_while(|next| next.0 == slot);
        ahead.chain(sorted.range(..from)).chain(sorted.range((slot + 1, 0, 0)..)).find(has_room).copied()
    }

    /// Returns the accesses of leaves that a class has in flight at least (`zfs_vdev_*_min_active`).
    fn min_active(queue: &Queue, class: Class) -> u32 {
        match class {
            Class::SyncRead | Class::SyncWrite => SYNC_MAX * queue.leaves.count,
            Class::AsyncRead => ASYNC_READ_MIN * queue.leaves.count,
            Class::AsyncWrite => ASYNC_WRITE_MIN * queue.leaves.count,
            Class::Scrub | Class::Rebuild => queue.scan_limit(false),
        }
    }

    fn max_active(&self, queue: &Queue, class: Class) -> u32 {
        match class {
            Class::SyncRead | Class::SyncWrite => SYNC_MAX * queue.leaves.count,
            Class::AsyncRead => ASYNC_READ_MAX * queue.leaves.count,
            Class::AsyncWrite => self.async_write_max * queue.leaves.count,
            Class::Scrub | Class::Rebuild => queue.scan_limit(true),
        }
    }

    /// Returns the largest access of a leaf, in bytes (`zfs_vdev_aggregation_limit`).
    pub fn merged_max_bytes(&self, port: u32) -> u32 {
        match self.queues[port as usize].leaves.rotating {
            true => MERGED_MAX_BYTES,
            false => MERGED_MAX_BYTES_NON_ROTATING,
        }
    }

    /// Returns the leaves of a system below.
    pub fn leaves(&self, port: u32) -> &Leaves {
        &self.queues[port as usize].leaves
    }

    /// Takes the next I/O of a class: the oldest, or the next by address in the oldest slot of time, with its neighbours.
    fn take_next(&mut self, port: u32, class: Class) -> u32 {
        let of_scan = self.next_of_scan(&self.queues[port as usize], class).filter(|_| !class.is_interactive());
        let limit = self.merged_max_bytes(port).saturating_mul(self.leaves(port).data_disks());
        let (queues, ios) = (&mut self.queues, &mut self.ios);
        let queue = &mut queues[port as usize];
        if !class.is_sorted() {
            return queue.waiting[class as usize].pop_front().expect("the class waits");
        }
        if let Some(next) = of_scan {
            queue.sorted[class as usize].remove(&next);
            queue.last_bytes[class as usize] = next.1;
            return next.2;
        }
        let sorted = &mut queue.sorted[class as usize];
        let &first = sorted.first().expect("the class waits");
        let from = (first.0, queue.last_bytes[class as usize], 0);
        let next = sorted.range(from..).next().filter(|next| next.0 == first.0).copied().unwrap_or(first);
        sorted.remove(&next);
        let (slot, number) = (next.0, next.2);
        let Io { request, .. } = *ios.get(number);
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
