//! [`Migration`]: segments that move between the classes, and the accesses of the move.

use super::layout::{Extent, Slot};

/// Why segments move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationKind {
    /// Segments written longest ago go into full stripes, written as a log.
    Demotion,
    /// Segments of a group of stripes become mirrored again, as space is plenty.
    Promotion,
    /// Segments of a sparse group go into holes of others (hole plugging), which frees the group.
    Compaction,
}

/// Work that moves segments: all reads, then all writes, each of one segment's length. Both are sorted by member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Why.
    pub kind: MigrationKind,
    /// Extents to read.
    pub reads: Vec<Extent>,
    /// Extents to write, parities included.
    pub writes: Vec<Extent>,
    pub(super) number: u64,
}

/// The migration whose accesses are being made.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub kind: MigrationKind,
    pub number: u64,
    pub moves: Vec<Move>,
}

impl UnderWay {
    pub fn len(&self) -> u32 {
        self.moves.len() as u32
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub owner: u32,
    pub from: Slot,
    pub to: Slot,
    /// When the segment was written last.
    pub stamp: u32,
}
