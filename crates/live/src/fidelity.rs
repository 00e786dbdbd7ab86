//! How true a live session was to its model, and for which latencies that makes it valid.

use headstack_result::LatencyHistogram;
use headstack_workload::{Kind, Request};
use serde::Serialize;

use crate::wall::Scheduling;

/// A latency is told true where the path's own error at p99 is at most this share of it.
const VALID_SHARE: f64 = 0.05;

/// What a session measured of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
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
    /// Requests that the model would have answered sooner than the path can.
    pub below_floor: u64,
    /// The most requests under way at a time.
    pub deepest_queue: usize,
    /// What the scheduler does for the clock.
    pub scheduling: Scheduling,
    /// Nanoseconds of the model in one of the wall.
    pub speed: f64,
    /// Latencies of the model from which on the session is valid, in nanoseconds of the model; `None` where it is not.
    pub valid_above_ns: Option<u64>,
    /// The verdict in words.
    pub verdict: String,
}

/// Requests of a kind that were answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct KindCount {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their response times, of the model.
    pub response_ns: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// What the clock thread counts.
#[derive(Debug)]
pub struct Ledger {
    kinds: [KindCount; Kind::ALL.len()],
    lateness: LatencyHistogram,
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
            below_floor: 0,
            deepest_queue: 0,
            scheduling: Scheduling::Shared,
        }
    }

    /// An answer left so much later than it was due.
    #[inline]
    pub fn answered(&mut self, late_ns: u64, below_floor: bool) {
        // What the path itself takes is no lateness of the clock.
        if below_floor {
            self.below_floor += 1;
        }
        self.lateness.record(late_ns);
    }

    /// A request was answered which took so long in the model.
    #[inline]
    pub fn served(&mut self, request: &Request, response_ns: u64, failed: bool) {
        let count = &mut self.kinds[request.kind as usize];
        count.requests += 1;
        count.bytes += u64::from(request.length_bytes);
        count.response_ns += response_ns;
        count.failed += u64::from(failed);
    }

    /// What was answered, by name of kind.
    pub fn kinds(&self) -> serde_json::Value {
        Kind::ALL.iter().map(|&kind| (kind.name().to_owned(), serde_json::json!(self.kinds[kind as usize]))).collect()
    }

    /// So many are under way.
    #[inline]
    pub fn outstanding(&mut self, requests: usize) {
        self.deepest_queue = self.deepest_queue.max(requests);
    }

    /// Lateness so far.
    pub fn lateness(&self) -> &LatencyHistogram {
        &self.lateness
    }

    /// The report.
    pub fn fidelity(&self, floor_ns: u64, speed: f64) -> Fidelity {
        let at = |share| self.lateness.quantile_ns(share).unwrap_or_else(|| self.lateness.max_ns());
        let p99_ns = at(0.99);
        let valid_wall_ns = p99_ns.max(floor_ns) as f64 / VALID_SHARE;
        let mut fidelity = Fidelity {
            requests: self.lateness.count(),
            floor_ns,
            lateness_p50_ns: at(0.5),
            lateness_p99_ns: p99_ns,
            lateness_p999_ns: at(0.999),
            lateness_max_ns: self.lateness.max_ns(),
            below_floor: self.below_floor,
            deepest_queue: self.deepest_queue,
            scheduling: self.scheduling,
            speed,
            valid_above_ns: (self.lateness.count() > 0).then_some((valid_wall_ns * speed) as u64),
            verdict: String::new(),
        };
        fidelity.verdict = fidelity.in_words();
        fidelity
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::new()
    }
}

impl Fidelity {
    fn in_words(&self) -> String {
        let Some(valid_ns) = self.valid_above_ns else {
            return "no verdict: no request was answered".to_owned();
        };
        // Five ticks of a shared scheduler at 250 Hz: more than that is no drive's latency any more.
        const HOPELESS_NS: u64 = 20_000_000;
        if (valid_ns as f64 / self.speed) as u64 > HOPELESS_NS {
            let us = |ns: u64| ns as f64 / 1e3;
            if self.floor_ns > self.lateness_p99_ns {
                return format!("not valid, because the path itself took {:.0} us at the start", us(self.floor_ns));
            }
            let why = match self.scheduling {
                Scheduling::Realtime => "the machine is too busy",
                Scheduling::Shared => "the clock shares its processor: CAP_SYS_NICE would give it SCHED_FIFO",
            };
            let late_us = us(self.lateness_p99_ns);
            return format!("not valid, because one answer in a hundred is {late_us:.0} us late: {why}");
        }
        format!(
            "valid for latencies above {:.1} ms (there the path's error is at most 5 % at p99)",
            valid_ns as f64 / 1e6
        )
    }
}
