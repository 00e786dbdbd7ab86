//! [`L2arc`]: the cache device (L2ARC, arc.c). A thread writes records that are about to leave the ARC to it, in order
//! around the device, which overwrites the oldest ones.
//!
//! OpenZFS looks at the ends of the ARC's lists; here records are taken in order of their admission to the ARC, which is
//! the end of the list of recent records. A record that leaves the ARC before its turn is never written. Contents
//! survive a power cycle, as OpenZFS's log blocks on the device make them.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::description::stack::ZfsParameters;

/// Time between two feeds (`l2arc_feed_secs`), and after a feed that wrote more than half of what it may
/// (`l2arc_feed_min_ms`).
const FEED_NS: u64 = 1_000_000_000;
const FEED_AGAIN_NS: u64 = 200_000_000;
/// Header of a record in memory, in bytes (96 B, from memory of `l2arc_buf_hdr`), and the largest part of the ARC for
/// headers (`l2arc_meta_percent`).
const HEADER_BYTES: u64 = 96;
const HEADERS_PERCENT: u64 = 33;

/// Records on the cache device.
#[derive(Clone, Debug)]
pub(super) struct L2arc {
    pub port: u32,
    capacity_bytes: u64,
    records_max: usize,
    write_max_bytes: u64,
    boost_bytes: u64,
    headroom: u64,
    /// Address of each record.
    places: FxHashMap<u64, u64>,
    /// Records that are being written.
    writing: FxHashMap<u64, u64>,
    /// Records in order of writing, with address and length.
    order: VecDeque<(u64, u64, u32)>,
    rotor_bytes: u64,
    /// When the next feed is due; `u64::MAX` if none is scheduled.
    pub next_feed_ns: u64,
    fed_ns: u64,
    pause_ns: u64,
    pub written_bytes: u64,
}

impl L2arc {
    /// Creates an empty cache device.
    pub fn new(port: u32, capacity_bytes: u64, arc_bytes: u64, parameters: &ZfsParameters) -> L2arc {
        L2arc {
            port,
            capacity_bytes,
            records_max: (arc_bytes * HEADERS_PERCENT / 100 / HEADER_BYTES) as usize,
            write_max_bytes: parameters.l2arc_write_max_bytes,
            boost_bytes: parameters.l2arc_write_boost_bytes,
            headroom: u64::from(parameters.l2arc_headroom),
            places: FxHashMap::default(),
            writing: FxHashMap::default(),
            order: VecDeque::new(),
            rotor_bytes: 0,
            next_feed_ns: u64::MAX,
            fed_ns: 0,
            pause_ns: FEED_NS,
            written_bytes: 0,
        }
    }

    /// Returns the address of a record.
    pub fn place(&self, record: u64) -> Option<u64> {
        self.places.get(&record).copied()
    }

    /// Forgets a record, because it was overwritten.
    pub fn discard(&mut self, record: u64) {
        self.places.remove(&record);
        self.writing.remove(&record);
    }

    /// Returns the bytes of its records.
    pub fn cached_bytes(&self, record_bytes: u64) -> u64 {
        self.places.len() as u64 * record_bytes
    }

    /// Schedules a feed, if none is; returns its time.
    pub fn schedule(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_feed_ns != u64::MAX {
            return None;
        }
        self.next_feed_ns = (self.fed_ns + self.pause_ns).max(now_ns);
        Some(self.next_feed_ns)
    }

    /// Chooses the records of a feed, in the order of `next`; returns them with their addresses.
    pub fn feed(
        &mut self,
        now_ns: u64,
        bytes: u32,
        boosted: bool,
        mut next: impl FnMut() -> Option<u64>,
    ) -> Vec<(u64, u64)> {
        let quota = self.write_max_bytes + if boosted { self.boost_bytes } else { 0 };
        let (mut written, mut seen, mut chosen) = (0, 0, Vec::new());
        while written + u64::from(bytes) <= quota && seen < quota * self.headroom.max(1) {
            let Some(record) = next() else { break };
            seen += u64::from(bytes);
            if self.places.contains_key(&record) || self.writing.contains_key(&record) {
                continue;
            }
            written += u64::from(bytes);
            chosen.push((record, self.take(record, bytes)));
        }
        self.written_bytes += written;
        self.fed_ns = now_ns;
        self.pause_ns = if written > quota / 2 { FEED_AGAIN_NS } else { FEED_NS };
        self.next_feed_ns = u64::MAX;
        chosen
    }

    /// Takes the next place, which overwrites the oldest records.
    fn take(&mut self, record: u64, bytes: u32) -> u64 {
        if self.rotor_bytes + u64::from(bytes) > self.capacity_bytes {
            self.rotor_bytes = 0;
        }
        let (at_bytes, end) = (self.rotor_bytes, self.rotor_bytes + u64::from(bytes));
        self.rotor_bytes = end;
        while let Some(&(old, place, length)) = self.order.front() {
            let overwritten = place < end && at_bytes < place + u64::from(length);
            if !overwritten && self.places.len() < self.records_max {
                break;
            }
            self.order.pop_front();
            if self.places.get(&old) == Some(&place) {
                self.places.remove(&old);
            }
        }
        self.order.push_back((record, at_bytes, bytes));
        self.writing.insert(record, at_bytes);
        at_bytes
    }

    /// Makes a record readable from the device once it is written, unless it changed meanwhile.
    pub fn written(&mut self, record: u64, at_bytes: u64) {
        if self.writing.get(&record) == Some(&at_bytes) {
            self.writing.remove(&record);
            self.places.insert(record, at_bytes);
        }
    }

    /// Handles a power cycle.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.writing.clear();
        self.next_feed_ns = u64::MAX;
        self.fed_ns = now_ns;
        self.pause_ns = FEED_NS;
    }
}
