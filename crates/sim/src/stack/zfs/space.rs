//! [`Space`]: where records, log blocks and metadata are on the pool. ZFS writes each block to a new place; a cursor
//! takes free places in order of addresses (metaslab.c, reduced to one size of block).
//!
//! A record that was never overwritten is where a sequential fill would have put it, so that only overwritten records
//! have an entry in memory. Places of records that were overwritten become free two groups later
//! (`TXG_DEFER_SIZE`). Fragmentation is not modelled: every free place holds a record.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::description::stack::{Reserved, ZfsDescription};

/// Groups after which the places of overwritten records are free (`TXG_DEFER_SIZE`, metaslab.c).
const DEFERRED_GROUPS: usize = 2;
/// Place of a record that was freed.
const HOLE: u64 = u64::MAX;

/// A top-level device: a run of addresses of a system below.
#[derive(Clone, Copy, Debug)]
struct Vdev {
    start_bytes: u64,
    bytes: u64,
    reserved: Reserved,
}

/// Ring of addresses for blocks that live only for a while.
#[derive(Clone, Copy, Debug)]
struct Ring {
    start_bytes: u64,
    bytes: u64,
    at_bytes: u64,
}

impl Ring {
    fn take(&mut self, bytes: u64) -> u64 {
        if self.at_bytes + bytes > self.bytes {
            self.at_bytes = 0;
        }
        let at_bytes = self.start_bytes + self.at_bytes;
        self.at_bytes += bytes;
        at_bytes
    }
}

/// Places of blocks on the system that holds the data.
#[derive(Clone, Debug)]
pub(super) struct Space {
    vdevs: Vec<Vdev>,
    /// Bytes of the place of a record.
    slot_bytes: u64,
    /// Places on a top-level device before the next one is used.
    turn_slots: u64,
    /// Records of the dataset.
    records: u64,
    places: FxHashMap<u64, u64>,
    /// Free places: first and number. The run at the cursor is taken out.
    free: BTreeMap<u64, u64>,
    run: std::ops::Range<u64>,
    /// Places freed by each of the last groups.
    deferred: VecDeque<Vec<u64>>,
}

impl Space {
    /// Creates the space of a dataset on top-level devices of these sizes.
    pub fn new(zfs: &ZfsDescription, vdev_bytes: &[u64], data_disks: u32) -> Space {
        let slot_bytes = u64::from(zfs.record_bytes);
        let mut start_bytes = 0;
        let vdevs: Vec<Vdev> = vdev_bytes
            .iter()
            .map(|&bytes| {
                let vdev = Vdev { start_bytes, bytes, reserved: zfs.reserved_bytes(bytes) };
                start_bytes += bytes;
                vdev
            })
            .collect();
        let slots_of =
            |vdev: &Vdev| vdev.bytes.saturating_sub(vdev.reserved.log + 2 * vdev.reserved.metadata) / slot_bytes;
        let turn_slots = (zfs.parameters.aliquot_bytes * u64::from(data_disks) / slot_bytes).max(1);
        // Every top-level device takes its turn, so that the smallest limits the others.
        let least = vdevs.iter().map(slots_of).min().unwrap_or(0);
        let slots = match vdevs.len() as u64 {
            1 => least,
            count => least / turn_slots * turn_slots * count,
        };
        let records = zfs.capacity_bytes.div_ceil(slot_bytes);
        let mut free = BTreeMap::new();
        if records < slots {
            free.insert(records, slots - records);
        }
        let deferred = VecDeque::new();
        Space { vdevs, slot_bytes, turn_slots, records, places: FxHashMap::default(), free, run: 0..0, deferred }
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the address of a place.
    pub fn address(&self, slot: u64) -> u64 {
        let count = self.vdevs.len() as u64;
        let (turn, within) = (slot / self.turn_slots, slot % self.turn_slots);
        let vdev = &self.vdevs[(turn % count) as usize];
        let number = turn / count * self.turn_slots + within;
        vdev.start_bytes + vdev.reserved.log + vdev.reserved.metadata + number * self.slot_bytes
    }

    /// Returns the place of a record as of the last synced group; `None` if it was freed.
    pub fn place(&self, record: u64) -> Option<u64> {
        match self.places.get(&record) {
            Some(&HOLE) => None,
            Some(&slot) => Some(slot),
            None => Some(record),
        }
    }

    /// Takes the next free place. If none is free, which needs more dirty data than the check of descriptions allows,
    /// deferred places are used early.
    pub fn allocate(&mut self) -> Option<u64> {
        if self.run.is_empty() {
            if self.free.is_empty() {
                let early = self.deferred.pop_front()?;
                early.into_iter().for_each(|slot| self.release(slot));
            }
            let from = self.run.end;
            let (&start, &count) = self.free.range(from..).next().or_else(|| self.free.first_key_value())?;
            self.free.remove(&start);
            self.run = start..start + count;
        }
        self.run.next()
    }

    /// Makes a place free at once.
    pub fn release(&mut self, slot: u64) {
        let mut run = slot..slot + 1;
        if let Some((&start, &count)) = self.free.range(..slot).next_back()
            && start + count == slot
        {
            self.free.remove(&start);
            run.start = start;
        }
        if let Some(count) = self.free.remove(&run.end) {
            run.end += count;
        }
        self.free.insert(run.start, run.end - run.start);
    }

    /// Moves records to new places, or frees them (`None`), when their group has synced.
    pub fn commit(&mut self, moves: impl Iterator<Item = (u64, Option<u64>)>) {
        let mut freed = Vec::new();
        for (record, slot) in moves {
            match self.places.insert(record, slot.unwrap_or(HOLE)) {
                Some(HOLE) => {}
                Some(old) => freed.push(old),
                None => freed.push(record),
            }
        }
        self.deferred.push_back(freed);
        while self.deferred.len() > DEFERRED_GROUPS {
            let old = self.deferred.pop_front().unwrap_or_default();
            old.into_iter().for_each(|slot| self.release(slot));
        }
    }
}

/// Rings for log blocks and metadata, and the places of labels.
#[derive(Clone, Debug)]
pub(super) struct Rings {
    logs: Vec<Ring>,
    /// For each copy: the first at the start of the devices, the others at their end.
    metadata: [Vec<Ring>; 3],
    vdevs: Vec<Vdev>,
    /// Places of blocks are multiples of this: the record on levels with records.
    stride_bytes: u64,
    turn: usize,
}

/// Places of a label: two at the start of a device and two at its end, 256 KiB each (vdev_label.c).
const LABELS: u64 = 4;
const LABEL_BYTES: u64 = 256 << 10;

impl Rings {
    /// Creates the rings of a system with top-level devices of these sizes. `logs_only` gives all of it to the log.
    pub fn new(zfs: &ZfsDescription, vdev_bytes: &[u64], has_records: bool, logs_only: bool) -> Rings {
        let mut start_bytes = 0;
        let (mut logs, mut vdevs) = (Vec::new(), Vec::new());
        let mut metadata: [Vec<Ring>; 3] = Default::default();
        for &bytes in vdev_bytes {
            let reserved = zfs.reserved_bytes(bytes);
            let log = if logs_only { bytes } else { reserved.log };
            logs.push(Ring { start_bytes, bytes: log, at_bytes: 0 });
            let end = start_bytes + bytes;
            let place = |start_bytes, bytes| Ring { start_bytes, bytes, at_bytes: 0 };
            // The last metadata area begins at a whole record, so that it can end before the device.
            let last = (end - reserved.metadata.min(bytes)) / u64::from(zfs.record_bytes) * u64::from(zfs.record_bytes);
            let half = reserved.metadata / 2 / u64::from(zfs.record_bytes) * u64::from(zfs.record_bytes);
            metadata[0].push(place(start_bytes + reserved.log, reserved.metadata));
            metadata[1].push(place(last, half));
            metadata[2].push(place(last + half, half));
            vdevs.push(Vdev { start_bytes, bytes, reserved });
            start_bytes = end;
        }
        let stride_bytes = if has_records { u64::from(zfs.record_bytes) } else { u64::from(zfs.sector_bytes) };
        Rings { logs, metadata, vdevs, stride_bytes, turn: 0 }
    }

    /// Takes a place for a log block.
    pub fn log_block(&mut self, bytes: u32) -> u64 {
        let bytes = u64::from(bytes).next_multiple_of(self.stride_bytes);
        let turn = self.turn % self.logs.len();
        self.turn += 1;
        self.logs[turn].take(bytes)
    }

    /// Takes a place for a copy of a metadata block.
    pub fn metadata(&mut self, copy: u32, block: usize, bytes: u32) -> u64 {
        let bytes = u64::from(bytes).next_multiple_of(self.stride_bytes);
        let rings = &mut self.metadata[copy as usize % 3];
        let count = rings.len();
        rings[(block + copy as usize) % count].take(bytes)
    }

    /// Returns the addresses of the labels of at most `vdevs` top-level devices, for blocks of `bytes`.
    pub fn labels(&self, vdevs: usize, bytes: u64) -> Vec<u64> {
        let place = |vdev: &Vdev, label: u64| {
            let stride = LABEL_BYTES.max(self.stride_bytes).max(bytes.next_multiple_of(self.stride_bytes));
            let at_bytes = match label {
                0 | 1 => label * stride,
                _ => (vdev.bytes / stride).saturating_sub(LABELS - label) * stride,
            };
            vdev.start_bytes + at_bytes.min(vdev.bytes.saturating_sub(bytes))
        };
        let vdevs = self.vdevs.iter().take(vdevs);
        vdevs.flat_map(|vdev| (0..LABELS).map(move |label| place(vdev, label))).collect()
    }
}
