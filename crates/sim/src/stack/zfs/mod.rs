//! [`Zfs`]: OpenZFS over a pool, in virtual time: transaction groups, intent log, ARC, L2ARC, prefetch and device queues.
//!
//! A write is acknowledged when it is in memory. Its transaction group takes it to the pool, the intent log takes it to
//! stable storage when a flush or FUA demands that. See docs/design/stacks.md for what is left out: fragmentation,
//! processor contention, memory pressure.

mod arc;
mod commit;
mod extents;
mod fetch;
mod groups;
mod indirect;
mod l2arc;
mod leaf_sets;
mod leaves;
mod log;
mod outside;
mod queues;
mod requests;
mod scan;
mod scanning;
mod space;
mod sync;
mod unstable;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::{Kind, Request};
use rustc_hash::FxHashMap;

use super::cores::Cores;
use super::files::Files;
use super::orders::{Answer, Order, Orders};
use crate::description::stack::{LogBias, PrimaryCache, ZfsDescription};
use crate::description::system::SystemDescription;
use arc::ArcCache;
use fetch::Prefetch;
use groups::Groups;
use l2arc::L2arc;
use leaf_sets::LeafSets;
use leaves::Leaves;
use log::Log;
use queues::{Io, Queues};
use scan::{Scan, ScanCounters, Turn};
use space::{Rings, Space};
use unstable::Unstable;

/// Reason of an I/O.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Read of a record.
    Record(u64),
    /// Data of the group that syncs.
    Data(u64),
    /// Metadata, labels or flush of the group that syncs.
    Sync,
    /// Write of a log block, or of data that it refers to, from this byte of the dataset on.
    Log(u64, u64),
    /// Flush after a log block.
    LogFlush(u64),
    /// Write of a record to the cache device.
    Feed(u64),
    /// Read of an indirect block by the scan of this number.
    Walk { block: u64, number: u32 },
    /// Blocks that a scan verifies or restores on a top-level device.
    Scan { vdev: u32, bytes: u32 },
}

/// Event of the layer's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The software has taken a request.
    Begin(u32),
    /// A delayed write continues.
    Admit(u32),
    /// The software of a commit has reached the log.
    Commit(u32),
    /// The software of a commit ends.
    Finish(u32),
    /// The timeout of a transaction group.
    Group(u64),
    /// The next records of the group that syncs are prepared.
    Records,
    /// A log block waited long enough for more records.
    Block(u64),
    /// The cache device is due.
    Feed,
    /// The turn of a scan that began at this time may be over.
    Turn(u64),
}

/// A request from above.
#[derive(Clone, Copy, Debug)]
struct HostRequest {
    request: Request,
    /// When the system above submitted it.
    submitted_ns: u64,
    /// When its transaction began.
    began_ns: u64,
    /// Records that it waits for.
    records: u32,
    failed: Option<(u64, bool)>,
}

/// A record that is being read.
#[derive(Clone, Debug, Default)]
struct Reading {
    waiters: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    arc_hits: u64,
    arc_misses: u64,
    prefetched: u64,
    reads_for_writes: u64,
    l2arc_hits: u64,
    /// Records that writes changed, and those of them that were dirty in the same group or freed before they synced.
    changed_records: u64,
    overwritten_records: u64,
    commits: u64,
    log_blocks: u64,
    log_bytes: u64,
    indirect_records: u64,
    groups: u64,
    data_bytes: u64,
    metadata_bytes: u64,
    group_flushes: u64,
    throttle_ns: u64,
    failed_writes: u64,
}

/// OpenZFS in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Zfs {
    zfs: ZfsDescription,
    files: Files,
    record_bytes: u64,
    /// Bytes of a record on a device.
    stored_bytes: u32,
    /// Index of the system for data, log blocks and metadata.
    data_port: u32,
    log_port: u32,
    metadata_port: u32,
    /// Whether log blocks go to a separate log device.
    uses_slog: bool,
    caches_data: bool,
    space: Space,
    log_rings: Rings,
    metadata_rings: Rings,
    /// Addresses of the labels, and the length of an uberblock.
    labels: (Vec<u64>, u32),
    queues: Queues<Purpose>,
    arc: ArcCache,
    l2arc: Option<L2arc>,
    fetch: Prefetch,
    unstable: Unstable,
    groups: Groups,
    log: Log,
    /// RAID group of each top-level device that holds data.
    vdev_groups: Vec<u32>,
    leaf_sets: LeafSets,
    scan: Option<Scan>,
    turn: Option<Turn>,
    scans: ScanCounters,
    cores: Cores,
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    timers_set: u64,
    requests: Vec<HostRequest>,
    reading: FxHashMap<u64, Reading>,
    /// Number of the last write.
    writes: u64,
    /// First byte of the dataset that a sync could not write, until a commit reports it.
    failed_write: Option<u64>,
    counters: Counters,
    finished: Vec<Io<Purpose>>,
}

/// Top-level devices whose labels a sync writes (`SPA_SYNC_MIN_VDEVS`, spa.h).
const LABELED_VDEVS: usize = 3;

impl Zfs {
    /// Creates an idle layer. The dataset counts as written once; memory is empty.
    pub fn new(zfs: &ZfsDescription, files: Files, below: &[SystemDescription]) -> Zfs {
        let leaves: Vec<Leaves> = below.iter().map(Leaves::of).collect();
        let data_port = zfs.data_port();
        let metadata_port = zfs.special.unwrap_or(0);
        let slog = zfs.log.filter(|_| zfs.log_bias == LogBias::Latency);
        let special = zfs.special.filter(|_| zfs.parameters.special_is_slog);
        let log_port = slog.or(special).unwrap_or(0);
        let rings = |port: u32, logs_only: bool| {
            let has_records = leaves[port as usize].parities() > 0;
            Rings::new(zfs, &below[port as usize].pool_shape().vdev_bytes, has_records, logs_only)
        };
        let data_disks = leaves[data_port as usize].data_disks();
        let label_bytes = match leaves[0].parities() {
            0 => zfs.sector_bytes,
            // A block that reaches every column.
            _ => zfs.sector_bytes * leaves[0].data_disks(),
        };
        let arc_bytes = (zfs.arc_max_bytes as f64 * (1.0 - zfs.arc_metadata_share)) as u64;
        let l2arc = zfs
            .cache
            .map(|port| L2arc::new(port, below[port as usize].capacity_bytes(), zfs.arc_max_bytes, &zfs.parameters));
        let parameters = &zfs.parameters;
        Zfs {
            record_bytes: u64::from(zfs.record_bytes),
            stored_bytes: zfs.stored_bytes(),
            data_port,
            log_port,
            metadata_port,
            uses_slog: slog.is_some(),
            caches_data: zfs.primary_cache == PrimaryCache::All,
            space: Space::new(zfs, &below[data_port as usize].pool_shape().vdev_bytes, data_disks),
            log_rings: rings(log_port, slog.is_some()),
            metadata_rings: rings(metadata_port, false),
            labels: (rings(0, false).labels(LABELED_VDEVS, u64::from(label_bytes)), label_bytes),
            queues: Queues::new(leaves.into_iter()),
            arc: ArcCache::new(arc_bytes, l2arc.is_some()),
            l2arc,
            fetch: Prefetch::new(
                u64::from(zfs.record_bytes),
                parameters.prefetch_min_bytes,
                parameters.prefetch_max_bytes,
            ),
            unstable: Unstable::default(),
            groups: Groups::new(zfs, 0),
            log: Log::new(files.count()),
            vdev_groups: below[data_port as usize].lun_groups(),
            leaf_sets: LeafSets::new(&below[data_port as usize]),
            scan: None,
            turn: None,
            scans: ScanCounters::default(),
            cores: Cores::new(zfs.cores),
            timers: BinaryHeap::new(),
            timers_set: 0,
            requests: Vec::new(),
            reading: FxHashMap::default(),
            writes: 0,
            failed_write: None,
            counters: Counters::default(),
            finished: Vec::new(),
            zfs: zfs.clone(),
            files,
        }
    }

    fn set_timer(&mut self, at_ns: u64, timer: Timer) {
        self.timers_set += 1;
        self.timers.push(Reverse((at_ns, self.timers_set, timer)));
    }

    fn fire(&mut self, now_ns: u64, timer: Timer, orders: &mut Orders) {
        match timer {
            Timer::Begin(id) => match self.requests[id as usize].request.kind {
                Kind::Read => self.begin_read(now_ns, id, orders),
                Kind::Write => self.begin_write(now_ns, id, orders),
                Kind::Trim => self.free(now_ns, id, orders),
                Kind::Flush => self.begin_commit(now_ns, id, orders),
            },
            Timer::Admit(id) => self.assign(now_ns, id, orders),
            Timer::Commit(id) => self.commit(now_ns, id, orders),
            Timer::Finish(id) => self.answer(id, orders),
            Timer::Group(number) => self.group_timeout(now_ns, number, orders),
            Timer::Records => self.issue_records(now_ns, orders),
            Timer::Block(number) => self.block_timeout(now_ns, number, orders),
            Timer::Feed => self.feed(now_ns, orders),
            Timer::Turn(began_ns) => self.turn_timeout(now_ns, began_ns, orders),
        }
    }

    /// Processes a finished I/O.
    fn io_done(&mut self, now_ns: u64, io: &Io<Purpose>, failed: Option<u64>, orders: &mut Orders) {
        match io.purpose {
            Purpose::Record(record) => self.record_read(now_ns, record, io.port, failed.is_some(), orders),
            Purpose::Data(record) => {
                if failed.is_some() {
                    self.fail_write(record * self.record_bytes);
                }
                self.data_written(now_ns, record, orders);
            }
            Purpose::Sync => {
                if failed.is_some() {
                    self.fail_write(0);
                }
                self.sync_part_done(now_ns, orders);
            }
            Purpose::Log(number, at_bytes) => self.log_part_done(now_ns, number, failed.map(|_| at_bytes), orders),
            Purpose::LogFlush(number) => self.log_part_done(now_ns, number, failed.map(|_| 0), orders),
            Purpose::Walk { block, number } => self.walk_done(now_ns, block, number, orders),
            Purpose::Scan { vdev, bytes } => self.scan_part_done(now_ns, vdev, bytes, failed.is_some(), orders),
            Purpose::Feed(record) => {
                let at_bytes = io.request.offset_bytes;
                if let Some(l2arc) = self.l2arc.as_mut().filter(|_| failed.is_none()) {
                    l2arc.written(record, at_bytes);
                }
            }
        }
    }

    /// Notes a write that failed below; the next commit reports it.
    fn fail_write(&mut self, at_bytes: u64) {
        self.counters.failed_writes += 1;
        self.failed_write = Some(self.failed_write.map_or(at_bytes, |first| first.min(at_bytes)));
    }

    /// Answers a request.
    fn answer(&mut self, id: u32, orders: &mut Orders) {
        let HostRequest { submitted_ns, failed, .. } = self.requests[id as usize];
        orders.push_back(Order::Answer(Answer { id, started_ns: submitted_ns, failed }));
    }

    /// Returns the records that a request touches.
    fn records_of(&self, request: &Request) -> std::ops::Range<u64> {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        request.offset_bytes / self.record_bytes..end.div_ceil(self.record_bytes)
    }

    /// Returns the part `[from, to)` of a record that a request touches.
    fn part_of(&self, request: &Request, record: u64) -> (u32, u32) {
        let start = record * self.record_bytes;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let from = request.offset_bytes.max(start) - start;
        (from as u32, (end.min(start + self.record_bytes) - start) as u32)
    }
}
