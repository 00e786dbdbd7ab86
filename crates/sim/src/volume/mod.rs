//! [`Volume`]: a cloud block volume: limits on IOPS and throughput with burst credits, plus a latency, without modeling
//! its internals. See docs/design/volumes.md.
//!
//! A request is counted by the provider's rule, waits until every limit admits it, and is answered after a random
//! latency. All of this is determined on arrival, so a volume has one event per request.

mod bucket;
mod latency;
pub(crate) mod limiter;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::{Kind, Request};

use crate::description::volume::VolumeDescription;
use crate::drive::Completion;
use crate::error::InvalidDescription;
use crate::gauges::{DeviceGauge, DeviceState};
use latency::Draws;
use limiter::Limiter;

pub use crate::description::volume::{self as description, check};

/// Counters of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeCounters {
    /// Number of requests as the provider counts them.
    pub accounted_requests: u64,
    /// Number of requests that were free because they continued the previous request.
    pub merged_requests: u64,
    /// Total time that requests waited for the limits, in ns.
    pub limited_ns: u64,
    /// Total time from the start of service, after waiting for the limits, to the answer, in ns.
    pub served_ns: u64,
}

/// A volume in virtual time.
#[derive(Clone, Debug)]
pub struct Volume {
    description: VolumeDescription,
    limiter: Limiter,
    reads: Draws,
    writes: Draws,
    /// Requests in flight, the next to complete first.
    under_way: BinaryHeap<Reverse<InFlight>>,
    /// Number of reads in flight.
    reads_under_way: u64,
    arrivals: u64,
    counters: VolumeCounters,
}

/// A request in flight, ordered by completion and then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    completion_ns: u64,
    arrival_number: u64,
    id: u32,
    started_ns: u64,
    is_read: bool,
}

impl Volume {
    /// Creates an unused volume with full buckets and latencies drawn from `seed`.
    ///
    /// # Errors
    /// Returns an error for the first impossible value in the description.
    pub fn new(description: &VolumeDescription, seed: u64) -> Result<Volume, InvalidDescription> {
        check(description)?;
        Ok(Volume {
            limiter: Limiter::new(description.accounting, &description.limits, description.slack_ns),
            reads: Draws::new(&description.read, seed),
            writes: Draws::new(&description.write, seed.wrapping_add(1)),
            under_way: BinaryHeap::new(),
            reads_under_way: 0,
            arrivals: 0,
            counters: VolumeCounters::default(),
            description: description.clone(),
        })
    }

    /// Returns the volume's description.
    pub fn description(&self) -> &VolumeDescription {
        &self.description
    }

    /// Returns the volume's counters.
    pub fn counters(&self) -> VolumeCounters {
        self.counters
    }

    /// Returns the credits of each limit with burst credits, as of its last use.
    pub fn credits(&self) -> impl Iterator<Item = u64> + '_ {
        self.limiter.credits()
    }

    /// Returns the time of the next event, or `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        self.under_way.peek().map_or(u64::MAX, |Reverse(first)| first.completion_ns)
    }

    /// Submits a request. Flushes and trims take a write's latency and count toward no limit, because acknowledged data
    /// are already durable.
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        let begin_ns = match request.kind {
            Kind::Read | Kind::Write => {
                let (begin_ns, requests) = self.limiter.pay(now_ns, request);
                self.counters.accounted_requests += requests;
                self.counters.merged_requests += u64::from(requests == 0);
                begin_ns
            }
            Kind::Flush | Kind::Trim => now_ns,
        };
        let is_read = request.kind == Kind::Read;
        let latency_ns = match request.kind {
            Kind::Read => {
                let alone_ns = self.reads.draw_ns();
                alone_ns + self.crowding_ns(alone_ns)
            }
            Kind::Write | Kind::Flush | Kind::Trim => self.writes.draw_ns(),
        };
        self.counters.limited_ns += begin_ns - now_ns;
        self.counters.served_ns += latency_ns;
        self.arrivals += 1;
        self.reads_under_way += u64::from(is_read);
        self.under_way.push(Reverse(InFlight {
            completion_ns: begin_ns + latency_ns,
            arrival_number: self.arrivals,
            id,
            started_ns: begin_ns,
            is_read,
        }));
    }

    /// Returns how much the reads in flight lengthen a read that takes `alone_ns` without them.
    fn crowding_ns(&self, alone_ns: u64) -> u64 {
        let VolumeDescription { read_crowding_ppm, read, .. } = &self.description;
        let Some(reads_per_s) = self.description.reads_per_s().filter(|_| *read_crowding_ppm > 0) else { return 0 };
        // Each read in flight adds its share of the time between reads at the limit, relative to the median latency.
        let added = u128::from(alone_ns) * u128::from(self.reads_under_way) * u128::from(*read_crowding_ppm) * 1_000;
        (added / (u128::from(reads_per_s) * u128::from(read.median_ns))) as u64
    }

    /// Processes every event up to `now_ns`, in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, mut completed: impl FnMut(Completion)) {
        while let Some(&Reverse(InFlight { completion_ns, id, started_ns, is_read, .. })) = self.under_way.peek() {
            if completion_ns > now_ns {
                return;
            }
            self.under_way.pop();
            self.reads_under_way -= u64::from(is_read);
            completed(Completion { at_ns: completion_ns, id, started_ns });
        }
    }

    /// Handles a power cycle of the host: requests in flight are lost, and credits remain.
    pub(crate) fn power_cycle(&mut self) {
        self.under_way.clear();
        self.reads_under_way = 0;
    }

    /// Returns the volume's current state for display; the caller fills in the name.
    pub(crate) fn gauge(&self) -> DeviceGauge {
        let queue = self.under_way.len() as u32;
        let state = if queue == 0 { DeviceState::Idle } else { DeviceState::Reading };
        DeviceGauge { name: String::new(), state, queue, cylinder: None, cylinders: 0, head: 0, dirty_bytes: 0 }
    }
}
