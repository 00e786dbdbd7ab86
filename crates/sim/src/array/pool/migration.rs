//! [`Migration`]: segments that move between the classes, and the necessary accesses.

use super::layout::{Extent, Slot};

/// Reason for moving segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationKind {
    /// Moves the segments written longest ago into full stripes, written as a log.
    Demotion,
    /// Mirrors the segments of a group of stripes again, because space is plentiful.
    Promotion,
    /// Moves the segments of a sparse group into holes of other groups (hole plugging), which frees the group.
    Compaction,
}

/// A move of segments: first all reads, then all writes, each of one segment. Both lists are sorted by member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Reason for the move.
    pub kind: MigrationKind,
    /// Extents to read.
    pub reads: Vec<Extent>,
    /// Extents to write, including parities.
    pub writes: Vec<Extent>,
    pub(super) number: u64,
}

/// The migration in progress.
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
    /// Time of the segment's last write, on the pool's clock.
    pub stamp: u32,
}
