//! [`Flow`]: keeps the numbers of requests of several jobs in a fixed proportion, like fio's `flow`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared state of the jobs of a flow: the number of requests of the active jobs, and the sum of their weights, as in
/// fio.
#[derive(Debug)]
pub struct Flow {
    issued: AtomicU64,
    weight: AtomicU64,
}

impl Default for Flow {
    fn default() -> Flow {
        // Starts at 1, so that a job's share can be computed before the first request.
        Flow { issued: AtomicU64::new(1), weight: AtomicU64::new(0) }
    }
}

/// A job's membership of a flow.
#[derive(Clone, Debug)]
pub struct Member {
    flow: Arc<Flow>,
    weight: u32,
    /// Sleep time of a job that is ahead of the others, in ns.
    pub sleep_ns: u64,
}

impl Member {
    /// Joins a flow. The weights of all members count from the start, so that the first job to begin does not get
    /// ahead.
    pub fn new(flow: &Arc<Flow>, weight: u32, sleep_ns: u64) -> Member {
        flow.weight.fetch_add(weight.into(), Ordering::Relaxed);
        Member { flow: Arc::clone(flow), weight, sleep_ns }
    }

    /// Starts issuing requests.
    pub fn begin(&self) -> Turns<'_> {
        Turns { member: self, issued: 0 }
    }
}

/// An active member. Other members wait for it until it is dropped.
pub struct Turns<'a> {
    member: &'a Member,
    issued: u64,
}

impl Turns<'_> {
    /// Returns whether the member may issue a request, and counts the request if so.
    pub fn takes(&mut self) -> bool {
        let Flow { issued, weight } = &*self.member.flow;
        let own = self.issued as f64 / issued.load(Ordering::Relaxed) as f64;
        if own > f64::from(self.member.weight) / weight.load(Ordering::Relaxed) as f64 {
            return false;
        }
        issued.fetch_add(1, Ordering::Relaxed);
        self.issued += 1;
        true
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        self.member.flow.issued.fetch_sub(self.issued, Ordering::Relaxed);
        self.member.flow.weight.fetch_sub(self.member.weight.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_the_weights_and_an_ended_job_blocks_none() {
        let flow = Arc::new(Flow::default());
        let (heavy, light) = (Member::new(&flow, 3, 0), Member::new(&flow, 1, 0));
        let (mut first, mut second) = (heavy.begin(), light.begin());
        let mut counts = [0u32; 2];
        for _ in 0..4_000 {
            counts[0] += u32::from(first.takes());
            counts[1] += u32::from(second.takes());
        }
        assert!(counts[0].abs_diff(3 * counts[1]) <= 4, "{counts:?}");
        drop(second);
        assert!((0..1_000).all(|_| first.takes()), "there is no other member to wait for");
    }

    #[test]
    fn a_member_is_held_back_once_its_share_exceeds_its_weight() {
        let flow = Arc::new(Flow::default());
        let (heavy, light) = (Member::new(&flow, 3, 0), Member::new(&flow, 1, 0));
        let (mut first, mut second) = (heavy.begin(), light.begin());
        let until_held = |turns: &mut Turns<'_>| (0..100).take_while(|_| turns.takes()).count();
        // The count of the flow starts at 1. The weight allows 3 of 4 requests, but not 4 of 5.
        assert_eq!(until_held(&mut first), 4);
        // 1 of 6 is below 25 %, and 2 of 7 is above.
        assert_eq!(until_held(&mut second), 2);
        // When a member ends, its requests and its weight leave the flow: 2 of 3 remain, then 3 of 6 with the next
        // request.
        drop(first);
        let next = Member::new(&flow, 1, 0);
        assert!(!second.takes());
        assert_eq!(until_held(&mut next.begin()), 4);
    }
}
