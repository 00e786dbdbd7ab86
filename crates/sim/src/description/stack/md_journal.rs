//! [`MdJournalDescription`]: the write journal of Linux md RAID 5 and 6 on a device of its own.

use serde::{Deserialize, Serialize};

use crate::description::array::{ArrayDescription, CacheWrites, Level};
use crate::error::{InvalidDescription, fault, require};

/// A write journal. The first system below is the array; the second is the journal device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MdJournalDescription {
    /// When a write is acknowledged.
    pub mode: MdJournalMode,
    /// Stripes, a page high, that memory holds (`stripe_cache_size`); used by write-back.
    pub stripe_cache: u32,
    /// Finished bytes of the log above which its tail moves (`max_free_space`, raid5-cache.c).
    pub reclaim_bytes: u64,
    /// Whether the journal device has a volatile cache, so that md flushes it.
    pub flushes: bool,
}

/// When a write is acknowledged (`journal_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MdJournalMode {
    /// After the members have the data and the parity, which are in the log before.
    #[default]
    WriteThrough,
    /// When the data are in the log; memory holds them until their stripes are written out.
    WriteBack,
}

/// Members above which the model has no mask for the chunks of a row; md itself allows 203.
const MEMBERS_MAX: usize = 128;
/// Least size of a journal device; smaller ones would stop writes at each move of the tail.
const DEVICE_BYTES_MIN: u64 = 256 << 20;

/// Rejects impossible journals of an array, on a device of this capacity.
pub(crate) fn check(
    journal: &MdJournalDescription,
    array: &ArrayDescription,
    device_bytes: u64,
) -> Result<(), InvalidDescription> {
    let [group] = array.groups.as_slice() else {
        let message = format!("`md_journal` over {} RAID groups; must be an array of 1", array.groups.len());
        return fault("stack.over", message);
    };
    require(matches!(group.level, Level::Raid5 | Level::Raid6) && group.spans == 1, "stack.over", || {
        format!("`md_journal` over {}; must be raid5 or raid6 with one span", group.level)
    })?;
    let has_one_lun = array.luns.len() == 1 && array.luns[0].start_bytes == 0;
    let writes_back = array.controller.cache.as_ref().is_some_and(|cache| cache.writes == CacheWrites::Back);
    for (is_wrong, name) in [
        (group.bitmap.is_some(), "a bitmap"),
        (group.ppl.is_some(), "a partial parity log"),
        (group.pool.is_some(), "a pool"),
        (writes_back, "a write-back cache"),
        (!has_one_lun, "several LUNs"),
    ] {
        require(!is_wrong, "stack.over", || format!("`md_journal` over an array with {name}; must be one without"))?;
    }
    let count = group.members.len();
    require(count <= MEMBERS_MAX, "stack.over", || {
        format!("`md_journal` over {count} drives; must be up to {MEMBERS_MAX}")
    })?;
    require(group.chunk_bytes.is_multiple_of(4096), "stack.over", || {
        format!("`md_journal` over chunks of {} bytes; must be a multiple of 4 KiB", group.chunk_bytes)
    })?;
    require((17..=32_768).contains(&journal.stripe_cache), "md_journal.stripe_cache", || {
        format!("{} is out of range; must be 17 to 32768", journal.stripe_cache)
    })?;
    let row_bytes = group.chunk_bytes * count as u64;
    // Space to write out all stripes in memory, four times for a log that is short of it, and for the longest writes.
    let in_memory = u64::from(journal.stripe_cache) * 4096 * 3 * 4;
    let least = DEVICE_BYTES_MIN.max(8 * row_bytes) + in_memory;
    require(device_bytes >= least, "md_journal.device", || {
        format!("{device_bytes} bytes are too few for the journal; must be {least} or more")
    })?;
    require((1..=device_bytes / 2).contains(&journal.reclaim_bytes), "md_journal.reclaim", || {
        format!(
            "{} bytes are not allowed; must be 1 to {}, half of the device",
            journal.reclaim_bytes,
            device_bytes / 2
        )
    })
}
