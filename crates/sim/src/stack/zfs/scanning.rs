//! Scrub, resilver and sequential rebuild (dsl_scan.c, vdev_rebuild.c).
//!
//! A *scrub* verifies every block, a *resilver* restores those that a replaced member lacks. Both walk the metadata and
//! queue each block by its place on its top-level device, until the queue takes a part of the memory; then they issue
//! the largest extents in order of addresses until it is 5 % smaller, and walk on. They run inside the syncs of
//! transaction groups, for a while in each. A *sequential rebuild* restores what is allocated in order of addresses,
//! without the metadata and so without checksums, and a scrub follows; distributed spare room of dRAID is always filled
//! so.
//!
//! The metadata themselves, 0.1 % of the data, are read but not restored. A power loss ends a scrub, and starts a
//! resilver from the beginning.

use headstack_workload::Kind;
use rustc_hash::FxHashSet;

use super::extents::Extents;
use super::indirect::{POINTERS, indirect_bytes};
use super::queues::{Class, MERGED_MAX_BYTES, plain};
use super::scan::{QUEUED_BYTES, Scan, ScanKind, Turn, VdevScan};
use super::{Purpose, Timer, Zfs};
use crate::repair::{Filling, Repair, RepairKind};
use crate::stack::orders::{Order, Orders};

/// Part of the memory limit by which the queue shrinks before the walk resumes (`zfs_scan_mem_lim_soft_fact` 20).
const SOFT_PART: u64 = 20;
/// Largest part (`zfs_scan_mem_lim_soft_max`, 128 MiB).
const SOFT_MAX_BYTES: u64 = 128 << 20;
/// Gap between two blocks of an extent, at most (`zfs_scan_max_ext_gap`, 2 MiB).
const GAP_BYTES: u64 = 2 << 20;
/// Dirty data in percent of the maximum from which a scan yields (`zfs_vdev_async_write_active_min_dirty_percent`).
const YIELD_PERCENT: u64 = 30;

impl Zfs {
    /// Starts a scan, in place of one that runs.
    fn begin_scan(&mut self, now_ns: u64, kind: ScanKind, fills: Vec<(u32, Filling)>, orders: &mut Orders) {
        self.scans.begun += 1;
        let number = self.scans.begun;
        let gap = GAP_BYTES / self.space.slot_bytes();
        let vdevs = self.space.vdevs();
        let scan = self.scan.get_or_insert_with(|| Scan {
            kind,
            number,
            began_ns: now_ns,
            fills: Vec::new(),
            walked: 0,
            walks: 0,
            vdevs: vec![VdevScan { extents: Extents::new(gap), in_flight_bytes: 0 }; vdevs],
            is_clearing: false,
            outstanding: 0,
            written: FxHashSet::default(),
        });
        scan.restart(kind, number, now_ns, fills);
        let scanned = (0..vdevs).filter(|&vdev| self.is_scanned(vdev)).count() as u64;
        self.scans.total_bytes += self.space.allocated() * scanned / vdevs as u64 * u64::from(self.stored_bytes);
        match kind {
            ScanKind::Rebuild => self.continue_scan(now_ns, orders),
            ScanKind::Scrub | ScanKind::Resilver if self.turn.is_some() => self.continue_scan(now_ns, orders),
            ScanKind::Scrub | ScanKind::Resilver => self.sync_for_scan(now_ns, orders),
        }
    }

    /// Whether a scan waits for its turn in the sync of a group: groups then follow each other without a pause.
    pub(super) fn scan_needs_sync(&self) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.kind != ScanKind::Rebuild)
    }

    /// Gives a scan its time in the sync of a group; false if there is none.
    pub(super) fn begin_turn(&mut self, now_ns: u64, orders: &mut Orders) -> bool {
        let Some(kind) = self.scan.as_ref().map(|scan| scan.kind).filter(|&kind| kind != ScanKind::Rebuild) else {
            return false;
        };
        self.turn = Some(Turn { began_ns: now_ns, is_over: false });
        for time_ns in [self.turn_min_ns(kind), self.zfs.parameters.txg_timeout_ns] {
            self.set_timer(now_ns + time_ns, Timer::Turn(now_ns));
        }
        self.continue_scan(now_ns, orders);
        true
    }

    pub(super) fn turn_timeout(&mut self, now_ns: u64, began_ns: u64, orders: &mut Orders) {
        if self.turn.is_some_and(|turn| turn.began_ns == began_ns) {
            self.continue_scan(now_ns, orders);
        }
    }

    fn turn_min_ns(&self, kind: ScanKind) -> u64 {
        match kind {
            ScanKind::Scrub => self.zfs.parameters.scrub_min_time_ns,
            ScanKind::Resilver | ScanKind::Rebuild => self.zfs.parameters.resilver_min_time_ns,
        }
    }

    /// Whether the scan may issue now (`dsl_scan_check_suspend`): for its minimum time in each sync, then until enough
    /// data are dirty, or the sync has run for the timeout of groups.
    fn may_scan(&mut self, now_ns: u64) -> bool {
        let Some(kind) = self.scan.as_ref().map(|scan| scan.kind) else { return false };
        let min_ns = self.turn_min_ns(kind);
        let is_dirty = self.groups.dirty_bytes * 100 >= self.zfs.dirty_data_max_bytes * YIELD_PERCENT;
        match (&mut self.turn, kind) {
            (_, ScanKind::Rebuild) => true,
            (None, ScanKind::Scrub | ScanKind::Resilver) => false,
            (Some(turn), ScanKind::Scrub | ScanKind::Resilver) => {
                let elapsed_ns = now_ns - turn.began_ns;
                turn.is_over |= elapsed_ns >= self.zfs.parameters.txg_timeout_ns || (elapsed_ns >= min_ns && is_dirty);
                !turn.is_over
            }
        }
    }

    /// Issues what the limits allow; ends the turn, or the scan.
    fn continue_scan(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.may_scan(now_ns) {
            while self.scan_more(now_ns) {}
            self.queues.issue(self.data_port, orders);
            self.queues.issue(self.metadata_port, orders);
        }
        let Some(scan) = &self.scan else { return };
        if scan.kind == ScanKind::Rebuild && self.turn.take().is_some() {
            // A rebuild took the place of a scan in its turn.
            return self.next_step(now_ns, orders);
        }
        if scan.outstanding > 0 {
            return;
        }
        let is_done = self.is_walked(scan) && scan.queued_blocks() == 0;
        let is_of_turn = scan.kind != ScanKind::Rebuild;
        debug_assert!(
            is_done || !is_of_turn || self.turn.is_none_or(|turn| turn.is_over),
            "a scan with time left has I/O in flight"
        );
        let ends_turn = self.turn.is_some();
        if is_done {
            self.end_scan(now_ns, orders);
        }
        if ends_turn {
            self.turn = None;
            self.next_step(now_ns, orders);
        }
    }

    fn end_scan(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(scan) = self.scan.take() else { return };
        // A scan without members to fill lost them before its end.
        if scan.kind == ScanKind::Scrub || !scan.fills.is_empty() {
            self.scans.done += 1;
            self.scans.took_ns += now_ns - scan.began_ns;
        }
        for &(port, filling) in &scan.fills {
            orders.push_back(Order::EndFilling { port, group: filling.group });
        }
        if scan.kind == ScanKind::Rebuild && !scan.fills.is_empty() {
            // `zfs_rebuild_scrub_enabled`
            self.turn = None;
            self.begin_scan(now_ns, ScanKind::Scrub, Vec::new(), orders);
        }
    }

    /// Whether a scan has walked everything.
    fn is_walked(&self, scan: &Scan) -> bool {
        let end = match scan.kind {
            ScanKind::Scrub | ScanKind::Resilver => self.space.records(),
            ScanKind::Rebuild => u64::MAX,
        };
        scan.walked >= end && scan.walks == 0
    }

    /// Walks or issues a little; false if a limit is reached or nothing is left.
    fn scan_more(&mut self, now_ns: u64) -> bool {
        let Some(scan) = &self.scan else { return false };
        let hard = self.zfs.scan_memory_bytes;
        let soft = hard - (hard / SOFT_PART).min(SOFT_MAX_BYTES);
        let limit = if scan.is_clearing { soft } else { hard };
        let is_clearing = self.is_walked(scan) || scan.memory_bytes() >= limit;
        let kind = scan.kind;
        if let Some(scan) = &mut self.scan {
            scan.is_clearing = is_clearing;
        }
        match (kind, is_clearing) {
            (ScanKind::Rebuild, _) => self.walk_allocated() | self.issue_blocks(now_ns),
            (ScanKind::Scrub | ScanKind::Resilver, true) => self.issue_blocks(now_ns),
            (ScanKind::Scrub | ScanKind::Resilver, false) => self.walk_metadata(now_ns),
        }
    }

    /// Returns the bytes that a scan has in flight on a top-level device, at most.
    fn in_flight_max_bytes(&self, kind: ScanKind) -> u64 {
        let (parameters, leaves) = (&self.zfs.parameters, self.queues.leaves(self.data_port));
        match kind {
            ScanKind::Scrub | ScanKind::Resilver => {
                parameters.scan_vdev_limit_bytes * u64::from(leaves.scanned_disks())
            }
            ScanKind::Rebuild => {
                let of_memory = self.zfs.arc_max_bytes / 2 / self.space.vdevs() as u64;
                (parameters.rebuild_vdev_limit_bytes * u64::from(leaves.width())).min(of_memory)
            }
        }
    }

    /// Reads the next indirect block; false if too much is in flight.
    fn walk_metadata(&mut self, now_ns: u64) -> bool {
        let bytes = indirect_bytes(self.space.records(), self.zfs.sector_bytes);
        let vdevs = self.space.vdevs() as u64;
        let Some(scan) = &self.scan else { return false };
        let in_flight_max = self.in_flight_max_bytes(scan.kind) * vdevs;
        let is_full = scan.walks > 0 && (scan.walks + 1) * u64::from(bytes) > in_flight_max;
        if scan.walked >= self.space.records() || is_full {
            return false;
        }
        let Some(scan) = &mut self.scan else { return false };
        let block = scan.walked / POINTERS;
        scan.walked += POINTERS;
        scan.walks += 1;
        scan.outstanding += 1;
        let purpose = Purpose::Walk { block, number: scan.number };
        let request = plain(Kind::Read, self.metadata_rings.stored_metadata(block, bytes), bytes);
        self.queues.add(now_ns, self.metadata_port, Class::Scrub, request, purpose);
        true
    }

    /// Processes an indirect block that was read: queues the blocks below it.
    pub(super) fn walk_done(&mut self, now_ns: u64, block: u64, number: u32, orders: &mut Orders) {
        let Some(scan) = &mut self.scan else { return };
        scan.outstanding -= 1;
        if scan.number == number {
            scan.walks -= 1;
            let records = block * POINTERS..((block + 1) * POINTERS).min(self.space.records());
            self.scans.walked_blocks += records.end - records.start;
            for run in self.space.runs_of(records, |record| scan.written.contains(&record)) {
                self.queue_run(run);
            }
        }
        self.continue_scan(now_ns, orders);
    }

    /// Queues the next allocated places of a rebuild, a little more than fits into the limits; false if none are left or
    /// enough wait.
    fn walk_allocated(&mut self) -> bool {
        let enough = 2 * self.unit_blocks(ScanKind::Rebuild) * self.space.vdevs() as u64;
        let Some(scan) = &mut self.scan else { return false };
        if scan.walked == u64::MAX || scan.queued_blocks() >= enough {
            return false;
        }
        let Some(run) = self.space.allocated_from(scan.walked) else {
            scan.walked = u64::MAX;
            return false;
        };
        let run = run.start..run.end.min(run.start + enough);
        scan.walked = run.end;
        self.queue_run(run);
        true
    }

    fn queue_run(&mut self, run: std::ops::Range<u64>) {
        let groups = &self.vdev_groups;
        let Some(scan) = &mut self.scan else { return };
        let (kind, fills, vdevs) = (scan.kind, &scan.fills, &mut scan.vdevs);
        let data_port = self.data_port;
        self.space.by_vdev(run, |vdev, first, count| {
            if kind == ScanKind::Scrub
                || fills.iter().any(|(port, filling)| (*port, filling.group) == (data_port, groups[vdev]))
            {
                vdevs[vdev].extents.add(first, count);
            }
        });
        self.scans.queued_max_bytes = self.scans.queued_max_bytes.max(scan.queued_blocks() * QUEUED_BYTES);
    }

    /// Whether the scan takes blocks of a top-level device: a resilver only those of devices that lack some.
    fn is_scanned(&self, vdev: usize) -> bool {
        self.scan.as_ref().is_some_and(|scan| {
            let place = (self.data_port, self.vdev_groups[vdev]);
            scan.kind == ScanKind::Scrub || scan.fills.iter().any(|(port, filling)| (*port, filling.group) == place)
        })
    }

    /// Blocks of the largest I/O: a merged access of each data disk, or a segment of a rebuild
    /// (`zfs_rebuild_max_segment`, 1 MiB for each data disk).
    fn unit_blocks(&self, kind: ScanKind) -> u64 {
        let of_disk = match kind {
            ScanKind::Scrub | ScanKind::Resilver => self.queues.merged_max_bytes(self.data_port),
            ScanKind::Rebuild => MERGED_MAX_BYTES,
        };
        let disks = u64::from(self.queues.leaves(self.data_port).data_disks());
        (u64::from(of_disk) * disks / self.space.slot_bytes()).max(1)
    }

    /// Issues blocks of each top-level device; false if none wait or all limits are reached.
    fn issue_blocks(&mut self, now_ns: u64) -> bool {
        let Some(kind) = self.scan.as_ref().map(|scan| scan.kind) else { return false };
        let (unit, limit) = (self.unit_blocks(kind), self.in_flight_max_bytes(kind));
        let in_order = self.scan.as_ref().is_some_and(|scan| self.is_walked(scan)) || kind == ScanKind::Rebuild;
        let (slot, stored) = (self.space.slot_bytes(), u64::from(self.stored_bytes));
        let mut has_issued = false;
        for vdev in 0..self.space.vdevs() {
            let Some(scan) = &mut self.scan else { return false };
            let VdevScan { extents, in_flight_bytes } = &mut scan.vdevs[vdev];
            if *in_flight_bytes > 0 && *in_flight_bytes + unit * stored > limit {
                continue;
            }
            let Some((first, blocks)) = extents.take(unit, in_order) else { continue };
            self.scans.issued_bytes += blocks * stored;
            has_issued = true;
            let (from, to) = (self.space.address_on(vdev, first), self.space.address_on(vdev, first + blocks - 1));
            let used = self.leaf_sets.used(vdev, from, to);
            let mut leaves = used;
            for (_, filling) in &scan.fills {
                // Writes to a member that is filled are of another class, and its part of a block is not read.
                leaves = leaves.without(&self.leaf_sets.of_slot(vdev, filling.slot));
            }
            if kind != ScanKind::Scrub && leaves == used {
                // No part of these blocks is on a member that is filled (`dsl_scan_need_resilver`).
                continue;
            }
            *in_flight_bytes += blocks * stored;
            scan.outstanding += 1;
            let repair = Repair {
                kind: if kind == ScanKind::Scrub { RepairKind::Verify } else { RepairKind::Restore },
                offset_bytes: from,
                length_bytes: ((blocks - 1) * slot + stored) as u32,
                stride_bytes: slot as u32,
                block_bytes: stored as u32,
            };
            let class = if kind == ScanKind::Rebuild { Class::Rebuild } else { Class::Scrub };
            let purpose = Purpose::Scan { vdev: vdev as u32, bytes: (blocks * stored) as u32 };
            self.queues.add_repair(now_ns, (self.data_port, class), repair, leaves, purpose);
        }
        has_issued
    }

    /// Processes blocks that were verified or restored.
    pub(super) fn scan_part_done(&mut self, now_ns: u64, vdev: u32, bytes: u32, failed: bool, orders: &mut Orders) {
        self.scans.failed += u64::from(failed);
        let Some(scan) = &mut self.scan else { return };
        scan.outstanding -= 1;
        scan.vdevs[vdev as usize].in_flight_bytes -= u64::from(bytes);
        self.continue_scan(now_ns, orders);
    }

    /// Takes out records that a group moves or frees: their new places are on all members.
    pub(super) fn scan_sees(&mut self, moves: &[(u64, Option<u64>)]) {
        let Some(scan) = &mut self.scan else { return };
        for &(record, _) in moves {
            if let Some(old) = self.space.place(record) {
                self.space.by_vdev(old..old + 1, |vdev, place, _| {
                    scan.vdevs[vdev].extents.remove(place);
                });
            }
            scan.written.insert(record);
        }
    }

    /// Takes the members of a system below that wait to be filled.
    pub(super) fn resilver(&mut self, now_ns: u64, port: u32, fillings: &[Filling], orders: &mut Orders) {
        let old = match &self.scan {
            Some(scan) if scan.kind != ScanKind::Scrub => scan.fills.clone(),
            Some(_) | None => Vec::new(),
        };
        let mut fills: Vec<(u32, Filling)> = old.iter().copied().filter(|fill| fill.0 != port).collect();
        fills.extend(fillings.iter().map(|&filling| (port, filling)));
        let is_sequential = self.zfs.sequential_resilver || fillings.iter().any(|filling| filling.is_distributed);
        if fills.iter().any(|fill| !old.contains(fill)) {
            let kind = if is_sequential { ScanKind::Rebuild } else { ScanKind::Resilver };
            return self.begin_scan(now_ns, kind, fills, orders);
        }
        if fills.len() == old.len() {
            return;
        }
        // A member that was being filled has failed, and no other takes its place yet.
        if let Some(scan) = &mut self.scan {
            if fills.is_empty() {
                self.scans.begun += 1;
                scan.restart(scan.kind, self.scans.begun, now_ns, Vec::new());
                scan.walked = u64::MAX;
            }
            scan.fills = fills;
        }
        self.continue_scan(now_ns, orders);
    }

    /// Starts a scrub.
    pub(super) fn begin_scrub(&mut self, now_ns: u64, orders: &mut Orders) -> Result<(), String> {
        if self.scan.is_some() {
            return Err("the pool is being scrubbed or resilvered; wait for the end".to_owned());
        }
        self.begin_scan(now_ns, ScanKind::Scrub, Vec::new(), orders);
        Ok(())
    }
}
