//! [`SystemDescription`]: the system of a run.

use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use super::array::ArrayDescription;
use super::device::DeviceDescription;
use super::drive::DriveDescription;

#[allow(clippy::large_enum_variant)] // One a run; a box would be in every pattern.
/// A system, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SystemDescription {
    /// One device.
    Drive(DeviceDescription),
    /// Several behind a controller.
    Array(ArrayDescription),
}

impl From<DriveDescription> for SystemDescription {
    fn from(drive: DriveDescription) -> SystemDescription {
        SystemDescription::Drive(DeviceDescription::Disk(drive))
    }
}

impl SystemDescription {
    /// Kind in results.
    pub fn kind(&self) -> &'static str {
        match self {
            SystemDescription::Drive(_) => "drive",
            SystemDescription::Array(_) => "array",
        }
    }

    /// Bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            SystemDescription::Drive(device) => device.capacity_bytes(),
            SystemDescription::Array(array) => array.capacity_bytes(),
        }
    }

    /// The largest physical sector; 4 KiB counts for devices that have none.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            SystemDescription::Drive(device) => device.sector_bytes(),
            SystemDescription::Array(array) => {
                array.devices.iter().map(DeviceDescription::sector_bytes).max().unwrap_or(DeviceDescription::PAGE_BYTES)
            }
        }
    }

    /// Whether SSDs in it begin in the steady state, which takes time to reach.
    pub fn begins_steady(&self) -> bool {
        let devices = match self {
            SystemDescription::Drive(device) => std::slice::from_ref(device),
            SystemDescription::Array(array) => &array.devices[..],
        };
        devices.iter().any(|device| matches!(device, DeviceDescription::Ssd(ssd) if ssd.preconditioned))
    }

    /// Number of drives; for an array, those of its first kind.
    pub fn drives(&self) -> usize {
        match self {
            SystemDescription::Drive(_) => 1,
            SystemDescription::Array(array) => array.members.iter().filter(|member| member.device == 0).count(),
        }
    }

    /// LUNs with name and range in the address space.
    pub fn luns(&self) -> Vec<(String, Span)> {
        match self {
            SystemDescription::Drive(device) => {
                let span = Span { start_bytes: 0, length_bytes: device.capacity_bytes() };
                vec![("drive".to_owned(), span)]
            }
            SystemDescription::Array(array) => array.spans(),
        }
    }

    /// Alignment of requests in bytes.
    pub fn block_bytes(&self) -> u32 {
        match self {
            SystemDescription::Drive(device) => device.block_bytes(),
            SystemDescription::Array(array) => array.block_bytes(),
        }
    }
}
