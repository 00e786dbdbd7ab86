//! [`Model`]: a simulated system, or a device with constant latency that shows the cost of everything else.

use super::system::SystemDescription;

/// A device on which every request takes the same time, at any depth: it shows the cost of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Latency of a request.
    pub latency_ns: u64,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
}

/// The exported model.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
pub enum Model {
    /// A simulated system.
    System(SystemDescription),
    /// A device without mechanics.
    Constant(Constant),
}
