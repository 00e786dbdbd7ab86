//! The write journal of Linux md RAID 5 and 6, with md's defaults.

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{MdJournalDescription, MdJournalMode};
use headstack_workload::quantity::Bytes;
use serde::{Deserialize, Serialize};

use super::Completer;

/// Maximum of the finished space in the log (`RECLAIM_MAX_FREE_SPACE`, drivers/md/raid5-cache.c).
const RECLAIM_BYTES_MAX: u64 = 10 << 30;

const MD: &str = "default of Linux md (admin-guide/md.rst, drivers/md/raid5-cache.c)";

/// Table `[md_journal]`; missing values are the defaults of Linux md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MdJournalTable {
    /// Journal device, named as `stack.over`.
    pub device: Option<String>,
    /// `journal_mode`: `write-through` or `write-back`.
    pub mode: Option<MdJournalMode>,
    /// `stripe_cache_size`, in stripes.
    pub stripe_cache: Option<u32>,
    /// Finished space of the log above which its tail moves.
    pub reclaim: Option<Bytes>,
    /// Whether md flushes the journal device, because it has a volatile cache.
    pub flush: Option<bool>,
}

/// Whether a system can lose acknowledged writes at a power loss, so that the kernel flushes it.
fn has_volatile_cache(system: &SystemDescription) -> bool {
    system.device_kinds().into_iter().any(|device| match device {
        DeviceDescription::Disk(_) => true,
        DeviceDescription::Ssd(ssd) => !ssd.buffer.power_loss_protected,
        DeviceDescription::Volume(_) => false,
    })
}

impl Completer<'_> {
    pub(super) fn md_journal(&mut self, device: &SystemDescription) -> MdJournalDescription {
        let table = &self.file.md_journal;
        let reclaim = (device.capacity_bytes() / 4).min(RECLAIM_BYTES_MAX);
        let flush = "md flushes a journal device with a volatile cache";
        MdJournalDescription {
            mode: self.or_default("md_journal.mode", table.mode, MdJournalMode::WriteThrough, MD),
            stripe_cache: self.or_default("md_journal.stripe_cache", table.stripe_cache, 256, MD),
            reclaim_bytes: self.bytes("md_journal.reclaim", table.reclaim, reclaim, MD),
            flushes: self.or_default("md_journal.flush", table.flush, has_volatile_cache(device), flush),
        }
    }
}
