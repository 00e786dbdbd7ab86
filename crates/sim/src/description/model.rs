//! [`Model`]: a simulated system, or a device with constant latency that reveals the overhead of everything else.

use super::system::SystemDescription;

/// A device on which every request takes the same time at any queue depth. It reveals the overhead of the path to the
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Latency of a request, in ns.
    pub latency_ns: u64,
    /// Exported capacity, in bytes.
    pub capacity_bytes: u64,
}

/// Model behind an export.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
pub enum Model {
    /// A simulated system.
    System(SystemDescription),
    /// A device with constant latency.
    Constant(Constant),
}
