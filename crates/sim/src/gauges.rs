//! [`Gauges`]: activity inside a running system, and [`DeviceHealth`]: the health of its devices.

use serde::{Deserialize, Serialize};

use crate::array::{PassKind, PassState};
use crate::description::array::Level;

/// Activity inside a system, for display.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gauges {
    /// Number of requests in the system and in the host queue.
    pub outstanding: u32,
    /// Gauges of the devices, in the order of the description.
    pub devices: Vec<DeviceGauge>,
    /// Gauge of the array controller's cache.
    pub cache: Option<CacheGauge>,
    /// Gauges of the array's RAID groups.
    pub groups: Vec<GroupGauge>,
}

/// Current activity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceGauge {
    /// Name of the member; empty for a single device.
    pub name: String,
    /// Current state of the device.
    pub state: DeviceState,
    /// Number of commands in the device, including those waiting for a tag.
    pub queue: u32,
    /// Cylinder where the arm is or is moving to. With several actuators, the first busy one.
    pub cylinder: Option<u32>,
    /// Number of cylinders of a disk; 0 for a device without an arm.
    pub cylinders: u32,
    /// Surface being read or written.
    pub head: u32,
    /// Bytes written by the host that are only in the device's memory.
    pub dirty_bytes: u64,
}

/// State of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// The device is idle.
    Idle,
    /// The device reads for the host.
    Reading,
    /// The device writes for the host.
    Writing,
    /// The device performs background I/O: recalibration, a scan, cleaning, or garbage collection.
    Internal,
    /// The spindle is at rest.
    Standby,
    /// The device does not respond.
    Missing,
    /// The device is a spare that is being filled in place of a missing member.
    Rebuilding,
}

/// State of an array controller's cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheGauge {
    /// Size in bytes.
    pub bytes: u64,
    /// Data in pages that are not on the members yet, in bytes.
    pub dirty_bytes: u64,
    /// Number of reads served so far.
    pub hits: u64,
    /// Whether the cache keeps all its data during a power loss.
    pub battery_ok: bool,
}

/// State of an array's RAID group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupGauge {
    /// Name of the group.
    pub name: String,
    /// RAID level of the group.
    pub level: Level,
    /// Health of the group.
    pub state: GroupHealth,
    /// Number of bytes of the spare that are filled.
    pub rebuilt_bytes: u64,
    /// Total number of bytes to fill on the spare; 0 if no spare is being filled.
    pub of_bytes: u64,
    /// Bytes in the group's slots that redundancy could not restore and that have not been rewritten since.
    pub lost_bytes: u64,
    /// Last pass over the group's stripes since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<PassGauge>,
}

/// A check, repair or resync pass, running or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PassGauge {
    /// Purpose of the pass.
    pub kind: PassKind,
    /// State of the pass.
    pub state: PassState,
    /// Bytes of each slot processed so far.
    pub done_bytes: u64,
    /// Bytes of each slot that the pass covers.
    pub of_bytes: u64,
}

/// Health of a RAID group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupHealth {
    /// Every member holds all of its data.
    Healthy,
    /// A member is missing.
    Degraded,
    /// A spare is being filled.
    Rebuilding,
    /// More members are missing than redundancy covers.
    Failed,
}

/// Values from which a device's SMART counters are computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceHealth {
    /// Name of the member; empty for a single device.
    pub name: String,
    /// Product name.
    pub model: String,
    /// Exported capacity in bytes.
    pub capacity_bytes: u64,
    /// Spindle speed, in revolutions per minute.
    pub rpm: Option<u32>,
    /// Number of sectors found unreadable and not rewritten since.
    pub pending_sectors: u64,
    /// Number of sectors remapped to spares.
    pub reallocated_sectors: u64,
    /// Number of failed accesses.
    pub uncorrectable_errors: u64,
    /// Number of media passes repeated after an error.
    pub retried_passes: u64,
    /// Bytes read by the host.
    pub read_bytes: u64,
    /// Bytes written by the host.
    pub written_bytes: u64,
    /// Number of power-ons, including the first.
    pub power_cycles: u32,
    /// Whether the device does not respond.
    pub missing: bool,
}
