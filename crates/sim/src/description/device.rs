//! [`DeviceDescription`]: a device that is a complete system or a member of an array.

use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::drive::DriveDescription;
use super::ssd::SsdDescription;
use super::volume::VolumeDescription;

/// A device.
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
    /// Unit of access for SSDs, which have no sectors, in bytes.
    pub const PAGE_BYTES: u32 = 4096;

    /// Returns the product name, for display.
    pub fn name(&self) -> &str {
        match self {
            DeviceDescription::Disk(drive) => &drive.name,
            DeviceDescription::Ssd(ssd) => &ssd.name,
            DeviceDescription::Volume(volume) => &volume.name,
        }
    }

    /// Returns the exported capacity, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceDescription::Disk(drive) => {
                drive.geometry.logical_blocks * u64::from(drive.geometry.logical_block_bytes)
            }
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_bytes,
            DeviceDescription::Volume(volume) => volume.capacity_bytes,
        }
    }

    /// Returns the logical block size in bytes. Every request is a multiple of it.
    pub fn block_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.logical_block_bytes,
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_block_bytes,
            DeviceDescription::Volume(volume) => volume.block_bytes,
        }
    }

    /// Returns the physical sector size in bytes; 4 KiB for a device without sectors.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
            DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => Self::PAGE_BYTES,
        }
    }

    /// Returns the maximum number of commands in the device, regardless of the host.
    pub fn tags(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host_tags.min(drive.queue.depth),
            DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth,
            DeviceDescription::Volume(volume) => volume.queue_depth,
        }
    }

    /// Returns the host adapter of a device that is a complete system. In an array, the controller replaces the host
    /// adapter.
    pub fn host(&self) -> Option<&AdapterDescription> {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host.as_ref(),
            DeviceDescription::Ssd(ssd) => ssd.interface.host.as_ref(),
            // The latency of a volume is the latency that its host measures.
            DeviceDescription::Volume(_) => None,
        }
    }

    /// Sets or removes the host adapter of the device.
    pub fn set_host(&mut self, host: Option<AdapterDescription>) {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host = host,
            DeviceDescription::Ssd(ssd) => ssd.interface.host = host,
            DeviceDescription::Volume(_) => {}
        }
    }
}
