//! [`Integrity`]: whether read data are those that had been written.

use serde::{Deserialize, Serialize};

/// The state of written data, in blocks of `block_bytes`. Each block that was read counts once among `intact` to
/// `unreadable`; those at fault count again by how bad it is, `damaged` to `undecided`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    /// The unit that is written whole, of sectors that carry a stamp each; of several targets, the smallest.
    pub block_bytes: u32,
    /// Blocks that were read and judged.
    pub checked: u64,
    /// Blocks with the data that must be there.
    pub intact: u64,
    /// Sectors of several writes, each of which may be there.
    pub mixed: u64,
    /// Zeros where a trim may have left them.
    pub trimmed: u64,
    /// Never written, or never acknowledged.
    pub unwritten: u64,
    /// Changed while it was read, so that nothing can be said.
    pub unsettled: u64,
    /// Newer than the ledger, which lost its end when its host went down.
    pub ahead: u64,
    /// An older generation, though a newer one was acknowledged.
    pub stale: u64,
    /// Sectors of several writes, of which some must not be there any more.
    pub torn: u64,
    /// Blocks with data that were written to another place.
    pub misplaced: u64,
    /// A stamp or data with other bits than were written.
    pub corrupt: u64,
    /// Written and not trimmed since, and now zeros.
    pub zeros: u64,
    /// Written, and now without any stamp or with one of another run.
    pub foreign: u64,
    /// A read that failed.
    pub unreadable: u64,
    /// Requests, not blocks, of which a part is there and in another part older data.
    pub torn_requests: u64,
    /// Blocks changed, misplaced or unreadable.
    pub damaged: u64,
    /// Blocks lost although the newer write was flushed, or nothing endangered it.
    pub lost: u64,
    /// Blocks lost that no flush had covered: a volatile cache may, after power was lost.
    pub unflushed: u64,
    /// Blocks whose verdict is undecided: a fault or none.
    pub undecided: u64,
    /// The first of those that are not intact, in words: offset, what was expected and what was found.
    pub findings: Vec<String>,
    /// Cases that could not be decided, in words.
    pub cannot_tell: Vec<String>,
}

impl Integrity {
    /// Returns the blocks at fault: damaged or lost.
    pub fn faults(&self) -> u64 {
        self.damaged.saturating_add(self.lost).saturating_add(self.unflushed)
    }
}
