//! [`Model`]: a simulated system, or a device without mechanics that shows what everything else costs.

use super::system::SystemDescription;

/// A device on which every request takes the same time, however many there are: what a path itself costs shows on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// What a request takes.
    pub latency_ns: u64,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
}

/// What is exported.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One a session.
pub enum Model {
    /// A simulated system.
    System(SystemDescription),
    /// A device without mechanics.
    Constant(Constant),
}
