//! [`InstanceLimit`]: the limits of a cloud instance on all its volumes together. They apply before the limits of each
//! volume, so the smaller of the two decides at each moment.

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

use super::orders::{Answer, LayerModel, Order, Orders};
use crate::description::stack::InstanceLimitDescription;
use crate::snapshot::Snapshot;
use crate::volume::limiter::Limiter;

/// Limits of an instance in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct InstanceLimit {
    limiter: Limiter,
    /// Requests that the limits delay, in order of admission: time, id, request.
    waiting: VecDeque<(u64, u32, Request)>,
    /// Number of requests that had to wait.
    delayed: u64,
    /// Total time that requests waited, in ns.
    limited_ns: u64,
}

impl InstanceLimit {
    /// Creates unused limits with full buckets.
    pub fn new(description: &InstanceLimitDescription) -> InstanceLimit {
        InstanceLimit {
            limiter: Limiter::new(description.accounting, &description.limits, 0),
            waiting: VecDeque::new(),
            delayed: 0,
            limited_ns: 0,
        }
    }

    /// Returns the number of requests that had to wait, and their total wait in ns.
    pub fn delays(&self) -> (u64, u64) {
        (self.delayed, self.limited_ns)
    }
}

impl LayerModel for InstanceLimit {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let begin_ns = match request.kind {
            Kind::Read | Kind::Write => self.limiter.pay(now_ns, request).0,
            Kind::Flush | Kind::Trim => now_ns,
        };
        if begin_ns <= now_ns {
            orders.push_back(Order::Send { port: 0, id, request: *request });
            return;
        }
        self.delayed += 1;
        self.limited_ns += begin_ns - now_ns;
        let at = self.waiting.partition_point(|&(at_ns, ..)| at_ns <= begin_ns);
        self.waiting.insert(at, (begin_ns, id, *request));
    }

    fn answered(&mut self, _now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        orders.push_back(Order::Answer(*answer));
    }

    fn next_event_ns(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |&(at_ns, ..)| at_ns)
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&(at_ns, id, request)) = self.waiting.front() {
            if at_ns > now_ns {
                return;
            }
            self.waiting.pop_front();
            orders.push_back(Order::Send { port: 0, id, request });
        }
    }

    fn power_cycle(&mut self, _now_ns: u64) {
        self.waiting.clear();
    }

    fn snapshot(&self, into: &mut Snapshot) {
        into.count("instance_limited_requests", self.delayed);
        into.count("instance_limited_ns", self.limited_ns);
    }
}
