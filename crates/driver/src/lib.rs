//! Drivers ([`Loop`], scenarios, probes) determine the next request of a closed loop, an open loop or a scenario, with
//! the same logic in virtual and real time. See docs/design/requests-and-time.md.
//!
//! A driver knows neither the system nor the clock. It counts ns since its start, returns the next request and when it
//! is due, and receives completions. Traces have their own driver, the player of `headstack-replay`.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod closed;
mod end;
mod issue;
mod open;
mod probe;
mod scenario;
mod schedule;

use headstack_workload::{Arrivals, Generator, Workload, WorkloadError};

pub use closed::ClosedLoop;
pub use end::End;
pub use issue::{ClientIssue, LoopIssue, Owner};
pub use open::OpenLoop;
pub use probe::{Answer, Pace, Probe, Probing};
pub use scenario::{Clients, ClientsReport};

/// Requests of a workload in order of issue.
#[allow(clippy::large_enum_variant)] // There is one per run.
pub enum Loop {
    /// Each completion is followed by the next request, possibly after a think time.
    Closed(ClosedLoop),
    /// Requests arrive at set times, regardless of completions.
    Open(OpenLoop),
}

impl Loop {
    /// Creates the loop of `workload` with the requests of `generator`. With `rates_per_s`, reads, writes and trims of
    /// an open loop arrive at separate rates, which replace the workload's common rate.
    ///
    /// # Errors
    /// Returns an error if the clock cannot represent a rate.
    pub fn new(
        workload: &Workload,
        generator: Generator,
        rates_per_s: Option<[f64; 3]>,
        seed: u64,
    ) -> Result<Loop, WorkloadError> {
        Ok(match workload.arrivals {
            Arrivals::Closed { queue_depth, .. } => {
                Loop::Closed(ClosedLoop::new(generator, queue_depth, workload.thinks()))
            }
            Arrivals::Open { rate_per_s, process } => {
                Loop::Open(OpenLoop::new(generator, rate_per_s, rates_per_s, process, seed)?)
            }
        })
    }

    /// Returns when the next request is due, or `u64::MAX` if none is due before a completion.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        match self {
            Loop::Closed(closed) => closed.next_due_ns(),
            Loop::Open(open) => open.next_due_ns(),
        }
    }

    /// Whether a request is due that follows a completion without a think time.
    #[inline]
    pub fn has_answer(&self) -> bool {
        match self {
            Loop::Closed(closed) => closed.has_answer(),
            Loop::Open(_) => false,
        }
    }

    /// Returns the next request due by `now_ns`, if any.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<LoopIssue> {
        match self {
            Loop::Closed(closed) => closed.take(now_ns),
            Loop::Open(open) => open.take(now_ns),
        }
    }

    /// Records that a request completed or failed at `at_ns`.
    #[inline]
    pub fn completed(&mut self, at_ns: u64) {
        match self {
            Loop::Closed(closed) => closed.completed(at_ns),
            Loop::Open(_) => {}
        }
    }
}
