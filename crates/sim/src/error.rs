//! [`SimError`]: the errors of a simulation, and [`InvalidDescription`]: the first impossible field of a description.

use headstack_replay::ReplayError;
use headstack_workload::WorkloadError;

/// Error for an impossible field of a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct InvalidDescription {
    /// Path of the key in the TOML file, for example `geometry.zones[3].first_cylinder`.
    pub key: String,
    /// Error message, with the allowed values.
    pub message: String,
}

/// Returns an [`InvalidDescription`] as an `Err`.
pub(crate) fn fault<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, InvalidDescription> {
    Err(InvalidDescription { key: key.into(), message: message.into() })
}

/// Returns an error with this key and message unless `holds` is true.
pub(crate) fn require(holds: bool, key: &str, message: impl FnOnce() -> String) -> Result<(), InvalidDescription> {
    if holds { Ok(()) } else { fault(key, message()) }
}

/// Reason why a simulation could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The description of the system has an impossible value.
    #[error("{0}")]
    Drive(#[from] InvalidDescription),
    /// The workload cannot be generated.
    #[error("{0}")]
    Workload(#[from] WorkloadError),
    /// The range of the run is not inside the system.
    #[error("range: {0}")]
    Range(String),
    /// A trace, or one of its requests, cannot be replayed.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// A fault cannot be injected into the system.
    #[error("{0}")]
    Fault(String),
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
    /// The simulator violated one of its own invariants.
    #[error("a simulator bug: {0}")]
    Panicked(String),
}
