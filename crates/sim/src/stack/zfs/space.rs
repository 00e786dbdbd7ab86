//! [`Space`]: where records, log blocks and metadata are on the pool. ZFS writes each block to a new place; a cursor
//! takes free places in order of addresses (metaslab.c, reduced to one size of block).
//!
//! A record that was never overwritten is where a sequential fill would have put it, so that only overwritten records
//! have an entry in memory. Places of records that were overwritten become free two groups later
//! (`TXG_DEFER_SIZE`). Fragmentation is not modelled: every free place holds a record.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

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
    /// Number of places.
    slots: u64,
    places: FxHashMap<u64, u64>,
    /// Free places: first and number. The run at the cursor is taken out.
    free: BTreeMap<u64, u64>,
    run: Range<u64>,
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
        Space {
            vdevs,
            slot_bytes,
            turn_slots,
            records,
            slots: slots.max(records),
            places: FxHashMap::default(),
            free,
            run: 0..0,
            deferred,
        }
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of top-level devices.
    pub fn vdevs(&self) -> usize {
        self.vdevs.len()
    }

    /// Returns the bytes of a place.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// Returns the number of places that hold a record, or one that was freed lately.
    pub fn allocated(&self) -> u64 {
        let free: u64 = self.free.values().sum();
        self.slots - free - (self.run.end - self.run.start)
    }

    /// Returns the places of a range of records, as runs in order of records. `is_new` states which records are left
    /// out.
    pub fn runs_of(&self, records: Range<u64>, is_new: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
        if self.places.is_empty() {
            return vec![records];
        }
        let mut runs: Vec<Range<u64>> = Vec::new();
        for record in records {
            let Some(slot) = self.place(record).filter(|_| !is_new(record)) else { continue };
            match runs.last_mut() {
                Some(last) if last.end == slot => last.end += 1,
                Some(_) | None => runs.push(slot..slot + 1),
            }
        }
        runs
    }

    /// Returns the next run of allocated places from one on.
    pub fn allocated_from(&self, slot: u64) -> Option<Range<u64>> {
        let mut start = slot;
        loop {
            let before = self.free.range(..=start).next_back().map(|(&first, &count)| first..first + count);
            let holes = [before.unwrap_or(0..0), self.run.clone()];
            match holes.iter().find(|hole| hole.contains(&start)) {
                Some(hole) => start = hole.end,
                None => break,
            }
        }
        let next = self.free.range(start..).next().map_or(self.slots, |(&first, _)| first);
        let run = if self.run.start >= start && !self.run.is_empty() { self.run.start } else { self.slots };
        (start < self.slots).then(|| start..next.min(run))
    }

    /// Passes the parts of a run of places to `each`, by top-level device: its number, the first place there, and the
    /// number of places.
    pub fn by_vdev(&self, run: Range<u64>, mut each: impl FnMut(usize, u64, u64)) {
        let count = self.vdevs.len() as u64;
        if count == 1 {
            return each(0, run.start, run.end - run.start);
        }
        let mut slot = run.start;
        while slot < run.end {
            let (turn, within) = (slot / self.turn_slots, slot % self.turn_slots);
            let length = (self.turn_slots - within).min(run.end - slot);
            each((turn % count) as usize, turn / count * self.turn_slots + within, length);
            slot += length;
        }
    }

    /// Returns the address of a place of a top-level device.
    pub fn address_on(&self, vdev: usize, number: u64) -> u64 {
        let vdev = &self.vdevs[vdev];
        vdev.start_bytes + vdev.reserved.log + vdev.reserved.metadata + number * self.slot_bytes
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

    /// Returns the place of a block that a scan reads: any of the first copies, by the number of the block.
    pub fn stored_metadata(&self, block: u64, bytes: u32) -> u64 {
        let stride = u64::from(bytes).next_multiple_of(self.stride_bytes);
        let ring = &self.metadata[0][(block % self.metadata[0].len() as u64) as usize];
        // Metadata lie where their groups put them: the golden ratio spreads any run of numbers.
        let places = (ring.bytes / stride).max(1);
        ring.start_bytes + (block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % places * stride
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
