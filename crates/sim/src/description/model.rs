//! [`Model`]: a simulated system, or a device with constant latency that shows the cost of everything else.

use super::system::SystemDescription;

/// A device on which every request takes the same time, however many there are: it shows the cost of the path to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Latency of a request.
    pub latency_ns: u64,
    /// Bytes that it exports.
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
