//! Linux md's metadata writes: the write-intent bitmap, and the superblock of an array that was clean.
//!
//! Before data of a chunk are written, its bit is written to every member, after a flush and with FUA, and concurrent
//! writes share the next such write (drivers/md/md-bitmap.c, `md_super_write`). A bit is cleared by the second pass of
//! a daemon that finds its chunk unused, 5 to 10 s after the last write, asynchronously. An idle array is marked clean,
//! and the next write waits until it is not.

use std::collections::BTreeMap;

use crate::description::array::Bitmap;

/// The bitmap of a group.
#[derive(Clone, Debug)]
pub struct Intent {
    pub(super) table: Bitmap,
    /// Chunks whose bit is set, or requested.
    pub(super) chunks: BTreeMap<u64, Chunk>,
    /// Number of data writes under way, including waiting ones.
    pub(super) writes: u64,
    /// When the last of them ended.
    pub(super) idle_since_ns: u64,
    /// Data writes that wait for the next write of the bitmap, and for the one under way.
    pub(super) waiting: Vec<Waiting>,
    pub(super) next: Vec<Waiting>,
    /// Members that have not completed the current write.
    pub(super) pending: u32,
    /// The daemon's next pass has been put on the heap.
    pub(super) daemon_is_set: bool,
    /// Writes of the bitmap so far, each to all members.
    pub written: u64,
}

/// State of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Writes of data in it.
    pub writes: u32,
    pub bit: Bit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// The next write of the bitmap sets it.
    Asked,
    /// Its bit is being written.
    Written,
    /// Its bit is set.
    Set,
    /// Its bit is set, and one pass of the daemon found the chunk unused.
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
    /// A bitmap without a bit, of an array that is clean.
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

    /// Notes a write of chunks; whether their bits are set.
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

    /// A pass of the daemon; whether bits are to be cleared on the members.
    pub fn pass(&mut self) -> bool {
        let before = self.chunks.len();
        self.chunks.retain(|_, chunk| chunk.writes > 0 || chunk.bit != Bit::Unused);
        for chunk in self.chunks.values_mut().filter(|chunk| chunk.writes == 0 && chunk.bit == Bit::Set) {
            chunk.bit = Bit::Unused;
        }
        self.chunks.len() < before
    }
}
