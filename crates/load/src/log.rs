//! [`Log`]: individual requests, recorded only on request, for users who need more than their distribution.

use std::sync::{Mutex, MutexGuard};

use headstack_workload::Kind;

/// A completed request of the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Number of the request's job within the run.
    pub job: u32,
    /// Kind of the request.
    pub kind: Kind,
    /// Offset in the address space of the job's targets, in bytes.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u32,
    /// Intended issue time on the machine's monotonic clock, in ns.
    pub intended_ns: u64,
    /// Time from the intended issue to completion, in ns.
    pub response_ns: u64,
    /// Part of the response time until the system had accepted the request, in ns.
    pub handing_over_ns: u64,
    /// Whether the request failed.
    pub failed: bool,
}

/// Logged requests in order of completion. The log grows until its contents are taken.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<Logged>>);

impl Log {
    /// Returns the requests that completed since the last call.
    pub fn take(&self) -> Vec<Logged> {
        std::mem::take(&mut *self.lock())
    }

    #[inline]
    pub(crate) fn add(&self, logged: Logged) {
        self.lock().push(logged);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Logged>> {
        self.0.lock().expect("the lock is not poisoned")
    }
}
