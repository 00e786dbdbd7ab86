//! [`Cores`]: the processor cores that a layer's software uses, as one queue in front of several servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cores in virtual time. Work is served in order of arrival by the core that is free first.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// When each core is free.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Time that cores worked, summed, in ns.
    pub busy_ns: u64,
    /// Time that work waited for a core, in ns.
    pub waited_ns: u64,
}

impl Cores {
    /// Creates idle cores; at least one.
    pub fn new(count: u32) -> Cores {
        Cores { free_ns: (0..count.max(1)).map(|_| Reverse(0)).collect(), busy_ns: 0, waited_ns: 0 }
    }

    /// Does `work_ns` of work that arrives at `now_ns`; returns when it is done.
    pub fn work(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        if work_ns == 0 {
            return now_ns;
        }
        let mut first = self.free_ns.peek_mut().expect("there is at least one core");
        let begin_ns = first.0.max(now_ns);
        *first = Reverse(begin_ns + work_ns);
        self.busy_ns += work_ns;
        self.waited_ns += begin_ns - now_ns;
        begin_ns + work_ns
    }

    /// Drops all work.
    pub fn reset(&mut self) {
        let count = self.free_ns.len();
        self.free_ns = (0..count).map(|_| Reverse(0)).collect();
    }

    /// Returns the number of cores.
    pub fn count(&self) -> u32 {
        self.free_ns.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_only_when_every_core_is_busy() {
        let mut cores = Cores::new(2);
        assert_eq!([cores.work(0, 10), cores.work(0, 10), cores.work(0, 10)], [10, 10, 20]);
        assert_eq!(cores.work(50, 10), 60);
        assert_eq!((cores.busy_ns, cores.waited_ns), (40, 10));
    }
}
