//! External view of a running system: [`Gauges`] of its activity, and the health of its devices.

use serde::{Deserialize, Serialize};

use crate::array::{PassKind, PassState};
use crate::description::array::Level;

/// Current activity of a system, for users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gauges {
    /// Requests in the system and in the host in front of it.
    pub outstanding: u32,
    /// Each device, as the description numbers them.
    pub devices: Vec<DeviceGauge>,
    /// The cache of an array's controller.
    pub cache: Option<CacheGauge>,
    /// The groups of an array.
    pub groups: Vec<GroupGauge>,
}

/// Current activity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceGauge {
    /// Name of the member; empty for a single device.
    pub name: String,
    /// State of the device.
    pub state: DeviceState,
    /// Its commands, including those that wait for a tag.
    pub queue: u32,
    /// Current cylinder or destination of the arm; with several actuators, of the first active one.
    pub cylinder: Option<u32>,
    /// Cylinders of a disk; 0 without an arm.
    pub cylinders: u32,
    /// The surface that is read or written.
    pub head: u32,
    /// Bytes written by the host that are only in its memory.
    pub dirty_bytes: u64,
}

/// State of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// Nothing.
    Idle,
    /// It reads for its host.
    Reading,
    /// It writes for its host.
    Writing,
    /// It works for itself: recalibration, a scan, cleaning, garbage collection.
    Internal,
    /// Its spindle is stopped.
    Standby,
    /// It does not respond.
    Missing,
    /// It takes the place of a member that is missing, and is being filled.
    Rebuilding,
}

/// The cache of an array's controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheGauge {
    /// Its size.
    pub bytes: u64,
    /// Pages with data that the members do not have yet, in bytes.
    pub dirty_bytes: u64,
    /// Reads that it answered so far.
    pub hits: u64,
    /// Whether a power cut loses none of its data.
    pub battery_ok: bool,
}

/// A group of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupGauge {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// State of the group.
    pub state: GroupHealth,
    /// Progress of the spare being filled.
    pub rebuilt_bytes: u64,
    /// Total bytes of the spare; 0 if none is being filled.
    pub of_bytes: u64,
    /// Bytes of its slots that redundancy could not restore, and that have not been written since.
    pub lost_bytes: u64,
    /// The last pass over its stripes since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<PassGauge>,
}

/// A check, a repair or a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PassGauge {
    /// Which.
    pub kind: PassKind,
    /// How far it has come.
    pub state: PassState,
    /// Bytes of each slot that it has seen.
    pub done_bytes: u64,
    /// All that it sees.
    pub of_bytes: u64,
}

/// How a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupHealth {
    /// All members are valid.
    Healthy,
    /// A member is missing.
    Degraded,
    /// One is being filled.
    Rebuilding,
    /// More are missing than its redundancy makes up for.
    Failed,
}

/// Inputs of a device's SMART counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceHealth {
    /// Name of the member; empty for a single device.
    pub name: String,
    /// Product name.
    pub model: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Turns of the spindle a minute.
    pub rpm: Option<u32>,
    /// Sectors found unreadable and not written since.
    pub pending_sectors: u64,
    /// Sectors that are on spares.
    pub reallocated_sectors: u64,
    /// Accesses that failed.
    pub uncorrectable_errors: u64,
    /// Passes repeated because of an error.
    pub retried_passes: u64,
    /// Bytes read by its host.
    pub read_bytes: u64,
    /// Bytes written by its host.
    pub written_bytes: u64,
    /// Times that it was switched on, the first included.
    pub power_cycles: u32,
    /// Whether it does not respond.
    pub missing: bool,
}
