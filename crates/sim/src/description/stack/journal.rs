//! [`JournalDescription`]: how a file system makes data durable: ext4 with jbd2, or XFS.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// A file system with one file on a whole device. Its name space, fragmentation and processor time are not modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalDescription {
    /// How transactions are committed.
    pub kind: JournalKind,
    /// Size of the journal.
    pub journal_bytes: u64,
    /// Whether the journal is on the second system below; otherwise it lies in the middle of the first one, where
    /// mkfs places it.
    pub external: bool,
    /// Time after which a transaction is committed without a sync: 5 s for ext4 (`JBD2_DEFAULT_MAX_COMMIT_AGE`), 30 s
    /// for XFS (`xfs_syncd_centisecs`).
    pub interval_ns: u64,
    /// Whether commits flush the cache of the device; false is `nobarrier`.
    pub barriers: bool,
    /// Whether the device takes forced writes (FUA). Without it, the block layer sends the write and then a flush.
    pub forced_writes: bool,
    /// Blocks of metadata of a commit after data were allocated: inode, bitmap, group descriptor, extents.
    pub allocation_blocks: u32,
    /// Granularity of timestamps: an overwrite within the same tick changes no metadata. One jiffy, 4 ms at 250 Hz.
    pub timestamp_ns: u64,
    /// Time after which committed metadata are written to their own place.
    pub checkpoint_ns: u64,
    /// Bytes of the file that are allocated and written at the start. Writes beyond them allocate.
    pub written_bytes: u64,
}

/// How a file system commits a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum JournalKind {
    /// jbd2: descriptor and metadata blocks, then a commit block after a flush (`fs/jbd2/commit.c`).
    Ext4,
    /// Log buffer with a flush before it (`fs/xfs/xfs_log.c`).
    Xfs,
}

impl JournalDescription {
    /// Size of a block of the file system.
    pub const BLOCK_BYTES: u64 = 4096;

    /// Space for metadata in their own place.
    pub const METADATA_BYTES: u64 = 1 << 20;

    /// Returns the bytes of the first device that are not for files: metadata, then the journal unless it is external.
    pub fn reserved_bytes(&self) -> u64 {
        Self::METADATA_BYTES + if self.external { 0 } else { self.journal_bytes }
    }

    /// Returns where those bytes begin on a device of this capacity.
    pub fn reserved_at_bytes(&self, device_bytes: u64) -> u64 {
        let middle = device_bytes.saturating_sub(self.reserved_bytes()) / 2;
        middle / (1 << 20) * (1 << 20)
    }

    /// Returns where the journal begins on its device, if the first device has this capacity.
    pub fn journal_at_bytes(&self, device_bytes: u64) -> u64 {
        if self.external { 0 } else { self.reserved_at_bytes(device_bytes) + Self::METADATA_BYTES }
    }

    /// Returns the bytes for files on a device of this capacity.
    pub fn capacity_bytes(&self, device_bytes: u64) -> u64 {
        device_bytes.saturating_sub(self.reserved_bytes())
    }
}

pub(super) fn check(journal: &JournalDescription, device_bytes: u64) -> Result<(), InvalidDescription> {
    let JournalDescription { journal_bytes, .. } = *journal;
    let least = 1024 * JournalDescription::BLOCK_BYTES;
    require(journal_bytes >= least && journal_bytes % JournalDescription::BLOCK_BYTES == 0, "journal.size", || {
        format!("{journal_bytes} bytes are not allowed; must be 4 MiB or more, in blocks of 4 KiB")
    })?;
    require(journal.reserved_bytes() <= device_bytes / 2, "journal.size", || {
        format!("{journal_bytes} bytes do not fit; less than half of the device's {device_bytes} are allowed")
    })?;
    require((1..=256).contains(&journal.allocation_blocks), "journal.allocation_blocks", || {
        format!("{} is out of range; must be 1 to 256", journal.allocation_blocks)
    })?;
    for (value, key) in [
        (journal.interval_ns, "journal.interval"),
        (journal.timestamp_ns, "journal.timestamp"),
        (journal.checkpoint_ns, "journal.checkpoint"),
    ] {
        require(value >= 1, key, || "0 is out of range; must be above 0".to_owned())?;
    }
    Ok(())
}
