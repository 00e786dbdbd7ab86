//! The closed loop: so many clients, each of which issues its next request when its last one is complete.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::Generator;

use crate::issue::LoopIssue;

/// A closed loop at work. Its clients begin at 0; each has a request under way, thinks, or is due.
///
/// Without think times the next request answers a completion at once, before anything else that happens at that moment:
/// [`has_answer`](Self::has_answer) tells it from one whose think time ends then, and which comes after that.
///
/// Simulator and load engine differ in when a request counts from. In virtual time it is issued when it is due. In real time
/// it counts from the moment at which it is issued: a client whose program wakes late has thought longer. The engine issues
/// no more than are measured, so that a run of so many requests makes exactly these; a simulated run is cut off where it ends.
pub struct ClosedLoop {
    generator: Generator,
    clients: u32,
    /// Clients that are due and have not thought.
    ready: u32,
    /// When those are due that think; absent where nobody thinks.
    thinking: Option<BinaryHeap<Reverse<u64>>>,
}

impl ClosedLoop {
    /// So many clients that issue the requests of `generator`, after its think times where the clients think.
    pub fn new(mut generator: Generator, clients: u32, thinks: bool) -> ClosedLoop {
        let thinking = thinks.then(|| (0..clients).map(|_| Reverse(generator.think_ns())).collect());
        ClosedLoop { generator, clients, ready: if thinks { 0 } else { clients }, thinking }
    }

    /// Whether clients think.
    #[inline]
    pub fn thinks(&self) -> bool {
        self.thinking.is_some()
    }

    /// When a request is due next: 0 where one is that answers a completion; `u64::MAX` if none is before one completes.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        if self.ready > 0 {
            return 0;
        }
        self.thinking.as_ref().and_then(BinaryHeap::peek).map_or(u64::MAX, |&Reverse(due_ns)| due_ns)
    }

    /// Whether a request is due that nobody has thought about.
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

    /// A request is complete at `at_ns`, whether well or not; its client goes on.
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
