//! [`Integrity`]: whether reads returned the data that had been written.

use serde::{Deserialize, Serialize};

/// State of written data, in blocks of `block_bytes`. Each block read counts in exactly one of the classes `intact` to
/// `unreadable`. Blocks with a fault also count by severity, in one of `damaged` to `undecided`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    /// Bytes per block, the smallest write; each sector of a block carries a stamp. With several targets, the smallest
    /// of them.
    pub block_bytes: u32,
    /// Blocks that were read and judged.
    pub checked: u64,
    /// Blocks with the expected data.
    pub intact: u64,
    /// Blocks with sectors of several writes, each of which is allowed.
    pub mixed: u64,
    /// Blocks of zeros that a trim may have left.
    pub trimmed: u64,
    /// Blocks that were never written, or whose writes were never acknowledged.
    pub unwritten: u64,
    /// Blocks that changed during the read, so that no verdict is possible.
    pub unsettled: u64,
    /// Blocks with newer data than the ledger, which lost its latest entries when its host went down.
    pub ahead: u64,
    /// Blocks with an older generation although a newer one was acknowledged.
    pub stale: u64,
    /// Blocks with sectors of several writes, some of which should have been overwritten.
    pub torn: u64,
    /// Blocks with data that were written to another place.
    pub misplaced: u64,
    /// Blocks with changed bits in a stamp or in the data.
    pub corrupt: u64,
    /// Blocks of zeros that were written and not trimmed since.
    pub zeros: u64,
    /// Blocks that were written, but contain no stamp or the stamp of another run.
    pub foreign: u64,
    /// Blocks whose read failed.
    pub unreadable: u64,
    /// Requests (not blocks) that were written only in part, with older data in the rest.
    pub torn_requests: u64,
    /// Blocks that are changed, misplaced or unreadable.
    pub damaged: u64,
    /// Blocks that lost a write although it was flushed or was never at risk.
    pub lost: u64,
    /// Blocks that lost a write which no flush had covered; a volatile cache may lose such writes when power is lost.
    pub unflushed: u64,
    /// Blocks for which a fault can neither be proven nor ruled out.
    pub undecided: u64,
    /// The first findings as text: offset, expected data and data found.
    pub findings: Vec<String>,
    /// Cases that could not be decided, as text.
    pub cannot_tell: Vec<String>,
}

impl Integrity {
    /// Returns the number of faulty blocks: damaged or lost.
    pub fn faults(&self) -> u64 {
        self.damaged.saturating_add(self.lost).saturating_add(self.unflushed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lost_and_unflushed_blocks_are_faults() {
        let faults =
            Integrity { damaged: 1, lost: 20, unflushed: 300, undecided: 4_000, stale: 5, ..Integrity::default() };
        assert_eq!(faults.faults(), 321);
        assert_eq!(Integrity { checked: 9, intact: 9, ..Integrity::default() }.faults(), 0);
        assert_eq!(Integrity { damaged: u64::MAX, lost: 1, ..Integrity::default() }.faults(), u64::MAX);
    }
}
