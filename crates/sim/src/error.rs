//! [`SimError`], every way in which a simulation fails, and [`InvalidDescription`], the first impossible field of a
//! description.

use headstack_replay::ReplayError;
use headstack_workload::WorkloadError;

/// An impossible description: the key of its TOML form, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct InvalidDescription {
    /// Path of the key, such as `geometry.zones[3].first_cylinder`.
    pub key: String,
    /// The error and the allowed values.
    pub message: String,
}

/// Returns an [`InvalidDescription`] as a result.
pub(crate) fn fault<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, InvalidDescription> {
    Err(InvalidDescription { key: key.into(), message: message.into() })
}

/// Fails with a key and a message if a condition does not hold.
pub(crate) fn require(holds: bool, key: &str, message: impl FnOnce() -> String) -> Result<(), InvalidDescription> {
    if holds { Ok(()) } else { fault(key, message()) }
}

/// The reason why a simulation does not start or does not end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The description of a drive is impossible.
    #[error("{0}")]
    Drive(#[from] InvalidDescription),
    /// The workload cannot be generated.
    #[error("{0}")]
    Workload(#[from] WorkloadError),
    /// The range of the run is not within the system.
    #[error("range: {0}")]
    Range(String),
    /// A trace, or one of its requests, cannot be replayed.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// A fault cannot be injected into the system.
    #[error("{0}")]
    Fault(String),
    /// The run was stopped from outside.
    #[error("stopped")]
    Stopped,
    /// The simulator violated one of its own invariants.
    #[error("a simulator bug: {0}")]
    Panicked(String),
}
