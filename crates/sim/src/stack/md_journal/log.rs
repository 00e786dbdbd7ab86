//! [`Log`]: a ring of log units on the journal device. A unit is a metadata block and the pages that it describes.

use std::collections::VecDeque;

use super::under_way::PAGE_BYTES;
use crate::stack::extents::{Extent, Extents};

/// Bytes of metadata at the start of a unit's block (`struct r5l_meta_block`, include/uapi/linux/raid/md_p.h).
const HEADER_BYTES: u64 = 32;
/// Metadata of a data page (`struct r5l_payload_data_parity` and a checksum).
const DATA_BYTES: u64 = 20;
/// Metadata of the parities of a stripe, without their checksums of 4 bytes each.
const PARITY_BYTES: u64 = 16;
/// Metadata that marks a stripe as written out (`struct r5l_payload_flush` and its stripe).
pub(super) const WRITTEN_OUT_BYTES: u64 = 16;

/// Waits for a log unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A write, which goes to the members next.
    Write(u32),
    /// A write, which is acknowledged and stays in memory.
    Cached(u32),
    /// Stripes that are written out.
    Batch(u32),
    /// A flush from above.
    Flush(u32),
}

/// Progress of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitState {
    /// Takes pages.
    Gathering,
    /// Complete, and waits for the units before it, because it begins with a flush.
    Deferred,
    /// On its way to the journal device.
    Writing,
    /// On the journal device, possibly in its cache.
    Ended,
    /// Durable, in order.
    Settled,
}

/// A unit of the log.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Position of its metadata block.
    pub start: u64,
    pub bytes: u64,
    meta_bytes: u64,
    /// Data pages, by address in the array; places are positions in the log.
    pub data: Vec<Extent>,
    pub waiters: Vec<Waiter>,
    pub state: UnitState,
    /// Whether a flush precedes it, and whether its write is forced (FUA).
    pub preflush: bool,
    pub forced: bool,
    /// Requests to the journal device without an answer.
    pub writes: u32,
    /// Waiters whose stripes are not on the members yet.
    pub unfinished: u32,
}

impl Unit {
    /// Returns the end of its pages.
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether stripes wait for it, so that the journal device must be flushed.
    pub fn has_stripes(&self) -> bool {
        self.waiters.iter().any(|waiter| !matches!(waiter, Waiter::Flush(_)))
    }
}

/// Pages that are added to the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    /// Data, as a run of pages by address in the array.
    pub data: (u64, u64),
    /// Stripes whose parities are logged, and parities of each.
    pub stripes: u64,
    pub parities: u64,
}

impl Payload {
    /// Returns an upper bound of the bytes that it takes.
    pub fn bytes(&self) -> u64 {
        let pages = (self.data.1 - self.data.0) / PAGE_BYTES;
        let meta = pages * DATA_BYTES + self.stripes * (PARITY_BYTES + 4 * self.parities);
        // A unit wastes less than an entry of its metadata block.
        let units = 2 + meta / (PAGE_BYTES - HEADER_BYTES - DATA_BYTES - PARITY_BYTES - 4 * self.parities);
        (pages + self.stripes * self.parities + units) * PAGE_BYTES
    }
}

/// The log. Positions count bytes since its creation; the place on the device is the rest by its size.
#[derive(Clone, Debug)]
pub(super) struct Log {
    size_bytes: u64,
    head: u64,
    tail: u64,
    /// Position before which every stripe is on the members: the last unit that is finished in order.
    checkpoint: u64,
    units: VecDeque<Unit>,
    /// Number of the first unit in `units`.
    first: u64,
    /// First unit that is not on the journal device in order, and the first that is not finished.
    pub unended: u64,
    unfinished: u64,
    pub gathering: Option<u64>,
    /// Units that wait for a flush of the journal device, and those that the flush under way covers.
    pub to_flush: Vec<u64>,
    pub flushing: Vec<u64>,
    /// Newest durable data in the log, by address in the array.
    pub mapped: Extents,
}

impl Log {
    /// Creates an empty log on a device of this size.
    pub fn new(device_bytes: u64) -> Log {
        Log {
            size_bytes: device_bytes / PAGE_BYTES * PAGE_BYTES,
            head: 0,
            tail: 0,
            checkpoint: 0,
            units: VecDeque::new(),
            first: 0,
            unended: 0,
            unfinished: 0,
            gathering: None,
            to_flush: Vec::new(),
            flushing: Vec::new(),
            mapped: Extents::default(),
        }
    }

    /// Returns the bytes that are free.
    pub fn free_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.head - self.tail)
    }

    /// Returns the bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.head - self.tail
    }

    /// Returns the place on the device of a position.
    pub fn place(&self, position: u64) -> u64 {
        position % self.size_bytes
    }

    /// Returns the position of the tail, and the one up to which units are finished.
    pub fn bounds(&self) -> (u64, u64) {
        (self.tail, self.checkpoint)
    }

    /// Returns the runs on the device of a range of positions: two if it passes the end of the ring.
    pub fn runs(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let place = self.place(from);
        let first = (to - from).min(self.size_bytes - place);
        let rest = (to - from) - first;
        std::iter::once((place, place + first)).chain((rest > 0).then_some((0, rest)))
    }

    pub fn unit(&mut self, number: u64) -> &mut Unit {
        &mut self.units[(number - self.first) as usize]
    }

    /// Returns a unit that was submitted, if there is one of this number.
    pub fn unit_at(&self, number: u64) -> Option<&Unit> {
        self.units.get((number - self.first) as usize)
    }

    /// Returns the unit that takes metadata of this length; `None` if the unit that gathers is full.
    fn open(&mut self, meta_bytes: u64) -> Option<u64> {
        if let Some(number) = self.gathering {
            return (self.unit(number).meta_bytes + meta_bytes <= PAGE_BYTES).then_some(number);
        }
        let number = self.first + self.units.len() as u64;
        self.units.push_back(Unit {
            start: self.head,
            bytes: PAGE_BYTES,
            meta_bytes: HEADER_BYTES,
            data: Vec::new(),
            waiters: Vec::new(),
            state: UnitState::Gathering,
            preflush: false,
            forced: false,
            writes: 0,
            unfinished: 0,
        });
        self.head += PAGE_BYTES;
        self.gathering = Some(number);
        Some(number)
    }

    /// Adds metadata without pages to the unit that gathers; returns its number, or `None` if it is full.
    pub fn add_metadata(&mut self, meta_bytes: u64) -> Option<u64> {
        let number = self.open(meta_bytes)?;
        self.unit(number).meta_bytes += meta_bytes;
        Some(number)
    }

    /// Adds as much of a payload as fits to the unit that gathers, and takes it from the payload. Returns its number, or
    /// `None` if nothing fits.
    pub fn add(&mut self, payload: &mut Payload) -> Option<u64> {
        let parity_meta = PARITY_BYTES + 4 * payload.parities;
        let has_data = payload.data.0 < payload.data.1;
        let number = self.open(if has_data { DATA_BYTES } else { parity_meta })?;
        let mut room = PAGE_BYTES - self.unit(number).meta_bytes;
        let pages = (room / DATA_BYTES).min((payload.data.1 - payload.data.0) / PAGE_BYTES);
        room -= pages * DATA_BYTES;
        let stripes = if payload.data.0 + pages * PAGE_BYTES < payload.data.1 {
            0
        } else {
            (room / parity_meta).min(payload.stripes)
        };
        self.add_data(number, payload.data.0, pages * PAGE_BYTES);
        let unit = self.unit(number);
        unit.meta_bytes += pages * DATA_BYTES + stripes * parity_meta;
        unit.bytes += (pages + stripes * payload.parities) * PAGE_BYTES;
        self.head += stripes * payload.parities * PAGE_BYTES;
        payload.data.0 += pages * PAGE_BYTES;
        payload.stripes -= stripes;
        debug_assert!(self.head - self.tail <= self.size_bytes, "the log has space for what is added");
        Some(number)
    }

    fn add_data(&mut self, number: u64, start: u64, length_bytes: u64) {
        let (mut at, end) = (start, start + length_bytes);
        while at < end {
            let place = self.place(self.head);
            let length = (end - at).min(self.size_bytes - place);
            let extent = Extent { start: at, length: length as u32, place: self.head };
            self.unit(number).data.push(extent);
            self.head += length;
            at += length;
        }
    }

    /// Maps the data of a unit that is durable now.
    pub fn map(&mut self, number: u64) {
        let data = self.unit(number).data.clone();
        let size = self.size_bytes;
        for extent in data {
            self.mapped.remove(extent.start, extent.end(), |_| ());
            let ring = |place: u64| place / size;
            self.mapped.insert(extent, |before| ring(before.place) == ring(extent.place));
        }
    }

    /// Counts a waiter of a unit whose stripes are on the members.
    pub fn finish_part(&mut self, number: u64) {
        self.unit(number).unfinished -= 1;
        self.advance_checkpoint();
    }

    /// Moves the checkpoint to the last unit that is finished in order.
    pub fn advance_checkpoint(&mut self) {
        while let Some(unit) = self.unit_at(self.unfinished) {
            if unit.state != UnitState::Settled || unit.unfinished > 0 {
                return;
            }
            self.checkpoint = unit.start;
            self.unfinished += 1;
        }
    }

    /// Moves the tail, and forgets the units before it.
    pub fn move_tail(&mut self, to: u64) {
        self.tail = to;
        while self.units.front().is_some_and(|unit| unit.end() <= to) {
            let unit = self.units.pop_front().expect("there is a first unit");
            self.first += 1;
            for old in &unit.data {
                let stale = |extent: &Extent| (unit.start..unit.end()).contains(&extent.place);
                let parts: Vec<Extent> = self.mapped.overlapping(old.start, old.end()).filter(stale).collect();
                parts.iter().for_each(|part| self.mapped.remove(part.start, part.end(), |_| ()));
            }
        }
    }

    /// Keeps what is durable: recovery replays it, and the log continues after it.
    pub fn power_cycle(&mut self) {
        let durable = self.units.iter().take_while(|unit| unit.state == UnitState::Settled).count();
        self.units.truncate(durable);
        let number = self.first + self.units.len() as u64;
        self.head = self.units.back().map_or(self.tail, Unit::end);
        for unit in &mut self.units {
            unit.unfinished = 0;
            unit.waiters.clear();
        }
        (self.unended, self.gathering) = (number, None);
        self.to_flush.clear();
        self.flushing.clear();
        self.advance_checkpoint();
    }
}
