//! [`LoadError`]: what can go wrong in a measurement.

use std::io;

use headstack_workload::WorkloadError;

/// Why a measurement cannot start, or ends early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A target that cannot be measured as requested: missing, in use, too small, not allowed.
    #[error("{target}: {message}")]
    Target {
        /// Path of the file or device.
        target: String,
        /// The fault and the allowed values.
        message: String,
    },
    /// A failed system call after which a measurement cannot continue.
    #[error("{target}: {action}: {source}")]
    Io {
        /// Path of the file or device.
        target: String,
        /// The action that failed: `open`, `create`, `io_uring_setup`.
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// An invalid job.
    #[error("{job}: {message}")]
    Job {
        /// Name of the job.
        job: String,
        /// The fault and the allowed values.
        message: String,
    },
    /// A workload that cannot be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}
