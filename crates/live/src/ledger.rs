//! [`Ledger`]: counters of the clock, and the resulting statistics of the path to it and back.

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Request};
use serde::Serialize;

use crate::buckets::Buckets;
use crate::wall::Scheduling;

/// Server-side statistics of the path from a client to the clock and back.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// Number of answered requests.
    pub requests: u64,
    /// Overhead of a request on the way in and out, in ns of wall-clock time, which is subtracted from the service
    /// time; with several paths, the overhead of the slowest.
    pub floor_ns: u64,
    /// Median lateness of answers relative to the model, in ns of wall-clock time.
    pub lateness_p50_ns: u64,
    /// 99th percentile of the lateness, in ns of wall-clock time.
    pub lateness_p99_ns: u64,
    /// 99.9th percentile of the lateness, in ns of wall-clock time.
    pub lateness_p999_ns: u64,
    /// Largest lateness, in ns of wall-clock time.
    pub lateness_max_ns: u64,
    /// Mean lateness, in ns of wall-clock time.
    pub lateness_mean_ns: u64,
    /// 99th percentile of the time from the due time until the data of a request was copied, in ns. This time is not
    /// part of the clock's lateness.
    pub copying_p99_ns: u64,
    /// Number of requests that waited for memory before their data was copied.
    pub memory_waits: u64,
    /// Mean wait for memory, in ns.
    pub memory_wait_mean_ns: u64,
    /// Number of requests whose model service time is below the overhead of the path.
    pub below_floor: u64,
    /// Highest queue depth.
    pub deepest_queue: usize,
    /// Scheduling class of the clock thread.
    pub scheduling: Scheduling,
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    pub speed: f64,
}

/// Totals of the answered requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct KindCount {
    /// Response times in model time.
    pub responses: Buckets,
    /// Bytes transferred.
    pub bytes: u64,
    /// Number of failed requests.
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
    /// Scheduling class of the clock thread.
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

    /// Counts an answer that was sent `late_ns` after its due time or, if later, after its data was copied, `copied_ns`
    /// after the due time.
    #[inline]
    pub fn answered(&mut self, late_ns: u64, copied_ns: u64, below_floor: bool) {
        // The overhead of the path is not lateness of the clock.
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

    /// Returns the totals of answered requests of a kind.
    pub fn kind(&self, kind: Kind) -> &KindCount {
        &self.kinds[kind as usize]
    }

    /// Updates the highest queue depth.
    #[inline]
    pub fn outstanding(&mut self, requests: usize) {
        self.deepest_queue = self.deepest_queue.max(requests);
    }

    /// Returns the histogram of lateness so far.
    pub fn late(&self) -> &Buckets {
        &self.late
    }

    /// Returns the statistics of the path so far.
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
