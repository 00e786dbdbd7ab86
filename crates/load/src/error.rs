//! What can go wrong in a measurement.

use std::io;

use headstack_workload::WorkloadError;

/// Why a measurement does not begin, or ends early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A target that is not measured as asked: missing, in use, too small, not allowed.
    #[error("{target}: {message}")]
    Target {
        /// Path of the file or device.
        target: String,
        /// The error and the allowed values.
        message: String,
    },
    /// A system call that failed where a measurement cannot go on.
    #[error("{target}: {action}: {source}")]
    Io {
        /// Path of the file or device.
        target: String,
        /// The action that failed: `open`, `create`, `io_uring_setup`.
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// A job that makes no sense.
    #[error("{job}: {message}")]
    Job {
        /// Its name.
        job: String,
        /// The error and the allowed values.
        message: String,
    },
    /// A workload that cannot be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Somebody ended it.
    #[error("stopped")]
    Stopped,
}
