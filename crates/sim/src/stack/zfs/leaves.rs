//! [`Leaves`]: the disks of a system below as ZFS counts them. Its limits hold for each leaf device, and an access to an
//! array occupies several.

use headstack_workload::Kind;

use crate::description::device::DeviceDescription;
use crate::description::level::Level;
use crate::description::system::SystemDescription;

/// Leaf devices of a system, and how many of them an access uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    /// Number of leaf devices.
    pub count: u32,
    /// Whether they are disks with platters.
    pub rotating: bool,
    /// Bytes after which an access uses a further leaf; `u64::MAX` if it never does.
    chunk_bytes: u64,
    /// Leaves that a write of a chunk uses.
    copies: u32,
    /// Parities of a block, on levels with records.
    parities: u32,
    /// Data columns of a block, at most.
    data: u32,
    /// Leaves of a top-level device.
    width: u32,
}

impl Leaves {
    /// Returns the leaves of a system. A RAID level that ZFS does not have, a volume or another layer is one leaf, as a
    /// hardware controller would be.
    pub fn of(system: &SystemDescription) -> Leaves {
        let rotating = system.device_kinds().iter().any(|device| matches!(device, DeviceDescription::Disk(_)));
        let single = Leaves { count: 1, rotating, chunk_bytes: u64::MAX, copies: 1, parities: 0, data: 1, width: 1 };
        let SystemDescription::Array(array) = system else { return single };
        let Some(group) = array.groups.first() else { return single };
        let members = array.groups.iter().map(|group| group.members.len() as u32).sum();
        let width = group.members.len() as u32;
        let single = Leaves { width, ..single };
        match group.level {
            Level::Concat => Leaves { count: members, ..single },
            Level::Raid0 => Leaves { count: members, chunk_bytes: group.chunk_bytes, data: width, ..single },
            Level::Raid1 => Leaves { count: members, copies: width, ..single },
            Level::Raid10 => {
                Leaves { count: members, copies: 2, chunk_bytes: group.chunk_bytes, data: (width / 2).max(1), ..single }
            }
            Level::Raidz { parity } => Leaves {
                count: members,
                chunk_bytes: group.chunk_bytes,
                parities: parity,
                data: width.saturating_sub(parity).max(1),
                ..single
            },
            Level::Draid { parity, data, .. } => {
                Leaves { count: members, chunk_bytes: group.chunk_bytes, parities: parity, data, ..single }
            }
            Level::Raid5 | Level::Raid6 | Level::Erasure { .. } => Leaves { width: 1, ..single },
        }
    }

    /// Returns the number of leaves that an access uses.
    pub fn used_by(&self, kind: Kind, bytes: u32) -> u32 {
        let chunks = u64::from(bytes).div_ceil(self.chunk_bytes).clamp(1, u64::from(self.data)) as u32;
        match kind {
            Kind::Read => chunks,
            Kind::Write | Kind::Trim | Kind::Flush => (chunks + self.parities) * self.copies,
        }
    }

    /// Disks of data in a top-level device, by which ZFS scales the bytes of a turn.
    pub fn data_disks(&self) -> u32 {
        self.data
    }

    /// Disks of a top-level device by which ZFS scales what a scan has in flight: all but the parities.
    pub fn scanned_disks(&self) -> u32 {
        self.width.saturating_sub(self.parities).max(1)
    }

    /// Leaves of a top-level device (`vdev_children`).
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Parities of a block, on levels with records.
    pub fn parities(&self) -> u32 {
        self.parities
    }
}
