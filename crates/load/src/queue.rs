//! [`Queue`]: requests of a trace or of clients from arrival to completion, each with a tag of the load that issued it.

use std::collections::VecDeque;

use headstack_workload::Request;

use crate::load_loop::{Ended, LoadLoop};
use crate::worker::LoopStats;

/// Requests that have arrived and are not complete. Requests without a free slot wait in order of arrival; they count
/// as outstanding, and their response time starts at arrival. Memory grows with the backlog.
pub struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Number of waiting requests that arrived since requests were last submitted.
    fresh: u64,
    /// Tag of the request in flight in each slot.
    under_way: Vec<Option<T>>,
    /// Time before which no more arrivals are possible, in ns.
    booked_ns: u64,
    ended: Vec<Ended>,
    loop_stats: LoopStats,
}

struct Waiting<T> {
    arrived_ns: u64,
    request: Request,
    of: T,
}

impl<T: Copy> Queue<T> {
    /// Creates an empty queue for an idle load loop.
    pub fn new(load_loop: &LoadLoop) -> Self {
        Queue {
            waiting: VecDeque::new(),
            fresh: 0,
            under_way: Vec::new(),
            booked_ns: load_loop.now_ns,
            ended: Vec::new(),
            loop_stats: LoopStats::default(),
        }
    }

    /// Adds a request that arrives at `at_ns`, which is now or after the last check of the target.
    pub fn arrive(&mut self, load_loop: &mut LoadLoop, at_ns: u64, request: &Request, of: T) {
        let arrived_ns = at_ns.clamp(self.booked_ns, load_loop.now_ns.max(self.booked_ns));
        self.booked_ns = arrived_ns;
        load_loop.count_depth(arrived_ns);
        load_loop.waiting += 1;
        if let Some(measuring) = &mut load_loop.measuring
            && measuring.end_ns.is_none()
        {
            measuring.arrived += 1;
        }
        self.fresh += 1;
        self.waiting.push_back(Waiting { arrived_ns, request: *request, of });
    }

    /// Issues waiting requests while there is room, and calls `each` for each of them.
    pub fn hand_over(&mut self, load_loop: &mut LoadLoop, mut each: impl FnMut(&T, u64)) {
        let mut old = self.waiting.len() as u64 - self.fresh;
        while load_loop.has_room()
            && let Some(next) = self.waiting.pop_front()
        {
            // A request that found a free slot is late because of this program.
            match old.checked_sub(1) {
                Some(fewer) => old = fewer,
                None => {
                    self.fresh -= 1;
                    self.loop_stats.lateness.record(load_loop.now_ns - next.arrived_ns);
                }
            }
            load_loop.waiting -= 1;
            let slot = load_loop.issue(next.arrived_ns, &next.request) as usize;
            if slot >= self.under_way.len() {
                self.under_way.resize(slot + 1, None);
            }
            each(&next.of, load_loop.now_ns);
            self.under_way[slot] = Some(next.of);
        }
        if load_loop.measuring.is_some() && !load_loop.is_over() {
            self.loop_stats.late_arrivals += self.fresh;
        }
        self.fresh = 0;
    }

    /// Records completions and adds them to `done`.
    pub fn settle(&mut self, load_loop: &mut LoadLoop, done: &mut Vec<(T, Ended)>) {
        let ended = &mut self.ended;
        load_loop.settle(|one| ended.push(*one));
        self.booked_ns = self.booked_ns.max(load_loop.now_ns);
        for one in self.ended.drain(..) {
            let of = self.under_way[one.slot as usize].take().expect("a completed request was submitted");
            done.push((of, one));
        }
    }

    /// Returns whether the backlog is larger than a random fluctuation.
    pub fn has_piled_up(&self, load_loop: &LoadLoop) -> bool {
        load_loop
            .measuring
            .as_ref()
            .is_some_and(|measuring| measuring.has_piled_up(load_loop.waiting + load_loop.under_way()))
    }

    /// Ends the run: requests still waiting will never be issued.
    pub fn finish(mut self, load_loop: &mut LoadLoop, saturated: bool) -> LoopStats {
        load_loop.close(load_loop.now_ns);
        if let Some(measuring) = &mut load_loop.measuring {
            self.waiting.iter().for_each(|waiting| measuring.still_outstanding(waiting.arrived_ns));
        }
        self.loop_stats.backlog = self.waiting.len() as u64;
        self.loop_stats.saturated = saturated;
        load_loop.waiting = 0;
        self.loop_stats
    }
}
