//! [`Scheduler`]: the processor of an OSD, and the order in which it takes operations: mclock.
//!
//! Operations from other OSDs for clients are taken first (class `immediate` of mClockScheduler.cc). Then comes the
//! class whose reservation is due, else the one that is behind by weight, unless it is at its limit.

use std::collections::VecDeque;

use crate::description::stack::{OsdScheduler, Share};

/// Class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// An operation for another OSD.
    Immediate,
    /// An operation of a client.
    Client,
    /// An operation of recovery.
    Recovery,
}

/// An operation for the processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<T> {
    /// Its meaning for the caller.
    pub item: T,
    /// Processor time.
    pub cpu_ns: u64,
    /// Cost for the scheduler, in bytes.
    pub cost_bytes: u64,
}

/// Threads of an OSD and operations that wait for them.
#[derive(Clone, Debug)]
pub(super) struct Scheduler<T> {
    threads_free: u32,
    immediate: VecDeque<(u64, Work<T>)>,
    client: Queue<T>,
    recovery: Queue<T>,
    /// Weighted virtual time: tag of the last operation taken by weight.
    virtual_time: u64,
    /// When the caller tries again because a class was at its limit.
    retry_ns: u64,
    /// Time that threads worked, in ns.
    pub busy_ns: u64,
    /// Time that operations waited for a thread, in ns.
    pub waited_ns: u64,
}

/// Waiting operations of a class, with the tags of the last one that was taken.
#[derive(Clone, Debug)]
struct Queue<T> {
    share: Share,
    waiting: VecDeque<(u64, Work<T>)>,
    reserved_ns: u64,
    limited_ns: u64,
    weighted: u64,
}

/// Virtual time of a byte at weight 1, so that division by a weight keeps its precision.
const WEIGHT_SCALE: u64 = 1 << 10;

impl<T: Copy> Queue<T> {
    fn new(share: Share) -> Queue<T> {
        Queue { share, waiting: VecDeque::new(), reserved_ns: 0, limited_ns: 0, weighted: 0 }
    }

    /// Returns the time from which the reservation lets the first operation begin.
    fn reservation_tag(&self, scheduler: &OsdScheduler) -> Option<u64> {
        let (arrived_ns, work) = self.waiting.front()?;
        let takes_ns = scheduler.reservation_ns(self.share, work.cost_bytes)?;
        Some((*arrived_ns).max(self.reserved_ns + takes_ns))
    }

    /// Returns the time from which the limit lets the first operation begin.
    fn limit_tag(&self, scheduler: &OsdScheduler) -> Option<u64> {
        let (arrived_ns, work) = self.waiting.front()?;
        match scheduler.limit_ns(self.share, work.cost_bytes) {
            0 => Some(*arrived_ns),
            takes_ns => Some((*arrived_ns).max(self.limited_ns + takes_ns)),
        }
    }

    fn weight_tag(&self) -> Option<u64> {
        let (_, work) = self.waiting.front()?;
        Some(self.weighted + work.cost_bytes * WEIGHT_SCALE / u64::from(self.share.weight))
    }
}

impl<T: Copy> Scheduler<T> {
    /// Creates an idle scheduler.
    pub fn new(scheduler: &OsdScheduler, threads: u32) -> Scheduler<T> {
        Scheduler {
            threads_free: threads,
            immediate: VecDeque::new(),
            client: Queue::new(scheduler.client),
            recovery: Queue::new(scheduler.recovery),
            virtual_time: 0,
            retry_ns: u64::MAX,
            busy_ns: 0,
            waited_ns: 0,
        }
    }

    /// Adds an operation.
    pub fn push(&mut self, now_ns: u64, class: Class, work: Work<T>) {
        let queue = match class {
            Class::Immediate => return self.immediate.push_back((now_ns, work)),
            Class::Client => &mut self.client,
            Class::Recovery => &mut self.recovery,
        };
        // A class that was idle has no claim on the time before.
        if queue.waiting.is_empty() {
            queue.weighted = queue.weighted.max(self.virtual_time);
        }
        queue.waiting.push_back((now_ns, work));
    }

    /// Gives the next operation to a free thread; `None` if there is no thread or no operation.
    pub fn start(&mut self, now_ns: u64, scheduler: &OsdScheduler) -> Option<Work<T>> {
        if self.threads_free == 0 {
            return None;
        }
        let (arrived_ns, work) = self.immediate.pop_front().or_else(|| self.next_by_tag(now_ns, scheduler))?;
        self.threads_free -= 1;
        self.busy_ns += work.cpu_ns;
        self.waited_ns += now_ns - arrived_ns;
        Some(work)
    }

    /// Returns when a free thread may take an operation that is at a limit now, unless it was returned before.
    pub fn retry_ns(&mut self, now_ns: u64, scheduler: &OsdScheduler) -> Option<u64> {
        if self.threads_free == 0 {
            return None;
        }
        let queues = [&self.client, &self.recovery];
        let tags = queues.into_iter().flat_map(|queue| [queue.reservation_tag(scheduler), queue.limit_tag(scheduler)]);
        let next_ns = tags.flatten().min()?;
        let is_known = (now_ns + 1..=next_ns).contains(&self.retry_ns);
        self.retry_ns = if is_known { self.retry_ns } else { next_ns };
        (!is_known).then_some(next_ns)
    }

    /// Frees the thread of a completed operation.
    pub fn finish(&mut self) {
        self.threads_free += 1;
    }

    fn next_by_tag(&mut self, now_ns: u64, scheduler: &OsdScheduler) -> Option<(u64, Work<T>)> {
        let reserved = [&self.client, &self.recovery].map(|queue| queue.reservation_tag(scheduler));
        let limited = [&self.client, &self.recovery].map(|queue| queue.limit_tag(scheduler));
        let weighted = [&self.client, &self.recovery].map(Queue::weight_tag);
        let is_due = |tag: Option<u64>| tag.is_some_and(|tag_ns| tag_ns <= now_ns);
        let due = reserved.map(|tag| tag.filter(|_| is_due(tag)));
        let by_reservation = due.iter().any(Option::is_some);
        let below_limit = [0, 1].map(|at| weighted[at].filter(|_| is_due(limited[at])));
        let tags = if by_reservation { due } else { below_limit };
        // An absent tag is greater than any other here.
        let is_client = match tags {
            [Some(client), Some(recovery)] => client <= recovery,
            [Some(_), None] => true,
            [None, Some(_)] => false,
            [None, None] => return None,
        };
        let (queue, at) = if is_client { (&mut self.client, 0) } else { (&mut self.recovery, 1) };
        queue.weighted = weighted[at].unwrap_or(queue.weighted);
        queue.limited_ns = limited[at].unwrap_or(queue.limited_ns);
        if by_reservation {
            queue.reserved_ns = reserved[at].unwrap_or(queue.reserved_ns);
        } else {
            self.virtual_time = self.virtual_time.max(queue.weighted);
        }
        queue.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(client: (u32, u32), recovery: (u32, u32)) -> OsdScheduler {
        let share = |(reservation_percent, weight)| Share { reservation_percent, weight, limit_percent: None };
        OsdScheduler {
            client: share(client),
            recovery: share(recovery),
            capacity_iops: 1_000,
            bandwidth_bytes_per_s: 4_096_000,
        }
    }

    /// Part of the operations of a saturated thread that clients get; each operation has `cost_ns`.
    fn client_share(scheduler: &OsdScheduler, cost_ns: u64) -> f64 {
        let mut queue = Scheduler::new(scheduler, 1);
        let work = |item| Work { item, cpu_ns: cost_ns, cost_bytes: 4096 };
        let mut served = [0_u32; 2];
        for class in [Class::Client, Class::Recovery] {
            queue.push(0, class, work(class));
            queue.push(0, class, work(class));
        }
        for step in 0..4_000 {
            let now_ns = step * cost_ns;
            let item = queue.start(now_ns, scheduler).unwrap().item;
            served[usize::from(item == Class::Recovery)] += 1;
            queue.finish();
            queue.push(now_ns, item, work(item));
        }
        f64::from(served[0]) / 4_000.0
    }

    /// On an OSD with exactly its capacity, reservations of 100 % in all decide; on a faster OSD, weights share the
    /// rest.
    #[test]
    fn reservations_and_weights_share_a_saturated_osd() {
        for (client, recovery, cost_ns, expected) in [
            ((50, 1), (50, 1), 1_000_000, 0.5),
            ((60, 1), (40, 1), 1_000_000, 0.6),
            ((30, 1), (70, 2), 1_000_000, 0.3),
            ((30, 1), (70, 2), 10_000, 1.0 / 3.0),
            ((0, 3), (0, 1), 1_000_000, 0.75),
        ] {
            let share = client_share(&shares(client, recovery), cost_ns);
            assert!((share - expected).abs() < 0.01, "{client:?} {recovery:?}: {share}");
        }
    }

    /// A class at its limit leaves threads idle until its tag is due.
    #[test]
    fn a_limit_holds_when_threads_are_free() {
        let mut scheduler = shares((50, 1), (0, 1));
        scheduler.recovery.limit_percent = Some(10);
        let mut queue = Scheduler::new(&scheduler, 4);
        (0..3).for_each(|item| queue.push(0, Class::Recovery, Work { item, cpu_ns: 1, cost_bytes: 4096 }));
        // 10 % of 4,096,000 bytes a second are one operation each 10 ms.
        for (item, at_ns) in [(0, 10_000_000), (1, 20_000_000), (2, 30_000_000)] {
            assert!(queue.start(at_ns - 1, &scheduler).is_none());
            assert_eq!(queue.retry_ns(at_ns - 1, &scheduler), Some(at_ns));
            assert_eq!(queue.retry_ns(at_ns - 1, &scheduler), None, "it was returned before");
            assert_eq!(queue.start(at_ns, &scheduler).unwrap().item, item);
        }
        assert_eq!(queue.retry_ns(30_000_000, &scheduler), None);
    }

    #[test]
    fn operations_of_other_osds_come_first() {
        let scheduler = shares((50, 1), (50, 1));
        let mut queue = Scheduler::new(&scheduler, 1);
        for class in [Class::Client, Class::Recovery, Class::Immediate] {
            queue.push(0, class, Work { item: class, cpu_ns: 1, cost_bytes: 4096 });
        }
        assert_eq!(queue.start(0, &scheduler).unwrap().item, Class::Immediate);
        assert!(queue.start(0, &scheduler).is_none(), "one thread");
    }
}
