//! The open loop: requests arrive at their times, whether or not earlier ones are complete.

use headstack_workload::{ArrivalProcess, Generator, Kind, WorkloadError};

use crate::issue::LoopIssue;
use crate::schedule::Schedule;

/// State of an open loop.
///
/// A simulated system accepts every request when it arrives, and queues those that it has no room for: the caller only
/// [takes](Self::take) them. On a real system no more are issued than there is room for, and the others wait here: the
/// engine lets them [arrive](Self::arrive), and takes as many as it can issue. A backlog of any length takes no memory:
/// a copy of the schedule stands at the first waiting request, and runs through the same arrivals again.
pub struct OpenLoop {
    generator: Generator,
    /// Requests that have not arrived yet.
    ahead: Schedule,
    /// The schedule from the first waiting request on, if any waits.
    behind: Schedule,
    waiting: u64,
}

impl OpenLoop {
    /// Requests of `generator` that arrive at `rate_per_s`, or reads, writes and trims at a rate of their own each.
    ///
    /// # Errors
    /// A rate that no clock can have.
    pub fn new(
        generator: Generator,
        rate_per_s: f64,
        rates_per_s: Option<[f64; 3]>,
        process: ArrivalProcess,
        seed: u64,
    ) -> Result<OpenLoop, WorkloadError> {
        let ahead = Schedule::new(rate_per_s, rates_per_s, process, seed)?;
        Ok(OpenLoop { generator, behind: ahead.clone(), ahead, waiting: 0 })
    }

    /// When the next request arrives.
    #[inline]
    pub fn next_arrival_ns(&self) -> u64 {
        self.ahead.next_ns()
    }

    /// Counts the next request as arrived; it waits until it is taken.
    #[inline]
    pub fn arrive(&mut self) {
        if self.waiting == 0 {
            self.behind.clone_from(&self.ahead);
        }
        self.waiting += 1;
        self.ahead.advance();
    }

    /// Requests that have arrived and wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// When a request is due next: that of the first that waits, or of the next arrival.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        if self.waiting > 0 { self.behind.next_ns() } else { self.ahead.next_ns() }
    }

    /// Returns the first waiting request; if none waits, the next one, if it arrives by `now_ns`.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<LoopIssue> {
        let schedule = if self.waiting > 0 { &mut self.behind } else { &mut self.ahead };
        let due_ns = schedule.next_ns();
        if due_ns > now_ns {
            return None;
        }
        let request = match schedule.next_kind() {
            None => self.generator.next(),
            Some(kind) => {
                let request = self.generator.next_of(kind);
                if request.kind == Kind::Flush {
                    return Some(LoopIssue { due_ns, request, is_extra: true });
                }
                request
            }
        };
        // No waiting request follows the last.
        if self.waiting != 1 {
            schedule.advance();
        }
        self.waiting = self.waiting.saturating_sub(1);
        Some(LoopIssue { due_ns, request, is_extra: false })
    }

    /// Arrival times of the requests still waiting at the end, in order.
    pub fn into_waiting(self) -> impl Iterator<Item = u64> {
        let mut behind = self.behind;
        (0..self.waiting).map(move |_| {
            let arrived_ns = behind.next_ns();
            behind.advance();
            arrived_ns
        })
    }
}
