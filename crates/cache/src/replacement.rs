//! [`Replacement`]: an eviction policy chosen at run time.

use crate::nodes::Nodes;
use crate::policies::{Arc, Clock, Fifo, Lfu, Lirs, Lru, S3Fifo, Sieve, Slru, TwoQ, WTinyLfu};
use crate::policy::{CachePolicy, Policy};

/// Eviction policy of a cache, with its state.
#[derive(Clone, Debug)]
pub struct Replacement {
    policy: AnyPolicy,
}

#[derive(Clone, Debug)]
enum AnyPolicy {
    Lru(Lru),
    Fifo(Fifo),
    Clock(Clock),
    Arc(Arc),
    S3Fifo(S3Fifo),
    Sieve(Sieve),
    Lirs(Lirs),
    TwoQ(TwoQ),
    Slru(Slru),
    Lfu(Lfu),
    WTinyLfu(WTinyLfu),
}

macro_rules! of_policy {
    ($replacement:expr, $policy:ident => $answer:expr) => {
        match $replacement {
            AnyPolicy::Lru($policy) => $answer,
            AnyPolicy::Fifo($policy) => $answer,
            AnyPolicy::Clock($policy) => $answer,
            AnyPolicy::Arc($policy) => $answer,
            AnyPolicy::S3Fifo($policy) => $answer,
            AnyPolicy::Sieve($policy) => $answer,
            AnyPolicy::Lirs($policy) => $answer,
            AnyPolicy::TwoQ($policy) => $answer,
            AnyPolicy::Slru($policy) => $answer,
            AnyPolicy::Lfu($policy) => $answer,
            AnyPolicy::WTinyLfu($policy) => $answer,
        }
    };
}

/// An operation on any policy. It is compiled separately for each policy, so that its inner loop does not dispatch.
pub trait Task {
    /// Performs the operation.
    fn with<P: Policy>(self, policy: &mut P);
}

impl Replacement {
    /// Creates a policy without history for a cache of `capacity`. `ids_return` states whether forgotten ids may be
    /// reused for other items.
    pub fn new(policy: CachePolicy, capacity: u64, ids_return: bool) -> Replacement {
        let nodes = Nodes::new(ids_return);
        let policy = match policy {
            CachePolicy::Lru => AnyPolicy::Lru(Lru::new(nodes)),
            CachePolicy::Fifo => AnyPolicy::Fifo(Fifo::new(nodes)),
            CachePolicy::Clock => AnyPolicy::Clock(Clock::new(nodes)),
            CachePolicy::Arc => AnyPolicy::Arc(Arc::new(nodes, capacity)),
            CachePolicy::S3Fifo => AnyPolicy::S3Fifo(S3Fifo::new(nodes, capacity)),
            CachePolicy::Sieve => AnyPolicy::Sieve(Sieve::new(nodes)),
            CachePolicy::Lirs => AnyPolicy::Lirs(Lirs::new(nodes, capacity)),
            CachePolicy::TwoQ => AnyPolicy::TwoQ(TwoQ::new(nodes, capacity)),
            CachePolicy::Slru => AnyPolicy::Slru(Slru::new(nodes, capacity)),
            CachePolicy::Lfu => AnyPolicy::Lfu(Lfu::new(nodes)),
            CachePolicy::WTinyLfu => AnyPolicy::WTinyLfu(WTinyLfu::new(nodes, capacity)),
        };
        Replacement { policy }
    }

    /// Performs an operation on the policy.
    pub fn carry_out(&mut self, task: impl Task) {
        of_policy!(&mut self.policy, policy => task.with(policy));
    }
}

impl Policy for Replacement {
    fn nodes(&mut self) -> &mut Nodes {
        of_policy!(&mut self.policy, policy => policy.nodes())
    }

    #[inline]
    fn holds(&self, id: u32) -> bool {
        of_policy!(&self.policy, policy => policy.holds(id))
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        of_policy!(&mut self.policy, policy => policy.hit(id));
    }

    #[inline]
    fn recall(&mut self, id: u32) {
        of_policy!(&mut self.policy, policy => policy.recall(id));
    }

    #[inline]
    fn replace(&mut self) -> u32 {
        of_policy!(&mut self.policy, policy => policy.replace())
    }

    #[inline]
    fn admit(&mut self, id: u32, weight: u32, key: u64) {
        of_policy!(&mut self.policy, policy => policy.admit(id, weight, key));
    }

    #[inline]
    fn keep(&mut self, id: u32) {
        of_policy!(&mut self.policy, policy => policy.keep(id));
    }

    #[inline]
    fn release(&mut self, id: u32) {
        of_policy!(&mut self.policy, policy => policy.release(id));
    }

    fn discard(&mut self, id: u32) {
        of_policy!(&mut self.policy, policy => policy.discard(id));
    }
}
