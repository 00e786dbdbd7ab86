//! [`Scan`]: the state of a scrub, resilver or sequential rebuild; `scanning.rs` runs it.

use rustc_hash::FxHashSet;

use super::extents::Extents;
use super::indirect::POINTERS;
use crate::repair::Filling;
use crate::snapshot::Snapshot;

/// Bytes of memory for a queued block: `scan_io_t` with one address (dsl_scan.c). Derived from its fields; range 120 to
/// 180 B.
pub(super) const QUEUED_BYTES: u64 = 150;

/// Kind of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanKind {
    /// Verifies every block.
    Scrub,
    /// Restores blocks that a member lacks.
    Resilver,
    /// Restores allocated places in order of addresses.
    Rebuild,
}

/// Blocks of a top-level device that wait, and what is in flight.
#[derive(Clone, Debug)]
pub(super) struct VdevScan {
    pub extents: Extents,
    pub in_flight_bytes: u64,
}

/// A scan in progress.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub kind: ScanKind,
    /// Number among all scans. I/O of an earlier one, which this one replaced, does not count.
    pub number: u32,
    pub began_ns: u64,
    /// System and place there of each member that it fills.
    pub fills: Vec<(u32, Filling)>,
    /// First record, or place of a rebuild, that is not walked.
    pub walked: u64,
    /// Reads of metadata in flight.
    pub walks: u64,
    pub vdevs: Vec<VdevScan>,
    /// Whether it issues blocks until the queue is small, instead of walking.
    pub is_clearing: bool,
    /// I/O in flight.
    pub outstanding: u32,
    /// Records that were written or freed since it began. They are on all members.
    pub written: FxHashSet<u64>,
}

/// Time of a scan inside the sync of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub began_ns: u64,
    pub is_over: bool,
}

/// Counts of all scans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanCounters {
    pub begun: u32,
    pub done: u64,
    /// Time of those that ended.
    pub took_ns: u64,
    pub walked_blocks: u64,
    pub issued_bytes: u64,
    /// Bytes of all blocks, as of the start of each.
    pub total_bytes: u64,
    pub queued_max_bytes: u64,
    pub failed: u64,
}

impl ScanCounters {
    /// Adds the counters, if there was a scan.
    pub fn snapshot(&self, into: &mut Snapshot) {
        if self.begun == 0 {
            return;
        }
        for (name, value) in [
            ("zfs_scans", self.done),
            ("zfs_scan_ns", self.took_ns),
            ("zfs_scan_walked_blocks", self.walked_blocks),
            ("zfs_scan_issued_bytes", self.issued_bytes),
            ("zfs_scan_total_bytes", self.total_bytes),
            ("zfs_scan_queue_max_bytes", self.queued_max_bytes),
            ("zfs_scan_failed", self.failed),
        ] {
            into.count(name, value);
        }
    }
}

impl Scan {
    /// Returns the number of blocks that wait.
    pub fn queued_blocks(&self) -> u64 {
        self.vdevs.iter().map(|vdev| vdev.extents.blocks()).sum()
    }

    /// Returns the memory of queued blocks, with those of metadata that are being read.
    pub fn memory_bytes(&self) -> u64 {
        (self.queued_blocks() + self.walks * POINTERS) * QUEUED_BYTES
    }

    /// Starts again from the beginning, for these members. I/O in flight ends by itself.
    pub fn restart(&mut self, kind: ScanKind, number: u32, now_ns: u64, fills: Vec<(u32, Filling)>) {
        self.vdevs.iter_mut().for_each(|vdev| vdev.extents.clear());
        (self.kind, self.number, self.began_ns, self.fills) = (kind, number, now_ns, fills);
        (self.walked, self.walks, self.is_clearing) = (0, 0, false);
        self.written.clear();
    }
}
