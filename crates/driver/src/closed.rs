//! [`ClosedLoop`]: clients that issue their next request when the last one has completed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::Generator;

use crate::issue::LoopIssue;

/// A running closed loop. Clients start at time 0. Each client has a request in flight, is thinking, or is due.
///
/// Without think times, the next request follows a completion at once, before any other event at the same time.
/// [`has_answer`](Self::has_answer) distinguishes such a request from one whose think time ends now, which is issued
/// later.
///
/// The simulator and the load engine count latency from different times. In virtual time, a request is issued when it
/// is due. In real time, latency counts from the actual issue, as if a client that wakes up late had been thinking
/// longer. The engine issues exactly the requested number of requests, while a simulated run is cut off at its end.
pub struct ClosedLoop {
    generator: Generator,
    clients: u32,
    /// Number of clients that are due without a think time.
    ready: u32,
    /// Times at which thinking clients are due; `None` if clients have no think time.
    thinking: Option<BinaryHeap<Reverse<u64>>>,
}

impl ClosedLoop {
    /// Creates `clients` clients that issue the requests of `generator`, with its think times if `thinks`.
    pub fn new(mut generator: Generator, clients: u32, thinks: bool) -> ClosedLoop {
        let thinking = thinks.then(|| (0..clients).map(|_| Reverse(generator.think_ns())).collect());
        ClosedLoop { generator, clients, ready: if thinks { 0 } else { clients }, thinking }
    }

    /// Whether clients have think times.
    #[inline]
    pub fn thinks(&self) -> bool {
        self.thinking.is_some()
    }

    /// Returns when the next request is due: 0 if it follows a completion, or `u64::MAX` if none is due before a
    /// completion.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        if self.ready > 0 {
            return 0;
        }
        self.thinking.as_ref().and_then(BinaryHeap::peek).map_or(u64::MAX, |&Reverse(due_ns)| due_ns)
    }

    /// Whether a request is due that follows a completion without a think time.
    #[inline]
    pub fn has_answer(&self) -> bool {
        self.ready > 0
    }

    /// Returns the next request due by `now_ns`, if any.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<LoopIssue> {
        let due_ns = match &mut self.thinking {
            None => {
                self.ready = self.ready.checked_sub(1)?;
                now_ns
            }
            Some(thinking) => {
                let first = thinking.peek_mut()?;
                if first.0 > now_ns {
                    return None;
                }
                std::collections::binary_heap::PeekMut::pop(first).0
            }
        };
        Some(LoopIssue { due_ns, request: self.generator.next(), is_extra: false })
    }

    /// Records that a request completed or failed at `at_ns`, so that its client continues.
    #[inline]
    pub fn completed(&mut self, at_ns: u64) {
        let out = self.ready as usize + self.thinking.as_ref().map_or(0, BinaryHeap::len);
        debug_assert!(out < self.clients as usize, "each client has at most one request in flight");
        match &mut self.thinking {
            None => self.ready += 1,
            Some(thinking) => thinking.push(Reverse(at_ns + self.generator.think_ns())),
        }
    }
}
