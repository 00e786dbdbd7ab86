//! The sync of a transaction group (spa_sync): data, metadata in passes, a flush, uberblocks, a flush.

use headstack_workload::Kind;

use super::groups::{Change, Group, Round, Step, Syncing};
use super::indirect::{POINTERS, indirect_bytes};
use super::queues::{Class, plain};
use super::{Purpose, Timer, Zfs};
use crate::stack::orders::Orders;

/// Copies of a dataset's metadata, and of the pool's own (`zfs_redundant_metadata` all: one more than the data, and two
/// more).
const DATASET_COPIES: u32 = 2;
const POOL_COPIES: u32 = 3;
/// Passes of the pool's own metadata after the dataset's: the second rewrites what the first one allocated
/// (`zfs_sync_pass_rewrite` 2), and the third is empty but for frees that are deferred (`zfs_sync_pass_deferred_free` 2).
const POOL_PASSES: usize = 2;
/// Blocks of such a pass: object set, dnodes and a space map. Assumed.
const POOL_BLOCKS: u32 = 3;

/// Records that are issued at once: a grain of time in the model, since one event for each would be slow.
const RECORDS: usize = 16;

impl Syncing {
    /// Whether all of its records are issued.
    fn is_prepared(&self) -> bool {
        self.moves.len() == self.changes.len()
    }
}

impl Zfs {
    /// Schedules the sync of the open group after a change, or starts it.
    pub(super) fn group_changed(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.groups.is_due() && self.groups.quiesced.is_none() {
            self.groups.quiesce();
            if self.groups.syncing.is_none() {
                self.begin_sync(now_ns, orders);
            }
            return;
        }
        self.schedule_group(now_ns);
    }

    /// Schedules the timeout of the open group, which counts from the start of the last sync.
    fn schedule_group(&mut self, now_ns: u64) {
        let number = self.groups.open.number;
        let is_busy = self.groups.syncing.is_some() || self.groups.quiesced.is_some();
        if is_busy || self.groups.open.changes.is_empty() || self.groups.timed == number {
            return;
        }
        self.groups.timed = number;
        let at_ns = now_ns.max(self.groups.started_ns + self.zfs.parameters.txg_timeout_ns);
        self.set_timer(at_ns, Timer::Group(number));
    }

    pub(super) fn group_timeout(&mut self, now_ns: u64, number: u64, orders: &mut Orders) {
        let is_busy = self.groups.syncing.is_some() || self.groups.quiesced.is_some();
        if number == self.groups.open.number && !is_busy {
            self.groups.quiesce();
            self.begin_sync(now_ns, orders);
        }
    }

    /// Begins to write the data of the quiesced group, in order of addresses.
    fn begin_sync(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(group) = self.groups.quiesced.take() else { return };
        self.groups.started_ns = now_ns;
        let mut changes: Vec<(u64, Change)> = group.changes.iter().map(|(&record, &change)| (record, change)).collect();
        changes.sort_unstable_by_key(|(record, _)| *record);
        let rounds = self.rounds(&changes);
        let moves = Vec::with_capacity(changes.len());
        self.groups.syncing = Some(Syncing { group, step: Step::Data, outstanding: 0, changes, moves, rounds });
        self.prepare_records(now_ns, orders);
    }

    /// Lets the thread that syncs the file prepare its next records.
    fn prepare_records(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(syncing) = &self.groups.syncing else { return };
        let count = (syncing.changes.len() - syncing.moves.len()).min(RECORDS) as u64;
        match count * self.zfs.sync_record_ns {
            0 => self.issue_records(now_ns, orders),
            takes_ns => self.set_timer(now_ns + takes_ns, Timer::Records),
        }
    }

    /// Issues the records that the thread has prepared.
    pub(super) fn issue_records(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(mut syncing) = self.groups.syncing.take() else { return };
        let from = syncing.moves.len();
        let count = if self.zfs.sync_record_ns == 0 { syncing.changes.len() } else { RECORDS };
        let mut written = 0;
        for &(record, change) in syncing.changes.iter().skip(from).take(count) {
            let slot = match change {
                Change::Free => None,
                Change::Data { slot: Some(slot), .. } => {
                    self.groups.dirty_bytes -= self.record_bytes;
                    Some(slot)
                }
                Change::Data { slot: None, .. } => {
                    // A pool without room, which the check of descriptions excludes, writes in place.
                    let slot = self.space.allocate().or_else(|| self.space.place(record)).unwrap_or(record);
                    let request = plain(Kind::Write, self.space.address(slot), self.stored_bytes);
                    self.queues.add(now_ns, self.data_port, Class::AsyncWrite, request, Purpose::Data(record));
                    written += 1;
                    Some(slot)
                }
            };
            syncing.moves.push((record, slot));
        }
        syncing.outstanding += written;
        let (is_prepared, is_written) = (syncing.is_prepared(), syncing.outstanding == 0);
        self.counters.data_bytes += u64::from(written) * u64::from(self.stored_bytes);
        self.groups.syncing = Some(syncing);
        self.queues.issue(self.data_port, orders);
        self.dirty_changed(now_ns, orders);
        if !is_prepared {
            self.prepare_records(now_ns, orders);
        } else if is_written {
            self.next_step(now_ns, orders);
        }
    }

    /// Returns the metadata of a group: the indirect blocks above its records, level by level, then the dnodes and
    /// object set of the dataset, then the passes of the pool's own metadata.
    fn rounds(&self, changes: &[(u64, Change)]) -> Vec<Round> {
        let sector = self.zfs.sector_bytes;
        let of_pool = [Round { blocks: POOL_BLOCKS, copies: POOL_COPIES, bytes: sector }; POOL_PASSES];
        if changes.is_empty() {
            // A group without changes syncs only for a scan, whose progress it stores.
            return of_pool.to_vec();
        }
        let (mut rounds, mut below, mut covered) = (Vec::new(), self.space.records(), POINTERS);
        loop {
            let mut blocks = 0;
            let mut last = u64::MAX;
            for (record, _) in changes {
                let block = record / covered;
                blocks += u32::from(block != last);
                last = block;
            }
            let bytes = indirect_bytes(below, self.zfs.sector_bytes);
            rounds.push(Round { blocks, copies: DATASET_COPIES, bytes });
            below = below.div_ceil(POINTERS);
            if below <= 1 {
                break;
            }
            covered *= POINTERS;
        }
        rounds.push(Round { blocks: 2, copies: DATASET_COPIES, bytes: sector });
        rounds.extend(of_pool);
        rounds
    }

    /// Processes a record whose data are on the pool: it is clean, and in the ARC.
    pub(super) fn data_written(&mut self, now_ns: u64, record: u64, orders: &mut Orders) {
        self.groups.dirty_bytes -= self.record_bytes;
        if self.caches_data {
            self.arc.admit(now_ns, record, self.stored_bytes, false);
            self.schedule_feed(now_ns);
        }
        self.dirty_changed(now_ns, orders);
        self.sync_part_done(now_ns, orders);
    }

    pub(super) fn sync_part_done(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(syncing) = &mut self.groups.syncing else { return };
        syncing.outstanding -= 1;
        if syncing.outstanding == 0 && syncing.is_prepared() {
            self.next_step(now_ns, orders);
        }
    }

    pub(super) fn next_step(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(syncing) = &mut self.groups.syncing else { return };
        // A scan gets its time in the first pass, before the pool's own metadata (spa_sync_iterate_to_convergence).
        let of_dataset = syncing.rounds.len() - POOL_PASSES;
        syncing.step = match syncing.step {
            Step::Data if of_dataset > 0 => Step::Metadata(0),
            Step::Data => Step::Scan,
            Step::Metadata(round) if round + 1 == of_dataset => Step::Scan,
            Step::Scan => Step::Metadata(of_dataset),
            Step::Metadata(round) if round + 1 < syncing.rounds.len() => Step::Metadata(round + 1),
            Step::Metadata(_) => Step::Flush,
            Step::Flush => Step::Uberblock,
            Step::Uberblock => Step::LastFlush,
            Step::LastFlush => return self.end_sync(now_ns, orders),
        };
        match syncing.step {
            Step::Data => {}
            Step::Scan => {
                if !self.begin_turn(now_ns, orders) {
                    self.next_step(now_ns, orders);
                }
            }
            Step::Metadata(round) => {
                let round = syncing.rounds[round];
                self.write_metadata(now_ns, round, orders);
            }
            Step::Uberblock => self.write_uberblocks(now_ns, orders),
            Step::Flush | Step::LastFlush => self.flush_pool(orders),
        }
    }

    fn write_metadata(&mut self, now_ns: u64, round: Round, orders: &mut Orders) {
        let mut count = 0;
        for block in 0..round.blocks as usize {
            for copy in 0..round.copies {
                let at_bytes = self.metadata_rings.metadata(copy, block, round.bytes);
                let request = plain(Kind::Write, at_bytes, round.bytes);
                self.queues.add(now_ns, self.metadata_port, Class::AsyncWrite, request, Purpose::Sync);
                count += 1;
            }
        }
        self.expect(count);
        self.counters.metadata_bytes += u64::from(count) * u64::from(round.bytes);
        self.queues.issue(self.metadata_port, orders);
    }

    fn write_uberblocks(&mut self, now_ns: u64, orders: &mut Orders) {
        let (labels, bytes) = (self.labels.0.clone(), self.labels.1);
        self.expect(labels.len() as u32);
        for at_bytes in labels {
            self.queues.add(now_ns, 0, Class::SyncWrite, plain(Kind::Write, at_bytes, bytes), Purpose::Sync);
        }
        self.queues.issue(0, orders);
    }

    /// Flushes every system that the group wrote to.
    fn flush_pool(&mut self, orders: &mut Orders) {
        let mut ports = vec![0, self.data_port, self.metadata_port];
        ports.sort_unstable();
        ports.dedup();
        self.expect(ports.len() as u32);
        self.counters.group_flushes += 1;
        ports.into_iter().for_each(|port| self.queues.flush(port, Purpose::Sync, orders));
    }

    fn expect(&mut self, count: u32) {
        if let Some(syncing) = &mut self.groups.syncing {
            syncing.outstanding += count;
        }
    }

    /// Makes the group stable, and starts or schedules the next one.
    fn end_sync(&mut self, now_ns: u64, orders: &mut Orders) {
        let Some(Syncing { group, moves, .. }) = self.groups.syncing.take() else { return };
        let Group { number, changes, logged_bytes, unused_slots, last_write, .. } = group;
        self.counters.groups += 1;
        for record in changes.into_keys() {
            self.unstable.settle(record, 0, self.record_bytes as u32, last_write);
        }
        self.scan_sees(&moves);
        self.space.commit(moves.into_iter());
        unused_slots.into_iter().for_each(|slot| self.space.release(slot));
        self.groups.synced = number;
        self.groups.logged_bytes -= logged_bytes;
        self.log.forget(number);
        self.dirty_changed(now_ns, orders);
        if self.groups.quiesced.is_some() {
            self.begin_sync(now_ns, orders);
        } else if self.scan_needs_sync() {
            self.sync_for_scan(now_ns, orders);
        } else {
            self.schedule_group(now_ns);
        }
    }

    /// Starts a sync for a scan, unless one is under way (txg_sync_thread).
    pub(super) fn sync_for_scan(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.groups.syncing.is_none() {
            if self.groups.quiesced.is_none() {
                self.groups.quiesce();
            }
            self.begin_sync(now_ns, orders);
        }
    }
}
