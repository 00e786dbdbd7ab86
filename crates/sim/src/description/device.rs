//! [`DeviceDescription`]: a device that is a system of its own or a member of an array.

use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::drive::DriveDescription;
use super::ssd::SsdDescription;
use super::volume::VolumeDescription;

/// A device, fully resolved.
#[allow(clippy::large_enum_variant)] // A few a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceDescription {
    /// A disk drive.
    Disk(DriveDescription),
    /// A solid-state drive.
    Ssd(SsdDescription),
    /// A cloud volume.
    Volume(VolumeDescription),
}

impl DeviceDescription {
    /// Unit in which SSDs, which have no sectors, are used.
    pub const PAGE_BYTES: u32 = 4096;

    /// Returns the product name, for display.
    pub fn name(&self) -> &str {
        match self {
            DeviceDescription::Disk(drive) => &drive.name,
            DeviceDescription::Ssd(ssd) => &ssd.name,
            DeviceDescription::Volume(volume) => &volume.name,
        }
    }

    /// Returns the bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceDescription::Disk(drive) => {
                drive.geometry.logical_blocks * u64::from(drive.geometry.logical_block_bytes)
            }
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_bytes,
            DeviceDescription::Volume(volume) => volume.capacity_bytes,
        }
    }

    /// Returns the bytes of a logical block, of which every request is a multiple.
    pub fn block_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.logical_block_bytes,
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_block_bytes,
            DeviceDescription::Volume(volume) => volume.block_bytes,
        }
    }

    /// Returns its physical sector in bytes; 4 KiB for a device that has none.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
            DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => Self::PAGE_BYTES,
        }
    }

    /// Returns the largest number of commands that it holds, with any host.
    pub fn tags(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host_tags.min(drive.queue.depth),
            DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth,
            DeviceDescription::Volume(volume) => volume.queue_depth,
        }
    }

    /// Returns the host adapter and driver of a device that is a system of its own; in an array the controller takes
    /// their place.
    pub fn host(&self) -> Option<&AdapterDescription> {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host.as_ref(),
            DeviceDescription::Ssd(ssd) => ssd.interface.host.as_ref(),
            // Its latency is the one that its host sees.
            DeviceDescription::Volume(_) => None,
        }
    }

    /// Sets its host adapter, or removes it.
    pub fn set_host(&mut self, host: Option<AdapterDescription>) {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host = host,
            DeviceDescription::Ssd(ssd) => ssd.interface.host = host,
            DeviceDescription::Volume(_) => {}
        }
    }
}
