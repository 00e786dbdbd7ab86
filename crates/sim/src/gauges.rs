//! [`Gauges`] and [`DeviceHealth`]: activity inside a running system, and the health of its devices.

use serde::{Deserialize, Serialize};

use crate::array::{PassKind, PassState};
use crate::description::array::Level;

/// Activity inside a system, for display.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gauges {
    /// Requests in the system and in the host in front of it.
    pub outstanding: u32,
    /// Devices, in the order of the description.
    pub devices: Vec<DeviceGauge>,
    /// Cache of an array's controller.
    pub cache: Option<CacheGauge>,
    /// Groups of an array.
    pub groups: Vec<GroupGauge>,
}

/// Activity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceGauge {
    /// The member's name; empty for a device that is a system of its own.
    pub name: String,
    /// Its present activity.
    pub state: DeviceState,
    /// Commands that it has, including those that wait for one of its tags.
    pub queue: u32,
    /// Cylinder where the arm is, or is going; of several actuators the first that works.
    pub cylinder: Option<u32>,
    /// Cylinders of a disk; 0 without an arm.
    pub cylinders: u32,
    /// The surface that is read or written.
    pub head: u32,
    /// Bytes written by the host that are only in its memory.
    pub dirty_bytes: u64,
}

/// Activity of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// No activity.
    Idle,
    /// Reading for its host.
    Reading,
    /// Writing for its host.
    Writing,
    /// Background I/O: recalibration, a scan, cleaning, garbage collection.
    Internal,
    /// Spindle at rest.
    Standby,
    /// Not responding.
    Missing,
    /// Being filled in place of a missing member.
    Rebuilding,
}

/// State of the cache of an array's controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheGauge {
    /// Its size in bytes.
    pub bytes: u64,
    /// Pages with data that the members do not have yet, in bytes.
    pub dirty_bytes: u64,
    /// Reads served so far.
    pub hits: u64,
    /// Whether a power loss loses none of it.
    pub battery_ok: bool,
}

/// State of a group of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupGauge {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// Its health.
    pub state: GroupHealth,
    /// Bytes of the spare that are filled.
    pub rebuilt_bytes: u64,
    /// Bytes of the spare in total; 0 when none is being filled.
    pub of_bytes: u64,
    /// Bytes of its slots that redundancy could not restore and that have not been written since.
    pub lost_bytes: u64,
    /// The last pass over its stripes since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<PassGauge>,
}

/// A check, a repair or a resync in progress or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PassGauge {
    /// Its purpose.
    pub kind: PassKind,
    /// Its progress.
    pub state: PassState,
    /// Bytes of each slot that are done.
    pub done_bytes: u64,
    /// Bytes of each slot that it covers.
    pub of_bytes: u64,
}

/// Health of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupHealth {
    /// Every member holds all its data.
    Healthy,
    /// A member is missing.
    Degraded,
    /// A spare is being filled.
    Rebuilding,
    /// More members are missing than redundancy covers.
    Failed,
}

/// Source values of the SMART counters of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceHealth {
    /// The member's name; empty for a device that is a system of its own.
    pub name: String,
    /// Product name.
    pub model: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Spindle speed, in revolutions per minute.
    pub rpm: Option<u32>,
    /// Sectors found unreadable and not written since.
    pub pending_sectors: u64,
    /// Sectors that were remapped to spares.
    pub reallocated_sectors: u64,
    /// Accesses that failed.
    pub uncorrectable_errors: u64,
    /// Passes repeated because of an error.
    pub retried_passes: u64,
    /// Bytes read by its host.
    pub read_bytes: u64,
    /// Bytes written by its host.
    pub written_bytes: u64,
    /// Times that it was switched on, including the first.
    pub power_cycles: u32,
    /// Whether it does not respond.
    pub missing: bool,
}
