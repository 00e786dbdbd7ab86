//! The write journal of Linux md RAID 5 and 6, with md's defaults.

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{MdJournalDescription, MdJournalMode};

use super::Completer;

/// Maximum of the finished space in the log (`RECLAIM_MAX_FREE_SPACE`, drivers/md/raid5-cache.c).
const RECLAIM_BYTES_MAX: u64 = 10 << 30;

const MD: &str = "default of Linux md (admin-guide/md.rst, drivers/md/raid5-cache.c)";

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
