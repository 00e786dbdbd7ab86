//! Requests one by one, for those who want more than their distribution: kept only when somebody asks.

use std::sync::{Mutex, MutexGuard};

use headstack_workload::Kind;

/// A request of the measured part that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Which of the run's jobs made it.
    pub job: u32,
    /// What it was.
    pub kind: Kind,
    /// Where, in the address space of the job's targets.
    pub offset_bytes: u64,
    /// How long.
    pub length_bytes: u32,
    /// When it was to be made, on the machine's monotonic clock.
    pub intended_ns: u64,
    /// From then until it came back.
    pub response_ns: u64,
    /// The part of the response time until the system had taken the request.
    pub handing_over_ns: u64,
    /// Without having done what it was asked to.
    pub failed: bool,
}

/// Requests in the order in which they came back. It grows until somebody takes what is in it.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<Logged>>);

impl Log {
    /// Requests that completed since the last call.
    pub fn take(&self) -> Vec<Logged> {
        std::mem::take(&mut *self.lock())
    }

    #[inline]
    pub(crate) fn add(&self, logged: Logged) {
        self.lock().push(logged);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Logged>> {
        self.0.lock().expect("nobody panics with the log")
    }
}
