//! [`LoadError`]: errors of a measurement.

use std::io;

use headstack_workload::WorkloadError;

/// An error that prevents a measurement or ends it early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target cannot be measured as requested: it is missing, in use, too small, or not allowed.
    #[error("{target}: {message}")]
    Target {
        /// Path of the target.
        target: String,
        /// Description of the error, with the allowed values.
        message: String,
    },
    /// A system call failed, and the measurement cannot continue.
    #[error("{target}: {action}: {source}")]
    Io {
        /// Path of the target.
        target: String,
        /// The action that failed: `open`, `create`, `io_uring_setup`.
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The job is invalid.
    #[error("{job}: {message}")]
    Job {
        /// Name of the job.
        job: String,
        /// Description of the error, with the allowed values.
        message: String,
    },
    /// The workload cannot be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The user stopped the measurement.
    #[error("stopped")]
    Stopped,
}
