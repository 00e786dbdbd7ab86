//! What the clock counts, and what that says of the path to it and back.

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Request};
use serde::Serialize;

use crate::buckets::Buckets;
use crate::wall::Scheduling;

/// What the server knows of the path by itself.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// Requests answered.
    pub requests: u64,
    /// What a request costs on the way in and out, subtracted from what it is made to take; of several paths, the longest
    /// way. Nanoseconds of the wall.
    pub floor_ns: u64,
    /// Answers that left later than the model said: the lateness of all, in nanoseconds of the wall.
    pub lateness_p50_ns: u64,
    /// As above, of one in a hundred.
    pub lateness_p99_ns: u64,
    /// As above, of one in a thousand.
    pub lateness_p999_ns: u64,
    /// The latest.
    pub lateness_max_ns: u64,
    /// The mean of it.
    pub lateness_mean_ns: u64,
    /// Requests whose data were not copied yet when the answer was due: for how long, of one in a hundred. That is no
    /// lateness of the clock.
    pub copying_p99_ns: u64,
    /// Requests that waited for memory before their data were copied.
    pub memory_waits: u64,
    /// How long they waited on average.
    pub memory_wait_mean_ns: u64,
    /// Requests that the model would have answered sooner than the path can.
    pub below_floor: u64,
    /// The most requests under way at a time.
    pub deepest_queue: usize,
    /// What the scheduler does for the clock.
    pub scheduling: Scheduling,
    /// Nanoseconds of the model in one of the wall.
    pub speed: f64,
}

/// Requests of a kind that were answered.
#[derive(Clone, Debug, Default)]
pub struct KindCount {
    /// Their response times, of the model.
    pub responses: Buckets,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// What the clock thread counts.
#[derive(Clone, Debug)]
pub struct Ledger {
    kinds: [KindCount; Kind::ALL.len()],
    lateness: LatencyHistogram,
    late: Buckets,
    copying: LatencyHistogram,
    below_floor: u64,
    deepest_queue: usize,
    /// What the scheduler does for the clock.
    pub scheduling: Scheduling,
}

impl Ledger {
    /// Nothing yet.
    pub fn new() -> Ledger {
        Ledger {
            kinds: Default::default(),
            lateness: LatencyHistogram::new(),
            late: Buckets::new(),
            copying: LatencyHistogram::new(),
            below_floor: 0,
            deepest_queue: 0,
            scheduling: Scheduling::Shared,
        }
    }

    /// An answer left so much later than it was due, or than its data were copied, which was so much after it was due.
    #[inline]
    pub fn answered(&mut self, late_ns: u64, copied_ns: u64, below_floor: bool) {
        // What the path itself takes is no lateness of the clock.
        if below_floor {
            self.below_floor += 1;
        }
        self.lateness.record(late_ns);
        self.late.record(late_ns);
        self.copying.record(copied_ns);
    }

    /// A request was answered which took so long in the model.
    #[inline]
    pub fn served(&mut self, request: &Request, response_ns: u64, failed: bool) {
        let count = &mut self.kinds[request.kind as usize];
        count.responses.record(response_ns);
        count.bytes += u64::from(request.length_bytes);
        count.failed += u64::from(failed);
    }

    /// What was answered of a kind.
    pub fn kind(&self, kind: Kind) -> &KindCount {
        &self.kinds[kind as usize]
    }

    /// So many are under way.
    #[inline]
    pub fn outstanding(&mut self, requests: usize) {
        self.deepest_queue = self.deepest_queue.max(requests);
    }

    /// Lateness so far.
    pub fn late(&self) -> &Buckets {
        &self.late
    }

    /// The path as it was until now.
    pub fn path(&self, floor_ns: u64, speed: f64) -> Path {
        let at = |share| self.lateness.quantile_ns(share).unwrap_or_else(|| self.lateness.max_ns());
        Path {
            requests: self.lateness.count(),
            floor_ns,
            lateness_p50_ns: at(0.5),
            lateness_p99_ns: at(0.99),
            lateness_p999_ns: at(0.999),
            lateness_max_ns: self.lateness.max_ns(),
            lateness_mean_ns: self.lateness.mean_ns() as u64,
            copying_p99_ns: self.copying.quantile_ns(0.99).unwrap_or_else(|| self.copying.max_ns()),
            memory_waits: 0,
            memory_wait_mean_ns: 0,
            below_floor: self.below_floor,
            deepest_queue: self.deepest_queue,
            scheduling: self.scheduling,
            speed,
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::new()
    }
}
