//! Verifying and restoring blocks for the layer above ([`Repair`]): ZFS knows which blocks exist, and in which order to
//! take them. The array reads the copies or columns of each block, and writes the parts that a member being filled
//! lacks. Until the layer reports the end, the member takes writes, and reads of older data go to the others, as ZFS
//! does by its list of missing transaction groups (vdev.c, dirty time logs).

use headstack_workload::{Kind, Request};

use super::health::{GroupState, Rebuilding, SlotState};
use super::levels::{Extent, Layout, Placing};
use super::state::Array;
use super::under_way::{Command, HostRequest, Operation, Origin, Owner, RelayEnd, request};
use crate::description::array::Filler;
use crate::repair::{Filling, Repair, RepairKind};

/// Gap between two reads of a device that are made one (`zfs_vdev_read_gap_limit`, vdev_queue.c). Writes are made one
/// only without a gap.
const READ_GAP_BYTES: u64 = 32 << 10;

/// Reads and writes that a repair needs in a group.
#[derive(Debug, Default)]
struct Work {
    reads: Vec<Extent>,
    writes: Vec<Extent>,
}

impl Array {
    /// Takes a repair at `now_ns`; it completes like a request.
    pub(crate) fn repair(&mut self, now_ns: u64, id: u32, repair: &Repair) {
        if let Some(adapter) = &mut self.adapter {
            adapter.expect();
        }
        let Repair { offset_bytes, length_bytes, .. } = *repair;
        let request =
            Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        let host = HostRequest { repair: Some(*repair), ..HostRequest::new(id, &request, now_ns) };
        self.take_host_request(now_ns, host);
    }

    /// Starts the reads of a repair, one LUN after the other.
    pub(super) fn begin_repair(&mut self, now_ns: u64, number: u32, repair: &Repair) {
        // Start at one, so that the request ends only after all commands have been issued.
        self.requests.get_mut(number).pending = 1;
        let (mut at, end) = (repair.offset_bytes, repair.offset_bytes + u64::from(repair.length_bytes));
        while at < end {
            let lun = self.lun_bases.partition_point(|&base| base <= at) - 1;
            let to = self.lun_bases[lun + 1].min(end);
            let group = self.description.luns[lun].group;
            match (self.groups[group as usize].rebuild.filled_by, repair.kind) {
                (Filler::Layer, _) => {
                    let start = self.description.luns[lun].start_bytes + (at - self.lun_bases[lun]);
                    self.repair_in_group(now_ns, number, (group, start, to - at), repair);
                }
                (Filler::Array, RepairKind::Verify) => {
                    self.operate(now_ns, Origin::Request(number), false, at, to - at);
                }
                (Filler::Array, RepairKind::Restore) => {}
            }
            at = to;
        }
        self.part_done(now_ns, number);
    }

    fn repair_in_group(&mut self, now_ns: u64, number: u32, place: (u32, u64, u64), repair: &Repair) {
        let (group, start, length) = place;
        let state = &self.groups[group as usize];
        let (mut work, mut at) = (Work::default(), start);
        while at < start + length {
            let block_bytes = u64::from(repair.block_bytes).min(start + length - at);
            state.add_repair(at, block_bytes, repair.kind, &mut work);
            at += u64::from(repair.stride_bytes);
        }
        if work.reads.is_empty() {
            return;
        }
        self.requests.get_mut(number).pending += 1;
        let operation =
            self.operations.insert(Operation { origin: Origin::Request(number), group, pending: 1, chunks: None });
        let bytes = work.writes.iter().map(|extent| extent.length_bytes).sum();
        let then = RelayEnd::Restore { operation, bytes };
        self.counters.rebuild_commands += (work.reads.len() + work.writes.len()) as u64;
        self.relay_then(now_ns, now_ns, (operation, group), &work.reads, work.writes, then);
        self.operation_part_done(now_ns, operation);
    }

    /// Counts the bytes that a repair wrote.
    pub(super) fn restored(&mut self, group: u32, bytes: u64) {
        self.counters.rebuilt_bytes += bytes;
        if let Some(rebuilding) = &mut self.groups[group as usize].rebuilding {
            rebuilding.restored_bytes += bytes;
            self.standing += u64::from(bytes > 0);
        }
    }

    /// Handles a read of a repair that a member could not serve. All other columns or copies are read as well: if they
    /// suffice, the bytes are written again; else the member being filled lacks them.
    pub(super) fn repair_read_failed(&mut self, now_ns: u64, command: &Command, number: u32, (from, to): (u64, u64)) {
        let group = self.relays.get(number).group;
        let state = &self.groups[group as usize];
        let bad = Extent { slot: state.slot_at(command.member, from), at_bytes: from, length_bytes: to - from };
        if state.recovery(&bad).is_some() {
            return self.issue(now_ns, command.member, Owner::Background, request(Kind::Write, &bad));
        }
        if state.rebuilding.is_some() {
            self.add_damage(group, &bad);
        }
    }

    /// Returns the members that wait for the layer above, if that has changed since the last call.
    pub(crate) fn take_fillings(&mut self) -> Option<Vec<Filling>> {
        if !std::mem::take(&mut self.fillings_changed) {
            return None;
        }
        let filling = |(group, state): (u32, &GroupState)| {
            let slot = state.rebuilding.as_ref()?.slot;
            let is_distributed = state.slots[slot as usize].spare.is_some();
            (state.rebuild.filled_by == Filler::Layer).then_some(Filling { group, slot, is_distributed })
        };
        Some((0..).zip(&self.groups).filter_map(filling).collect())
    }

    /// Takes the report of the layer above that it has filled the member of a group.
    pub(crate) fn end_filling(&mut self, now_ns: u64, group: u32) {
        let state = &mut self.groups[group as usize];
        let Some(Rebuilding { slot, begun_ns, .. }) = state.rebuilding.take() else { return };
        state.slots[slot as usize].state = SlotState::Whole;
        state.not_whole -= 1;
        debug_assert!(state.is_counted(), "`not_whole` matches the slots");
        Self::log_rebuilt(now_ns, state.slots[slot as usize].member, state.slot_bytes, state.slot_bytes);
        self.standing += 1;
        self.fillings_changed = true;
        self.rebuilds_ns.push(now_ns - begun_ns);
        self.take_spare(now_ns, group);
    }
}

impl GroupState {
    /// Adds what a repair of a block reads and writes.
    fn add_repair(&self, at_bytes: u64, length_bytes: u64, kind: RepairKind, work: &mut Work) {
        match &self.layout {
            Layout::Parity(parity) => parity.parts(at_bytes, length_bytes, |part| {
                // The write of a whole block takes all its columns.
                let plan = parity.plan(&part, &|_| true, &|_| true);
                let columns: Vec<Extent> = plan.data.iter().chain(&plan.parity).copied().collect();
                self.add_columns(&columns, plan.data.len(), kind, work);
            }),
            Layout::Copies(_) => {
                let mut places = Vec::new();
                self.layout.places(at_bytes, length_bytes, &mut places);
                // Any copy is enough.
                places.chunks(self.layout.copies()).for_each(|copies| self.add_columns(copies, 1, kind, work));
            }
        }
    }

    /// Adds what a repair reads and writes of the columns of a block, of which `needed` suffice.
    fn add_columns(&self, columns: &[Extent], needed: usize, kind: RepairKind, work: &mut Work) {
        let is_readable = self.readable();
        let is_missing = |column: &&Extent| !is_readable(column) && self.filled_member(column).is_some();
        let readable = columns.iter().filter(|column| is_readable(column));
        match kind {
            RepairKind::Verify => readable.for_each(|column| self.join_reads(&mut work.reads, column)),
            RepairKind::Restore => {
                if !columns.iter().any(|column| is_missing(&column)) || readable.clone().count() < needed {
                    return;
                }
                // A mirror reads one copy (vdev_mirror.c), RAIDZ and dRAID all columns (vdev_raidz.c).
                let count = if needed == 1 && self.layout.copies() > 1 { 1 } else { columns.len() };
                readable.take(count).for_each(|column| self.join_reads(&mut work.reads, column));
                let missing = columns.iter().filter(is_missing);
                missing.for_each(|column| self.join_writes(&mut work.writes, column));
            }
        }
    }

    fn join_reads(&self, extents: &mut Vec<Extent>, extent: &Extent) {
        self.join_across(extents, extent, READ_GAP_BYTES);
    }

    fn join_writes(&self, extents: &mut Vec<Extent>, extent: &Extent) {
        self.join_across(extents, extent, 0);
    }

    /// Adds an extent, joined to the last one of its slot if the gap is small. Extents end where distributed spare room
    /// changes its device.
    fn join_across(&self, extents: &mut Vec<Extent>, extent: &Extent, gap_bytes: u64) {
        let row_end = |at_bytes: u64| self.layout.distributed().map_or(0, |spares| spares.row_end(at_bytes));
        let last = extents.iter_mut().rev().find(|earlier| earlier.slot == extent.slot);
        match last {
            Some(last)
                if (last.end_bytes()..=last.end_bytes() + gap_bytes).contains(&extent.at_bytes)
                    && row_end(last.at_bytes) == row_end(extent.at_bytes) =>
            {
                last.length_bytes = extent.end_bytes() - last.at_bytes;
            }
            Some(_) | None => extents.push(*extent),
        }
    }
}
