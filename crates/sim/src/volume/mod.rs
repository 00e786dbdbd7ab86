//! [`Volume`]: a cloud block volume: limits on requests and bytes with their buckets of credits, and a latency, without
//! its internals. See docs/design/volumes.md.
//!
//! A request is counted as its provider counts it, waits until every limit lets it begin, and is answered after a drawn
//! latency. All of this is known when it arrives, so a volume has one event per request.

mod bucket;
mod latency;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::{Kind, Request};

use crate::description::volume::{Accounting, Counts, LimitScope, VolumeDescription};
use crate::drive::Completion;
use crate::error::InvalidDescription;
use crate::gauges::{DeviceGauge, DeviceState};
use bucket::Bucket;
use latency::Draws;

pub use crate::description::volume::{self as description, check};

/// Counters of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeCounters {
    /// Requests as the provider counts them.
    pub accounted_requests: u64,
    /// Requests that cost nothing, since they continued the last one.
    pub merged_requests: u64,
    /// Total time that requests waited for the limits.
    pub limited_ns: u64,
    /// Total time from the beginning of requests, after their wait for the limits, to their answers.
    pub served_ns: u64,
}

/// A volume in virtual time.
#[derive(Clone, Debug)]
pub struct Volume {
    description: VolumeDescription,
    /// A bucket for each limit.
    buckets: Vec<Bucket>,
    reads: Draws,
    writes: Draws,
    /// Ends of the last read and of the last write, and the rest of the unit that they were counted as.
    runs: [Run; 2],
    /// Requests in flight: time of completion, number of arrival, id, beginning.
    under_way: BinaryHeap<Reverse<(u64, u64, u32, u64)>>,
    arrivals: u64,
    counters: VolumeCounters,
}

/// Position at which requests of a kind continue.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end_bytes: u64,
    /// Unused bytes of the last unit.
    left_bytes: u64,
}

/// Cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    requests: u64,
    bytes: u64,
}

impl Run {
    /// Counts a request; the next one may continue at its end.
    fn count(&mut self, accounting: Accounting, offset_bytes: u64, length_bytes: u64) -> Cost {
        let Some(unit) = accounting.unit_bytes.map(u64::from) else {
            return Cost { requests: 1, bytes: length_bytes };
        };
        let continues = accounting.merges && self.left_bytes > 0 && offset_bytes == self.end_bytes;
        let paid = if continues { self.left_bytes.min(length_bytes) } else { 0 };
        let requests = (length_bytes - paid).div_ceil(unit);
        self.left_bytes = (if continues { self.left_bytes } else { 0 }) + requests * unit - length_bytes;
        self.end_bytes = offset_bytes + length_bytes;
        Cost { requests, bytes: if accounting.whole_units { requests * unit } else { length_bytes } }
    }
}

impl Volume {
    /// Creates an unused volume with full buckets. `seed` is that of its latencies.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &VolumeDescription, seed: u64) -> Result<Volume, InvalidDescription> {
        check(description)?;
        Ok(Volume {
            buckets: description.limits.iter().map(Bucket::new).collect(),
            reads: Draws::new(&description.read, seed),
            writes: Draws::new(&description.write, seed.wrapping_add(1)),
            runs: [Run::default(); 2],
            under_way: BinaryHeap::new(),
            arrivals: 0,
            counters: VolumeCounters::default(),
            description: description.clone(),
        })
    }

    /// Returns its description.
    pub fn description(&self) -> &VolumeDescription {
        &self.description
    }

    /// Returns its counters.
    pub fn counters(&self) -> VolumeCounters {
        self.counters
    }

    /// Returns the credits of each limit that has a bucket, at its last use.
    pub fn credits(&self) -> impl Iterator<Item = u64> + '_ {
        let limits = self.description.limits.iter().zip(&self.buckets);
        limits.filter(|(limit, _)| limit.burst.is_some()).map(|(_, bucket)| bucket.credits())
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        self.under_way.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }

    /// Takes a request. Flushes and trims cost a write's latency and count for no limit: acknowledged data are durable.
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        let begin_ns = match request.kind {
            Kind::Read | Kind::Write => self.pay(now_ns, request),
            Kind::Flush | Kind::Trim => now_ns,
        };
        let latency_ns = match request.kind {
            Kind::Read => self.reads.draw_ns(),
            Kind::Write | Kind::Flush | Kind::Trim => self.writes.draw_ns(),
        };
        self.counters.limited_ns += begin_ns - now_ns;
        self.counters.served_ns += latency_ns;
        self.arrivals += 1;
        self.under_way.push(Reverse((begin_ns + latency_ns, self.arrivals, id, begin_ns)));
    }

    /// Returns when the limits let a request begin, and charges each of them for it.
    fn pay(&mut self, now_ns: u64, request: &Request) -> u64 {
        let is_read = request.kind == Kind::Read;
        let run = &mut self.runs[usize::from(is_read)];
        let cost = run.count(self.description.accounting, request.offset_bytes, u64::from(request.length_bytes));
        self.counters.accounted_requests += cost.requests;
        self.counters.merged_requests += u64::from(cost.requests == 0);
        let mut begin_ns = now_ns;
        for (limit, bucket) in self.description.limits.iter().zip(&mut self.buckets) {
            let holds = match limit.of {
                LimitScope::Both => true,
                LimitScope::Reads => is_read,
                LimitScope::Writes => !is_read,
            };
            let units = match limit.counts {
                Counts::Requests => cost.requests,
                Counts::Bytes => cost.bytes,
            };
            if holds && units > 0 {
                begin_ns = begin_ns.max(bucket.take(now_ns, units));
            }
        }
        begin_ns
    }

    /// Processes every event up to `now_ns`, in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, mut completed: impl FnMut(Completion)) {
        while let Some(&Reverse((at_ns, _, id, started_ns))) = self.under_way.peek() {
            if at_ns > now_ns {
                return;
            }
            self.under_way.pop();
            completed(Completion { at_ns, id, started_ns });
        }
    }

    /// Handles a power cycle of its host: requests in flight are gone, credits stay.
    pub(crate) fn power_cycle(&mut self) {
        self.under_way.clear();
    }

    /// Returns its present state for display; the caller names it.
    pub(crate) fn gauge(&self) -> DeviceGauge {
        let queue = self.under_way.len() as u32;
        let state = if queue == 0 { DeviceState::Idle } else { DeviceState::Reading };
        DeviceGauge { name: String::new(), state, queue, cylinder: None, cylinders: 0, head: 0, dirty_bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn accounting(unit_kib: u32, whole_units: bool) -> Accounting {
        Accounting { unit_bytes: Some(unit_kib * 1024), merges: true, whole_units }
    }

    /// Returns the cost of requests of `length_kib`, at offsets in KiB.
    fn counted(accounting: Accounting, offsets_kib: &[u64], length_kib: u64) -> Vec<u64> {
        let mut run = Run::default();
        let count = |&at: &u64| run.count(accounting, at * KIB, length_kib * KIB).requests;
        offsets_kib.iter().map(count).collect()
    }

    /// Amazon's own examples: 1,024 KiB count as four requests of 256; eight consecutive ones of 32 KiB count as one,
    /// eight elsewhere as eight.
    #[test]
    fn requests_are_counted_as_amazon_does() {
        let ssd = accounting(256, false);
        assert_eq!(counted(ssd, &[0], 1024), [4]);
        assert_eq!(counted(ssd, &[0, 32, 64, 96, 128, 160, 192, 224], 32).iter().sum::<u64>(), 1);
        assert_eq!(counted(ssd, &[0, 64, 128, 192, 256, 320, 384, 448], 32).iter().sum::<u64>(), 8);
        assert_eq!(counted(ssd, &[0, 200], 200), [1, 1], "the second needs more than was left of the first unit");
    }

    /// A small random request costs a volume of disks a megabyte; sequential requests share it.
    #[test]
    fn a_disk_volume_charges_whole_units_for_random_requests() {
        let mut run = Run::default();
        let mut bytes = |at_kib: u64| run.count(accounting(1024, true), at_kib * KIB, 16 * KIB).bytes / KIB;
        assert_eq!([bytes(0), bytes(5000), bytes(5016), bytes(5032)], [1024, 1024, 0, 0]);
    }
}
