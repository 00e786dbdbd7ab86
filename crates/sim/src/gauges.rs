//! What can be seen of a system from outside while it serves: what goes on inside, and the health of its devices.

use serde::{Deserialize, Serialize};

use crate::array::{PassKind, PassState};
use crate::description::array::Level;

/// What is going on inside a system, for people.
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

/// What a device does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceGauge {
    /// The member's name; empty where a device stands alone.
    pub name: String,
    /// What it does.
    pub state: DeviceState,
    /// Commands that it has, those that wait for one of its tags included.
    pub queue: u32,
    /// Where the arm is, or is going; of several actuators the first that works.
    pub cylinder: Option<u32>,
    /// Cylinders of a disk; 0 without an arm.
    pub cylinders: u32,
    /// The surface that is read or written.
    pub head: u32,
    /// Bytes written by the host that are in its memory alone.
    pub dirty_bytes: u64,
}

/// What a device does.
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
    /// Its spindle stands.
    Standby,
    /// It answers nobody.
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
    /// A power cut loses nothing of it.
    pub battery_ok: bool,
}

/// A group of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupGauge {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// How it is.
    pub state: GroupHealth,
    /// What the spare that is being filled has got.
    pub rebuilt_bytes: u64,
    /// What it will have got in the end; 0 when none is being filled.
    pub of_bytes: u64,
    /// Bytes of its slots that no redundancy could bring back, and that nobody has written since.
    pub lost_bytes: u64,
    /// The last pass over its stripes since power came.
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
    /// Every member holds what it should.
    Healthy,
    /// A member is missing.
    Degraded,
    /// One is being filled.
    Rebuilding,
    /// More are missing than its redundancy makes up for.
    Failed,
}

/// What the SMART counters of a device are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceHealth {
    /// The member's name; empty where a device stands alone.
    pub name: String,
    /// Product name.
    pub model: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Turns of the spindle a minute.
    pub rpm: Option<u32>,
    /// Sectors that were found unreadable and have not been written since.
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
    /// It answers nobody.
    pub missing: bool,
}
