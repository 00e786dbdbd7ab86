//! [`Ledger`]: counters of the clock, and the resulting statistics of the path to it and back.

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Request};
use serde::Serialize;

use crate::buckets::Buckets;
use crate::wall::Scheduling;

/// The server's own statistics of the path.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// Requests answered.
    pub requests: u64,
    /// Cost of a request on the way in and out, which is subtracted from its service time; with several paths, that of
    /// the slowest. Nanoseconds of wall-clock time.
    pub floor_ns: u64,
    /// Lateness of answers relative to the model, p50, in nanoseconds of wall-clock time.
    pub lateness_p50_ns: u64,
    /// Lateness, p99.
    pub lateness_p99_ns: u64,
    /// Lateness, p99.9.
    pub lateness_p999_ns: u64,
    /// Largest lateness.
    pub lateness_max_ns: u64,
    /// Mean lateness.
    pub lateness_mean_ns: u64,
    /// Time after the due time until the data of a request were copied, p99. It does not count as lateness of the
    /// clock.
    pub copying_p99_ns: u64,
    /// Requests that waited for memory before their data were copied.
    pub memory_waits: u64,
    /// Their mean wait.
    pub memory_wait_mean_ns: u64,
    /// Requests with a service time in the model below the cost of the path.
    pub below_floor: u64,
    /// Highest queue depth.
    pub deepest_queue: usize,
    /// Scheduling class of the clock.
    pub scheduling: Scheduling,
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    pub speed: f64,
}

/// Answered requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct KindCount {
    /// Response times in model time.
    pub responses: Buckets,
    /// Bytes.
    pub bytes: u64,
    /// Failed requests.
    pub failed: u64,
}

/// Counters of the clock thread.
#[derive(Clone, Debug)]
pub struct Ledger {
    kinds: [KindCount; Kind::ALL.len()],
    lateness: LatencyHistogram,
    late: Buckets,
    copying: LatencyHistogram,
    below_floor: u64,
    deepest_queue: usize,
    /// Scheduling class of the clock.
    pub scheduling: Scheduling,
}

impl Ledger {
    /// Creates empty counters.
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

    /// Counts an answer that left `late_ns` after it was due or, if later, after its data were copied, which was
    /// `copied_ns` after it was due.
    #[inline]
    pub fn answered(&mut self, late_ns: u64, copied_ns: u64, below_floor: bool) {
        // The cost of the path itself is no lateness of the clock.
        if below_floor {
            self.below_floor += 1;
        }
        self.lateness.record(late_ns);
        self.late.record(late_ns);
        self.copying.record(copied_ns);
    }

    /// Counts an answered request with its response time in the model.
    #[inline]
    pub fn served(&mut self, request: &Request, response_ns: u64, failed: bool) {
        let count = &mut self.kinds[request.kind as usize];
        count.responses.record(response_ns);
        count.bytes += u64::from(request.length_bytes);
        count.failed += u64::from(failed);
    }

    /// Answered requests of a kind.
    pub fn kind(&self, kind: Kind) -> &KindCount {
        &self.kinds[kind as usize]
    }

    /// Updates the highest queue depth.
    #[inline]
    pub fn outstanding(&mut self, requests: usize) {
        self.deepest_queue = self.deepest_queue.max(requests);
    }

    /// Lateness so far.
    pub fn late(&self) -> &Buckets {
        &self.late
    }

    /// Statistics of the path so far.
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
