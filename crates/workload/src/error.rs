//! [`WorkloadError`]: an invalid workload.

use crate::access::Complaint;

/// Reason why a generator cannot produce a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct WorkloadError {
    /// Path of the key in the workload's file, for example `lines[3].size`.
    pub key: String,
    /// Error message, with the allowed values.
    pub message: String,
}

impl From<Complaint> for WorkloadError {
    fn from((key, message): Complaint) -> WorkloadError {
        WorkloadError { key, message }
    }
}
