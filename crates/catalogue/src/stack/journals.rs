//! Journals of file systems, with the defaults of mkfs and mount.

use headstack_sim::SystemDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::stack::description::{JournalDescription, JournalKind, LayerDescription};
use headstack_workload::InputError;

use super::Completer;
use super::file::LayerName;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Returns the journal of `mkfs.ext4` on a device of this size (`ext2fs_default_journal_size` of e2fsprogs).
fn ext4_journal_bytes(device_bytes: u64) -> u64 {
    match device_bytes {
        bytes if bytes < GIB => 16 * MIB,
        bytes if bytes < 2 * GIB => 32 * MIB,
        bytes if bytes < 16 * GIB => 64 * MIB,
        bytes if bytes < 32 * GIB => 128 * MIB,
        bytes if bytes < 64 * GIB => 256 * MIB,
        bytes if bytes < 128 * GIB => 512 * MIB,
        _ => GIB,
    }
}

/// Returns the log of `mkfs.xfs`: 1/2048 of the device, 64 MiB to 2 GiB (xfsprogs since 5.15).
fn xfs_log_bytes(device_bytes: u64) -> u64 {
    (device_bytes / 2048 / MIB * MIB).clamp(64 * MIB, 2 * GIB)
}

/// Whether the kernel sends forced writes (FUA) to every device: NVMe drives and volumes take them, and libata leaves
/// them off for SATA (`libata.fua=0`).
fn takes_forced_writes(system: &SystemDescription) -> bool {
    // md takes them, and its journal makes every write durable before it ends.
    if matches!(system, SystemDescription::Stack(stack) if matches!(stack.layer, LayerDescription::MdJournal(_))) {
        return true;
    }
    system.device_kinds().into_iter().all(|device| match device {
        DeviceDescription::Disk(_) => false,
        // SATA has 32 commands, SAS 256.
        DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth > 256,
        DeviceDescription::Volume(_) => true,
    })
}

impl Completer<'_> {
    pub(super) fn journal(
        &mut self,
        name: LayerName,
        below: &SystemDescription,
    ) -> Result<JournalDescription, InputError> {
        let device_bytes = below.capacity_bytes();
        let is_xfs = name == LayerName::Xfs;
        let table = if is_xfs { &self.file.xfs } else { &self.file.ext4 };
        let key = |key: &str| format!("{}.{key}", name.key());
        let (kind, size, interval_ns, rule) = match is_xfs {
            true => (JournalKind::Xfs, xfs_log_bytes(device_bytes), 30_000_000_000, "default of mkfs.xfs and mount"),
            false => {
                (JournalKind::Ext4, ext4_journal_bytes(device_bytes), 5_000_000_000, "default of mkfs.ext4 and mount")
            }
        };
        let external = self.file.stack.journal.is_some();
        let journal_bytes = self.bytes(&key("size"), table.size, size, rule);
        let interval_ns = self.duration(&key("interval"), table.interval, interval_ns, rule)?;
        let barriers = self.or_default(&key("barriers"), table.barriers, true, rule);
        let takes = takes_forced_writes(below);
        let forced_writes = self.or_default(
            &key("forced_writes"),
            table.forced_writes,
            takes,
            "NVMe and volumes take FUA; libata does not send it",
        );
        let blocks = "inode, bitmap, group descriptor and extent block";
        let allocation_blocks = self.or_default(&key("allocation_blocks"), table.allocation_blocks, 4, blocks);
        let written_bytes = self.bytes(&key("written"), table.written, device_bytes, "files that were written before");
        Ok(JournalDescription {
            kind,
            journal_bytes,
            external,
            interval_ns,
            barriers,
            forced_writes,
            allocation_blocks,
            timestamp_ns: 4_000_000,
            checkpoint_ns: 30_000_000_000,
            written_bytes,
        })
    }
}
