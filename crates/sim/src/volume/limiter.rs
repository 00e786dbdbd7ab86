//! [`Limiter`]: limits on requests and bytes per second that apply together, as providers count them.

use headstack_workload::{Kind, Request};

use super::bucket::Bucket;
use crate::description::volume::{Accounting, Counts, Limit, LimitScope};

/// Limits in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    accounting: Accounting,
    limits: Vec<(Limit, Bucket)>,
    /// Sequential runs of writes and of reads.
    runs: [Run; 2],
}

/// End of the last request of a kind, where a sequential request continues.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end_bytes: u64,
    /// Unused bytes of the last accounted unit.
    left_bytes: u64,
}

/// Cost of a request as the provider counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    requests: u64,
    bytes: u64,
}

impl Run {
    /// Returns the cost of a request, and moves the run to its end.
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

impl Limiter {
    /// Creates unused limits with full buckets. `slack_ns` is how far requests may run ahead of a limit.
    pub fn new(accounting: Accounting, limits: &[Limit], slack_ns: u64) -> Limiter {
        let limits = limits.iter().map(|limit| (*limit, Bucket::new(limit, slack_ns))).collect();
        Limiter { accounting, limits, runs: [Run::default(); 2] }
    }

    /// Charges a read or write to every limit; returns when all limits admit it, and as how many requests it counts.
    pub fn pay(&mut self, now_ns: u64, request: &Request) -> (u64, u64) {
        let is_read = request.kind == Kind::Read;
        let run = &mut self.runs[usize::from(is_read)];
        let cost = run.count(self.accounting, request.offset_bytes, u64::from(request.length_bytes));
        let mut begin_ns = now_ns;
        for (limit, bucket) in &mut self.limits {
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
        (begin_ns, cost.requests)
    }

    /// Returns the credits of each limit with burst credits, as of its last use.
    pub fn credits(&self) -> impl Iterator<Item = u64> + '_ {
        self.limits.iter().filter(|(limit, _)| limit.burst.is_some()).map(|(_, bucket)| bucket.credits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn accounting(unit_kib: u32, whole_units: bool) -> Accounting {
        Accounting { unit_bytes: Some(unit_kib * 1024), merges: true, whole_units }
    }

    /// Returns the cost, in accounted requests, of requests of `length_kib` at offsets in KiB.
    fn counted(accounting: Accounting, offsets_kib: &[u64], length_kib: u64) -> Vec<u64> {
        let mut run = Run::default();
        let count = |&at: &u64| run.count(accounting, at * KIB, length_kib * KIB).requests;
        offsets_kib.iter().map(count).collect()
    }

    /// Amazon's own examples: 1,024 KiB count as four requests of 256 KiB. Eight sequential requests of 32 KiB count as
    /// one, eight random ones as eight.
    #[test]
    fn requests_are_counted_as_amazon_does() {
        let ssd = accounting(256, false);
        assert_eq!(counted(ssd, &[0], 1024), [4]);
        assert_eq!(counted(ssd, &[0, 32, 64, 96, 128, 160, 192, 224], 32).iter().sum::<u64>(), 1);
        assert_eq!(counted(ssd, &[0, 64, 128, 192, 256, 320, 384, 448], 32).iter().sum::<u64>(), 8);
        assert_eq!(
            counted(ssd, &[0, 200], 200),
            [1, 1],
            "the second request does not fit in the rest of the first unit"
        );
    }

    /// A small random request costs 1 MB on a volume of hard disks; sequential requests share that cost.
    #[test]
    fn a_disk_volume_charges_whole_units_for_random_requests() {
        let mut run = Run::default();
        let mut bytes = |at_kib: u64| run.count(accounting(1024, true), at_kib * KIB, 16 * KIB).bytes / KIB;
        assert_eq!([bytes(0), bytes(5000), bytes(5016), bytes(5032)], [1024, 1024, 0, 0]);
    }
}
