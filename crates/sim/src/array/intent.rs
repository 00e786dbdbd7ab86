//! [`Intent`]: metadata that Linux md writes in addition to data, namely the write-intent bitmap and the superblock of
//! an array that was clean.
//!
//! Before data of a chunk of the members are written, its bit is written to every member, with a flush before it and
//! FUA; writes that arrive meanwhile share the next write of the bitmap (drivers/md/md-bitmap.c, `md_super_write`). A
//! bit is cleared by the second pass of a daemon that finds its chunk unused, so 5 to 10 s after the last write, and no
//! write waits for that. An array that has not been written to for a while is marked clean, and the next write waits
//! until it is marked dirty.

use std::collections::BTreeMap;

use crate::description::array::Bitmap;

/// The write-intent bitmap of a group.
#[derive(Clone, Debug)]
pub struct Intent {
    pub(super) table: Bitmap,
    /// Chunks whose bit is set or requested.
    pub(super) chunks: BTreeMap<u64, Chunk>,
    /// Writes of data in flight, waiting ones included.
    pub(super) writes: u64,
    /// Time at which the last of them ended.
    pub(super) idle_since_ns: u64,
    /// Writes of data that wait for the next write of the bitmap, and for the one in flight.
    pub(super) waiting: Vec<Waiting>,
    pub(super) next: Vec<Waiting>,
    /// Members that have not yet completed the write in flight.
    pub(super) pending: u32,
    /// Whether the daemon's next pass is scheduled.
    pub(super) daemon_is_set: bool,
    /// Writes of the bitmap so far, each to all members.
    pub written: u64,
}

/// State of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Writes of data to it in flight.
    pub writes: u32,
    pub bit: Bit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// The next write of the bitmap sets the bit.
    Asked,
    /// The write of the bitmap in flight sets the bit.
    Written,
    /// The bit is set.
    Set,
    /// The bit is set, and one pass of the daemon found the chunk unused.
    Unused,
}

/// A write of data that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub operation: u32,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

impl Intent {
    /// Creates a bitmap without a bit set, of an array that is clean.
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

    /// Records a write of chunks; returns whether their bits are set.
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

    /// Runs a pass of the daemon; returns whether bits are to be cleared on the members.
    pub fn pass(&mut self) -> bool {
        let before = self.chunks.len();
        self.chunks.retain(|_, chunk| chunk.writes > 0 || chunk.bit != Bit::Unused);
        for chunk in self.chunks.values_mut().filter(|chunk| chunk.writes == 0 && chunk.bit == Bit::Set) {
            chunk.bit = Bit::Unused;
        }
        self.chunks.len() < before
    }
}
