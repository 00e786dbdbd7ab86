//! [`OpenLoop`]: requests that arrive at set times, whether or not earlier ones have completed.

use headstack_workload::{ArrivalProcess, Generator, Kind, WorkloadError};

use crate::issue::LoopIssue;
use crate::schedule::Schedule;

/// A running open loop.
///
/// A simulated system accepts every request on arrival and queues what it has no room for, so the simulator only
/// [takes](Self::take) requests. On a real system, the engine issues only as many requests as it has room for, and the
/// others wait here: the engine lets requests [arrive](Self::arrive), and takes as many as it can issue. A backlog of
/// any length needs no memory, because it is a copy of the schedule that starts at the first waiting request and
/// repeats the same arrivals.
pub struct OpenLoop {
    generator: Generator,
    /// Schedule of requests that have not arrived yet.
    ahead: Schedule,
    /// Schedule from the first waiting request on; valid only if a request is waiting.
    behind: Schedule,
    waiting: u64,
}

impl OpenLoop {
    /// Creates a loop of the requests of `generator`, which arrive at `rate_per_s`, or at separate rates for reads,
    /// writes and trims.
    ///
    /// # Errors
    /// Returns an error if the clock cannot represent a rate.
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

    /// Returns when the next request arrives.
    #[inline]
    pub fn next_arrival_ns(&self) -> u64 {
        self.ahead.next_ns()
    }

    /// Lets the next request arrive; it waits until it is taken.
    #[inline]
    pub fn arrive(&mut self) {
        if self.waiting == 0 {
            self.behind.clone_from(&self.ahead);
        }
        self.waiting += 1;
        self.ahead.advance();
    }

    /// Returns the number of requests that have arrived and are waiting.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns when the next request is due: the arrival time of the first waiting request, or the next arrival if none
    /// is waiting.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        if self.waiting > 0 { self.behind.next_ns() } else { self.ahead.next_ns() }
    }

    /// Returns the first waiting request. If none is waiting, returns the next request if it arrives by `now_ns`.
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
        // Advance only if another waiting request follows.
        if self.waiting != 1 {
            schedule.advance();
        }
        self.waiting = self.waiting.saturating_sub(1);
        Some(LoopIssue { due_ns, request, is_extra: false })
    }

    /// Returns the arrival times of the requests that are still waiting, in order.
    pub fn into_waiting(self) -> impl Iterator<Item = u64> {
        let mut behind = self.behind;
        (0..self.waiting).map(move |_| {
            let arrived_ns = behind.next_ns();
            behind.advance();
            arrived_ns
        })
    }
}
