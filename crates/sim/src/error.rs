//! [`SimError`], every way in which a simulation fails, and [`InvalidDescription`], the first impossible field of a description.

use headstack_replay::ReplayError;
use headstack_workload::WorkloadError;

/// An impossible description: the key of its TOML form, and the permitted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct InvalidDescription {
    /// Path of the key, such as `geometry.zones[3].first_cylinder`.
    pub key: String,
    /// The error and the allowed values.
    pub message: String,
}

/// An [`InvalidDescription`] as a result.
pub(crate) fn fault<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, InvalidDescription> {
    Err(InvalidDescription { key: key.into(), message: message.into() })
}

/// Fails with a key and a message unless a condition holds.
pub(crate) fn require(holds: bool, key: &str, message: impl FnOnce() -> String) -> Result<(), InvalidDescription> {
    if holds { Ok(()) } else { fault(key, message()) }
}

/// The reason why a simulation does not start or does not end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The drive cannot exist.
    #[error("{0}")]
    Drive(#[from] InvalidDescription),
    /// The workload cannot be produced.
    #[error("{0}")]
    Workload(#[from] WorkloadError),
    /// The range of the run does not lie on the system.
    #[error("range: {0}")]
    Range(String),
    /// A recording, or one of its requests, cannot be replayed.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// A fault cannot strike the system.
    #[error("{0}")]
    Fault(String),
    /// The run was stopped from outside.
    #[error("stopped")]
    Stopped,
    /// The simulator broke one of its own rules.
    #[error("a bug of the simulator: {0}")]
    Panicked(String),
}
