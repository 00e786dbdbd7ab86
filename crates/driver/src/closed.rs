//! The closed loop: a number of clients, each of which issues its next request when its last one is complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::Generator;

use crate::issue::LoopIssue;

/// State of a closed loop. Its clients start at 0; each has a request in flight, thinks, or is due.
///
/// Without think times the next request follows a completion immediately, before anything else that happens at that
/// moment: [`has_answer`](Self::has_answer) distinguishes it from one whose think time ends then, and which comes after
/// that.
///
/// Simulator and load engine differ in the start of a request's response time. In virtual time a request is issued when
/// it is due. In real time it counts from the moment at which it is issued: a client whose program wakes late has
/// thought longer. The engine issues no more requests than are measured, so that a run of N requests makes exactly N; a
/// simulated run is cut off at its end.
pub struct ClosedLoop {
    generator: Generator,
    clients: u32,
    /// Clients that are due and have not thought.
    ready: u32,
    /// Due times of the thinking clients; absent without think times.
    thinking: Option<BinaryHeap<Reverse<u64>>>,
}

impl ClosedLoop {
    /// Creates the loop: `clients` clients that issue the requests of `generator`, after its think times if `thinks`.
    pub fn new(mut generator: Generator, clients: u32, thinks: bool) -> ClosedLoop {
        let thinking = thinks.then(|| (0..clients).map(|_| Reverse(generator.think_ns())).collect());
        ClosedLoop { generator, clients, ready: if thinks { 0 } else { clients }, thinking }
    }

    /// Whether clients think.
    #[inline]
    pub fn thinks(&self) -> bool {
        self.thinking.is_some()
    }

    /// When the next request is due: 0 if one follows a completion immediately; `u64::MAX` if none is due before a
    /// request completes.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        if self.ready > 0 {
            return 0;
        }
        self.thinking.as_ref().and_then(BinaryHeap::peek).map_or(u64::MAX, |&Reverse(due_ns)| due_ns)
    }

    /// Whether a request without think time is due.
    #[inline]
    pub fn has_answer(&self) -> bool {
        self.ready > 0
    }

    /// The next request that is due by `now_ns`.
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

    /// Reports that a request completed or failed at `at_ns`; its client continues.
    #[inline]
    pub fn completed(&mut self, at_ns: u64) {
        let out = self.ready as usize + self.thinking.as_ref().map_or(0, BinaryHeap::len);
        debug_assert!(out < self.clients as usize, "each client has one request under way");
        match &mut self.thinking {
            None => self.ready += 1,
            Some(thinking) => thinking.push(Reverse(at_ns + self.generator.think_ns())),
        }
    }
}
