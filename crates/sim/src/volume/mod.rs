//! Block volumes of clouds: limits on requests and bytes with their buckets of credits, and a latency; their interior
//! is not modelled.
//!
//! A request is counted as its provider counts it, waits until every limit lets it begin, and is answered after a
//! random latency. So its completion is known when it arrives, and a volume has one event per request.

mod bucket;
mod latency;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_workload::{Kind, Request};

use crate::description::volume::{Accounting, Counts, Of, VolumeDescription};
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
    /// Requests that were free, since they continued the last one.
    pub merged_requests: u64,
    /// Time that requests waited for the limits, added up.
    pub limited_ns: u64,
    /// Sum of the times from when limits let requests begin to their answers.
    pub served_ns: u64,
}

/// A volume in virtual time.
#[derive(Clone, Debug)]
pub struct Volume {
    description: VolumeDescription,
    /// One per limit.
    buckets: Vec<Bucket>,
    reads: Draws,
    writes: Draws,
    /// Where the last read and the last write ended, and the rest of the unit that they were counted as.
    runs: [Run; 2],
    /// Time of completion, number of arrival, name, beginning.
    under_way: BinaryHeap<Reverse<(u64, u64, u32, u64)>>,
    arrivals: u64,
    counters: VolumeCounters,
}

/// Where sequential requests of a kind continue.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end_bytes: u64,
    /// Unused bytes of the last unit.
    left_bytes: u64,
}

/// The cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    requests: u64,
    bytes: u64,
}

impl Run {
    /// Counts a request and continues from its end.
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
    /// If the description is impossible.
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

    /// The description.
    pub fn description(&self) -> &VolumeDescription {
        &self.description
    }

    /// Its counters so far.
    pub fn counters(&self) -> VolumeCounters {
        self.counters
    }

    /// Credits of each limit that has a bucket, when it was last used.
    pub fn credits(&self) -> impl Iterator<Item = u64> + '_ {
        let limits = self.description.limits.iter().zip(&self.buckets);
        limits.filter(|(limit, _)| limit.burst.is_some()).map(|(_, bucket)| bucket.credits())
    }

    /// When something happens next; `u64::MAX` if nothing will.
    #[inline]
    pub fn next_event_ns(&self) -> u64 {
        self.under_way.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }

    /// Submits a request. Flushes and trims take a write's latency and count for no limit: acknowledged data are safe.
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

    /// When the limits let a request begin, which each of them is paid for.
    fn pay(&mut self, now_ns: u64, request: &Request) -> u64 {
        let is_read = request.kind == Kind::Read;
        let run = &mut self.runs[usize::from(is_read)];
        let cost = run.count(self.description.accounting, request.offset_bytes, u64::from(request.length_bytes));
        self.counters.accounted_requests += cost.requests;
        self.counters.merged_requests += u64::from(cost.requests == 0);
        let mut begin_ns = now_ns;
        for (limit, bucket) in self.description.limits.iter().zip(&mut self.buckets) {
            let holds = match limit.of {
                Of::Both => true,
                Of::Reads => is_read,
                Of::Writes => !is_read,
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

    /// Restores the host's power: requests in flight are gone, credits stay.
    pub(crate) fn power_cycle(&mut self) {
        self.under_way.clear();
    }

    /// Its present state; the caller names it.
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

    /// The cost of requests of `length_kib` at offsets in KiB.
    fn counted(accounting: Accounting, offsets_kib: &[u64], length_kib: u64) -> Vec<u64> {
        let mut run = Run::default();
        let count = |&at: &u64| run.count(accounting, at * KIB, length_kib * KIB).requests;
        offsets_kib.iter().map(count).collect()
    }

    /// Amazon's own examples: 1,024 KiB are four requests of 256, eight of 32 KiB in a row are one, eight anywhere are eight.
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
