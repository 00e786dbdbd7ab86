//! [`Intent`]: metadata that Linux md writes in addition to data, namely the write-intent bitmap and the superblock of
//! an array that was clean.
//!
//! Before data of a chunk are written, md sets the bit of the chunk in the bitmap on every member, with a flush before
//! this write and FUA. Writes that arrive meanwhile share the next write of the bitmap (drivers/md/md-bitmap.c,
//! `md_super_write`). A daemon clears a bit in the second pass that finds the chunk unused, which is 5 to 10 s after
//! the last write; no write waits for this. An array without writes for a while is marked clean, and the next write
//! waits until the array is marked dirty.

use std::collections::BTreeMap;

use crate::description::array::Bitmap;

/// The write-intent bitmap of a group.
#[derive(Clone, Debug)]
pub struct Intent {
    pub(super) table: Bitmap,
    /// Chunks whose bit is set or about to be set.
    pub(super) chunks: BTreeMap<u64, Chunk>,
    /// Number of data writes in flight, including waiting writes.
    pub(super) writes: u64,
    /// Completion time of the last data write.
    pub(super) idle_since_ns: u64,
    /// Data writes that wait for the bitmap write in flight.
    pub(super) waiting: Vec<Waiting>,
    pub(super) next: Vec<Waiting>,
    /// Number of members that have not yet completed the bitmap write in flight.
    pub(super) pending: u32,
    /// Whether the next pass of the daemon is scheduled.
    pub(super) daemon_is_set: bool,
    /// Number of bitmap writes so far; each goes to all members.
    pub written: u64,
}

/// State of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Number of data writes to the chunk in flight.
    pub writes: u32,
    pub bit: Bit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// The next bitmap write sets the bit.
    Asked,
    /// The bitmap write in flight sets the bit.
    Written,
    /// The bit is set.
    Set,
    /// The bit is set, and one pass of the daemon found the chunk unused.
    Unused,
}

/// A waiting data write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub operation: u32,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

impl Intent {
    /// Creates a bitmap with no bits set, for a clean array.
    pub fn new(table: Bitmap) -> Intent {
        Intent {
            table,
            chunks: BTreeMap::new(),
            writes: 0,
            idle_since_ns: 0,
            waiting: Vec::new(),
            next: Vec::new(),
            pending: 0,
            daemon_is_set: false,
            written: 0,
        }
    }

    /// Records a write to chunks; returns whether their bits are set.
    pub fn declare(&mut self, now_ns: u64, chunks: (u64, u64)) -> bool {
        let is_clean = self.writes == 0 && now_ns >= self.idle_since_ns + self.table.safe_mode_ns;
        self.writes += 1;
        let mut set = !is_clean;
        for at in chunks.0..=chunks.1 {
            let chunk = self.chunks.entry(at).or_insert(Chunk { writes: 0, bit: Bit::Asked });
            chunk.writes += 1;
            if chunk.bit == Bit::Unused {
                chunk.bit = Bit::Set;
            }
            set &= chunk.bit == Bit::Set;
        }
        set
    }

    pub fn change(&mut self, from: Bit, to: Bit) {
        self.chunks.values_mut().filter(|chunk| chunk.bit == from).for_each(|chunk| chunk.bit = to);
    }

    /// Runs a pass of the daemon; returns whether bits must be cleared on the members.
    pub fn pass(&mut self) -> bool {
        let before = self.chunks.len();
        self.chunks.retain(|_, chunk| chunk.writes > 0 || chunk.bit != Bit::Unused);
        for chunk in self.chunks.values_mut().filter(|chunk| chunk.writes == 0 && chunk.bit == Bit::Set) {
            chunk.bit = Bit::Unused;
        }
        self.chunks.len() < before
    }
}
