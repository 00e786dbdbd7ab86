//! [`WorkloadError`]: the fault of a workload.

use crate::access::Complaint;

/// A workload that a generator cannot produce.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct WorkloadError {
    /// Path of the key in the workload's file form, such as `lines[3].size`.
    pub key: String,
    /// The error and the allowed values.
    pub message: String,
}

impl From<Complaint> for WorkloadError {
    fn from((key, message): Complaint) -> WorkloadError {
        WorkloadError { key, message }
    }
}
