//! [`DeviceDescription`]: a device of any kind, which is a system by itself or a member of an array.

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
    /// A volume of a cloud.
    Volume(VolumeDescription),
}

impl DeviceDescription {
    /// Unit of use of SSDs, which have no sectors.
    pub const PAGE_BYTES: u32 = 4096;

    /// Product name, for people.
    pub fn name(&self) -> &str {
        match self {
            DeviceDescription::Disk(drive) => &drive.name,
            DeviceDescription::Ssd(ssd) => &ssd.name,
            DeviceDescription::Volume(volume) => &volume.name,
        }
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceDescription::Disk(drive) => {
                drive.geometry.logical_blocks * u64::from(drive.geometry.logical_block_bytes)
            }
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_bytes,
            DeviceDescription::Volume(volume) => volume.capacity_bytes,
        }
    }

    /// Bytes of a logical block, the alignment of every request.
    pub fn block_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.logical_block_bytes,
            DeviceDescription::Ssd(ssd) => ssd.capacity.logical_block_bytes,
            DeviceDescription::Volume(volume) => volume.block_bytes,
        }
    }

    /// Its physical sector; 4 KiB of a device that has none.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
            DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => Self::PAGE_BYTES,
        }
    }

    /// Commands that it holds at most, of any host.
    pub fn tags(&self) -> u32 {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host_tags.min(drive.queue.depth),
            DeviceDescription::Ssd(ssd) => ssd.interface.queue_depth,
            DeviceDescription::Volume(volume) => volume.queue_depth,
        }
    }

    /// Host adapter of a single device; in an array the controller takes its place.
    pub fn host(&self) -> Option<&AdapterDescription> {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host.as_ref(),
            DeviceDescription::Ssd(ssd) => ssd.interface.host.as_ref(),
            // Its latency is that which its host sees.
            DeviceDescription::Volume(_) => None,
        }
    }

    /// Puts it behind a host adapter, or behind none.
    pub fn set_host(&mut self, host: Option<AdapterDescription>) {
        match self {
            DeviceDescription::Disk(drive) => drive.interface.host = host,
            DeviceDescription::Ssd(ssd) => ssd.interface.host = host,
            DeviceDescription::Volume(_) => {}
        }
    }
}
